// Frames of a moment come from each member in turn; when the last one has come, the moment is written.
#include "convssm/generate/grid_sink.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "convssm/base/error.h"

namespace convssm::generate {
namespace {

class GridForecast {
 public:
  GridForecast(const std::string& path, const data::FrameFormat& format, const SinkOptions& o, int64_t members)
      : format_(format), writer_(path, format, o.field, o.frames, members), waiting_(static_cast<size_t>(members)) {}

  void add(size_t member, const at::Tensor& frame) {
    at::Tensor& place = waiting_[member];
    if (place.defined()) {
      fail(ErrorKind::usage, "[open_sink] the futures of one file are written side by side, a frame of each in turn");
    }
    place = data::in_units(frame, format_).to(at::kFloat).permute({2, 0, 1});
    if (!std::ranges::all_of(waiting_, [](const at::Tensor& x) { return x.defined(); })) return;
    writer_.write(at::stack(waiting_));
    for (at::Tensor& waiting : waiting_) waiting = at::Tensor();
  }

  void close() {
    if (++closed_ == waiting_.size()) writer_.close();
  }

 private:
  data::FrameFormat format_;
  data::FieldWriter writer_;
  std::vector<at::Tensor> waiting_;  // the frame of this moment of each member that has come
  size_t closed_ = 0;
};

class GridSink : public FrameSink {
 public:
  GridSink(std::shared_ptr<GridForecast> forecast, size_t member) : forecast_(std::move(forecast)), member_(member) {}
  void write(const at::Tensor& frame) override { forecast_->add(member_, frame); }
  void close() override { forecast_->close(); }

 private:
  std::shared_ptr<GridForecast> forecast_;
  size_t member_;
};

}  // namespace

std::vector<std::unique_ptr<FrameSink>> open_grid_sinks(const std::string& path, const data::FrameFormat& format,
                                                        const SinkOptions& options, int64_t members) {
  const auto forecast = std::make_shared<GridForecast>(path, format, options, members);
  std::vector<std::unique_ptr<FrameSink>> sinks;
  for (int64_t i = 0; i < members; ++i) sinks.push_back(std::make_unique<GridSink>(forecast, static_cast<size_t>(i)));
  return sinks;
}

}  // namespace convssm::generate
