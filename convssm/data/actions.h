// Actions in files: an array with one action for each frame. An action is a whole number, where a negative one is masked,
// or A numbers, where NaN is. Action k leads to frame k: it was taken between frame k-1 and frame k.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "convssm/io/array.h"

namespace convssm::data {

// How many numbers an action of this array has, 0 if it is one whole number, if there is an action for each element of
// `frames`, [T] or [N,T]; nothing if the array holds no such actions.
std::optional<int64_t> action_values(const io::ArrayInfo& array, std::span<const int64_t> frames);

// "whole numbers of shape [20], one per frame, or floats of shape [20, A]"
std::string expected_actions(std::span<const int64_t> frames);

// Stored actions as Clips has them: int64 of these sizes, or float32 with one dimension more if an action has `values` numbers.
// Error(data) that names the file if a number is infinite.
at::Tensor action_tensor(const io::Array& stored, int64_t values, std::vector<int64_t> sizes, const std::string& file);

// A file of actions, of one clip or several, [N,T] or [N,T,A]: .npy, or .npz with `key` (empty: `actions` or the only
// array). Error(data) that names the file if these are not actions.
at::Tensor read_action_file(const std::string& path, const std::string& key);

}  // namespace convssm::data
