#include "convssm/train/trainer.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>

#include <algorithm>
#include <cmath>
#include <mutex>

#include "convssm/base/atomic_file.h"
#include "convssm/base/error.h"
#include "convssm/base/log.h"
#include "convssm/base/memory.h"
#include "convssm/base/progress.h"
#include "convssm/base/random.h"
#include "convssm/base/version.h"
#include "convssm/data/loader.h"
#include "convssm/io/yaml.h"
#include "convssm/models/checkpoint.h"
#include "convssm/models/model_file.h"
#include "convssm/train/preflight.h"
#include "convssm/train/self_feed.h"

namespace convssm::train {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int64_t kBadStepsAllowed = 5;

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

// Everything that libtorch draws during a step (dropout) depends on the step alone.
void seed_libtorch(uint64_t seed, int64_t step) {
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  const std::lock_guard lock(generator.mutex());
  generator.set_current_seed(Stream(seed, "libtorch", static_cast<uint64_t>(step)).next());
}

// With probability `rate` a clip loses its actions: all become the masked one.
at::Tensor drop_actions(const at::Tensor& actions, double rate, uint64_t seed, int64_t step) {
  if (!actions.defined() || rate <= 0) return actions;
  at::Tensor kept = actions.clone();
  Stream stream(seed, "action dropout", static_cast<uint64_t>(step));
  for (int64_t i = 0; i < kept.size(0); ++i) {
    if (stream.uniform() < rate) kept[i].fill_(-1);
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

// The values of the frames must mean what they meant when the run began.
void check_range(const io::SafetensorsFile& file, const data::FrameFormat& now) {
  const auto found = file.metadata().find("frames");
  if (found == file.metadata().end()) return;
  const auto before = data::FrameFormat::from_json(nlohmann::json::parse(found->second));
  if (before.low == now.low && before.high == now.high) return;
  fail(ErrorKind::data,
       "the run began with values from {} to {} as [-1,1], now the data gives {} to {}; set data.low={} data.high={}",
       before.low, before.high, now.low, now.high, before.low, before.high);
}

// sum += weight * values
void add_parts(std::vector<std::pair<std::string, double>>& sum, const LossValues& values, double weight) {
  sum.resize(values.parts.size());
  for (size_t i = 0; i < sum.size(); ++i) {
    sum[i].first = values.parts[i].first;
    sum[i].second += weight * values.parts[i].second;
  }
}

}  // namespace

Trainer::Trainer(const Config& config, RunFolder& folder, bool resume, std::function<void()> refresh)
    : config_(config), folder_(folder), dataset_(make_dataset(config)) {
  if (folder.has_checkpoints() && !resume) {
    fail(ErrorKind::usage, "{} holds a run already; go on with it by --resume, or give another --run", folder.path());
  }
  const uint64_t program = current_rss();
  for (const std::string& line : dataset_->summary()) log_info("data: {}", line);
  check_clips(config_.train, *dataset_);
  check_actions(config_.model, *dataset_);
  model_ = make_model(config_, dataset_->format());
  model_->train();
  optimizer_ = std::make_unique<Optimizer>(*model_, config_.train);
  const int64_t chosen = folder.has_checkpoints() ? load(folder.path("checkpoints")) : kAutomatic;
  chunk_frames_ = plan_step(config_, *model_, dataset_->format(), program, chosen);
  replace_file(folder.path("config.yaml"), io::to_yaml(config_.to_json()));
  const nlohmann::json about = {{"steps", config_.train.steps},
                                {"parameters", models::parameter_count(*model_)},
                                {"model", model_->description()},
                                {"data", config_.data.value("name", "?")},
                                {"version", kVersion}};
  reporter_ = std::make_unique<Reporter>(folder, step_, about, std::move(refresh));
}

int64_t Trainer::load(const std::string& checkpoints) {
  const models::CheckpointRecord record = models::find_checkpoint(checkpoints);
  const io::SafetensorsFile file(record.tensors);
  check_range(file, dataset_->format());
  models::load_arrays(*model_, file);
  optimizer_->load(file);
  step_ = saved_step_ = record.step;
  try {
    seconds_before_ = record.extras.at("seconds");
    bad_in_a_row_ = record.extras.at("bad_in_a_row");
    const nlohmann::json& interval = record.extras.at("interval");
    samples_due_ = record.extras.at("samples_due");
    interval_ = {interval.at("steps"), interval.at("skipped"), interval.at("loss"), interval.at("gradient_norm"),
                 interval.at("parts")};
  } catch (const nlohmann::json::exception& error) {
    fail(ErrorKind::data, "the description of {} is not of a training run: {}", record.tensors, error.what());
  }
  models::set_aside_checkpoints_after(checkpoints, step_);
  good_step_ = step_;
  log_info("going on from step {} ({})", step_, record.tensors);
  return record.extras.value("chunk_frames", kAutomatic);
}

nlohmann::json Trainer::extras() const {
  return {{"seconds", seconds()},
          {"bad_in_a_row", bad_in_a_row_},
          {"samples_due", samples_due_},
          {"chunk_frames", chunk_frames_},
          {"interval",
           {{"steps", interval_.steps},
            {"skipped", interval_.skipped},
            {"loss", interval_.loss},
            {"gradient_norm", interval_.gradient_norm},
            {"parts", interval_.parts}}}};
}

double Trainer::seconds() const { return seconds_before_ + seconds_since(begin_); }

Outcome Trainer::run(const StopRequest& stop) {
  const TrainOptions& o = config_.train;
  begin_ = line_begin_ = Clock::now();
  line_first_step_ = step_;
  log_info("train: {}; {} steps of {} clips x {} frames", model_->description(), o.steps, o.batch, o.frames);
  reporter_->status("running", step_, seconds());
  data::Loader loader(dataset_, {data::Split::train, o.batch, o.frames, config_.seed, static_cast<int>(o.workers),
                                 static_cast<uint64_t>(step_)});
  ProgressOptions drawing;
  drawing.start = step_;
  Progress progress("train", o.steps, drawing);
  try {
    if (samples_due_) take_samples(stop, progress);
    while (step_ < o.steps && !stop.asked()) {
      const data::Batch batch = loader.next();
      train_step(batch.video, drop_actions(batch.actions, o.action_dropout, config_.seed, step_));
      progress.update(step_, fmt::format("loss {:.4f}", last_loss_));
      after_step(stop, progress);
    }
  } catch (const std::exception& error) {  // whatever it is, the steps done so far are not lost
    progress.finish();
    if (saved_step_ != step_ && bad_in_a_row_ == 0) save();
    reporter_->status("failed", step_, seconds(), error.what());
    throw;
  }
  progress.finish();
  const bool saved = saved_step_ == step_ || save();
  const bool finished = step_ >= o.steps;
  reporter_->status(finished ? "finished" : "stopped", step_, seconds());
  if (!saved)
    fail(ErrorKind::io, "the last checkpoint could not be saved; {} keeps what was saved before", folder_.path());
  return finished ? Outcome::finished : Outcome::stopped;
}

LossValues Trainer::batch_gradients(const at::Tensor& video, const at::Tensor& actions) {
  const TrainOptions& o = config_.train;
  const int64_t part = o.batch / o.accumulate;
  const double share = 1.0 / static_cast<double>(o.accumulate), own = self_feed_at(o.self_feed, step_, o.steps);
  const Stream stream(config_.seed, "self-feed", static_cast<uint64_t>(step_));
  LossValues sum;
  for (int64_t i = 0; i < o.accumulate; ++i) {
    const auto cut = [&](const at::Tensor& x) { return x.defined() ? x.slice(0, i * part, (i + 1) * part) : x; };
    TrainingClips clips{cut(video), cut(actions), {}};
    if (own > 0) {
      clips.inputs = self_fed_inputs(*model_, clips.video, clips.actions, own, o.self_feed_passes,
                                     stream.split("part", static_cast<uint64_t>(i)));
    }
    const LossValues values = add_gradients(*model_, clips, chunk_frames_, share, o.recompute);
    sum.loss += share * values.loss;
    add_parts(sum.parts, values, share);
  }
  return sum;
}

void Trainer::train_step(const at::Tensor& video, const at::Tensor& actions) {
  const TrainOptions& o = config_.train;
  seed_libtorch(config_.seed, step_);
  optimizer_->clear_gradients();
  LossValues values;
  try {
    values = batch_gradients(video, actions);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::numeric) throw;
    return skip(error.what());
  }
  last_loss_ = values.loss;
  const double norm = gradient_norm(*model_);
  if (!std::isfinite(values.loss) || !std::isfinite(norm)) return skip(describe_bad(*model_, values.loss, norm));
  good_step_ = saved_step_;  // what was saved has proved itself
  optimizer_->update(learning_rate(o, step_), o.clip_norm > 0 && norm > o.clip_norm ? o.clip_norm / norm : 1);
  ++step_;
  bad_in_a_row_ = 0;
  count(values, norm);
}

void Trainer::count(const LossValues& values, double norm) {
  interval_.steps += 1;
  interval_.loss += values.loss;
  interval_.gradient_norm += norm;
  add_parts(interval_.parts, values, 1);
}

void Trainer::skip(const std::string& reason) {
  ++step_;
  interval_.skipped += 1;
  bad_in_a_row_ += 1;
  log_warning("step {}: {}; no update ({} of {} such steps in a row)", step_, reason, bad_in_a_row_, kBadStepsAllowed);
  if (bad_in_a_row_ < kBadStepsAllowed) return;
  models::set_aside_checkpoints_after(folder_.path("checkpoints"), good_step_);
  const std::string last = good_step_ < 0 ? "there is no good checkpoint yet"
                                          : fmt::format("the last good checkpoint is that of step {}", good_step_);
  fail(ErrorKind::numeric,
       "{} steps in a row could not be used ({}); {}. Try a smaller train.lr, a longer train.warmup or "
       "train.clip_norm=1",
       kBadStepsAllowed, reason, last);
}

void Trainer::after_step(const StopRequest& stop, Progress& progress) {
  const TrainOptions& o = config_.train;
  const auto due = [&](int64_t interval) { return interval > 0 && (step_ % interval == 0 || step_ == o.steps); };
  if (due(o.log_interval)) write_log_line();
  if (due(o.sample_interval)) take_samples(stop, progress);
  if (o.save_interval > 0 && step_ % o.save_interval == 0 && bad_in_a_row_ == 0) save();
  reporter_->status("running", step_, seconds());
}

void Trainer::take_samples(const StopRequest& stop, Progress& progress) {
  const auto each = [&](int64_t frames) {
    progress.update(step_, fmt::format("sampling, {}/{} frames", frames, config_.train.sample_frames));
    return !stop.asked();
  };
  try {
    const auto validation = validate(*model_, *dataset_, config_.train, each);
    samples_due_ = !validation;  // stopped in the middle: to be done when the run goes on
    if (validation) reporter_->samples(step_, *validation);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::numeric) throw;
    log_warning("step {}: the forecast of the samples diverged ({})", step_, error.what());
  }
  line_begin_ = Clock::now();  // the time of samples is not that of training
  line_first_step_ = step_;
}

