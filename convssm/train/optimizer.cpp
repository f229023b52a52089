#include "convssm/train/optimizer.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/variable.h>

#include <cmath>

#include "convssm/base/error.h"
#include "convssm/io/tensor.h"
#include "convssm/ops/adamw.h"
#include "convssm/ops/check.h"

namespace convssm::train {
namespace {

at::Tensor read_like(const io::SafetensorsFile& file, const std::string& name, const at::Tensor& like) {
  const at::Tensor found = io::to_tensor(file.read(name));
  if (found.sizes() != like.sizes()) {
    fail(ErrorKind::data, "the tensor '{}' has shape {}, this model needs {}: it is of another model", name,
         ops::shape_text(found.sizes()), ops::shape_text(like.sizes()));
  }
  return found.clone();
}

}  // namespace

Optimizer::Optimizer(models::Model& model, const TrainOptions& options) : options_(options) {
  for (const auto& item : model.named_parameters()) slots_.push_back({item.key(), item.value(), {}, {}});
}

void Optimizer::clear_gradients() {
  for (Slot& slot : slots_) slot.parameter.mutable_grad() = at::Tensor();
}

void Optimizer::update(double lr, double scale) {
  const at::NoGradGuard no_grad;
  const ops::AdamWStep step{lr, options_.beta1, options_.beta2, options_.eps, options_.weight_decay, ++updates_};
  for (Slot& slot : slots_) {
    if (!slot.parameter.grad().defined()) continue;
    if (!slot.m.defined()) {
      slot.m = at::zeros_like(slot.parameter);
      slot.v = at::zeros_like(slot.parameter);
    }
    ops::adamw_(slot.parameter, slot.parameter.grad().contiguous(), slot.m, slot.v, step, scale);
    torch::autograd::impl::bump_version(slot.parameter);  // whoever keeps something for a version sees the change
  }
}

std::vector<io::LazyArray> Optimizer::arrays() const {
  std::vector<io::LazyArray> arrays;
  for (const Slot& slot : slots_) {
    if (updates_ == 0) break;
    const auto or_zero = [&](const at::Tensor& x) { return x.defined() ? x : at::zeros_like(slot.parameter); };
    arrays.push_back(io::lazy_array("optimizer." + slot.name + ".m", or_zero(slot.m)));
    arrays.push_back(io::lazy_array("optimizer." + slot.name + ".v", or_zero(slot.v)));
  }
  arrays.push_back(io::lazy_array("optimizer.updates", at::full({1}, updates_, at::kLong)));
  return arrays;
}

void Optimizer::load(const io::SafetensorsFile& file) {
  updates_ = file.read("optimizer.updates").values<int64_t>()[0];
  for (Slot& slot : slots_) {
    slot.m = slot.v = at::Tensor();
    if (updates_ == 0) continue;
    slot.m = read_like(file, "optimizer." + slot.name + ".m", slot.parameter);
    slot.v = read_like(file, "optimizer." + slot.name + ".v", slot.parameter);
  }
}

double gradient_norm(const models::Model& model) {
  double sum = 0;
  for (const at::Tensor& p : model.parameters()) {
    if (p.grad().defined()) sum += ops::square_sum(p.grad());
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

}  // namespace convssm::train
