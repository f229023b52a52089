// What differs between the versions of libtorch that this builds with: Debian's 1.13 and the wheels from 2.7 on. Which one is
// chosen in cmake/Torch.cmake.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/version.h>

#include <optional>

#if TORCH_VERSION_MAJOR < 2
#include <c10/util/Optional.h>
#endif

namespace convssm {

#if TORCH_VERSION_MAJOR < 2
template <typename T>
using Optional = c10::optional<T>;
inline constexpr c10::nullopt_t nullopt = c10::nullopt;
#else
template <typename T>
using Optional = std::optional<T>;
inline constexpr std::nullopt_t nullopt = std::nullopt;
#endif

// A tensor that may be absent, as libtorch's operations take it.
using OptionalTensor = Optional<at::Tensor>;

inline OptionalTensor if_defined(const at::Tensor& x) { return x.defined() ? OptionalTensor(x) : OptionalTensor(); }

}  // namespace convssm
