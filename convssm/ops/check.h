// Checks of tensor arguments. A failed check names the operation, what was expected and what was found:
//   [scan] a must be [P], [L,P] or [L,B,P] with P = 4, got [3,5]
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

#include "convssm/base/error.h"

namespace convssm::ops {

// "[2,3,4]"
std::string shape_text(at::IntArrayRef sizes);

// "float32", "complex64", ...
std::string dtype_text(const at::Tensor& x);

// require("scan", L > 0, "L must be positive, got {}", L)
template <typename... Args>
void require(const char* operation, bool condition, fmt::format_string<Args...> text, Args&&... args) {
  if (!condition) fail(ErrorKind::usage, "[{}] {}", operation, fmt::format(text, std::forward<Args>(args)...));
}

// A defined, non-empty tensor of `dims` dimensions.
void require_dims(const char* operation, const char* name, const at::Tensor& x, int64_t dims, const char* layout);

// A tensor of exactly this shape.
void require_shape(const char* operation, const char* name, const at::Tensor& x, at::IntArrayRef expected);

// `x` has the dtype and device of `like`.
void require_like(const char* operation, const char* name, const at::Tensor& x, const at::Tensor& like);

// No NaN and no infinity, which would spread silently. Reads the whole tensor: for parameters, not for frames.
void require_finite(const char* operation, const char* name, const at::Tensor& x);

}  // namespace convssm::ops
