#include "convssm/cli/evaluate.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>

#include "convssm/base/atomic_file.h"
#include "convssm/base/error.h"
#include "convssm/base/folder.h"
#include "convssm/base/log.h"
#include "convssm/base/progress.h"
#include "convssm/base/stop_request.h"
#include "convssm/cli/core_changes.h"
#include "convssm/cli/evaluate_timing.h"
#include "convssm/cli/exit_status.h"
#include "convssm/evaluate/evaluate.h"
#include "convssm/io/yaml.h"
#include "convssm/models/model_file.h"
#include "convssm/report/report.h"
#include "convssm/report/strips.h"
#include "convssm/train/config.h"

namespace convssm::cli {
namespace {

namespace fs = std::filesystem;

train::Config evaluated_config(const models::LoadedModel& loaded, const std::vector<std::string>& overrides) {
  nlohmann::json json = loaded.recipe.config;
  for (const std::string& assignment : overrides) io::set_override(json, assignment);
  return train::Config::from_json(json);
}

void check_frames(const models::LoadedModel& loaded, const data::FrameFormat& found) {
  const auto model = data::FrameFormat::from_json(loaded.recipe.frames);
  if (model.channels != found.channels || model.height != found.height || model.width != found.width) {
    fail(ErrorKind::data,
         "the model was trained on frames of {} x {} with {} channels, the dataset has {} x {} with {}", model.height,
         model.width, model.channels, found.height, found.width, found.channels);
  }
  if (model.low == found.low && model.high == found.high) return;
  fail(ErrorKind::data,
       "the model was trained with values from {} to {} as [-1,1], the dataset gives {} to {}; set "
       "data.low={} data.high={}",
       model.low, model.high, found.low, found.high, model.low, model.high);
}

void save_pictures(const data::Comparison& clips, const std::string& out) {
  for (size_t i = 0; i < clips.truth.size(); ++i) {
    io::write_png(fmt::format("{}/samples/evaluate-strip-{}.png", out, i),
                  data::comparison_strip(clips, i, 1, report::strip_moments));
  }
  if (!clips.truth.empty()) data::save_comparison_gif(clips, clips.truth.size(), out + "/samples/evaluate.gif");
}

}  // namespace

void run_evaluate(const EvaluateCommand& command) {
  if (command.timing && !command.weights.empty()) {
    fail(ErrorKind::usage, "--weights does not go with --timing, which scores by PSNR and SSIM alone");
  }
  const models::LoadedModel loaded = models::load_model(command.model, command.step, core_changes(command.overrides));
  const train::Config config = evaluated_config(loaded, command.overrides);
  const auto options = evaluate::EvaluateOptions::from_json(config.evaluate);
  const auto dataset = train::make_dataset(config);
  check_frames(loaded, dataset->format());
  const bool is_run = fs::is_directory(command.model + "/checkpoints");
  const std::string out = !command.out.empty() ? command.out : is_run ? command.model : ".";
  if (command.timing) return run_timing(loaded, config, dataset, out);
  const auto metrics = evaluate::make_metrics(options, *dataset, metrics::WeightFolder(command.weights));
  make_folder(out + "/samples");

  log_info("{} at step {}", loaded.model->description(), loaded.recipe.step);
  const StopRequest stop;
  Progress progress("evaluate", std::min<int64_t>(options.samples, dataset->size(data::Split::test)));
  const std::string name = loaded.recipe.model["core"].value("name", "model");
  auto result = evaluate::evaluate(*loaded.model, *dataset, options, metrics, name, [&](int64_t done) {
    progress.update(done, "clips");
    return !stop.asked();
  });
  progress.finish();
  result.metrics["protocol"]["checkpoint"] = {{"step", loaded.recipe.step}, {"checksum", loaded.checksum}};
  fmt::print("{}", evaluate::table_text(result.metrics));
  for (const std::string& line : metrics.left_out()) log_info("left out: {}", line);
  set_exit_status(stop.exit_code());
  if (stop.asked()) {
    replace_file(out + "/metrics.partial.json", result.metrics.dump(1) + "\n");
    log_info("stopped after {} clips: {}/metrics.partial.json", result.metrics["protocol"]["samples"].dump(), out);
    return;
  }
  replace_file(out + "/metrics.json", result.metrics.dump(1) + "\n");
  save_pictures(result.clips, out);
  report::write_report(out);
  log_info("written: {}/metrics.json, samples/evaluate*, report.html", out);
}

void add_evaluate(CLI::App& app) {
  auto* command = app.add_subcommand("evaluate", "Score a run over the horizon, beside forecasts without a model");
  auto options = std::make_shared<EvaluateCommand>();
  command->add_option("model", options->model, "Run folder, exported folder or model file")->required();
  command->add_option("overrides", options->overrides,
                      "Values of the config: evaluate.*, data.*, and model.core.window and .recompute");
  command->add_option(
      "--out", options->out,
      "Folder for metrics.json, samples and report; by default the run folder, for a model the current one");
  command->add_option("--weights", options->weights, "Folder of trained weights of metrics (see convssm weights)");
  command->add_option("--step", options->step, "Checkpoint of this step instead of the newest");
  command->add_flag("--timing", options->timing,
                    "Instead: forecasts at other frame rates than in training and with frames missing, by PSNR and "
                    "SSIM, as timing.json and two charts (moving-mnist, cores convs5 and s5)");
  command->footer(
      "Examples:\n  convssm evaluate runs/demo\n"
      "  convssm evaluate runs/demo evaluate.samples=64 evaluate.horizons=[50,100,200] --out scores\n"
      "  convssm evaluate runs/demo --timing evaluate.samples=64 --out timing\n"
      "  convssm evaluate runs/demo evaluate.metrics=[psnr_f01,lpips_alex]      # see convssm metrics");
  command->callback([options] { run_evaluate(*options); });
}

}  // namespace convssm::cli
