// Everything that a run says while it trains goes through here, each file by its own writer, none of which may stop the training.
#include "convssm/run/recorder.h"

#include <algorithm>
#include <filesystem>

#include "convssm/base/atomic_file.h"
#include "convssm/base/error.h"
#include "convssm/base/folder.h"
#include "convssm/base/log.h"
#include "convssm/base/version.h"
#include "convssm/run/checkpoint.h"

namespace convssm::run {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kStatusInterval = std::chrono::seconds(5);

void add_scalars(io::EventWriter& events, const std::string& group, int64_t step, const nlohmann::json& numbers) {
  for (const auto& item : numbers.items()) events.scalar(group + "/" + item.key(), step, item.value().get<double>());
}

}  // namespace

Recorder::Recorder(RunFolder& folder, const Config& config, const models::Model& model, const data::FrameFormat& frames,
                   std::function<void()> refresh)
    : folder_(folder),
      config_(config),
      model_(model),
      frames_(frames),
      about_({{"steps", config.train.steps},
              {"parameters", models::learned_count(model)},
              {"model", model.description()},
              {"data", config.data.value("name", "?")},
              {"version", kVersion}}),
      refresh_(std::move(refresh)) {}

void Recorder::begin(int64_t first_step) {
  const std::string events = folder_.path("tensorboard");
  events_.emplace(events, std::filesystem::exists(events) ? first_step + 1 : -1);
  folder_.forget_log_after(first_step);
  make_folder(folder_.path("samples"));
  saved_step_ = first_step > 0 ? first_step : -1;
}

void Recorder::progress(int64_t step, const std::string& note) {
  if (!folder_.there()) {
    fail(ErrorKind::io,
         "the run folder {} (or its run.lock) was deleted, moved or replaced while step {} was trained: training ends, "
         "because what it makes could not be found again",
         folder_.path(), step);
  }
  if (!progress_) {
    ProgressOptions drawing;
    drawing.start = step;
    progress_.emplace("train", config_.train.steps, drawing);
  }
  progress_->update(step, note);
}

bool Recorder::save(const train::Snapshot& snapshot) {
  const int64_t step = snapshot.step;
  if (!folder_.there()) return false;  // and would be made again without config and lock
  try {
    std::vector<io::LazyArray> arrays = model_arrays(model_);
    arrays.insert(arrays.end(), snapshot.arrays.begin(), snapshot.arrays.end());
    const std::string checkpoints = folder_.path("checkpoints");
    write_checkpoint(checkpoints, step, arrays, recipe_metadata({config_.model, frames_, config_.to_json(), step}),
                     snapshot.extras);
    prune_checkpoints(checkpoints, config_.train.keep_last, config_.train.keep_every);
    saved_step_ = step;
    return true;
  } catch (const Error& error) {
    const std::string before =
        saved_step_ < 0 ? "there is none before it" : fmt::format("that of step {} stays", saved_step_);
    log_error("the checkpoint of step {} could not be saved in {} ({}); {}", step, folder_.path(), error.what(),
              before);
    return false;
  }
}

void Recorder::distrust_after(int64_t step) { set_aside_checkpoints_after(folder_.path("checkpoints"), step); }

void Recorder::attempt(const char* what, const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::io) throw;
    log_warning("{} could not be written: {}", what, error.what());
  }
}

void Recorder::line(int64_t step, const nlohmann::json& scores, const nlohmann::json& speeds) {
  attempt("a line of the log", [&] {
    nlohmann::json all = {{"step", step}};
    all.update(scores);
    all.update(speeds);
    folder_.log(all);
    add_scalars(*events_, "train", step, scores);
    add_scalars(*events_, "speed", step, speeds);
    events_->flush();
  });
}

void Recorder::samples(int64_t step, const train::Validation& validation) {
  attempt("the samples", [&] {
    folder_.log({{"step", step}, {"validation", validation.scores}});
    add_scalars(*events_, "validation", step, validation.scores);
    events_->image("validation/truth above, forecast below", step, train::strip(validation));
    events_->flush();
    train::save_pictures(validation, folder_.path(fmt::format("samples/step-{:06}", step)));
  });
}

void Recorder::status(const std::string& state, int64_t step, double seconds, const std::string& note) {
  if (state != "running" && progress_) progress_->finish();
  if ((state == "running" && Clock::now() < next_status_) || !folder_.there()) return;
  const auto begin = Clock::now();
  nlohmann::json status = about_;
  status.update({{"state", state}, {"step", step}, {"seconds", seconds}, {"note", note}});
  attempt("the status", [&] {
    // A note may hold a file's name, which need not be UTF-8.
    replace_file(folder_.path("status.json"),
                 status.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
    if (refresh_) refresh_();
  });
  // The report of a long run takes a while to write: at most a fiftieth of the time goes into it.
  const auto now = Clock::now();
  next_status_ = now + std::max<Clock::duration>(kStatusInterval, 50 * (now - begin));
}

}  // namespace convssm::run
