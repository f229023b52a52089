// The state of a stream follows from a 64-bit key, and the key from hashes of (parent key, name, index), so split()
// never advances the parent. normal() throws away the second value of Box-Muller and below() draws again instead of
// taking a biased remainder: what a call returns depends on the draws before it and on nothing hidden.
#include "convssm/base/random.h"

#include <bit>
#include <cmath>
#include <numbers>

#include "convssm/base/error.h"

namespace convssm {
namespace {

uint64_t mix(uint64_t z) {  // the SplitMix64 finalizer
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

uint64_t hash_name(std::string_view name) {  // FNV-1a
  uint64_t hash = 0xcbf29ce484222325ULL;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  return hash;
}

uint64_t make_key(uint64_t parent, std::string_view name, uint64_t index) {
  constexpr uint64_t golden = 0x9e3779b97f4a7c15ULL;
  return mix(mix(mix(parent + golden) ^ hash_name(name)) + golden * (index + 1));
}

}  // namespace

Stream::Stream(uint64_t seed, std::string_view name, uint64_t index) : key_(make_key(seed, name, index)) {
  uint64_t z = key_;
  for (uint64_t& word : state_) word = mix(z += 0x9e3779b97f4a7c15ULL);
}

Stream Stream::split(std::string_view name, uint64_t index) const { return Stream(key_, name, index); }

uint64_t Stream::next() {
  const uint64_t result = std::rotl(state_[0] + state_[3], 23) + state_[0];
  const uint64_t t = state_[1] << 17;
  state_[2] ^= state_[0];
  state_[3] ^= state_[1];
  state_[1] ^= state_[2];
  state_[0] ^= state_[3];
  state_[2] ^= t;
  state_[3] = std::rotl(state_[3], 45);
  return result;
}

double Stream::uniform() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }

double Stream::uniform(double lo, double hi) { return lo + (hi - lo) * uniform(); }

uint64_t Stream::below(uint64_t n) {
  if (n == 0) fail(ErrorKind::usage, "[Stream::below] n must be positive, got 0");
  const uint64_t unbiased = UINT64_MAX - UINT64_MAX % n;
  uint64_t bits = next();
  while (bits >= unbiased) bits = next();
  return bits % n;
}

double Stream::normal() {  // Box-Muller, one of the pair: no hidden carry between calls
  const double radius = std::sqrt(-2.0 * std::log1p(-uniform()));
  return radius * std::cos(2.0 * std::numbers::pi * uniform());
}

double Stream::truncated_normal(double bound) {
  if (!(bound > 0)) fail(ErrorKind::usage, "[Stream::truncated_normal] bound must be positive, got {}", bound);
  double x = normal();
  while (std::abs(x) > bound) x = normal();
  return x;
}

}  // namespace convssm
