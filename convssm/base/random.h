// Splittable random streams. A stream is named by (seed, name, index) and depends on nothing else: not on the order in
// which streams are made, nor on the number of threads that draw from them.
//   Stream digits(seed, "digits", clip_index);   double x = digits.uniform(0, 64);
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace convssm {

// xoshiro256++ seeded by SplitMix64 from a hash of (seed, name, index).
class Stream {
 public:
  explicit Stream(uint64_t seed, std::string_view name = "", uint64_t index = 0);

  // An independent stream below this one; does not advance this one.
  Stream split(std::string_view name, uint64_t index = 0) const;

  uint64_t next();                        // 64 random bits
  double uniform();                       // [0, 1)
  double uniform(double lo, double hi);   // [lo, hi)
  uint64_t below(uint64_t n);             // {0, ..., n-1}, n > 0, without bias
  double normal();                        // mean 0, variance 1
  double truncated_normal(double bound);  // standard normal, redrawn until |x| <= bound

 private:
  uint64_t key_;
  std::array<uint64_t, 4> state_;
};

}  // namespace convssm
