// Writes clips that a tokenizer has encoded, for the dataset `folder` to read: an .npz file with `codes` u16 [T,h,w],
// `codebook_size` and, where there are any, `actions`, `revisit` and `tokenizer`, the hash of the one that made them.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>

namespace convssm::data {

// `codes` [T,h,w] int64 of a clip, or [N,T,h,w] of several of one length; `actions` as Clips has them, [T] or [T,A], and
// `revisit` [T] (with N in front for several), or undefined. The file appears whole or not at all. Error(usage) if a code is not below
// codebook_size, which is at most 65536, or the actions do not fit.
void write_codes(const std::string& path, const at::Tensor& codes, const at::Tensor& actions, int64_t codebook_size,
                 const at::Tensor& revisit = {}, const std::string& tokenizer = "");

}  // namespace convssm::data
