// AdamW (ops/adamw.h) on all parameters of a model, with its moments as arrays of a checkpoint.
#pragma once

#include <string>
#include <vector>

#include "convssm/io/safetensors.h"
#include "convssm/models/model.h"
#include "convssm/train/options.h"

namespace convssm::train {

class Optimizer {
 public:
  Optimizer(models::Model& model, const TrainOptions& options);

  void clear_gradients();

  // Parameters without a gradient stay as they are. `scale` multiplies the gradients.
  void update(double lr, double scale = 1);

  // `optimizer.<parameter>.m` and `.v`, and `optimizer.updates`.
  std::vector<io::LazyArray> arrays() const;
  void load(const io::SafetensorsFile& file);

 private:
  struct Slot {
    std::string name;
    at::Tensor parameter, m, v;  // moments are undefined before the first update
  };
  std::vector<Slot> slots_;
  TrainOptions options_;
  int64_t updates_ = 0;
};

// The norm of all gradients together; infinity or NaN if one of them holds such a value.
double gradient_norm(const models::Model& model);

// The name of the first parameter whose gradient holds NaN or infinity; "" if there is none.
std::string first_bad_gradient(const models::Model& model);

// The same for the parameters themselves.
std::string first_bad_parameter(const models::Model& model);

}  // namespace convssm::train
