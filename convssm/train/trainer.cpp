// What happens around the steps of a training: options, checkpoints, samples, lines of the log, and how it ends.
#include "convssm/train/trainer.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "convssm/base/error.h"
#include "convssm/base/log.h"
#include "convssm/base/random.h"
#include "convssm/train/preflight.h"

namespace convssm::train {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

// With probability `rate` a clip loses its actions: all become the masked one.
at::Tensor drop_actions(const at::Tensor& actions, double rate, uint64_t seed, int64_t step) {
  if (!actions.defined() || rate <= 0) return actions;
  at::Tensor kept = actions.clone();
  Stream stream(seed, "action dropout", static_cast<uint64_t>(step));
  for (int64_t i = 0; i < kept.size(0); ++i) {
    if (stream.uniform() < rate) kept[i].copy_(data::masked_like(kept[i]));
  }
  return kept;
}

// Of which batches and recordings the rows are that carry states: with others they would be elsewhere.
nlohmann::json walk_json(const TrainOptions& o, const data::Dataset& dataset) {
  const uint64_t clips = dataset.size(data::Split::train);
  int64_t frames = 0;
  for (uint64_t clip = 0; clip < clips; ++clip) frames += dataset.length(data::Split::train, clip);
  return {{"batch", o.batch}, {"frames", o.frames}, {"clips", clips}, {"all_frames", frames}};
}

}  // namespace

Trainer::Trainer(models::Model& model, std::shared_ptr<const data::Dataset> dataset, const TrainOptions& options,
                 uint64_t seed, TrainObserver& observer)
    : model_(model),
      dataset_(std::move(dataset)),
      options_(options),
      seed_(seed),
      observer_(observer),
      players_(model.players()),
      carried_(options.batch) {
  check_data(options_, *dataset_, model_);
  check_players(options_, players_);
  if (options_.self_feed > 0 && model_.as_forecaster() == nullptr)
    fail(ErrorKind::usage, "[train] self_feed needs a model that makes forecasts: {}", model_.description());
  if (options_.self_feed > 0 && !model_.as_forecaster()->feeds_itself())
    fail(ErrorKind::usage, "[train] self_feed must be 0 for a model that draws its forecasts: {}",
         model_.description());
  if (options_.self_feed > 0 && model_.as_tokenizer() != nullptr && dataset_->codes().count == 0)
    fail(ErrorKind::usage,
         "[train] self_feed of a model of codes needs clips that are encoded (convssm data encode), got frames");
  if (options_.carry_state) check_carrying(options_, *dataset_, model_, seed_);
  for (const models::Player& player : players_) optimizers_.emplace_back(player, options_of(player, options_));
  model_.train();
}

void Trainer::restore(const io::SafetensorsFile& file, int64_t step, const nlohmann::json& extras) {
  for (Optimizer& optimizer : optimizers_) optimizer.load(file);
  step_ = saved_step_ = step;
  try {
    seconds_before_ = extras.at("seconds");
    good_step_ = extras.value("good_step", step);
    samples_due_ = extras.at("samples_due");
    interval_ = Interval::from_json(extras.at("interval"));
    chunk_frames_ = extras.value("chunk_frames", kAutomatic);
    if (!options_.carry_state) return;
    if (extras.value("walk", nlohmann::json()) == walk_json(options_, *dataset_)) {
      carried_.load(file, models::device_of(model_));
    } else {
      log_info("the states of the checkpoint are of other recordings, batch or frames: all rows begin anew");
    }
  } catch (const nlohmann::json::exception& error) {
    fail(ErrorKind::data, "the checkpoint of step {} does not describe a training: {}", step, error.what());
  }
}

Snapshot Trainer::snapshot() const {
  Snapshot snapshot{step_, {}, {}};
  for (const Optimizer& optimizer : optimizers_) {
    for (auto& array : optimizer.arrays()) snapshot.arrays.push_back(std::move(array));
  }
  for (auto& array : carried_.arrays()) snapshot.arrays.push_back(std::move(array));
  snapshot.extras = {{"seconds", seconds()},
                     {"good_step", good_step_},
                     {"samples_due", samples_due_},
                     {"chunk_frames", chunk_frames_},
                     {"interval", interval_.to_json()}};
  if (options_.carry_state) snapshot.extras["walk"] = walk_json(options_, *dataset_);
  return snapshot;
}

void Trainer::prepare(uint64_t program) {
  chunk_frames_ = plan_step(options_, model_, *dataset_, program, chunk_frames_);
  prepared_ = true;
}

double Trainer::seconds() const { return seconds_before_ + seconds_since(begin_); }

