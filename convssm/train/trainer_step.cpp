// A step: every player in turn runs its loss on the batch and updates its own parameters. A step whose numbers are not finite
// is left out; after several in a row training ends, and what was saved since the last good step is distrusted.
#include <ATen/ATen.h>
#include <fmt/ranges.h>

#include <cmath>
#include <numeric>

#include "convssm/base/error.h"
#include "convssm/base/log.h"
#include "convssm/base/random.h"
#include "convssm/ops/device.h"
#include "convssm/train/self_feed.h"
#include "convssm/train/trainer.h"

namespace convssm::train {
namespace {

constexpr int64_t kBadStepsAllowed = 5;

// Views if they follow each other.
data::Clips rows_of(const data::Clips& clips, const std::vector<int64_t>& rows) {
  const auto count = static_cast<int64_t>(rows.size());
  if (rows.back() - rows.front() + 1 == count) return data::rows_of(clips, rows.front(), rows.front() + count);
  return data::rows_at(clips, rows);
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

// Rows that run together: those of a part of the batch, or of these the ones that carry the same kind of state.
std::vector<CarriedStates::Group> Trainer::groups(const data::Batch& batch, int64_t part) const {
  const int64_t rows = options_.batch / options_.accumulate, begin = part * rows;
  if (options_.carry_state) return carried_.groups(begin, begin + rows, batch.begins);
  std::vector<int64_t> all(static_cast<size_t>(rows));
  std::iota(all.begin(), all.end(), begin);
  return {{all, {}}};
}

LossValues Trainer::batch_gradients(const data::Batch& batch, const models::LossContext& context) {
  const TrainOptions& o = options_;
  const double own = self_feed_at(o.self_feed, step_, o.steps);
  const Stream stream(seed_, "self-feed", static_cast<uint64_t>(step_));
  LossValues sum;
  for (int64_t i = 0; i < o.accumulate; ++i) {
    models::LossContext here = context;
    here.random = context.random.split("micro-batch", static_cast<uint64_t>(i));
    Stream feed = stream.split("part", static_cast<uint64_t>(i));
    for (const auto& [rows, start] : groups(batch, i)) {
      data::Clips some = rows_of(batch.clips, rows);
      if (own > 0) {
        some = self_fed(*model_.as_forecaster(), some, own, o.self_feed_passes, feed, start);
        feed = feed.split("next");
      }
      const double share = share_of(model_, some, batch.clips);
      const LossValues values = add_gradients(model_, some, here, chunk_frames_, share, o.recompute, start);
      sum.loss += share * values.loss;
      add_values(sum.parts, values.parts, share);
      if (!values.warning.empty()) sum.warning = values.warning;
      if (o.carry_state) carried_.keep(rows, values.state);
    }
  }
  return sum;
}

std::string Trainer::play(size_t player, const data::Batch& batch) {
  Optimizer& optimizer = optimizers_[player];
  const models::LossContext context{optimizer.player(), step_, options_.steps,
                                    Stream(seed_, "loss", static_cast<uint64_t>(step_)).split(optimizer.player())};
  const OnlyLearner only(model_, players_[player]);
  // Everything that libtorch draws (dropout) depends on the stream alone.
  ops::seed_generators(models::device_of(model_), context.random.split("libtorch").next());
  optimizer.clear_gradients();
  const LossValues values = batch_gradients(batch, context);
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

void Trainer::train_step(const data::Batch& batch) {
  halfway_ = !model_.buffers().empty();  // which a loss may move
  for (size_t player = 0; player < players_.size(); ++player) {
    if (step_ < optimizers_[player].options().start) continue;
    std::string problem;
    try {
      problem = play(player, batch);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::numeric) throw;
      problem = error.what();
    }
    if (!problem.empty()) return skip(player, problem);
  }
  halfway_ = false;
  ++step_;
  carried_.commit();
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
  carried_.forget();
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

}  // namespace convssm::train
