#include "convssm/cli/compare.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include "convssm/base/atomic_file.h"
#include "convssm/base/error.h"
#include "convssm/base/log.h"
#include "convssm/base/progress.h"
#include "convssm/base/stop_request.h"
#include "convssm/cli/exit_status.h"
#include "convssm/evaluate/compare.h"
#include "convssm/evaluate/evaluate.h"

namespace convssm::cli {
namespace {

struct CompareCommand {
  std::string truth, forecast, truth_key, forecast_key, layout, weights, json, csv;
  std::vector<std::string> metrics;
  std::vector<double> range;
  evaluate::CompareOptions options;
};

// One file or folder with both: arrays `real` and `fake`.
void fill_in(CompareCommand& o) {
  if (!o.forecast.empty()) return;
  o.forecast = o.truth;
  if (o.truth_key.empty()) o.truth_key = "real";
  if (o.forecast_key.empty()) o.forecast_key = "fake";
}

data::ClipReaderOptions reader_options(const CompareCommand& o, const std::string& key) {
  data::ClipReaderOptions options{.key = key, .layout = o.layout};
  if (o.range.empty()) return options;
  if (o.range.size() != 2 || !(o.range[0] < o.range[1])) {
    fail(ErrorKind::usage, "--range expects LOW,HIGH with LOW below HIGH, as --range -1,1");
  }
  options.low = o.range[0], options.high = o.range[1];
  return options;
}

// A line for each frame, counted from 1 behind the context, with the mean of each metric over the clips.
std::string frame_table(const nlohmann::json& curves, const std::string& name) {
  std::string text = "frame";
  std::vector<std::vector<double>> columns;
  for (const auto& [metric, values] : curves.items()) {
    if (metric == "frames") continue;
    text += "," + metric;
    columns.push_back(values.at(name).get<std::vector<double>>());
  }
  for (size_t k = 0; k < curves.at("frames").size(); ++k) {
    text += fmt::format("\n{}", curves["frames"][k].get<int64_t>());
    for (const auto& column : columns) text += fmt::format(",{}", column[k]);
  }
  return text + "\n";
}

void print(const nlohmann::json& result, const metrics::MetricSet& metrics) {
  fmt::print("{}", evaluate::table_text(result));
  for (const std::string& line : metrics.left_out()) log_info("left out: {}", line);
  const auto identical = result["protocol"]["identical_frames"].get<int64_t>();
  if (identical > 0) log_info("{} frames are identical: their PSNR counts as 100 dB", identical);
}

void run(CompareCommand o) {
  fill_in(o);
  data::ClipReader truth(o.truth, reader_options(o, o.truth_key));
  data::ClipReader forecast(o.forecast, reader_options(o, o.forecast_key));
  evaluate::check_alike(truth, forecast);
  const metrics::MetricSet metrics(o.metrics, metrics::WeightFolder(o.weights), evaluate::clip_size(truth, forecast));
  log_info("{} clips of {} frames, {}", truth.clips(), truth.shape().frames, data::frame_text(truth.shape()));
  const StopRequest stop;
  Progress progress("compare", truth.clips());
  const nlohmann::json result = evaluate::compare(truth, forecast, metrics, o.options, [&](int64_t done) {
    progress.update(done, "clips");
    return !stop.asked();
  });
  progress.finish();
  print(result, metrics);
  set_exit_status(stop.exit_code());
  if (stop.asked()) log_info("stopped after {} clips", result["protocol"]["samples"].dump());
  if (!o.json.empty()) replace_file(o.json, result.dump(1) + "\n");
  if (!o.csv.empty()) replace_file(o.csv, frame_table(result["curves"], o.options.name));
}

}  // namespace

void add_compare(CLI::App& app) {
  auto* command = app.add_subcommand("compare", "Score samples of any project against their truth, by every metric");
  auto o = std::make_shared<CompareCommand>();
  const char* what = "A .npy, .npz, .gif, .mp4 or .png file, or a folder of them";
  command->add_option("truth", o->truth, std::string(what) + "; alone: .npz with the arrays real and fake")->required();
  command->add_option("forecast", o->forecast, what);
  command->add_option("--context", o->options.context, "Frames at the start that were given, not forecast")
      ->capture_default_str();
  command->add_option("--metrics", o->metrics, "Only these, separated by commas; see convssm metrics")->delimiter(',');
  command->add_option("--chunk", o->options.chunk, "Clips per chunk, between which the spread is")
      ->capture_default_str();
  command->add_option("--range", o->range, "The values that are black and white, as -1,1")->delimiter(',');
  command->add_option("--truth-key", o->truth_key, "Array of .npz files that holds the truth");
  command->add_option("--forecast-key", o->forecast_key, "Array of .npz files that holds the forecast");
  command->add_option("--layout", o->layout, data::layout_letters_text + std::string("; by default it is guessed"));
  command->add_option("--weights", o->weights, "Folder of trained weights (see convssm weights)")->type_name("DIR");
  command->add_option("--json", o->json, "Write all numbers to this file: overall, per frame, per clip");
  command->add_option("--csv", o->csv, "Write the means of each frame to this file");
  command->footer(
      "Examples:\n  convssm compare truth.npz forecast.npz --context 100 --json scores.json\n"
      "  convssm compare samples.npz                  # arrays real and fake\n"
      "  convssm compare a.png b.png --metrics lpips_squeeze,ssim_gauss11");
  command->callback([o] { run(*o); });
}

}  // namespace convssm::cli
