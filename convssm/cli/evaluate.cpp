#include "convssm/cli/evaluate.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <memory>

#include "convssm/base/atomic_file.h"
#include "convssm/base/error.h"
#include "convssm/base/folder.h"
#include "convssm/base/log.h"
#include "convssm/base/progress.h"
#include "convssm/base/stop_request.h"
#include "convssm/cli/device_option.h"
#include "convssm/cli/evaluate_pictures.h"
#include "convssm/cli/evaluate_timing.h"
#include "convssm/cli/exit_status.h"
#include "convssm/cli/members.h"
#include "convssm/cli/model_changes.h"
#include "convssm/evaluate/evaluate.h"
#include "convssm/evaluate/reconstruct.h"
#include "convssm/io/yaml.h"
#include "convssm/models/forecaster.h"
#include "convssm/ops/device.h"
#include "convssm/report/report.h"
#include "convssm/run/config.h"
#include "convssm/run/model_file.h"

namespace convssm::cli {
namespace {

namespace fs = std::filesystem;

run::Config evaluated_config(const run::LoadedModel& loaded, const std::vector<std::string>& overrides) {
  nlohmann::json json = loaded.recipe.config;
  for (const std::string& assignment : overrides) io::set_override(json, assignment);
  return run::Config::from_json(json);
}

struct Scored {
  const run::LoadedModel& loaded;
  const std::vector<run::LoadedModel>& also;
  const run::Config& config;
  const data::Dataset& dataset;
  const evaluate::EvaluateOptions& options;
  metrics::WeightFolder weights;
  std::string out;
};

// What was found: a table was printed, files follow.
void keep(evaluate::Evaluation& result, const Scored& s, const StopRequest& stop) {
  for (const auto& line : result.metrics["protocol"]["left_out"]) log_info("left out: {}", line.get<std::string>());
  set_exit_status(stop.exit_code());
  if (stop.asked()) {
    replace_file(s.out + "/metrics.partial.json", result.metrics.dump(1) + "\n");
    log_info("stopped after {} clips: {}/metrics.partial.json", result.metrics["protocol"]["samples"].dump(), s.out);
    return;
  }
  replace_file(s.out + "/metrics.json", result.metrics.dump(1) + "\n");
  save_pictures(result.clips, s.out);
  save_error_maps(result.error_maps, s.out);
  report::write_report(s.out);
  log_info("written: {}/metrics.json, samples/evaluate*, report.html", s.out);
}

// Frames of another height or width, which only data.* of the command line or other files can have brought: the model is
// run on them if it can.
void take_size_of(run::LoadedModel& loaded, const data::Dataset& dataset) {
  const data::FrameFormat found = dataset.format();
  if (dataset.codes().none() && found.depth() == loaded.trained.depth()) take_size(loaded, found.height, found.width);
}

// A forecaster with a tokenizer takes frames and codes, whichever it was trained on.
void check_clips(const run::LoadedModel& loaded, const data::Dataset& dataset) {
  if (dataset.codes().none()) {
    run::check_frames(loaded, dataset.format());
  } else if (loaded.model->as_forecaster() == nullptr) {
    fail(ErrorKind::usage, "[evaluate] the clips hold codes; a tokenizer is scored by what it gives back of frames");
  }
  loaded.model->check_data(data::format_of(dataset));
}

void say_basis(evaluate::Evaluation& result, const Scored& s) {
  result.metrics["protocol"]["checkpoint"] = scored_checkpoint(s.loaded);
  for (const run::LoadedModel& one : s.also) {
    result.metrics["protocol"]["also"].push_back(scored_checkpoint(one));
  }
  result.metrics["protocol"]["data"] = s.config.data;
  const std::string other_size = other_size_text(s.loaded);
  if (!other_size.empty()) result.metrics["protocol"]["frame_size"] = other_size;
}

void score_tokenizer(const Scored& s) {
  const auto metrics = evaluate::make_frame_metrics(s.options, s.dataset, s.weights);
  make_folder(s.out + "/samples");
  const StopRequest stop;
  Progress progress("evaluate", evaluate::count_reconstructed(s.dataset, s.options));
  auto result = evaluate::evaluate_tokenizer(*s.loaded.model, s.dataset, s.options, metrics, s.loaded.model->label(),
                                             [&](int64_t done) {
                                               progress.update(done, "clips");
                                               return !stop.asked();
                                             });
  progress.finish();
  say_basis(result, s);
  fmt::print("{}", evaluate::reconstruction_text(result.metrics));
  keep(result, s, stop);
}

// Scores without actions are nonsense of a model that never learned without.
void check_masks(const Scored& s) {
  const auto& settings = s.options.settings;
  const bool masked = std::ranges::any_of(settings, [](const auto& setting) { return !setting.actions; });
  if (!masked || !models::forecaster_of(*s.loaded.model).actions().matter()) return;
  const nlohmann::json::json_pointer dropout("/train/action_dropout");
  if (s.loaded.recipe.config.value(dropout, 0.0) > 0) return;
  log_warning("settings without actions: this model never learned without them (train.action_dropout is 0)");
}

void score_forecasts(const Scored& s, const EvaluateCommand& command) {
  models::Model& model = *s.loaded.model;
  check_masks(s);
  const auto metrics = evaluate::make_metrics(s.options, evaluate::scored_frames(model, s.dataset), s.weights,
                                              {.features = command.features});
  if (s.options.futures > 1 && s.options.perturb == 0 && !models::forecaster_of(model).draws()) {
    log_info("the model draws nothing: one future of each clip instead of {}; evaluate.perturb=0.05 makes them differ",
             s.options.futures);
  }
  make_folder(s.out + "/samples");
  const generate::PredictorOptions engine{.precision = generate::parse_precision(command.precision),
                                          .compile = command.engine != "eager"};
  std::vector<models::Model*> also;
  for (const run::LoadedModel& one : s.also) also.push_back(one.model.get());
  const StopRequest stop;
  Progress progress("evaluate", evaluate::count_samples(s.dataset, s.options));
  auto result = evaluate::evaluate(
      model, s.dataset, s.options, metrics, model.label(),
      [&](int64_t done) {
        progress.update(done, "clips");
        return !stop.asked();
      },
      engine, also);
  progress.finish();
  say_basis(result, s);
  fmt::print("{}", evaluate::table_text(result.metrics));
  keep(result, s, stop);
}

}  // namespace

void run_evaluate(const EvaluateCommand& command) {
  if (command.engine != "plan" && command.engine != "eager") {
    fail(ErrorKind::usage, "--engine must be plan or eager, got '{}'", command.engine);
  }
  if (command.timing && !command.weights.empty()) {
    fail(ErrorKind::usage, "--weights does not go with --timing, which scores by PSNR and SSIM alone");
  }
  if (command.timing && !command.also.empty()) fail(ErrorKind::usage, "--also does not go with --timing");
  const run::LoadOptions reading{command.step, model_changes(command.overrides), !command.without_average,
                                 ops::parse_device(command.device)};
  run::LoadedModel loaded = run::load_model(command.model, reading);
  const run::Config config = evaluated_config(loaded, command.overrides);
  const auto options = evaluate::EvaluateOptions::from_json(config.evaluate);
  const auto dataset = run::make_dataset(config);
  take_size_of(loaded, *dataset);
  check_clips(loaded, *dataset);
  const bool is_run = fs::is_directory(command.model + "/checkpoints");
  const std::string out = !command.out.empty() ? command.out : is_run ? command.model : ".";
  if (command.out.empty() && is_run && !other_size_text(loaded).empty()) {
    fail(ErrorKind::usage,
         "[evaluate] the frames are {}; scores of another size would replace those of the run: name a folder for them "
         "with --out",
         other_size_text(loaded));
  }
  if (command.timing) return run_timing(loaded, config, dataset, out);
  log_info("{} at step {}", loaded.model->description(), loaded.recipe.step);
  const bool forecasts = loaded.model->as_forecaster() != nullptr;
  if (!forecasts && !command.also.empty()) {
    fail(ErrorKind::usage, "--also takes models that forecast; {} is a tokenizer", loaded.path);
  }
  const std::vector<run::LoadedModel> also = load_members(loaded, command.also, reading);
  const Scored scored{loaded, also, config, *dataset, options, metrics::WeightFolder(command.weights), out};
  if (!forecasts && loaded.model->as_tokenizer() != nullptr) return score_tokenizer(scored);
  score_forecasts(scored, command);
}

void add_evaluate(CLI::App& app) {
  auto* command = app.add_subcommand(
      "evaluate",
      "Score a run over the horizon, beside forecasts without a model; of a tokenizer, what comes back of frames");
  auto options = std::make_shared<EvaluateCommand>();
  command->add_option("model", options->model, "Run folder, exported folder or model file")->required();
  command->add_option("overrides", options->overrides,
                      "Values of the config: evaluate.*, data.*, and model.core.window and .recompute");
  command->add_option(
      "--out", options->out,
      "Folder for metrics.json, samples and report; by default the run folder, for a model the current one");
  command->add_option("--also", options->also, kAlsoHelp)->allow_extra_args(false);
  command->add_option("--weights", options->weights, "Folder of trained weights of metrics (see convssm weights)");
  command->add_option(
      "--features", options->features,
      "Folder that keeps what the network of FVD makes of clips: the truth is then seen once for many runs");
  command->add_option("--engine", options->engine, "plan: compiled, as generate runs it; eager: frame by frame")
      ->capture_default_str();
  command->add_option("--precision", options->precision, "float32, or int8: see docs/design.md")->capture_default_str();
  command->add_flag("--without-average", options->without_average,
                    "The weights as they were trained, where training kept a running average (train.ema)");
  command->add_option("--device", options->device, kDeviceHelp)->capture_default_str();
  command->add_option("--step", options->step, "Checkpoint of this step instead of the newest");
  command->add_flag("--timing", options->timing,
                    "Instead: forecasts at other frame rates than in training and with frames missing, by PSNR and "
                    "SSIM, as timing.json and two charts (moving-mnist, cores that know intervals, such as convs5)");
  command->footer(
      "Examples:\n  convssm evaluate runs/demo\n"
      "  convssm evaluate runs/demo evaluate.samples=64 evaluate.horizons=[50,100,200] --out scores\n"
      "  convssm evaluate runs/maze evaluate.horizons=null evaluate.context=null \\\n"
      "    evaluate.settings='[{context: 144, frames: 156, actions: true}, {context: 36, frames: 264, actions: "
      "false}]'\n"
      "  convssm evaluate runs/demo data.image_size=48 data.step=0.05 --out wider   # frames larger than in training\n"
      "  convssm evaluate runs/demo --timing evaluate.samples=64 --out timing\n"
      "  convssm evaluate runs/demo evaluate.metrics=[psnr_f01,lpips_alex]      # see convssm metrics");
  command->callback([options] { run_evaluate(*options); });
}

}  // namespace convssm::cli
