// What `convssm generate` runs side by side: some of the rows of a ForecastStart, by one model or several, into their files.
#pragma once

#include <functional>
#include <vector>

#include "convssm/cli/generate_start.h"
#include "convssm/generate/generate.h"

namespace convssm::cli {

// Error(usage) if a result is there already, before the first frame of the first clip.
void check_results_are_new(const GenerateCommand& command, const ForecastStart& start);

void tell_result(const GenerateCommand& command, const ForecastStart& start, const data::FrameFormat& format,
                 int64_t frames);

// Rows [begin,end), which each model forecasts. Both arguments must outlive it.
class ForecastGroup {
 public:
  ForecastGroup(const GenerateCommand& command, const ForecastStart& start, int64_t begin, int64_t end)
      : command_(command), start_(start), begin_(begin), end_(end) {}

  generate::GenerateResult run(const std::vector<models::Model*>& models, const data::FrameFormat& format,
                               const std::function<bool(int64_t)>& progress) const;

 private:
  using Sinks = std::vector<std::unique_ptr<generate::FrameSink>>;
  void take_in(models::Model& model, generate::Predictor& predictor) const;
  Sinks open_sinks(const data::FrameFormat& format) const;  // in the order of the models, of each in that of the rows

  const GenerateCommand& command_;
  const ForecastStart& start_;
  int64_t begin_, end_;
};

}  // namespace convssm::cli