Outcome Trainer::run(const StopRequest& stop) {
  const TrainOptions& o = options_;
  if (!prepared_) prepare();
  begin_ = line_begin_ = Clock::now();
  line_first_step_ = step_;
  log_info("train: {}; {} steps of {} clips x {} frames", model_.description(), o.steps, o.batch, o.frames);
  observer_.status("running", step_, seconds(), "");
  data::Loader loader(dataset_, {data::Split::train, o.batch, o.frames, seed_, static_cast<int>(o.workers),
                                 static_cast<uint64_t>(step_), o.carry_state});
  try {
    if (samples_due_) take_samples(stop);
    while (step_ < o.steps && !stop.asked()) {
      data::Batch batch = loader.next();
      batch.clips.actions = drop_actions(batch.clips.actions, o.action_dropout, seed_, step_);
      batch.clips = data::to_device(batch.clips, models::device_of(model_));
      train_step(batch);
      observer_.progress(step_, fmt::format("loss {:.4f}", last_loss_));
      after_step(stop);
    }
    if (bad_in_a_row_ > 0 && step_ >= o.steps) end_on_bad_steps();
  } catch (const std::exception& error) {
    tell_failure(error.what());
    throw;
  }
  const bool saved = saved_step_ == step_ || bad_in_a_row_ > 0 || save();
  const bool finished = step_ >= o.steps;
  observer_.status(finished ? "finished" : "stopped", step_, seconds(), "");
  if (!saved) fail(ErrorKind::io, "the last checkpoint could not be saved; what was saved before it is kept");
  return finished ? Outcome::finished : Outcome::stopped;
}

void Trainer::end_on_bad_steps() const {
  const std::string last =
      saved_step_ < 0 ? "nothing was saved" : fmt::format("the newest checkpoint is that of step {}", saved_step_);
  fail(ErrorKind::numeric,
       "training ends with steps that could not be used, {} in a row ({}); {}. Try a smaller train.lr, or end before "
       "them: train.steps={}",
       bad_in_a_row_, bad_reason_, last, step_ - bad_in_a_row_);
}

// The steps done so far are not lost, whatever happened; and nothing that goes wrong here hides it.
void Trainer::tell_failure(const std::string& what) {
  const auto attempt = [&](const char* task, const auto& action) {
    try {
      action();
    } catch (const std::exception& error) {
      log_error("after a failure at step {} {} failed too: {}", step_, task, error.what());
    }
  };
  if (!halfway_ && bad_in_a_row_ == 0 && step_ > std::max<int64_t>(saved_step_, 0)) attempt("saving", [&] { save(); });
  attempt("the status", [&] { observer_.status("failed", step_, seconds(), what); });
}

void Trainer::after_step(const StopRequest& stop) {
  const TrainOptions& o = options_;
  const auto due = [&](int64_t interval) { return interval > 0 && (step_ % interval == 0 || step_ == o.steps); };
  if (due(o.log_interval)) write_log_line();
  if (due(o.sample_interval)) take_samples(stop);
  if (o.save_interval > 0 && step_ % o.save_interval == 0 && bad_in_a_row_ == 0) save();
  observer_.status("running", step_, seconds(), "");
}

void Trainer::take_samples(const StopRequest& stop) {
  const auto each = [&](int64_t frames) {
    observer_.progress(step_, fmt::format("sampling, {}/{} frames", frames, options_.sample_frames));
    return !stop.asked();
  };
  try {
    const AveragedWeights averaged(optimizers_);
    const auto validation = validate(model_, *dataset_, options_, each);
    samples_due_ = !validation;  // stopped in the middle: to be done when the run goes on
    if (validation && !validation->scores.empty()) observer_.samples(step_, *validation);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::numeric) throw;
    log_warning("step {}: the forecast of the samples diverged ({})", step_, error.what());
  }
  line_begin_ = Clock::now();  // the time of samples is not that of training
  line_first_step_ = step_;
}

void Trainer::write_log_line() {
  const TrainOptions& o = options_;
  nlohmann::json scores = {{"skipped", interval_.skipped()}};
  for (size_t i = 0; i < optimizers_.size(); ++i) {
    const std::string prefix = i == 0 ? "" : optimizers_[i].player() + ".";
    scores[prefix + "lr"] = learning_rate(optimizers_[i].options(), step_ - 1, o.steps);
  }
  scores.update(interval_.means());
  const auto frames = static_cast<double>((step_ - line_first_step_) * o.batch * o.frames);
  const double rate = frames / std::max(seconds_since(line_begin_), 1e-9);
  observer_.line(step_, scores, {{"frames_per_second", rate}, {"seconds", seconds()}});
  interval_ = {};
  line_begin_ = Clock::now();
  line_first_step_ = step_;
}

bool Trainer::save() {
  if (!observer_.save(snapshot())) return false;
  saved_step_ = step_;
  return true;
}

}  // namespace convssm::train
