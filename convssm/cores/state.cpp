// A list and not a map: a state has a handful of tensors, and their order is that of the layers in every file.
#include "convssm/cores/state.h"

#include "convssm/base/error.h"

namespace convssm::cores {

at::Tensor State::get(const std::string& name) const {
  if (empty()) return {};
  for (const auto& [key, value] : items_) {
    if (key == name) return value;
  }
  fail(ErrorKind::usage, "[state] expected a tensor '{}', got a state of {} tensors without it (of another core?)",
       name, items_.size());
}

void State::set(const std::string& name, at::Tensor value) {
  for (auto& [key, old] : items_) {
    if (key == name) {
      old = std::move(value);
      return;
    }
  }
  items_.emplace_back(name, std::move(value));
}

template <typename Change>
State State::changed(const Change& change) const {
  State result;
  for (const auto& [key, value] : items_) result.items_.emplace_back(key, change(value));
  return result;
}

State State::detach() const {
  return changed([](const at::Tensor& x) { return x.detach(); });
}

State State::clone() const {
  return changed([](const at::Tensor& x) { return x.clone(); });
}

State State::to(at::Device device) const {
  return changed([&](const at::Tensor& x) { return x.to(device); });
}

}  // namespace convssm::cores
