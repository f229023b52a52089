#include "convssm/cli/evaluate.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>

#include "convssm/base/atomic_file.h"
#include "convssm/base/error.h"
#include "convssm/base/log.h"
#include "convssm/base/progress.h"
#include "convssm/base/stop_request.h"
#include "convssm/cli/exit_status.h"
#include "convssm/data/picture.h"
#include "convssm/evaluate/evaluate.h"
#include "convssm/io/gif.h"
#include "convssm/io/yaml.h"
#include "convssm/models/model_file.h"
#include "convssm/report/report.h"
#include "convssm/train/config.h"

namespace convssm::cli {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kStripFrames = 20;

void save_strip(const evaluate::Evaluation& result, size_t i, int64_t context, const std::string& path) {
  const at::Tensor truth = result.truth[i], forecast = result.forecast[i];
  std::vector<int64_t> picks = data::evenly_spaced(truth.size(0) - context, kStripFrames);
  for (int64_t& k : picks) k += context;
  io::write_png(path, data::strip_picture({truth, forecast}, picks, data::friendly_scale(truth.size(-1))));
}

// Truth above, forecast below, all clips side by side, context included.
void save_animation(const evaluate::Evaluation& result, const std::string& path) {
  const int64_t scale = data::friendly_scale(result.truth[0].size(-1));
  std::unique_ptr<io::GifWriter> gif;
  for (int64_t k = 0; k < result.truth[0].size(0); ++k) {
    std::vector<std::vector<io::Image>> rows(2);
    for (size_t i = 0; i < result.truth.size(); ++i) {
      rows[0].push_back(data::picture(result.truth[i][k], scale));
      rows[1].push_back(data::picture(result.forecast[i][k], scale));
    }
    const io::Image frame = data::table_picture(rows);
    if (!gif) {
      const io::FrameFormat format{.width = frame.width, .height = frame.height, .channels = frame.channels};
      gif = std::make_unique<io::GifWriter>(path, format);
    }
    gif->write(frame.pixels);
  }
  gif->close();
}

train::Config evaluated_config(const models::LoadedModel& loaded, const std::vector<std::string>& overrides) {
  nlohmann::json json = loaded.recipe.config;
  for (const std::string& assignment : overrides) {
    if (assignment.starts_with("model.")) {
      fail(ErrorKind::usage, "'{}': the model of a run cannot be changed; evaluate.* and data.* can", assignment);
    }
    io::set_override(json, assignment);
  }
  return train::Config::from_json(json);
}

void check_frames(const models::LoadedModel& loaded, const data::FrameFormat& found) {
  const auto model = data::FrameFormat::from_json(loaded.recipe.frames);
  if (model.channels == found.channels && model.height == found.height && model.width == found.width) return;
  fail(ErrorKind::data, "the model was trained on frames of {} x {} with {} channels, the dataset has {} x {} with {}",
       model.height, model.width, model.channels, found.height, found.width, found.channels);
}

}  // namespace

void run_evaluate(const EvaluateCommand& command) {
  const models::LoadedModel loaded = models::load_model(command.model, command.step);
  const train::Config config = evaluated_config(loaded, command.overrides);
  const auto options = evaluate::EvaluateOptions::from_json(config.evaluate);
  const auto dataset = train::make_dataset(config);
  check_frames(loaded, dataset->format());
  const bool is_run = fs::is_directory(command.model);
  const std::string out = !command.out.empty() ? command.out : is_run ? command.model : ".";
  fs::create_directories(out + "/samples");

  log_info("{} at step {}", loaded.model->description(), loaded.recipe.step);
  const StopRequest stop;
  Progress progress("evaluate", std::min<int64_t>(options.samples, dataset->size(data::Split::test)));
  auto result = evaluate::evaluate(*loaded.model, *dataset, options, config.model["core"].value("name", "model"),
                                   [&](int64_t done) {
                                     progress.update(done, "clips");
                                     return !stop.asked();
                                   });
  progress.finish();
  result.metrics["protocol"]["checkpoint"] = {{"step", loaded.recipe.step}, {"checksum", loaded.checksum}};
  replace_file(out + "/metrics.json", result.metrics.dump(1) + "\n");
  for (size_t i = 0; i < result.truth.size(); ++i) {
    save_strip(result, i, options.context, fmt::format("{}/samples/evaluate-strip-{}.png", out, i));
  }
  if (!result.truth.empty()) save_animation(result, out + "/samples/evaluate.gif");
  report::write_report(out);
  fmt::print("{}", evaluate::table_text(result.metrics));
  log_info("written: {}/metrics.json, samples/evaluate*, report.html", out);
  set_exit_status(stop.exit_code());
}

void add_evaluate(CLI::App& app) {
  auto* command = app.add_subcommand("evaluate", "Score a run over the horizon, beside forecasts without a model");
  auto options = std::make_shared<EvaluateCommand>();
  command->add_option("model", options->model, "Run folder or model file")->required();
  command->add_option("overrides", options->overrides, "Values of the config, as evaluate.samples=64");
  command->add_option("--out", options->out, "Folder for metrics.json, samples and report; by default the run folder");
  command->add_option("--step", options->step, "Checkpoint of this step instead of the newest");
  command->footer(
      "Examples:\n  convssm evaluate runs/demo\n"
      "  convssm evaluate runs/demo evaluate.samples=64 evaluate.horizons=[50,100,200] --out scores");
  command->callback([options] { run_evaluate(*options); });
}

}  // namespace convssm::cli
