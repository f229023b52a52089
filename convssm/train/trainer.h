// The training loop. It is given everything: a model on the device it is to be trained on, a dataset, options, an observer.
// Batches and every random choice come from streams named by seed and step, so a training that was stopped and resumed ends
// with the same bits as one that was not.
//   TrainObserver nobody;
//   Trainer trainer(model, dataset, options, seed, nobody);   trainer.run(stop);
#pragma once

#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "convssm/base/stop_request.h"
#include "convssm/data/dataset.h"
#include "convssm/data/loader.h"
#include "convssm/train/carried_states.h"
#include "convssm/train/gradients.h"
#include "convssm/train/interval.h"
#include "convssm/train/observer.h"
#include "convssm/train/optimizer.h"

namespace convssm::train {

enum class Outcome { finished, stopped };

class Trainer {
 public:
  // Model and observer must outlive it. Error(usage) or Error(data) if the model cannot be trained on this data.
  Trainer(models::Model& model, std::shared_ptr<const data::Dataset> dataset, const TrainOptions& options,
          uint64_t seed, TrainObserver& observer);

  // Goes on from a snapshot, whose arrays are in the file; the parameters of the model were loaded before.
  void restore(const io::SafetensorsFile& file, int64_t step, const nlohmann::json& extras);

  // Finds out what memory a step will take, says so, and chooses the chunks; `program` are the bytes of the process
  // before there was a model. run() does it if nobody has.
  void prepare(uint64_t program = 0);

  // Trains to the last step or until `stop` is asked; saves before it returns, but for steps that were bad (saved_step()).
  // Error(numeric) after several bad steps, or if the last one is.
  Outcome run(const StopRequest& stop);

  int64_t step() const { return step_; }              // steps done, skipped ones included
  int64_t saved_step() const { return saved_step_; }  // of the newest checkpoint; -1: none

 private:
  Snapshot snapshot() const;
  void train_step(const data::Batch& batch);
  std::string play(size_t player, const data::Batch& batch);  // what was wrong with the player's loss; "" if nothing
  LossValues batch_gradients(const data::Batch& batch, const models::LossContext& context);
  std::vector<CarriedStates::Group> groups(const data::Batch& batch, int64_t micro_batch) const;
  void skip(size_t player, const std::string& reason);  // this one and those after it have not learned
  void after_step(const StopRequest& stop);
  void take_samples(const StopRequest& stop);
  void write_log_line();
  bool save();
  [[noreturn]] void end_on_bad_steps() const;
  void tell_failure(const std::string& what);
  double seconds() const;

  models::Model& model_;
  std::shared_ptr<const data::Dataset> dataset_;
  TrainOptions options_;
  uint64_t seed_;
  TrainObserver& observer_;
  std::vector<models::Player> players_;
  std::vector<Optimizer> optimizers_;  // one for each player
  CarriedStates carried_;              // by the rows, if the options say so
  Interval interval_;
  bool prepared_ = false;
  int64_t chunk_frames_ = kAutomatic;  // as the options say, or chosen
  int64_t step_ = 0, saved_step_ = -1, bad_in_a_row_ = 0;
  int64_t good_step_ = -1;  // of the newest checkpoint after which a step worked
  std::string bad_reason_;  // of the newest bad step
  std::set<std::string> warned_;
  bool halfway_ = false;      // a step has begun to change the model: its state is that of no step
  bool samples_due_ = false;  // validation of this step was stopped
  double last_loss_ = 0;
  double seconds_before_ = 0;                                 // of training in earlier processes
  std::chrono::steady_clock::time_point begin_, line_begin_;  // of this process, of the steps since the last line
  int64_t line_first_step_ = 0;
};

}  // namespace convssm::train
