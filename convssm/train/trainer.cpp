// A step: every player in turn runs its loss on the batch and updates its own parameters. A step whose numbers are not finite
// is left out; after several in a row training ends, and what was saved since the last good step is distrusted.
#include "convssm/train/trainer.h"

#include <ATen/ATen.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "convssm/base/error.h"
#include "convssm/base/log.h"
#include "convssm/base/random.h"
#include "convssm/data/loader.h"
#include "convssm/ops/device.h"
#include "convssm/train/preflight.h"
#include "convssm/train/self_feed.h"

namespace convssm::train {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int64_t kBadStepsAllowed = 5;

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

std::string describe_bad(const models::Model& model, double loss, double norm) {
  const std::string parameter = first_bad_parameter(model), gradient = first_bad_gradient(model);
  const std::string first = !parameter.empty() ? fmt::format("; the first bad tensor is the parameter '{}'", parameter)
                            : !gradient.empty()
                                ? fmt::format("; the first bad tensor is the gradient of '{}'", gradient)
                                : "";
  return fmt::format("the loss is {} and the norm of the gradient {}{}", loss, norm, first);
}

}  // namespace

Trainer::Trainer(models::Model& model, std::shared_ptr<const data::Dataset> dataset, const TrainOptions& options,
                 uint64_t seed, TrainObserver& observer)
    : model_(model),
      dataset_(std::move(dataset)),
      options_(options),
      seed_(seed),
      observer_(observer),
      players_(model.players()) {
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
  } catch (const nlohmann::json::exception& error) {
    fail(ErrorKind::data, "the checkpoint of step {} does not describe a training: {}", step, error.what());
  }
}

Snapshot Trainer::snapshot() const {
  Snapshot snapshot{step_, {}, {}};
  for (const Optimizer& optimizer : optimizers_) {
    for (auto& array : optimizer.arrays()) snapshot.arrays.push_back(std::move(array));
  }
  snapshot.extras = {{"seconds", seconds()},
                     {"good_step", good_step_},
                     {"samples_due", samples_due_},
                     {"chunk_frames", chunk_frames_},
                     {"interval", interval_.to_json()}};
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
                                 static_cast<uint64_t>(step_)});
  try {
    if (samples_due_) take_samples(stop);
    while (step_ < o.steps && !stop.asked()) {
      data::Clips clips = loader.next().clips;
      clips.actions = drop_actions(clips.actions, o.action_dropout, seed_, step_);
      train_step(data::to_device(clips, models::device_of(model_)));
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

LossValues Trainer::batch_gradients(const data::Clips& clips, const models::LossContext& context) {
  const TrainOptions& o = options_;
  const int64_t rows = o.batch / o.accumulate;
  const double own = self_feed_at(o.self_feed, step_, o.steps);
  const Stream stream(seed_, "self-feed", static_cast<uint64_t>(step_));
  LossValues sum;
  for (int64_t i = 0; i < o.accumulate; ++i) {
    data::Clips some = data::rows_of(clips, i * rows, (i + 1) * rows);
    models::LossContext here = context;
    here.random = context.random.split("micro-batch", static_cast<uint64_t>(i));
    if (own > 0) {
      some = self_fed(*model_.as_forecaster(), some, own, o.self_feed_passes,
                      stream.split("part", static_cast<uint64_t>(i)));
    }
    const double share = share_of(model_, some, clips);
    const LossValues values = add_gradients(model_, some, here, chunk_frames_, share, o.recompute);
    sum.loss += share * values.loss;
    add_values(sum.parts, values.parts, share);
    if (!values.warning.empty()) sum.warning = values.warning;
  }
  return sum;
}

std::string Trainer::play(size_t player, const data::Clips& clips) {
  Optimizer& optimizer = optimizers_[player];
  const models::LossContext context{optimizer.player(), step_, options_.steps,
                                    Stream(seed_, "loss", static_cast<uint64_t>(step_)).split(optimizer.player())};
  const OnlyLearner only(model_, players_[player]);
  // Everything that libtorch draws (dropout) depends on the stream alone.
  ops::seed_generators(models::device_of(model_), context.random.split("libtorch").next());
  optimizer.clear_gradients();
  const LossValues values = batch_gradients(clips, context);
  if (player == 0) last_loss_ = values.loss;
  if (!values.warning.empty() && warned_.insert(values.warning).second)
    log_warning("step {}: {}", step_ + 1, values.warning);
  const double norm = optimizer.gradient_norm(), clip = optimizer.options().clip_norm;
  if (!std::isfinite(values.loss) || !std::isfinite(norm)) return describe_bad(model_, values.loss, norm);
  const double lr = learning_rate(optimizer.options(), step_, options_.steps);
  halfway_ = true;
  optimizer.update(lr, clip > 0 && norm > clip ? clip / norm : 1);
  interval_.count(player == 0 ? "" : optimizer.player() + ".", values, norm);
  return "";
}

void Trainer::train_step(const data::Clips& clips) {
  halfway_ = !model_.buffers().empty();  // which a loss may move
  for (size_t player = 0; player < players_.size(); ++player) {
    if (step_ < optimizers_[player].options().start) continue;
    std::string problem;
    try {
      problem = play(player, clips);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::numeric) throw;
      problem = error.what();
    }
    if (!problem.empty()) return skip(player, problem);
  }
  halfway_ = false;
  ++step_;
  bad_in_a_row_ = 0;
  good_step_ = saved_step_;  // what was saved before this step has proved itself
}

void Trainer::skip(size_t player, const std::string& reason) {
  std::vector<std::string> skipped;
  for (size_t i = player; i < players_.size(); ++i) {
    if (step_ >= optimizers_[i].options().start) skipped.push_back(players_[i].name);
  }
  const std::string who = players_.size() == 1 ? "" : fmt::format(" of {}", fmt::join(skipped, ", "));
  halfway_ = false;
  ++step_;
  interval_.count_skipped();
  bad_in_a_row_ += 1;
  bad_reason_ = reason;
  log_warning("step {}: {}; no update{} ({} of {} such steps in a row)", step_, reason, who, bad_in_a_row_,
              kBadStepsAllowed);
  if (bad_in_a_row_ < kBadStepsAllowed) return;
  observer_.distrust_after(good_step_);
  const std::string last = good_step_ < 0 ? "there is no good checkpoint yet"
                                          : fmt::format("the last good checkpoint is that of step {}", good_step_);
  fail(ErrorKind::numeric,
       "{} steps in a row could not be used ({}); {}. Try a smaller train.lr, a longer train.warmup or "
       "train.clip_norm=1",
       kBadStepsAllowed, reason, last);
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
