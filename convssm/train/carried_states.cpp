// The first dimension of a tensor of a state is that of the rows; a tensor without dimensions is of all.
#include "convssm/train/carried_states.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "convssm/base/error.h"
#include "convssm/io/tensor.h"
#include "convssm/ops/check.h"

namespace convssm::train {
namespace {

using models::State;

constexpr std::string_view kPrefix = "carried.";

bool fit(const at::Tensor& a, const at::Tensor& b) {
  if (a.dim() != b.dim()) return false;
  return a.dim() == 0 ? at::equal(a, b) : a.sizes().slice(1) == b.sizes().slice(1);
}

bool fit(const State& a, const State& b) {
  return std::ranges::equal(a.items(), b.items(),
                            [](const auto& x, const auto& y) { return x.first == y.first && fit(x.second, y.second); });
}

State joined(const std::vector<const State*>& rows) {
  State all;
  for (size_t i = 0; i < rows[0]->items().size(); ++i) {
    std::vector<at::Tensor> parts;
    for (const State* row : rows) parts.push_back(row->items()[i].second);
    all.set(rows[0]->items()[i].first, parts[0].dim() == 0 ? parts[0] : at::cat(parts));
  }
  return all;
}

}  // namespace

std::vector<CarriedStates::Group> CarriedStates::groups(int64_t begin, int64_t end,
                                                        const std::vector<bool>& begins) const {
  const State none;
  std::vector<std::vector<int64_t>> rows;
  std::vector<std::vector<const State*>> states;
  for (int64_t row = begin; row < end; ++row) {
    const auto i = static_cast<size_t>(row);
    const State* state = begins.at(i) ? &none : &now_.at(i);
    const auto found = std::ranges::find_if(states, [&](const auto& group) { return fit(*group[0], *state); });
    const auto at = static_cast<size_t>(found - states.begin());
    if (found == states.end()) rows.emplace_back(), states.emplace_back();
    rows[at].push_back(row);
    states[at].push_back(state);
  }
  std::vector<Group> all;
  for (size_t i = 0; i < rows.size(); ++i) all.push_back({rows[i], joined(states[i])});
  return all;
}

void CarriedStates::keep(const std::vector<int64_t>& rows, const State& after) {
  for (size_t i = 0; i < rows.size(); ++i) {
    State& own = next_.at(static_cast<size_t>(rows[i])) = State();
    for (const auto& [name, value] : after.items()) {
      const auto at = static_cast<int64_t>(i);
      own.set(name, (value.dim() == 0 ? value : value.slice(0, at, at + 1)).detach().clone());
    }
  }
}

void CarriedStates::commit() { now_ = next_; }

void CarriedStates::forget() {
  std::ranges::fill(now_, State());
  std::ranges::fill(next_, State());
}

std::vector<io::LazyArray> CarriedStates::arrays() const {
  std::vector<io::LazyArray> arrays;
  for (size_t row = 0; row < now_.size(); ++row) {
    for (const auto& [name, value] : now_[row].items()) {
      arrays.push_back(io::lazy_array(fmt::format("{}{}.{}", kPrefix, row, name), value));
    }
  }
  return arrays;
}

void CarriedStates::load(const io::SafetensorsFile& file, at::Device device) {
  forget();
  for (const std::string& full : file.names()) {
    if (!full.starts_with(kPrefix)) continue;
    const std::string rest = full.substr(kPrefix.size());
    size_t row = 0;
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), row);
    const at::Tensor value = io::to_tensor(file.read(full)).to(device);
    const bool fits =
        error == std::errc() && *end == '.' && row < now_.size() && (value.dim() == 0 || value.size(0) == 1);
    if (!fits) {
      fail(ErrorKind::data, "the checkpoint holds '{}' {}, expected the state of one of {} rows (train.batch)", full,
           ops::shape_text(value.sizes()), now_.size());
    }
    now_[row].set(std::string(end + 1, rest.data() + rest.size()), value);
  }
  next_ = now_;
}

}  // namespace convssm::train
