// A member of a clip is one of its futures: those of the first model come first, then those of each of --also.
#include "convssm/cli/generate_group.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <filesystem>

#include "convssm/base/error.h"
#include "convssm/base/log.h"
#include "convssm/data/picture.h"
#include "convssm/generate/grid_sink.h"
#include "convssm/generate/perturb.h"
#include "convssm/models/waiting_state.h"

namespace convssm::cli {
namespace {

at::Tensor rows_of(const at::Tensor& x, int64_t begin, int64_t end) { return x.defined() ? x.slice(0, begin, end) : x; }

int64_t members(const GenerateCommand& c) { return c.samples * (1 + std::ssize(c.also)); }

// future.npy; future-3.npy of several clips or members; future-3-0.npy of several members of several clips.
std::string result_path(const GenerateCommand& c, const ForecastStart& start, int64_t clip, int64_t member) {
  std::string path = c.out;
  if (start.clips > 1) path = generate::numbered_path(path, clip);
  if (members(c) > 1 && !data::is_field_name(path)) path = generate::numbered_path(path, member);
  return path;
}

generate::SinkOptions sink_options(const GenerateCommand& c, const ForecastStart& start,
                                   const data::FrameFormat& format, int64_t clip) {
  const int64_t before = c.with_context ? start.context.frames() : 0;
  generate::SinkOptions o{before + start.frames, c.fps, c.scale > 0 ? c.scale : data::friendly_scale(format.width),
                          start.layout};
  if (start.places.empty()) return o;
  o.field = start.places.at(static_cast<size_t>(clip));
  std::vector<double>& times = o.field.times;
  const int64_t seen = c.with_context ? 0 : start.seen();
  if (std::ssize(times) >= seen + o.frames) {
    times.erase(times.begin(), times.begin() + seen);
  } else if (!times.empty()) {
    log_warning("the times of {} frames are known, {} are to be written: they are numbered instead", times.size(),
                seen + o.frames);
    times.clear();
  }
  return o;
}

}  // namespace

void check_results_are_new(const GenerateCommand& c, const ForecastStart& start) {
  for (int64_t clip = 0; clip < start.clips && !c.force && !c.out.empty(); ++clip) {
    for (int64_t member = 0; member < members(c); ++member) {
      const std::string path = result_path(c, start, clip, member);
      if (std::filesystem::exists(path)) fail(ErrorKind::usage, "{} is there already; --force replaces it", path);
    }
  }
}

void tell_result(const GenerateCommand& c, const ForecastStart& start, const data::FrameFormat& format,
                 int64_t frames) {
  const std::string path = result_path(c, start, 0, 0);
  const std::string array = generate::array_text(path, format, {.layout = start.layout});
  const bool one = start.clips == 1 && (members(c) == 1 || data::is_field_name(path));
  log_info("{} frames: {}{}{}", frames, path, one ? "" : " ...", array.empty() ? "" : ", " + array);
}

generate::GenerateResult ForecastGroup::run(const std::vector<models::Model*>& models, const data::FrameFormat& format,
                                            const std::function<bool(int64_t)>& progress) const {
  const GenerateCommand& c = command_;
  const bool even = !start_.context.timing.dt.defined() && !start_.observed.timing.dt.defined();
  std::vector<generate::Predictor> predictors;
  for (models::Model* model : models) {
    predictors.emplace_back(*model, generate::PredictorOptions{end_ - begin_, generate::parse_precision(c.precision),
                                                               c.engine != "eager" && even});
    take_in(*model, predictors.back());
  }
  if (start_.frames == 0) return {predictors[0].state()};
  const Sinks sinks = c.out.empty() ? Sinks() : open_sinks(format);
  std::vector<generate::FrameSink*> plain;
  for (const auto& sink : sinks) plain.push_back(sink.get());
  std::vector<generate::Predictor*> all;
  for (generate::Predictor& predictor : predictors) all.push_back(&predictor);
  auto result = generate::generate(all, rows_of(start_.actions, begin_, end_), start_.frames, plain, progress);
  if (result.frames > 0) {
    for (const auto& sink : sinks) sink->close();
  }
  return result;
}

void ForecastGroup::take_in(models::Model& model, generate::Predictor& predictor) const {
  if (command_.state.empty()) {
    const models::Seeds seeds(start_.seeds.begin() + begin_, start_.seeds.begin() + end_);
    predictor.start(data::rows_of(start_.context, begin_, end_), seeds);
    if (command_.perturb == 0) return;
    std::vector<double> sizes;
    for (int64_t i = begin_; i < end_; ++i) sizes.push_back(i % command_.samples == 0 ? 0 : command_.perturb);
    return predictor.start(generate::perturbed(predictor.state(), sizes, seeds));
  }
  predictor.start(start_.state);
  const data::Clips& seen = start_.observed;
  const at::Tensor video = models::forecaster_of(model).knows_missing() ? data::with_missing(seen) : seen.video;
  for (int64_t k = 0; k < seen.frames(); ++k) {
    predictor.observe(video.select(1, k), seen.actions.defined() ? seen.actions.select(1, k) : seen.actions);
    const at::Tensor& dt = seen.timing.dt;
    if (dt.defined()) predictor.start(models::at_interval(predictor.state(), dt.select(1, k)));
  }
}

ForecastGroup::Sinks ForecastGroup::open_sinks(const data::FrameFormat& format) const {
  const GenerateCommand& c = command_;
  const int64_t rows = end_ - begin_, models = members(c) / c.samples;
  Sinks sinks(static_cast<size_t>(rows * models));
  const auto place = [&](int64_t row, int64_t model) -> auto& {
    return sinks[static_cast<size_t>(model * rows + row - begin_)];
  };
  for (int64_t row = begin_; row < end_; ++row) {
    const int64_t clip = row / c.samples, sample = row % c.samples;
    const bool fields = data::is_field_name(c.out);
    if (fields && sample > 0) continue;  // one file of all futures of a clip, opened with the first
    const generate::SinkOptions options = sink_options(c, start_, format, clip);
    if (fields) {
      auto own = generate::open_grid_sinks(result_path(c, start_, clip, 0), format, options, members(c));
      for (int64_t i = 0; i < std::ssize(own); ++i) {
        place(row + i % c.samples, i / c.samples) = std::move(own[static_cast<size_t>(i)]);
      }
      continue;
    }
    for (int64_t model = 0; model < models; ++model) {
      place(row, model) =
          generate::open_sink(result_path(c, start_, clip, model * c.samples + sample), format, options);
    }
  }
  if (!c.with_context) return sinks;
  const at::Tensor seen = data::with_missing(start_.context);
  for (int64_t k = 0; k < start_.context.frames(); ++k) {
    for (size_t i = 0; i < sinks.size(); ++i) sinks[i]->write(seen[begin_ + static_cast<int64_t>(i) % rows][k]);
  }
  return sinks;
}

}  // namespace convssm::cli
