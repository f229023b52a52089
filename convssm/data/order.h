// Which clips a batch holds: a pure function of (seed, batch number, batch size, dataset size), computed without state,
// so that training resumes at any batch and ranks can share the work.
#pragma once

#include <cstdint>
#include <vector>

#include "convssm/data/dataset.h"

namespace convssm::data {

// Position `i` of a random permutation of 0 .. size-1, chosen by `key`; in constant memory (a Feistel network).
uint64_t permute(uint64_t i, uint64_t size, uint64_t key);

// The indices of batch `number`, to be given to Dataset::clip. Training takes every index below the size once per epoch, in another
// order each time; index / size is the epoch. The clips of the other splits, and those of a dataset of any_count, come in order.
std::vector<uint64_t> batch_indices(Split split, uint64_t seed, uint64_t number, int64_t batch, uint64_t size);

// Which part of a line visit `index` goes to, where `ends` is where the parts end and there are as many visits in an epoch as parts: each
// part once where all are equally long, else in proportion to its length, rounded up or down by chance.
uint64_t visited_part(uint64_t index, const std::vector<uint64_t>& ends, uint64_t seed);

}  // namespace convssm::data
