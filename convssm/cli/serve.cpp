#include "convssm/cli/serve.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <memory>

#include "convssm/base/error.h"
#include "convssm/base/log.h"
#include "convssm/base/memory.h"
#include "convssm/base/stop_request.h"
#include "convssm/cli/device_option.h"
#include "convssm/cli/exit_status.h"
#include "convssm/cli/model_changes.h"
#include "convssm/cli/program.h"
#include "convssm/cli/serve_start.h"
#include "convssm/ops/device.h"
#include "convssm/serve/host.h"

namespace convssm::cli {
namespace {

void check(const ServeCommand& c) {
  for (const std::string& assignment : c.overrides) {
    if (assignment.starts_with("model.") || assignment.starts_with("data.")) continue;
    fail(ErrorKind::usage,
         "'{}': serve takes values of the model and of the world, such as model.temperature=0.8 or "
         "data.size=5",
         assignment);
  }
  const auto is_of_world = [](const std::string& assignment) { return assignment.starts_with("data."); };
  if (!c.context.empty() && std::ranges::any_of(c.overrides, is_of_world)) {
    fail(ErrorKind::usage, "data.KEY=VALUE is of a world, and --context goes on from a recording: give one of them");
  }
  if (!c.context.empty() && !c.world.empty()) fail(ErrorKind::usage, "give --context or --world, not both");
}

void run(ServeCommand& c) {
  check(c);
  const auto memory = parse_bytes(c.memory);
  if (!memory) fail(ErrorKind::usage, "--memory must be a number with a unit such as 1GiB, got '{}'", c.memory);
  c.host.limits.memory = *memory;
  c.host.limits.idle = std::chrono::seconds(c.idle);
  run::LoadedModel loaded =
      run::load_model(c.model, {c.step, model_changes(c.overrides), !c.without_average, ops::parse_device(c.device)});
  log_info("{} ({})", loaded.model->description(), loaded.path);
  serve::Scene scene(*loaded.model, find_beginnings(c, loaded), mask_learned(loaded));
  const StopRequest stop;
  serve::Host host(scene, c.host);
  if (!serve::is_loopback(c.host.server.bind)) {
    log_warning("{} is not a loopback address: whoever reaches this machine can use the model, without a password",
                c.host.server.bind);
  }
  fmt::print("{}\n", host.address());
  std::fflush(stdout);
  log_info("serving up to {} visitors; Ctrl-C ends it", c.host.limits.visitors);
  host.run([&] { return stop.asked(); });
  set_exit_status(stop.exit_code());
}

}  // namespace

void add_serve(CLI::App& app) {
  auto* command = app.add_subcommand("serve", "Walk through what a model has learned, in a browser");
  auto c = std::make_shared<ServeCommand>();
  serve::ServerOptions& server = c->host.server;
  serve::VisitorLimits& limits = c->host.limits;
  command->add_option("model", c->model, "Run folder, exported folder or model file")->required();
  command->add_option(
      "--world", c->world,
      "World that the model is of (maze, terrain), with options as data.KEY=VALUE; by default that of its "
      "training data");
  command->add_option("--context", c->context,
                      "Recording to go on from, for models of no world: arrays, a video or a folder; by default "
                      "the context of an exported folder");
  command
      ->add_option("--context-frames", c->context_frames,
                   "Frames that the model sees first; by default as in its evaluation, or all of --context")
      ->check(positive_number());
  command->add_option("--port", server.port, "0: any that is free")->capture_default_str();
  command->add_option("--bind", server.bind, "Address to listen on, in numbers")->capture_default_str();
  command->add_option("--visitors", limits.visitors, "At the same time")
      ->check(positive_number())
      ->capture_default_str();
  command->add_option("--rewind", limits.rewind, "Frames that a visitor can go back")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  command->add_option("--memory", c->memory, "What the states to go back to may take, of all visitors together")
      ->type_name("SIZE")
      ->capture_default_str();
  command->add_option("--idle", c->idle, "Seconds of silence after which a visitor is forgotten")
      ->check(positive_number())
      ->capture_default_str();
  command->add_flag("--without-average", c->without_average,
                    "The weights as they were trained, where training kept a running average (train.ema)");
  command->add_option("--device", c->device, kDeviceHelp)->capture_default_str();
  command->add_option("--step", c->step, "Checkpoint of this step instead of the newest");
  command->add_option("overrides", c->overrides, "Options of the world as data.size=5, of the model as model.top_k=N");
  command->footer(
      "Examples:\n  convssm serve runs/maze                                    # then open the address that it prints\n"
      "  convssm serve runs/codes --world maze data.size=5         # trained on codes that do not name their world\n"
      "  convssm serve pretrained/moving-digits-convs5             # no actions: it plays forward\n"
      "  convssm serve runs/robot --context seen.npz --port 0      # actions by number keys\n"
      "Keys, protocol and limits: docs/serve.md");
  command->callback([c] { run(*c); });
}

}  // namespace convssm::cli
