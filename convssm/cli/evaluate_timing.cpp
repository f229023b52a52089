#include "convssm/cli/evaluate_timing.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "convssm/base/atomic_file.h"
#include "convssm/base/folder.h"
#include "convssm/base/log.h"
#include "convssm/base/progress.h"
#include "convssm/base/stop_request.h"
#include "convssm/cli/exit_status.h"
#include "convssm/cli/model_changes.h"
#include "convssm/evaluate/evaluate.h"
#include "convssm/evaluate/timing_study.h"
#include "convssm/report/picture.h"
#include "convssm/report/timing.h"

namespace convssm::cli {
namespace {

evaluate::TimingOptions timing_options(const run::Config& config) {
  const auto from = evaluate::EvaluateOptions::from_json(config.evaluate);
  evaluate::TimingOptions o;
  o.context = from.settings[0].context;
  o.frames = std::max(config.train.frames, 2 * o.context);
  o.samples = from.samples;
  o.batch = from.batch;
  o.quantize = from.quantize;
  return o;
}

}  // namespace

void run_timing(const run::LoadedModel& loaded, const run::Config& config, std::shared_ptr<const data::Dataset> trained,
                const std::string& out) {
  run::Config finer = config;
  finer.data = evaluate::finer_data(config.data);
  const evaluate::TimingClips clips{std::move(trained), run::make_dataset(finer)};
  const evaluate::TimingOptions options = timing_options(config);
  evaluate::require_intervals(*loaded.model, clips.trained->format());
  make_folder(out);

  log_info("{} at step {}", loaded.model->description(), loaded.recipe.step);
  const StopRequest stop;
  const auto total = std::min<int64_t>(options.samples, clips.trained->size(data::Split::test));
  Progress progress("timing", total * evaluate::kTimingPoints);
  nlohmann::json result = evaluate::study_timing(*loaded.model, clips, options, [&](int64_t done) {
    progress.update(done, "clip runs");
    return !stop.asked();
  });
  progress.finish();
  result["protocol"]["checkpoint"] = scored_checkpoint(loaded);
  result["protocol"]["model"] = loaded.model->description();
  result["protocol"]["seeds"]["data"] = config.data.at("seed");
  if (result["protocol"]["samples"] > 0) fmt::print("{}", report::timing_text(result));
  set_exit_status(stop.exit_code());
  if (stop.asked()) {
    replace_file(out + "/timing.partial.json", result.dump(1) + "\n");
    log_info("stopped after {} clips: {}/timing.partial.json", result["protocol"]["samples"].dump(), out);
    return;
  }
  replace_file(out + "/timing.json", result.dump(1) + "\n");
  report::write_chart_png(out + "/timing_rates.png", report::rates_chart(result));
  report::write_chart_png(out + "/timing_dropped.png", report::dropped_chart(result));
  log_info("written: {}/timing.json, timing_rates.png, timing_dropped.png", out);
}

}  // namespace convssm::cli
