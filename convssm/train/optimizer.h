// AdamW on all parameters of a model, with its moments as arrays of a checkpoint. Decay is decoupled:
//   p -= lr (m_hat / (sqrt(v_hat) + eps) + weight_decay p)
#pragma once

#include <torch/optim/adamw.h>

#include <vector>

#include "convssm/io/safetensors.h"
#include "convssm/models/model.h"
#include "convssm/train/options.h"

namespace convssm::train {

class Optimizer {
 public:
  Optimizer(models::Model& model, const TrainOptions& options);

  void zero_gradients();
  void update(double lr);

  // `optimizer.<parameter>.m` and `.v`, and `optimizer.updates`.
  std::vector<io::NamedArray> arrays() const;
  void load(const io::SafetensorsFile& file);

 private:
  torch::optim::AdamWParamState* state_of(const at::Tensor& parameter) const;  // nullptr before the first update

  std::vector<std::pair<std::string, at::Tensor>> parameters_;
  mutable torch::optim::AdamW adamw_;
};

// The norm of all gradients together; infinity or NaN if one of them holds such a value.
double gradient_norm(const models::Model& model);

// The name of the first parameter whose gradient holds NaN or infinity; "" if there is none.
std::string first_bad_gradient(const models::Model& model);

// The same for the parameters themselves.
std::string first_bad_parameter(const models::Model& model);

// Scales all gradients.
void scale_gradients(models::Model& model, double factor);

}  // namespace convssm::train
