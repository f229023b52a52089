#include "convssm/train/optimizer.h"

#include <ATen/ATen.h>

#include <cmath>

#include "convssm/base/error.h"
#include "convssm/io/tensor.h"
#include "convssm/ops/check.h"

namespace convssm::train {
namespace {

using ParamState = torch::optim::AdamWParamState;

torch::optim::AdamWOptions adamw_options(const TrainOptions& o) {
  return torch::optim::AdamWOptions(o.lr).betas({o.beta1, o.beta2}).eps(o.eps).weight_decay(o.weight_decay);
}

std::string key_of(const at::Tensor& parameter) { return c10::guts::to_string(parameter.unsafeGetTensorImpl()); }

at::Tensor read_like(const io::SafetensorsFile& file, const std::string& name, const at::Tensor& like) {
  const at::Tensor found = io::to_tensor(file.read(name));
  if (found.sizes() != like.sizes()) {
    fail(ErrorKind::data, "the tensor '{}' has shape {}, this model needs {}: it is of another model", name,
         ops::shape_text(found.sizes()), ops::shape_text(like.sizes()));
  }
  return found.clone();
}

}  // namespace

Optimizer::Optimizer(models::Model& model, const TrainOptions& options)
    : adamw_(model.parameters(), adamw_options(options)) {
  for (const auto& item : model.named_parameters()) parameters_.emplace_back(item.key(), item.value());
}

ParamState* Optimizer::state_of(const at::Tensor& parameter) const {
  const auto found = adamw_.state().find(key_of(parameter));
  return found == adamw_.state().end() ? nullptr : static_cast<ParamState*>(found->second.get());
}

void Optimizer::zero_gradients() { adamw_.zero_grad(); }

void Optimizer::update(double lr) {
  static_cast<torch::optim::AdamWOptions&>(adamw_.param_groups()[0].options()).lr(lr);
  adamw_.step();
}

std::vector<io::NamedArray> Optimizer::arrays() const {
  std::vector<io::NamedArray> arrays;
  int64_t updates = 0;
  for (const auto& [name, parameter] : parameters_) {
    const ParamState* state = state_of(parameter);
    if (state == nullptr) continue;
    updates = state->step();
    arrays.push_back({"optimizer." + name + ".m", io::to_array(state->exp_avg())});
    arrays.push_back({"optimizer." + name + ".v", io::to_array(state->exp_avg_sq())});
  }
  arrays.push_back({"optimizer.updates", io::make_array<int64_t>({1}, {updates})});
  return arrays;
}

void Optimizer::load(const io::SafetensorsFile& file) {
  const io::Array updates = file.read("optimizer.updates");
  adamw_.state().clear();
  if (updates.values<int64_t>()[0] == 0) return;
  for (const auto& [name, parameter] : parameters_) {
    auto state = std::make_unique<ParamState>();
    state->step(updates.values<int64_t>()[0]);
    state->exp_avg(read_like(file, "optimizer." + name + ".m", parameter));
    state->exp_avg_sq(read_like(file, "optimizer." + name + ".v", parameter));
    adamw_.state()[key_of(parameter)] = std::move(state);
  }
}

double gradient_norm(const models::Model& model) {
  double sum = 0;
  for (const at::Tensor& p : model.parameters()) {
    if (!p.grad().defined()) continue;
    sum += at::sum(at::square(p.grad()), at::kDouble).item<double>();
  }
  return std::sqrt(sum);
}

std::string first_bad_parameter(const models::Model& model) {
  for (const auto& item : model.named_parameters()) {
    if (!at::isfinite(item.value()).all().item<bool>()) return item.key();
  }
  return "";
}

std::string first_bad_gradient(const models::Model& model) {
  for (const auto& item : model.named_parameters()) {
    const at::Tensor& gradient = item.value().grad();
    if (gradient.defined() && !at::isfinite(gradient).all().item<bool>()) return item.key();
  }
  return "";
}

void scale_gradients(models::Model& model, double factor) {
  for (const at::Tensor& p : model.parameters()) {
    if (p.grad().defined()) p.mutable_grad().mul_(factor);
  }
}

}  // namespace convssm::train
