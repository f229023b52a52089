// Shuffling without a list: a Feistel network permutes 0 .. 4^n-1 for a key, and an index that falls outside of the
// clips is permuted again until it falls inside.
#include "convssm/data/order.h"

#include <algorithm>

#include "convssm/base/error.h"
#include "convssm/base/random.h"

namespace convssm::data {
namespace {

constexpr uint64_t largest_permuted = uint64_t{1} << 40;
constexpr int rounds = 8;

uint64_t scramble(uint64_t z) {  // the SplitMix64 finalizer
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

// Bits of each half of the network: four to the power of it is at least size. Not too few, or the permutations of few
// clips would not be equally likely.
int half_bits(uint64_t size) {
  int bits = 5;
  while ((uint64_t{1} << (2 * bits)) < size) ++bits;
  return bits;
}

uint64_t feistel(uint64_t value, int bits, uint64_t key) {
  const uint64_t mask = (uint64_t{1} << bits) - 1;
  uint64_t left = value >> bits, right = value & mask;
  for (uint64_t round = 1; round <= rounds; ++round) {
    const uint64_t next = left ^ (scramble(scramble(key + round * 0x9e3779b97f4a7c15ULL) ^ right) & mask);
    left = right;
    right = next;
  }
  return left << bits | right;
}

}  // namespace

uint64_t permute(uint64_t i, uint64_t size, uint64_t key) {
  if (size > largest_permuted || i >= size)
    fail(ErrorKind::usage, "[permute] i < size <= 2^40, got {} and {}", i, size);
  const int bits = half_bits(size);
  do {  // the network permutes a power of four; walk along its cycle until inside
    i = feistel(i, bits, key);
  } while (i >= size);
  return i;
}

std::vector<uint64_t> batch_indices(Split split, uint64_t seed, uint64_t number, int64_t batch, uint64_t size) {
  if (size == 0) fail(ErrorKind::data, "[loader] there are no {} clips", name(split));
  std::vector<uint64_t> indices(static_cast<size_t>(batch));
  for (size_t i = 0; i < indices.size(); ++i) {
    indices[i] = number * static_cast<uint64_t>(batch) + i;
    if (split != Split::train || size > largest_permuted) continue;
    const uint64_t epoch = indices[i] / size;
    const uint64_t key = Stream(seed, "loader: epoch", epoch).next();
    indices[i] = epoch * size + permute(indices[i] % size, size, key);
  }
  return indices;
}

// The line is cut into as many equal stretches as there are visits, all moved by the same chance: exact in integers.
uint64_t visited_part(uint64_t index, const std::vector<uint64_t>& ends, uint64_t seed) {
  const uint64_t visits = ends.size(), line = visits == 0 ? 0 : ends.back();
  if (line == 0) fail(ErrorKind::usage, "[visited_part] parts must have a length");
  const uint64_t at = index % visits, moved = Stream(seed, "folder: visits", index / visits).below(line);
  const uint64_t place = line / visits * at + (line % visits * at + moved) / visits;
  return static_cast<uint64_t>(std::ranges::upper_bound(ends, place) - ends.begin());
}

}  // namespace convssm::data
