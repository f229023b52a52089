// What all models share: who learns when a model does not say, and parts that never do.
#include "convssm/models/model.h"

#include <ATen/ATen.h>

#include "convssm/base/error.h"
#include "convssm/models/forecaster.h"

namespace convssm::models {

std::vector<Player> Model::players() const {
  Player all{"model", {}};
  for (const auto& item : named_parameters()) {
    if (item.value().requires_grad()) all.parameters.emplace_back(item.key(), item.value());
  }
  return {all};
}

void Model::check_data(const data::FrameFormat&, const data::ActionFormat&) const {}

void Model::train(bool on) {
  torch::nn::Module::train(on);
  for (const auto& part : frozen_) part->eval();
}

void Model::freeze(torch::nn::Module& part) {
  part.eval();
  for (at::Tensor& parameter : part.parameters()) parameter.requires_grad_(false);
}

at::Device device_of(const torch::nn::Module& module) {
  const std::vector<at::Tensor> parameters = module.parameters(), buffers = module.buffers();
  if (!parameters.empty()) return parameters[0].device();
  return buffers.empty() ? at::Device(at::kCPU) : buffers[0].device();
}

int64_t parameter_count(const torch::nn::Module& module) {
  int64_t count = 0;
  for (const at::Tensor& p : module.parameters()) count += p.numel();
  return count;
}

Forecaster& forecaster_of(Model& model) {
  Forecaster* forecaster = model.as_forecaster();
  if (forecaster == nullptr) fail(ErrorKind::usage, "this model makes no forecasts: {}", model.description());
  return *forecaster;
}

}  // namespace convssm::models
