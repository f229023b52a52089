// softmax(scale q k^T) v of one head, for queries and keys that fit into the first caches: no gradients, no memory of its own.
#pragma once

#include <cstdint>

namespace convssm::ops {

struct AttentionHead {
  int64_t queries, keys, size;  // size: features of the head
  int64_t stride;               // between rows of q, k, v and out, in floats
  float scale;
  const float* q;
  const float* k;
  const float* v;
  float* out;
  float* scratch;  // attention_scratch() floats
};

int64_t attention_scratch(int64_t keys, int64_t size);

// A row of `out` depends on its own query, not on those beside it.
void attention_head(const AttentionHead& head);

}  // namespace convssm::ops
