// The training loop. A run is a function of its config: batches, initial values and every random choice come from
// streams named by seed and step, so a run that was stopped and resumed ends with the same bits as one that was not.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "convssm/base/progress.h"
#include "convssm/base/stop_request.h"
#include "convssm/train/config.h"
#include "convssm/train/gradients.h"
#include "convssm/train/optimizer.h"
#include "convssm/train/reporter.h"
#include "convssm/train/run_folder.h"

namespace convssm::train {

enum class Outcome { finished, stopped };

class Trainer {
 public:
  // Builds model and data and says what memory a step will take. With `resume` it goes on from the newest good
  // checkpoint of the folder. `refresh` is called when the run folder has news, at most every few seconds.
  Trainer(const Config& config, RunFolder& folder, bool resume, std::function<void()> refresh = {});

  // Trains to the last step or until `stop` is asked; saves before it returns. Error(numeric) after several bad steps.
  Outcome run(const StopRequest& stop);

  const models::Model& model() const { return *model_; }
  int64_t step() const { return step_; }  // steps done, skipped ones included

 private:
  struct Interval {  // sums since the last line of the log
    int64_t steps = 0, skipped = 0;
    double loss = 0, gradient_norm = 0;
    std::vector<std::pair<std::string, double>> parts;
  };

  int64_t load(const std::string& checkpoints);  // the chunk_frames that the run has chosen
  void train_step(const at::Tensor& video, const at::Tensor& actions);
  LossValues batch_gradients(const at::Tensor& video, const at::Tensor& actions);
  void count(const LossValues& values, double norm);
  void skip(const std::string& reason);
  void after_step(const StopRequest& stop, Progress& progress);
  void take_samples(const StopRequest& stop, Progress& progress);
  void write_log_line();
  bool save();  // false, with a message, if it could not
  double seconds() const;
  nlohmann::json extras() const;  // what a checkpoint holds besides tensors

  Config config_;
  RunFolder& folder_;
  std::shared_ptr<const data::Dataset> dataset_;
  std::shared_ptr<models::Model> model_;
  std::unique_ptr<Optimizer> optimizer_;
  std::unique_ptr<Reporter> reporter_;
  Interval interval_;
  int64_t chunk_frames_ = 0;  // as the config says, or chosen
  int64_t step_ = 0, saved_step_ = -1, bad_in_a_row_ = 0;
  int64_t good_step_ = -1;    // of the newest checkpoint after which a step worked
  bool samples_due_ = false;  // validation of this step was stopped
  double last_loss_ = 0;
  double seconds_before_ = 0;                                 // of training in earlier processes
  std::chrono::steady_clock::time_point begin_, line_begin_;  // of this process, of the steps since the last line
  int64_t line_first_step_ = 0;
};

}  // namespace convssm::train
