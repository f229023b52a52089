// What an array of actions is, told by its type and shape: whole numbers need no dimension of their own, numbers do.
#include "convssm/data/actions.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "convssm/base/error.h"
#include "convssm/data/numbers.h"
#include "convssm/io/array_file.h"
#include "convssm/io/text.h"

namespace convssm::data {
namespace {

constexpr int64_t kMostActions = 1'000'000;  // each has a row of weights

bool is_whole(io::DType dtype) {
  return !io::is_float(dtype) && dtype != io::DType::bool8 && dtype != io::DType::c64 && dtype != io::DType::c128;
}

int64_t whole_action(double value, const std::string& file) {
  constexpr auto most = static_cast<double>(kMostActions);
  if (value < most) return static_cast<int64_t>(std::max(value, -most));  // negative ones are masked, all alike
  fail(ErrorKind::data, "[actions] '{}': expected whole numbers 0 to {}, or negative ones for masked actions, found {}",
       file, kMostActions - 1, value);
}

std::string key_of_actions(const std::string& path, const std::string& wanted) {
  const auto names = io::array_names(path);
  const bool bare = names == std::vector<std::string>{""};  // a .npy file has no keys
  if (bare || (names.size() == 1 && wanted.empty())) return names[0];
  const std::string key = wanted.empty() ? "actions" : wanted;
  if (std::ranges::find(names, key) == names.end()) io::fail_missing(path, key, names);
  return key;
}

}  // namespace

std::optional<int64_t> action_values(const io::ArrayInfo& array, std::span<const int64_t> frames) {
  if (is_whole(array.dtype) && std::ranges::equal(array.shape, frames)) return 0;
  const bool one_more = array.shape.size() == frames.size() + 1;
  if (!one_more || !io::is_float(array.dtype) || array.shape.back() < 1) return std::nullopt;
  return std::ranges::equal(std::span(array.shape).first(frames.size()), frames)
             ? std::optional<int64_t>(array.shape.back())
             : std::nullopt;
}

std::string expected_actions(std::span<const int64_t> frames) {
  const std::string shape = io::shape_text(frames);
  std::string numbers = shape;
  numbers.insert(numbers.size() - 1, ", A");
  return fmt::format("whole numbers of shape {}, one per frame, or floats of shape {}", shape, numbers);
}

// Plain loops, because threads of the loader run this.
at::Tensor action_tensor(const io::Array& stored, int64_t values, std::vector<int64_t> sizes, const std::string& file) {
  if (values > 0) sizes.push_back(values);
  at::Tensor actions = at::empty(sizes, values > 0 ? at::kFloat : at::kLong);
  with_numbers(stored, [&](auto numbers) {
    if (values == 0) {
      int64_t* out = actions.data_ptr<int64_t>();
      for (const auto& value : numbers) *out++ = whole_action(number(value), file);
      return;
    }
    float* out = actions.data_ptr<float>();
    for (const auto& value : numbers) {
      *out++ = static_cast<float>(number(value));
      if (std::isinf(out[-1])) fail(ErrorKind::data, "[actions] '{}': an action is infinite", file);
    }
  });
  return actions;
}

at::Tensor read_action_file(const std::string& path, const std::string& key) {
  const io::ArrayFile file(path, key_of_actions(path, key));
  const std::vector<int64_t>& shape = file.info().shape;
  const size_t most = std::min<size_t>(shape.size(), 2);
  for (size_t dims = 1; dims <= most; ++dims) {
    const std::vector<int64_t> frames(shape.begin(), shape.begin() + static_cast<int64_t>(dims));
    const auto values = action_values(file.info(), frames);
    if (!values || frames.back() == 0) continue;
    return action_tensor(file.read(), *values, {dims == 2 ? frames[0] : 1, frames.back()}, path);
  }
  fail(ErrorKind::data,
       "[actions] '{}': expected whole numbers of shape [T] or [N, T], one per frame, or floats of shape [T, A] or "
       "[N, T, A], found {} {}",
       path, io::dtype_name(file.info().dtype), io::shape_text(shape));
}

}  // namespace convssm::data
