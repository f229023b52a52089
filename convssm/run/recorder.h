// The observer of a run on disk: checkpoints, log.jsonl, TensorBoard, samples, status.json, and a progress line. A disk that
// is full does not stop the training: what could not be written is missing, with a warning. A folder that is gone does: Error(io)
// from progress().
#pragma once

#include <chrono>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "convssm/base/progress.h"
#include "convssm/io/tensorboard.h"
#include "convssm/run/config.h"
#include "convssm/run/model_file.h"
#include "convssm/run/run_folder.h"
#include "convssm/train/observer.h"

namespace convssm::run {

class Recorder : public train::TrainObserver {
 public:
  // `model` is what checkpoints hold. `refresh`: called when there is news, at most every few seconds, and at the end.
  Recorder(RunFolder& folder, const Config& config, const models::Model& model, const data::FrameFormat& frames,
           std::function<void()> refresh);

  // Before the first call of the trainer. `first_step`: where this process begins; what an earlier one reported after it
  // is forgotten.
  void begin(int64_t first_step);

  void progress(int64_t step, const std::string& note) override;
  void line(int64_t step, const nlohmann::json& scores, const nlohmann::json& speeds) override;
  void samples(int64_t step, const train::Validation& validation) override;
  bool save(const train::Snapshot& snapshot) override;
  void distrust_after(int64_t step) override;
  void status(const std::string& state, int64_t step, double seconds, const std::string& note) override;

 private:
  void attempt(const char* what, const std::function<void()>& action);

  RunFolder& folder_;
  Config config_;
  const models::Model& model_;
  data::FrameFormat frames_;
  nlohmann::json about_;  // fields of status.json that do not change
  std::function<void()> refresh_;
  std::optional<io::EventWriter> events_;
  std::optional<Progress> progress_;
  int64_t saved_step_ = -1;
  std::chrono::steady_clock::time_point next_status_;
};

}  // namespace convssm::run
