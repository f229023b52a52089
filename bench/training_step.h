// One training step as the trainer does it: gradients of a clip and an update of all parameters. The learning rate is
// zero, so that every step does the same work.
#pragma once

#include "bench/bench_models.h"
#include "convssm/train/optimizer.h"

namespace convssm::bench {

class TrainingStep {
 public:
  TrainingStep(const BenchModel& subject, const at::Tensor& video)  // [B,T,C,H,W]
      : model_(subject.model),
        optimizer_(subject.model->players().at(0), subject.config.train.optimizer),
        video_(video) {}

  double run();  // the loss

 private:
  std::shared_ptr<models::Model> model_;
  train::Optimizer optimizer_;
  at::Tensor video_;
};

}  // namespace convssm::bench
