#include "convssm/cli/generate.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "convssm/base/error.h"
#include "convssm/base/log.h"
#include "convssm/base/progress.h"
#include "convssm/base/stop_request.h"
#include "convssm/cli/device_option.h"
#include "convssm/cli/exit_status.h"
#include "convssm/cli/generate_group.h"
#include "convssm/cli/generate_start.h"
#include "convssm/cli/members.h"
#include "convssm/cli/model_changes.h"
#include "convssm/cli/size_option.h"
#include "convssm/ops/device.h"
#include "convssm/run/model_file.h"

namespace convssm::cli {
namespace {

void check(const GenerateCommand& c) {
  const auto require = [](bool ok, const char* text) {
    if (!ok) fail(ErrorKind::usage, "{}", text);
  };
  require(c.context.empty() != c.state.empty(), "give either --context (a recording) or --state (a saved state)");
  require(c.observe.empty() || !c.state.empty(), "--observe goes with --state; --context takes in true frames itself");
  require(!c.out.empty() || !c.save_state.empty(),
          "give --out FILE.{npy,npz,nc,zarr,gif,mp4,mkv,avi,webm,png} or --save-state FILE");
  require(c.frames >= -1, "--frames must be positive, or 0 to take in frames alone");
  require(c.frames != 0 || (c.out.empty() && !c.save_state.empty()),
          "--frames 0 makes no frames: it goes with --save-state and without --out");
  require(c.out.empty() || c.out != c.save_state, "--out and --save-state name the same file; give two");
  require(c.reading.clip >= -1, "--clip must be 0 or more");
  require(c.fps > 0, "--fps must be positive");
  require(c.batch >= 0, "--batch must be positive");
  require(c.engine == "plan" || c.engine == "eager", "--engine must be plan or eager");
  generate::parse_precision(c.precision);
  require(c.samples > 0, "--samples must be positive");
  require(c.perturb >= 0, "--perturb must be 0 or positive");
  require(c.perturb == 0 || !c.context.empty(), "--perturb needs --context: a saved state goes on as it is");
  require(c.perturb == 0 || c.samples > 1,
          "--perturb changes all futures of a clip but the first, and there is one; give --samples 2 or more");
  require(c.also.empty() || (c.state.empty() && c.save_state.empty()),
          "--also goes with --context and without --save-state: a state is of one model");
  require(c.samples == 1 || c.state.empty(),
          "--samples needs --context: a saved state holds the random position of each of its futures");
  require(!c.with_context || !c.context.empty(), "--with-context needs --context");
  for (const std::string& assignment : c.overrides) {
    if (assignment.starts_with("model.")) continue;
    fail(ErrorKind::usage, "'{}': generate takes values of the model alone, such as model.core.window=100", assignment);
  }
}

}  // namespace

void run_generate(const GenerateCommand& c) {
  check(c);
  const run::LoadOptions options{c.step, model_changes(c.overrides), !c.without_average, ops::parse_device(c.device)};
  run::LoadedModel loaded = run::load_model(c.model, options);
  log_info("{} ({})", loaded.model->description(), loaded.path);
  if (!c.size.empty()) {
    const auto [height, width] = parse_size(c.size);
    take_size(loaded, height, width);
  }
  const std::vector<run::LoadedModel> also = load_members(loaded, c.also, options);
  std::vector<models::Model*> models{loaded.model.get()};
  for (const run::LoadedModel& one : also) models.push_back(one.model.get());
  const data::FrameFormat& format = loaded.recipe.frames;
  const ForecastStart start = make_start(c, loaded);
  const int64_t batch = c.batch > 0 ? std::min(c.batch, start.rows) : start.rows;
  if (batch < start.rows && !(c.save_state.empty() && c.state.empty())) {
    fail(ErrorKind::usage, "a state holds all {} futures; leave --batch {} out or take single clips by --clip",
         start.rows, c.batch);
  }
  if (data::is_field_name(c.out) && batch % c.samples != 0) {
    fail(ErrorKind::usage,
         "the {} futures of a clip go to one file side by side; give a --batch of as many, or of a multiple, got {}",
         c.samples, c.batch);
  }
  check_results_are_new(c, start);
  const StopRequest stop;
  Progress progress("generate", start.frames * ((start.rows + batch - 1) / batch));
  generate::GenerateResult result;
  int64_t before = 0;
  for (int64_t i = 0; i < start.rows && !stop.asked() && !result.diverged; i += batch) {
    const ForecastGroup group(c, start, i, std::min(i + batch, start.rows));
    result = group.run(models, format, [&](int64_t done) {
      progress.update(before + done, "frames");
      return !stop.asked();
    });
    before += result.frames;
  }
  progress.finish();
  if (!c.out.empty() && result.frames > 0) tell_result(c, start, format, result.frames);
  if (!c.save_state.empty() && !result.diverged) {
    generate::save_state(c.save_state, {result.state, start.last_places(result.frames)}, state_owner(loaded));
    log_info("state: {}; go on with --state {}{}", c.save_state, c.save_state,
             c.size.empty() ? "" : " --size " + c.size);
  }
  if (result.diverged) {
    fail(ErrorKind::numeric, "frame {} holds NaN or infinity: the forecast has diverged. {}", result.frames,
         result.frames > 0 && !c.out.empty() ? "The frames before it were written" : "Nothing of it was written");
  }
  set_exit_status(stop.exit_code());
}

void add_generate(CLI::App& app) {
  auto* command = app.add_subcommand("generate", "Forecast the frames after a recording");
  auto c = std::make_shared<GenerateCommand>();
  command->add_option("model", c->model, "Run folder, exported folder or model file")->required();
  command->add_option(
      "--context", c->context,
      "Recording to go on from: arrays (.npy, .npz, .h5), fields (.nc, .zarr, .grib), a video or .tif file, or a "
      "folder of them, or of the frames of a clip");
  command
      ->add_option("--context-frames", c->reading.frames,
                   "Only so many of its frames, or below 0 the last ones, as in --context-frames=-25; by default all")
      ->check([](const std::string& text) { return std::string(text == "0" ? "0 frames are no context" : ""); });
  command->add_option("--context-start", c->reading.first, "Frame that the context begins with, below 0 from the end");
  command->add_option("--clip", c->reading.clip, "Only this clip of several; by default all, one file each");
  command->add_flag("--clamp", c->reading.clamp,
                    "Cut values of the context to the range that the model knows, where others are an error");
  command->add_option("--key", c->reading.key,
                      "Array of an .npz or .h5 file; by default that of the training if its file had the same ending, "
                      "else data, video or the only one");
  command->add_option("--layout", c->reading.layout,
                      "Letters such as THWC; by default those of the training if its file had the same ending, else "
                      "guessed. Results are laid out alike");
  command
      ->add_option("--size", c->size,
                   "Frames of another size than in training, height first, as 48x64: the context must have it, or is "
                   "brought to it where training had data.size (pixel models of cores on frames, such as convs5)")
      ->type_name("HxW");
  command->add_option("--state", c->state, "Saved state to go on from instead of a recording");
  command->add_option(
      "--observe", c->observe,
      "True frames that the state takes in first: those that follow it. If its last frame is a forecast, "
      "the first true one takes the place of that");
  command->add_option(
      "--actions", c->actions,
      "Actions that lead to the frames to generate, .npy or .npz: whole numbers [T] or [N,T], or floats "
      "[T,A] or [N,T,A]. Action k leads to frame k. By default those of the context after its frames");
  command->add_option("--actions-key", c->reading.actions_key,
                      "Array of the actions in .npz files; by default that of the training data");
  command->add_option("--frames", c->frames,
                      "Frames to generate; by default one for each action that is known, or 100. 0: only --save-state");
  command->add_option("--also", c->also, kAlsoHelp)->allow_extra_args(false);
  command->add_option("--samples", c->samples, "Futures of each clip, for models that draw, or with --perturb")
      ->capture_default_str();
  command->add_option(
      "--perturb", c->perturb,
      "Noise on what the model remembers of the context, as 0.05 of its size, for all futures but the first");
  command->add_option("--seed", c->seed, "Of the futures: the same seed gives the same ones")->capture_default_str();
  command->add_option(
      "--out", c->out,
      "Result: .npy, .npz, .gif, .mp4, .png for a strip, .nc or .zarr for fields with coordinates and times");
  command->add_flag("--with-context", c->with_context, "The result begins with the context");
  command->add_option("--save-state", c->save_state, "Save the state after the last frame");
  command->add_option("--fps", c->fps, "Frames per second of .gif and .mp4")->capture_default_str();
  command->add_option("--scale", c->scale, "Enlargement of .gif, .mp4 and .png; by default small frames are enlarged");
  command->add_option("--batch", c->batch, "Clips that run side by side; by default all");
  command->add_option("--precision", c->precision, "float32, or int8: faster, see docs/design.md")
      ->capture_default_str();
  command->add_option("--engine", c->engine, "plan, or eager to compare")->group("");
  command->add_flag("--without-average", c->without_average,
                    "The weights as they were trained, where training kept a running average (train.ema)");
  command->add_option("--device", c->device, kDeviceHelp)->capture_default_str();
  command->add_option("--step", c->step, "Checkpoint of this step instead of the newest");
  command->add_option("overrides", c->overrides,
                      "model.temperature=T, model.top_k=N, model.top_p=P (codes); model.core.window=N (transformer, "
                      "hybrid); model.sampling.scheme=S, .steps=N (latent_fdm)");
  command->add_flag("--force", c->force, "Replace an existing result");
  command->footer(
      "Examples:\n  convssm generate runs/demo --context clip.npy --frames 1200 --out future.gif\n"
      "  convssm generate runs/demo --context clip.npy --frames 100 --out a.npy --save-state s.safetensors\n"
      "  convssm generate runs/demo --state s.safetensors --frames 100 --out b.npy\n"
      "  convssm generate runs/robot --context seen.npz --actions plan.npy --out a.npy     # video and actions in "
      "seen.npz\n"
      "  convssm generate runs/robot --state s.safetensors --observe new.npz --frames 0 --save-state s.safetensors\n"
      "A recording to try with:\n"
      "  convssm data make clip.npy digits=1 image_size=32 digit_size=24 step=0.15 subpixel=true shapes=5 "
      "mix_splits=true \\\n"
      "    --split test --clips 1 --frames 25\n"
      "The frames of a forecast need no ground truth; a context of one frame is enough.");
  command->callback([c] { run_generate(*c); });
}

}  // namespace convssm::cli
