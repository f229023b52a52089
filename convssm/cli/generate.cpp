#include "convssm/cli/generate.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>

#include "convssm/base/error.h"
#include "convssm/base/log.h"
#include "convssm/base/progress.h"
#include "convssm/base/stop_request.h"
#include "convssm/cli/core_changes.h"
#include "convssm/cli/exit_status.h"
#include "convssm/data/picture.h"
#include "convssm/generate/generate.h"
#include "convssm/generate/state_file.h"
#include "convssm/models/model_file.h"

namespace convssm::cli {
namespace {

using Sinks = std::vector<std::unique_ptr<generate::FrameSink>>;

void check(const GenerateCommand& c) {
  const auto require = [](bool ok, const char* text) {
    if (!ok) fail(ErrorKind::usage, "{}", text);
  };
  require(c.context.empty() != c.state.empty(), "give either --context (a recording) or --state (a saved state)");
  require(!c.out.empty() || !c.save_state.empty(), "give --out FILE.{npy,npz,gif,mp4,png} or --save-state FILE");
  require(c.frames > 0, "--frames must be positive");
  require(c.reading.clip >= -1, "--clip must be 0 or more");
  require(c.fps > 0, "--fps must be positive");
  require(!c.with_context || !c.context.empty(), "--with-context needs --context");
}

// Where a rollout begins: the state, and for --with-context the frames before it.
struct Start {
  models::State state;
  at::Tensor video, actions;
  int64_t clips = 1;
};

Start make_start(const GenerateCommand& c, models::LoadedModel& loaded, const data::FrameFormat& format) {
  at::NoGradGuard no_grad;
  Start start;
  if (!c.state.empty()) {
    start.state = generate::load_state(c.state, loaded.checksum);
    start.clips = start.state.get("frame").size(0);
    return start;
  }
  generate::Context context = generate::read_context(c.context, format, c.reading);
  log_info("context: {}", context.description);
  start.clips = context.video.size(0);
  const int64_t K = context.video.size(1);
  if (context.actions.defined()) {  // what the file does not say of the future is the masked action
    const int64_t missing = std::max<int64_t>(K + c.frames - context.actions.size(1), 0);
    start.actions = at::constant_pad_nd(context.actions, {0, missing}, -1).slice(1, K, K + c.frames);
  }
  const at::Tensor known = context.actions.defined() ? context.actions.slice(1, 0, K) : context.actions;
  start.state = loaded.model->start(context.video, known);
  if (c.with_context) start.video = context.video;
  return start;
}

Sinks open_sinks(const GenerateCommand& c, const data::FrameFormat& format, const Start& start) {
  const int64_t before = start.video.defined() ? start.video.size(1) : 0;
  const int64_t scale = c.scale > 0 ? c.scale : data::friendly_scale(format.width);
  Sinks sinks;
  for (int64_t i = 0; i < start.clips; ++i) {
    const std::string path = start.clips == 1 ? c.out : generate::numbered_path(c.out, i);
    if (!c.force && std::filesystem::exists(path)) {
      fail(ErrorKind::usage, "{} is there already; --force replaces it", path);
    }
    sinks.push_back(generate::open_sink(path, format, {before + c.frames, c.fps, scale}));
    for (int64_t k = 0; k < before; ++k) sinks.back()->write(start.video[i][k]);
  }
  return sinks;
}

}  // namespace

void run_generate(const GenerateCommand& c) {
  check(c);
  models::LoadedModel loaded = models::load_model(c.model, c.step, core_changes(c.overrides));
  const auto format = data::FrameFormat::from_json(loaded.recipe.frames);
  log_info("{} ({})", loaded.model->description(), loaded.path);
  Start start = make_start(c, loaded, format);
  Sinks sinks;
  if (!c.out.empty()) sinks = open_sinks(c, format, start);
  const StopRequest stop;
  Progress progress("generate", c.frames);
  const auto result =
      generate::generate(*loaded.model, std::move(start.state), start.actions, c.frames, sinks, [&](int64_t done) {
        progress.update(done, "frames");
        return !stop.asked();
      });
  progress.finish();
  if (result.frames > 0) {
    for (const auto& sink : sinks) sink->close();
  }
  if (!c.save_state.empty()) generate::save_state(c.save_state, result.state, loaded.checksum);
  if (!c.out.empty())
    log_info("{} frames: {}", result.frames, start.clips == 1 ? c.out : generate::numbered_path(c.out, 0) + " ...");
  if (!c.save_state.empty()) log_info("state: {}; go on with --state {}", c.save_state, c.save_state);
  if (result.diverged) {
    fail(ErrorKind::numeric,
         "frame {} holds NaN or infinity: the forecast has diverged. The frames before it were written", result.frames);
  }
  set_exit_status(stop.exit_code());
}

void add_generate(CLI::App& app) {
  auto* command = app.add_subcommand("generate", "Forecast the frames after a recording");
  auto c = std::make_shared<GenerateCommand>();
  command->add_option("model", c->model, "Run folder or model file")->required();
  command->add_option("--context", c->context, "Recording to go on from: .npy, .npz, .gif or .mp4");
  command->add_option("--context-frames", c->reading.frames, "Only the first frames of it; by default all");
  command->add_option("--clip", c->reading.clip, "Only this clip of several; by default all, one file each");
  command->add_option("--key", c->reading.key, "Array of an .npz file; by default data, video or the only one");
  command->add_option("--layout", c->reading.layout, "Letters such as THWC; by default guessed");
  command->add_option("--state", c->state, "Saved state to go on from instead of a recording");
  command->add_option("--frames", c->frames, "Frames to generate")->capture_default_str();
  command->add_option("--out", c->out, "Result: .npy, .npz, .gif, .mp4, or .png for a strip");
  command->add_flag("--with-context", c->with_context, "The result begins with the context");
  command->add_option("--save-state", c->save_state, "Save the state after the last frame");
  command->add_option("--fps", c->fps, "Frames per second of .gif and .mp4")->capture_default_str();
  command->add_option("--scale", c->scale, "Enlargement of .gif, .mp4 and .png; by default small frames are enlarged");
  command->add_option("--step", c->step, "Checkpoint of this step instead of the newest");
  command->add_option("overrides", c->overrides, "model.core.window=N or model.core.recompute=true (Transformer)");
  command->add_flag("--force", c->force, "Replace an existing result");
  command->footer(
      "Examples:\n  convssm generate runs/demo --context clip.npy --frames 1200 --out future.gif\n"
      "  convssm generate runs/demo --context clip.npy --frames 100 --out a.npy --save-state s.safetensors\n"
      "  convssm generate runs/demo --state s.safetensors --frames 100 --out b.npy\n"
      "The frames of a forecast need no ground truth; a context of one frame is enough.");
  command->callback([c] { run_generate(*c); });
}

}  // namespace convssm::cli
