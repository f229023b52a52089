// Who watches a training: keeps checkpoints, logs, draws. The trainer opens no file and draws nothing itself.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "convssm/io/safetensors.h"
#include "convssm/train/validation.h"

namespace convssm::train {

// What a training needs to go on besides the parameters and buffers of its model.
struct Snapshot {
  int64_t step = 0;
  std::vector<io::LazyArray> arrays;  // of the optimizers
  nlohmann::json extras;              // the rest
};

// Every call may be ignored.
class TrainObserver {
 public:
  virtual ~TrainObserver() = default;

  virtual void progress(int64_t /*step*/, const std::string& /*note*/) {}

  // A line of the log: `scores` are the same however often a training was interrupted, `speeds` are not.
  virtual void line(int64_t /*step*/, const nlohmann::json& /*scores*/, const nlohmann::json& /*speeds*/) {}
  virtual void samples(int64_t /*step*/, const Validation& /*validation*/) {}

  // A checkpoint is due. False if it could not be kept: training goes on.
  virtual bool save(const Snapshot& /*snapshot*/) { return true; }

  // What was saved after this step has led to bad steps and must not be gone on from; -1: everything.
  virtual void distrust_after(int64_t /*step*/) {}

  // running, finished, stopped or failed.
  virtual void status(const std::string& /*state*/, int64_t /*step*/, double /*seconds*/, const std::string& /*note*/) {
  }
};

}  // namespace convssm::train
