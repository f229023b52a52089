// Clip by clip, as the evaluation of forecasts; a tokenizer knows no time, so there is one number for all frames.
#include "convssm/evaluate/reconstruct.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "convssm/base/error.h"
#include "convssm/evaluate/scores.h"
#include "convssm/evaluate/windows.h"
#include "convssm/models/tokenizer.h"
#include "convssm/nn/quantizer.h"

namespace convssm::evaluate {
namespace {

std::vector<Window> find_frames(const data::Dataset& dataset, const EvaluateOptions& o) {
  if (dataset.size(data::Split::test) == 0) fail(ErrorKind::data, "the dataset has no test clips");
  const int64_t longest = dataset.longest(data::Split::test);
  if (longest < o.frames) {
    fail(ErrorKind::usage, "[evaluate] frames asks for test clips of {} frames, they have {}; set evaluate.frames={}",
         o.frames, longest, longest);
  }
  return test_windows(dataset, o.frames, o.stride, o.samples);
}

nlohmann::json describe_codes(const models::Tokenizer& tokenizer, const at::Tensor& counts) {
  const models::CodeFormat format = tokenizer.codes();
  if (tokenizer.continuous()) return {{"grid", {format.height, format.width}}, {"numbers", tokenizer.features()}};
  const double used = (counts > 0).to(at::kDouble).mean().item<double>();
  return {{"size", format.count},
          {"grid", {format.height, format.width}},
          {"count", counts.sum().item<int64_t>()},
          {"used", used},
          {"perplexity", nn::perplexity_of(counts)}};
}

nlohmann::json describe(const EvaluateOptions& o, const metrics::MetricSet& metrics, const Scores& model,
                        const std::vector<Window>& windows) {
  return {{"task", "reconstruct"},
          {"samples", windows.size()},
          {"clips", clips_of(windows)},
          {"frames", o.frames},
          {"stride", o.stride},
          {"chunk", o.chunk},
          {"context", 0},
          {"split", "test"},
          {"model", model.name()},
          {"identical_frames", model.identical_frames()},
          {"quantize", o.quantize},
          {"pixels", o.quantize ? "8 bits, cut down, then [0,1]" : "float32 in [0,1]"},
          {"metrics", metrics.description()},
          {"left_out", metrics.left_out()}};
}

}  // namespace

int64_t count_reconstructed(const data::Dataset& dataset, const EvaluateOptions& o) {
  return static_cast<int64_t>(find_frames(dataset, o).size());
}

metrics::MetricSet make_frame_metrics(const EvaluateOptions& o, const data::Dataset& dataset,
                                      const metrics::WeightFolder& weights) {
  const data::FrameFormat format = dataset.format();
  return {o.metrics, weights, {1, format.depth(), format.height, format.width, o.quantize}};
}

Evaluation evaluate_tokenizer(models::Model& model, const data::Dataset& dataset, const EvaluateOptions& o,
                              const metrics::MetricSet& metrics, const std::string& name,
                              const std::function<bool(int64_t)>& progress) {
  const at::NoGradGuard no_grad;
  const models::EvalMode mode(model);
  models::Tokenizer* tokenizer = model.as_tokenizer();
  if (tokenizer == nullptr) fail(ErrorKind::usage, "this model is no tokenizer: {}", model.description());
  std::vector<Window> windows = find_frames(dataset, o);
  const auto samples = static_cast<int64_t>(windows.size());
  std::vector<Scores> scores{{name, metrics}, {"blank frame", metrics}};
  at::Tensor counts = at::zeros({tokenizer->codes().count}, at::kLong);
  Evaluation result;
  data::Comparison& shown = result.clips.emplace_back();
  int64_t done = 0;
  bool go_on = true;
  while (done < samples && go_on) {
    const int64_t count = std::min(o.batch, samples - done);
    const auto these = std::span(windows).subspan(static_cast<size_t>(done), static_cast<size_t>(count));
    const data::Clips clips = read_windows(dataset, these, o.frames);
    const at::Tensor& video = clips.video;
    const at::Tensor codes = tokenizer->encode(video.to(models::device_of(model)));
    const at::Tensor decoded = tokenizer->decode(codes).cpu();
    if (!tokenizer->continuous()) counts += at::bincount(codes.flatten().cpu(), {}, counts.size(0));
    const Measured measured(video, clips.valid);
    const Frames truth = measured.truth(o.quantize);
    scores[0].add(score_frames(metrics, truth, measured.forecast(decoded, o.quantize)));
    scores[1].add(score_frames(metrics, truth, measured.forecast(at::full_like(video, -1), o.quantize)));
    for (int64_t i = 0; i < count; ++i, ++done) {
      if (done >= o.strips) continue;
      shown.truth.push_back(video[i]);
      shown.forecast.push_back(decoded[i]);
    }
    if (progress) go_on = progress(done);
  }
  windows.resize(static_cast<size_t>(done));
  nlohmann::json rows = nlohmann::json::array();
  for (const Scores& one : scores) rows.push_back(one.row(o.frames, o.chunk, clips_of(windows) > 1));
  result.metrics = {{"protocol", describe(o, metrics, scores[0], windows)},
                    {"horizons", {{{"frames", o.frames}, {"rows", rows}}}},
                    {"codes", describe_codes(*tokenizer, counts)}};
  return result;
}

std::string reconstruction_text(const nlohmann::json& metrics) {
  const nlohmann::json &protocol = metrics["protocol"], &codes = metrics["codes"];
  const nlohmann::json& rows = metrics["horizons"][0]["rows"];
  std::string text = fmt::format("{} x {} test frames, encoded and decoded; + more is better, - less is\n\n{:<20}",
                                 protocol["samples"].get<int64_t>(), protocol["frames"].get<int64_t>(), "");
  for (const auto& row : rows) text += fmt::format("{:<19}", row["name"].get<std::string>());
  for (const metrics::MetricInfo& metric : metrics::all_metrics()) {
    if (!rows[0].contains(metric.name)) continue;
    text += fmt::format("\n  {:<18}", metric.name + (metric.better > 0 ? " +" : " -"));
    for (const auto& row : rows) {
      text += fmt::format("{:<19}", fmt::format("{:.{}f}", row[metric.name]["mean"].get<double>(), metric.digits));
    }
  }
  if (codes.contains("numbers")) {
    return text + fmt::format("\n\nlatents: {} x {} of {} numbers per frame\n", codes["grid"][0].get<int64_t>(),
                              codes["grid"][1].get<int64_t>(), codes["numbers"].get<int64_t>());
  }
  return text + fmt::format("\n\ncodes: {} x {} per frame, {:.1f}% of {} in use, perplexity {:.1f} (over {} codes)\n",
                            codes["grid"][0].get<int64_t>(), codes["grid"][1].get<int64_t>(),
                            100 * codes["used"].get<double>(), codes["size"].get<int64_t>(),
                            codes["perplexity"].get<double>(), codes["count"].get<int64_t>());
}

}  // namespace convssm::evaluate
