// A training run in its folder: builds model and data from a config, goes on from the newest good checkpoint, trains, and
// records everything.
//   RunFolder folder("runs/a");
//   TrainingRun training(Config::from_json(json), folder, resume);   training.run(stop);
#pragma once

#include <functional>
#include <memory>

#include "convssm/run/config.h"
#include "convssm/run/data_memory.h"
#include "convssm/run/recorder.h"
#include "convssm/run/run_folder.h"
#include "convssm/train/trainer.h"

namespace convssm::run {

class TrainingRun {
 public:
  // Says what was found and what memory a step will take. Error(usage) if the folder holds a run and `resume` is false.
  // `refresh` is called when the folder has news, at most every few seconds.
  TrainingRun(const Config& config, RunFolder& folder, bool resume, std::function<void()> refresh = {},
              at::Device device = at::kCPU);

  // To the last step or until `stop` is asked; saved before it returns.
  train::Outcome run(const StopRequest& stop) { return trainer_->run(stop); }

  const models::Model& model() const { return *model_; }
  int64_t step() const { return trainer_->step(); }              // steps done, skipped ones included
  int64_t saved_step() const { return trainer_->saved_step(); }  // of the newest checkpoint; -1: none

 private:
  void load(const std::string& checkpoints, const data::FrameFormat& frames);

  DataMemory memory_;
  std::shared_ptr<const data::Dataset> dataset_;
  std::shared_ptr<models::Model> model_;
  std::unique_ptr<Recorder> recorder_;
  std::unique_ptr<train::Trainer> trainer_;
};

}  // namespace convssm::run
