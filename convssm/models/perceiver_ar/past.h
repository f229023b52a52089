// What a forecast of Perceiver AR keeps of the past: which positions a position sees, and the keys and values of those.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "convssm/models/perceiver_ar/network.h"

namespace convssm::models::perceiver_ar {

// What position p sees when codes are drawn, a function of p alone. The published sampler steps with a cache of latents; when it
// holds Z, it is made anew with Z/2. So that a future does not depend on where it began or was stopped, this happens where p is a
// multiple of Z/2: then a position sees between Z/2 and Z latents, itself included, which see nothing of those before them.
// Inputs older than N before the end of these Z are out of sight.
struct Sight {
  int64_t context;  // N
  int64_t latents;  // Z, even

  int64_t first_latent(int64_t p) const;
  int64_t first_input(int64_t latent) const;  // of positions whose first latent this is
};

// Keys and values of consecutive positions, with room for more: a step writes into it and copies nothing.
class KeyCache {
 public:
  KeyCache() = default;
  KeyCache(const KeysValues& kept, int64_t first) : kept_(kept), first_(first), count_(kept.keys.size(2)) {}

  int64_t first() const { return first_; }
  int64_t end() const { return first_ + count_; }  // the first position that is not there

  // In memory of its own from now on: positions from `begin` to `end` (as far as they are there), and room for `more`.
  void reserve(int64_t begin, int64_t end, int64_t more);
  void append(const KeysValues& more);  // into the room

  KeysValues from(int64_t position) const;  // to the end, where they lie

 private:
  KeysValues kept_;
  int64_t first_ = 0, count_ = 0;
};

}  // namespace convssm::models::perceiver_ar
