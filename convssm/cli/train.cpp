#include "convssm/cli/train.h"

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "convssm/base/error.h"
#include "convssm/base/log.h"
#include "convssm/cli/device_option.h"
#include "convssm/cli/exit_status.h"
#include "convssm/evaluate/evaluate.h"
#include "convssm/io/yaml.h"
#include "convssm/ops/device.h"
#include "convssm/report/report.h"
#include "convssm/run/checkpoint.h"
#include "convssm/run/tokenizer_section.h"
#include "convssm/run/training_run.h"

namespace convssm::cli {
namespace {

namespace fs = std::filesystem;
using run::Config;

Config parse(nlohmann::json json, const std::vector<std::string>& overrides, const Config& before) {
  for (const std::string& assignment : overrides) io::set_override(json, assignment);
  const Config config = run::with_tokenizer(Config::from_json(json), before);
  evaluate::EvaluateOptions::from_json(config.evaluate);  // a mistake there should not wait for the end of training
  return config;
}

// A run goes on with the config it began with; what has changed and may is said.
void check_changes(const Config& before, const Config& now) {
  for (const std::string& change : run::differences(before.to_json(), now.to_json())) {
    if (!run::may_change(change)) {
      fail(ErrorKind::usage, "the run cannot go on with another model or other data: {}. Train a new run (--run)",
           change);
    }
    log_info("changed: {}", change);
  }
}

Config choose_config(const TrainCommand& command, const std::string& run) {
  const std::string saved = run + "/config.yaml";
  const bool old = command.resume && fs::exists(saved);
  if (command.config.empty() && !old) {
    if (fs::exists(saved)) fail(ErrorKind::usage, "{} holds a run: go on with it by --resume, or give a config", run);
    fail(ErrorKind::usage, "there is no run to go on with in {}: give a config, such as configs/mini/demo.yaml", run);
  }
  const bool goes_on = old && !run::checkpoint_steps(run + "/checkpoints").empty();
  const Config before = goes_on ? Config::from_json(io::read_yaml(saved)) : Config();
  const Config config =
      parse(io::read_yaml(command.config.empty() ? saved : command.config), command.overrides, before);
  if (goes_on) check_changes(before, config);
  return config;
}

}  // namespace

int run_train(const TrainCommand& command) {
  const at::Device device = ops::parse_device(command.device);
  std::string path = command.run;
  if (path.empty() && !command.config.empty()) path = "runs/" + fs::path(command.config).stem().string();
  if (path.empty()) fail(ErrorKind::usage, "give a config to train, or --run DIR --resume to go on with a run");
  const Config config = choose_config(command, path);
  run::RunFolder folder(path);
  run::TrainingRun training(
      config, folder, command.resume, [&] { report::write_report(path); }, device);
  log_info("run folder: {} (report.html shows it in a browser)", path);
  const StopRequest stop;
  if (training.run(stop) == train::Outcome::finished) {
    log_info("finished: {}/report.html", path);
    return 0;
  }
  const int64_t newest = training.saved_step();
  const std::string saved = newest == training.step() ? "and saved"
                            : newest < 0              ? "among bad ones, nothing is saved"
                                                      : fmt::format("among bad ones, step {} is saved", newest);
  log_info("stopped at step {} {}; go on with: convssm train --run {} --resume", training.step(), saved, path);
  return stop.exit_code();
}

void add_train(CLI::App& app) {
  auto* command = app.add_subcommand("train", "Train a model from a config, or go on with a run");
  auto options = std::make_shared<TrainCommand>();
  command->add_option("config", options->config, "YAML file: seed, model, data, train, evaluate");
  command->add_option("overrides", options->overrides, "Single values of the config, as train.lr=1e-4");
  command->add_option("--run", options->run, "Run folder; by default runs/ and the name of the config");
  command->add_flag("--resume", options->resume, "Go on with the run in the folder, exactly where it was saved");
  command->add_option("--device", options->device, kDeviceHelp)->capture_default_str();
  command->footer(
      "Examples:\n  convssm train configs/mini/demo.yaml --run runs/demo\n"
      "  convssm train configs/mini/demo.yaml train.lr=5e-4 train.steps=2000\n"
      "  convssm train --run runs/demo --resume\n"
      "Ctrl-C finishes the step, saves and ends.");
  command->callback([options] {
    if (options->config.find('=') != std::string::npos) {  // overrides only, of the run's own config
      options->overrides.insert(options->overrides.begin(), options->config);
      options->config.clear();
    }
    set_exit_status(run_train(*options));
  });
}

}  // namespace convssm::cli
