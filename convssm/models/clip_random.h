// Random numbers of futures that run side by side: clip b draws from a stream of its own, named by its seed and by how
// often it has drawn. Both stand in a tensor of the state, [B,2] int64, so a future goes on with the same numbers after it
// was saved, alone or in another batch.
#pragma once

#include <ATen/core/Tensor.h>

#include "convssm/models/forecaster.h"

namespace convssm::models {

inline constexpr const char* kRandomPosition = "random";  // its name in the states of all models of this library

// For `clips` clips; `seeds` has one for each or is empty (all 0).
at::Tensor first_position(const Seeds& seeds, int64_t clips);

// The same number of draws, from here on of other seeds; one for each clip, or none (all 0).
at::Tensor reseeded_position(const at::Tensor& position, const Seeds& seeds, int64_t clips);

// Uniform numbers in [0,1), float64 [B,sizes...], where `position` is. `position` is replaced by the one after them.
at::Tensor draw_uniform(at::Tensor& position, at::IntArrayRef sizes);

// Standard normal numbers, likewise.
at::Tensor draw_normal(at::Tensor& position, at::IntArrayRef sizes);

// A choice for each row of probabilities [...,K] by numbers [...] in [0,1): the category in which the number falls.
at::Tensor choose_category(const at::Tensor& numbers, const at::Tensor& probabilities);

// A choice for each row of probabilities [B,...,K] that sum to 1 but for rounding: int64 [B,...]. One of 0 is never drawn.
at::Tensor draw_category(at::Tensor& position, const at::Tensor& probabilities);

}  // namespace convssm::models