void Trainer::write_log_line() {
  const TrainOptions& o = config_.train;
  nlohmann::json scores = {{"lr", learning_rate(o, step_ - 1)}, {"skipped", interval_.skipped}};
  if (const auto n = static_cast<double>(interval_.steps); n > 0) {
    scores["loss"] = interval_.loss / n;
    scores["grad_norm"] = interval_.gradient_norm / n;
    for (const auto& [name, value] : interval_.parts) scores[name] = value / n;
  }
  const auto frames = static_cast<double>((step_ - line_first_step_) * o.batch * o.frames);
  const double rate = frames / std::max(seconds_since(line_begin_), 1e-9);
  reporter_->line(step_, scores, {{"frames_per_second", rate}, {"seconds", seconds()}});
  interval_ = {};
  line_begin_ = Clock::now();
  line_first_step_ = step_;
}

bool Trainer::save() {
  try {
    std::vector<io::LazyArray> arrays = models::model_arrays(*model_);
    for (auto& array : optimizer_->arrays()) arrays.push_back(std::move(array));
    const models::ModelRecipe recipe{config_.model, dataset_->format().to_json(), config_.to_json(), step_};
    const std::string checkpoints = folder_.path("checkpoints");
    models::write_checkpoint(checkpoints, step_, arrays, models::recipe_metadata(recipe), extras());
    models::prune_checkpoints(checkpoints, config_.train.keep_last, config_.train.keep_every);
    saved_step_ = step_;
    return true;
  } catch (const Error& error) {
    const std::string before =
        saved_step_ < 0 ? "there is none before it" : fmt::format("that of step {} stays", saved_step_);
    log_error("the checkpoint of step {} could not be saved ({}); {}", step_, error.what(), before);
    return false;
  }
}

}  // namespace convssm::train
