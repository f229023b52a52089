// Rotary positions of tokens on a grid of frames, rows and columns: pairs of features of queries and keys turn by angles
// that grow with the position, so that their products depend on differences of positions alone: there is no first and no
// last position. Differences that training has not shown are new all the same.
#pragma once

#include <ATen/core/Tensor.h>

namespace convssm::nn {

// The angles of all tokens, row by row, frame by frame: [frames*rows*columns, size/2], for heads of `size` features, even
// and at least 6. Pair i belongs to axis i % 3 (frame, row, column); the j-th of the n pairs of an axis turns by
// 100^(-j/n) per step.
at::Tensor grid_angles(int64_t frames, int64_t rows, int64_t columns, int64_t size, const at::TensorOptions& options);

// x [...,T,size], angles [T,size/2]: pair i is features i and i + size/2.
at::Tensor rotate(const at::Tensor& x, const at::Tensor& angles);

// The angles of tokens on a line, positions [T] of any type -> [T,pairs] in double: pair k turns by wavelength^(-k/(pairs-1)) per
// step, from 1 to 1 / wavelength.
at::Tensor line_angles(const at::Tensor& positions, int64_t pairs, double wavelength);

// x [...,T,size], cosines and sines of angles [T,pairs] in the type of x: pair k is features 2k and 2k + 1. Features from 2 pairs
// on stay as they are.
at::Tensor rotate_neighbours(const at::Tensor& x, const at::Tensor& cosines, const at::Tensor& sines);

}  // namespace convssm::nn
