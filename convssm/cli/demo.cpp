#include "convssm/cli/demo.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "convssm/base/atomic_file.h"
#include "convssm/base/error.h"
#include "convssm/base/folder.h"
#include "convssm/base/log.h"
#include "convssm/base/spacing.h"
#include "convssm/cli/demo_config.h"
#include "convssm/cli/evaluate.h"
#include "convssm/cli/exit_status.h"
#include "convssm/cli/generate.h"
#include "convssm/cli/pretrained.h"
#include "convssm/cli/program.h"
#include "convssm/cli/train.h"
#include "convssm/data/comparison.h"
#include "convssm/data/picture.h"
#include "convssm/data/write_clips.h"
#include "convssm/io/npy.h"
#include "convssm/io/yaml.h"
#include "convssm/report/labels.h"
#include "convssm/run/config.h"
#include "convssm/run/model_file.h"

namespace convssm::cli {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kClip = 1;  // of the test split
constexpr int64_t kScale = 3, kMoments = 20;

struct DemoCommand {
  std::string out = "out/demo";
  std::string pretrained = find_pretrained("moving-digits-convs5");
  int64_t frames = 600;
  std::vector<std::string> overrides;
};

// A video of the future, and what it is called.
struct Panel {
  std::string name;
  at::Tensor video;  // [T,C,H,W], the context included
};

void say(const std::string& command) { fmt::print("\n$ convssm {}\n", command), std::fflush(stdout); }

// A demo that was stopped goes on; one of another model or other data cannot.
void check_same(const std::string& out, const run::Config& config) {
  const std::string saved = out + "/config.yaml";
  if (!fs::exists(saved)) return;
  const auto before = run::Config::from_json(io::read_yaml(saved)).to_json();
  for (const std::string& change : run::differences(before, config.to_json())) {
    if (run::may_change(change)) continue;
    fail(ErrorKind::usage, "{} holds a demo with another model or other data ({}); remove it or name another --out",
         out, change);
  }
}

run::Config write_config(const DemoCommand& command, const std::string& path) {
  nlohmann::json json = io::parse_yaml(kDemoConfig, "the config of the demo");
  for (const std::string& assignment : command.overrides) io::set_override(json, assignment);
  const auto config = run::Config::from_json(json);
  check_same(command.out, config);
  replace_file(path, command.overrides.empty() ? kDemoConfig : io::to_yaml(json));
  return config;
}

int64_t context_of(const nlohmann::json& config) {
  const nlohmann::json::json_pointer where("/evaluate/context");
  return config.contains(where) && config[where].is_number_integer() ? config[where].get<int64_t>() : 0;
}

// The frames of context that the pretrained model was scored with; -1, and a line that says why, if it cannot be shown.
int64_t pretrained_context(const std::string& folder, const data::FrameFormat& format) {
  if (folder.empty()) {
    log_info("no pretrained model beside the program; --pretrained DIR names one. The new one is shown alone");
    return -1;
  }
  const run::LoadedModel loaded = run::load_model(folder);
  const data::FrameFormat& found = loaded.recipe.frames;
  if (found.same_size(format)) return context_of(loaded.recipe.config);
  log_info("the model in {} takes frames of {}, the demo has {}: it is not shown", folder, found.size_text(),
           format.size_text());
  return -1;
}

at::Tensor generate_video(const std::string& model, const std::string& context, const std::string& out,
                          const DemoCommand& command, const data::FrameFormat& format) {
  say(fmt::format("generate {} --context {} --frames {} --with-context --out {}", model, context, command.frames, out));
  GenerateCommand generate;
  generate.model = model, generate.context = context, generate.out = out;
  generate.frames = command.frames, generate.with_context = generate.force = true;
  run_generate(generate);
  return exit_status() == 0 ? generate::read_context(out, format, {}).clips.video[0] : at::Tensor();
}

void save_panels(const std::vector<Panel>& panels, int64_t context, const std::string& base) {
  std::vector<at::Tensor> videos, futures;
  std::vector<std::string> names;
  for (const Panel& panel : panels) {
    videos.push_back(panel.video), names.push_back(panel.name);
    futures.push_back(panel.video.slice(0, context));
  }
  const auto heading = [&](int64_t k, int64_t width) {
    const std::string line =
        k < context ? fmt::format("seen: {} of {}", k + 1, context) : fmt::format("{} frames ahead", k + 1 - context);
    return report::label_picture(names, line, width);
  };
  data::save_table_gif({{videos}, kScale, heading}, base + ".gif");
  io::write_png(base + ".png", data::strip_picture(futures, evenly_spaced(futures[0].size(0), kMoments), 2));
}

// Truth and forecasts after the same frames of a test clip, as a user's recording would be, with the pretrained model or
// without. False if it was stopped.
bool show_futures(const DemoCommand& command, const data::Dataset& dataset, int64_t context, bool pretrained) {
  const std::string& out = command.out;
  const std::string path = out + "/context.npy";
  const data::FrameFormat format = dataset.format();
  const at::Tensor truth = dataset.clip(data::Split::test, kClip, context + command.frames).video[0];
  io::write_npy(path, data::to_bytes(truth.slice(0, 0, context)));

  std::vector<Panel> panels = {{"truth", truth}};
  if (pretrained) {
    panels.push_back(
        {"pretrained", generate_video(command.pretrained, path, out + "/pretrained.npy", command, format)});
    if (exit_status() != 0) return false;
  }
  panels.push_back({"just trained", generate_video(out, path, out + "/trained.npy", command, format)});
  if (exit_status() != 0) return false;
  save_panels(panels, context, out + "/future");

  std::string names;
  for (const Panel& panel : panels) names += (names.empty() ? "" : " | ") + panel.name;
  fmt::print("\nTo look at:\n");
  fmt::print("  {:<38} {}: {} frames after the same {}\n", out + "/future.gif", names, command.frames, context);
  fmt::print("  {:<38} the same at {} moments, a row each\n", out + "/future.png", kMoments);
  return true;
}

// By paths below the current folder where they are there, so that it can be copied.
void name_next_command() {
  const std::string world = find_pretrained("maze-convs5");
  if (world.empty()) return;
  const auto near = [](const fs::path& path) {
    const fs::path below = path.lexically_proximate(fs::current_path());
    return *below.begin() == ".." ? path.string() : below.string();
  };
  fmt::print("\nNext, walk through a maze that a model has learned:\n  {} serve {}\n",
             near(fs::read_symlink("/proc/self/exe")), near(world));
}

void run_demo(const DemoCommand& command) {
  const std::string& out = command.out;
  make_folder(out);
  const std::string config_path = out + "/demo.yaml";
  const run::Config config = write_config(command, config_path);
  const auto dataset = run::make_dataset(config);
  const int64_t known = pretrained_context(command.pretrained, dataset->format());
  say(fmt::format("train {} --run {} --resume", config_path, out));
  if (const int status = run_train({config_path, {}, out, true}); status != 0) return set_exit_status(status);
  say(fmt::format("evaluate {}", out));
  run_evaluate({out, {}, "", -1});
  if (exit_status() != 0 || !show_futures(command, *dataset, std::max(known, context_of(config.to_json())), known >= 0))
    return;
  fmt::print("  {:<38} truth above, forecast below\n", out + "/samples/evaluate-strip-0.png");
  fmt::print("  {:<38} curves, scores and samples, in a browser\n", out + "/report.html");
  name_next_command();
}

}  // namespace

void add_demo(CLI::App& app) {
  auto* command = app.add_subcommand(
      "demo", "Train a small model from scratch and let it run on beside a pretrained one: about 5 minutes");
  auto c = std::make_shared<DemoCommand>();
  command->add_option("overrides", c->overrides, "Values of its config, as train.steps=2000");
  command->add_option("--out", c->out, "Folder for everything it makes")->capture_default_str();
  command->add_option("--pretrained", c->pretrained, "Exported folder or run to show beside it (see convssm export)")
      ->type_name("DIR")
      ->capture_default_str();
  command->add_option("--frames", c->frames, "Frames to generate")->check(positive_number())->capture_default_str();
  command->footer("Example:\n  convssm demo --out out/demo\nStopped by Ctrl-C, it goes on where it was.");
  command->callback([c] { run_demo(*c); });
}

}  // namespace convssm::cli
