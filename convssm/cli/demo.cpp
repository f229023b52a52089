#include "convssm/cli/demo.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "convssm/base/atomic_file.h"
#include "convssm/base/folder.h"
#include "convssm/base/log.h"
#include "convssm/cli/demo_config.h"
#include "convssm/cli/evaluate.h"
#include "convssm/cli/exit_status.h"
#include "convssm/cli/generate.h"
#include "convssm/cli/train.h"
#include "convssm/data/write_clips.h"
#include "convssm/io/npy.h"
#include "convssm/io/yaml.h"
#include "convssm/train/config.h"

namespace convssm::cli {
namespace {

constexpr int64_t kFrames = 600;
constexpr uint64_t kClip = 1;  // of the test split

// A few frames of a test clip, as a user's recording would be.
void write_context(const train::Config& config, const std::string& path) {
  const auto dataset = train::make_dataset(config);
  const int64_t context = config.evaluate.at("context");
  io::write_npy(path, data::to_bytes(dataset->clip(data::Split::test, kClip, context).video));
}

void say(const std::string& command) { fmt::print("\n$ convssm {}\n", command), std::fflush(stdout); }

void run_demo(const std::string& out) {
  make_folder(out);
  const std::string config_path = out + "/demo.yaml", context = out + "/context.npy", future = out + "/future.gif";
  replace_file(config_path, kDemoConfig);
  const auto config = train::Config::from_json(io::read_yaml(config_path));

  say(fmt::format("train {} --run {} --resume", config_path, out));
  if (const int status = run_train({config_path, {}, out, true}); status != 0) return set_exit_status(status);
  say(fmt::format("evaluate {}", out));
  run_evaluate({out, {}, "", -1});
  if (exit_status() != 0) return;
  write_context(config, context);
  say(fmt::format("generate {} --context {} --frames {} --with-context --out {}", out, context, kFrames, future));
  GenerateCommand generate;
  generate.model = out, generate.context = context, generate.out = future;
  generate.frames = kFrames, generate.with_context = generate.force = true;
  run_generate(generate);

  fmt::print("\nTo look at:\n");
  fmt::print("  {:<38} the digit bounces on for {} frames\n", future, kFrames);
  fmt::print("  {:<38} truth above, forecast below\n", out + "/samples/evaluate-strip-0.png");
  fmt::print("  {:<38} curves, scores and samples, in a browser\n", out + "/report.html");
}

}  // namespace

void add_demo(CLI::App& app) {
  auto* command = app.add_subcommand("demo", "Train a small model from scratch and let it run on: about 5 minutes");
  auto out = std::make_shared<std::string>("out/demo");
  command->add_option("--out", *out, "Folder for everything it makes")->capture_default_str();
  command->footer("Example:\n  convssm demo --out out/demo\nStopped by Ctrl-C, it goes on where it was.");
  command->callback([out] { run_demo(*out); });
}

}  // namespace convssm::cli
