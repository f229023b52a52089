// One optimizer per player. The average begins slowly, min(ema, (1 + n) / (10 + n)) after n updates, so that it forgets the
// initial values within a short training too.
#include "convssm/train/optimizer.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <cmath>
#include <unordered_set>

#include "convssm/io/tensor.h"
#include "convssm/ops/adamw.h"

namespace convssm::train {
namespace {

constexpr int64_t kBlock = 1 << 18;  // values that change places at once

at::Tensor read_like(const io::SafetensorsFile& file, const std::string& name, const at::Tensor& like) {
  return io::read_tensor(file, name, like.sizes()).to(like.device(), false, true);
}

}  // namespace

PlayerOptions options_of(const models::Player& player, const TrainOptions& options) {
  PlayerOptions own = options.player(player.name);
  own.start = std::max(own.start, player.start);
  return own;
}

Optimizer::Optimizer(const models::Player& player, const PlayerOptions& options)
    : player_(player.name), options_(options) {
  const at::NoGradGuard no_grad;
  for (const auto& [name, parameter] : player.parameters) {
    slots_.push_back({name, parameter, {}, {}, options.ema > 0 ? parameter.detach().clone() : at::Tensor()});
  }
}

void Optimizer::clear_gradients() {
  for (Slot& slot : slots_) slot.parameter.mutable_grad() = at::Tensor();
}

double Optimizer::gradient_norm() const {
  double sum = 0;
  for (const Slot& slot : slots_) {
    if (slot.parameter.grad().defined()) sum += ops::square_sum(slot.parameter.grad());
  }
  return std::sqrt(sum);
}

void Optimizer::update(double lr, double scale) {
  const at::NoGradGuard no_grad;
  const auto n = static_cast<double>(updates_);
  const double decay = std::min(options_.ema, (1 + n) / (10 + n));
  const ops::AdamWStep step{lr, options_.beta1, options_.beta2, options_.eps, options_.weight_decay, ++updates_};
  for (Slot& slot : slots_) {
    if (slot.parameter.grad().defined()) {
      if (!slot.m.defined()) {
        slot.m = at::zeros_like(slot.parameter);
        slot.v = at::zeros_like(slot.parameter);
      }
      ops::adamw_(slot.parameter, slot.parameter.grad().contiguous(), slot.m, slot.v, step, scale);
      torch::autograd::impl::bump_version(slot.parameter);  // whoever keeps something for a version sees the change
    }
    if (slot.average.defined()) slot.average.lerp_(slot.parameter, 1 - decay);
  }
}

std::vector<std::pair<at::Tensor, at::Tensor>> Optimizer::averages() const {
  std::vector<std::pair<at::Tensor, at::Tensor>> pairs;
  for (const Slot& slot : slots_) {
    if (slot.average.defined()) pairs.emplace_back(slot.parameter, slot.average);
  }
  return pairs;
}

std::string Optimizer::updates_name() const {
  return player_ == "model" ? "optimizer.updates" : "optimizer.updates." + player_;
}

std::vector<io::LazyArray> Optimizer::arrays() const {
  std::vector<io::LazyArray> arrays;
  for (const Slot& slot : slots_) {
    if (slot.average.defined()) arrays.push_back(io::lazy_array("average." + slot.name, slot.average));
    if (updates_ == 0) continue;
    const auto or_zero = [&](const at::Tensor& x) { return x.defined() ? x : at::zeros_like(slot.parameter); };
    arrays.push_back(io::lazy_array("optimizer." + slot.name + ".m", or_zero(slot.m)));
    arrays.push_back(io::lazy_array("optimizer." + slot.name + ".v", or_zero(slot.v)));
  }
  arrays.push_back(io::lazy_array(updates_name(), at::full({1}, updates_, at::kLong)));
  return arrays;
}

void Optimizer::load(const io::SafetensorsFile& file) {
  updates_ = file.read(updates_name()).values<int64_t>()[0];
  for (Slot& slot : slots_) {
    slot.m = slot.v = at::Tensor();
    const std::string average = "average." + slot.name;
    if (slot.average.defined()) {  // a run that begins to average begins with the weights it has
      slot.average =
          file.contains(average) ? read_like(file, average, slot.parameter) : slot.parameter.detach().clone();
    }
    if (updates_ == 0) continue;
    slot.m = read_like(file, "optimizer." + slot.name + ".m", slot.parameter);
    slot.v = read_like(file, "optimizer." + slot.name + ".v", slot.parameter);
  }
}

AveragedWeights::AveragedWeights(const std::vector<Optimizer>& optimizers) {
  const at::NoGradGuard no_grad;
  at::Tensor buffer;
  for (const Optimizer& optimizer : optimizers) {
    for (const auto& [parameter, average] : optimizer.averages()) {
      const at::Tensor p = parameter.detach().view({-1}), a = average.view({-1});  // p has the parameter's version
      const bool fits = buffer.defined() && buffer.scalar_type() == p.scalar_type() && buffer.device() == p.device();
      if (!fits) buffer = at::empty({kBlock}, p.options());
      for (int64_t begin = 0; begin < p.numel(); begin += kBlock) {
        const int64_t count = std::min(kBlock, p.numel() - begin);
        blocks_.push_back({p.narrow(0, begin, count), a.narrow(0, begin, count), buffer.narrow(0, 0, count)});
      }
    }
  }
  try {
    for (; swapped_ < blocks_.size(); ++swapped_) blocks_[swapped_].swap();
  } catch (...) {
    put_back();
    throw;
  }
}

AveragedWeights::~AveragedWeights() { put_back(); }

void AveragedWeights::Block::swap() {
  buffer.copy_(weights);
  weights.copy_(average);
  average.copy_(buffer);
}

void AveragedWeights::put_back() {
  const at::NoGradGuard no_grad;
  while (swapped_ > 0) blocks_[--swapped_].swap();
}

OnlyLearner::OnlyLearner(models::Model& model, const models::Player& player) {
  std::unordered_set<const void*> its;
  for (const auto& [name, parameter] : player.parameters) its.insert(parameter.unsafeGetTensorImpl());
  for (at::Tensor& parameter : model.parameters()) {
    if (!parameter.requires_grad() || its.contains(parameter.unsafeGetTensorImpl())) continue;
    parameter.requires_grad_(false);
    paused_.push_back(parameter);
  }
}

OnlyLearner::~OnlyLearner() {
  for (at::Tensor& parameter : paused_) parameter.requires_grad_(true);
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
