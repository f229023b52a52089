// The trainer's own functions are called, so that what is measured is what training does.
#include "bench/training_step.h"

#include "convssm/train/gradients.h"

namespace convssm::bench {

double TrainingStep::run() {
  optimizer_.clear_gradients();
  const double loss = train::add_gradients(*model_, {video_}, {}, 0).loss;
  optimizer_.update(0);
  return loss;
}

}  // namespace convssm::bench
