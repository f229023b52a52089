// What a run tells while it trains: log.jsonl, TensorBoard, samples and status.json. A disk that is full does not stop
// the training: what could not be written is missing, with a warning.
#pragma once

#include <chrono>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "convssm/io/tensorboard.h"
#include "convssm/train/run_folder.h"
#include "convssm/train/validation.h"

namespace convssm::train {

class Reporter {
 public:
  // `first_step`: where this process begins; what an earlier one reported after it is forgotten.
  // `refresh`: called when there is news, at most every few seconds, and at the end.
  // `about`: fields of status.json that do not change.
  Reporter(RunFolder& folder, int64_t first_step, nlohmann::json about, std::function<void()> refresh);

  // A line of the log: `scores` are the same however often a run was interrupted, `speeds` are not.
  void line(int64_t step, const nlohmann::json& scores, const nlohmann::json& speeds);
  void samples(int64_t step, const Validation& validation);

  // state: running, finished, stopped or failed. While it runs, now and then is enough.
  void status(const std::string& state, int64_t step, double seconds, const std::string& note = "");

 private:
  void attempt(const char* what, const std::function<void()>& action);

  RunFolder& folder_;
  nlohmann::json about_;
  std::function<void()> refresh_;
  io::EventWriter events_;
  std::chrono::steady_clock::time_point next_status_;
};

}  // namespace convssm::train
