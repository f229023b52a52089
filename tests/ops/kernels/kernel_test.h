// What the tests of the kernels share: arrays that end where the contract of a kernel says, so that AddressSanitizer sees
// a step beyond them; sizes around the vector widths; every instruction set of the machine.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "convssm/base/random.h"
#include "convssm/ops/isa.h"

namespace convssm::ops::testing {

// Vectors have 1 (no vectors at all) to 16 values: below, at and above each width, and a few vectors with a rest.
inline const std::vector<int64_t> kSizes{1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 47};

// A vector is made with its size, so it has memory for these values and not one more.
template <typename T>
std::vector<T> filled(int64_t size, T value) {
  return std::vector<T>(static_cast<size_t>(size), value);
}

// What a kernel must write: NaN until it does.
template <typename T>
std::vector<T> unwritten(int64_t size) {
  return filled(size, std::numeric_limits<T>::quiet_NaN());
}

// Normal, times `scale`, around `mean`.
template <typename T>
std::vector<T> normals(int64_t size, uint64_t seed, double scale = 1, double mean = 0) {
  Stream stream(seed, "kernels");
  std::vector<T> values(static_cast<size_t>(size));
  for (T& value : values) value = static_cast<T>(mean + scale * stream.normal());
  return values;
}

template <typename T>
std::vector<double> exact(const std::vector<T>& values) {
  return {values.begin(), values.end()};
}

// Rounding errors of a few operations; those of longer sums are allowed `times` as much.
template <typename T>
double tolerance(double times = 1) {
  return times * (sizeof(T) == 4 ? 2e-6 : 5e-15);
}

// The largest difference, relative to the largest expected value if that is above one; infinity for NaN or other sizes.
template <typename T>
double difference(const std::vector<T>& found, const std::vector<double>& expected) {
  if (found.size() != expected.size()) return std::numeric_limits<double>::infinity();
  double worst = 0, largest = 1;
  for (size_t i = 0; i < found.size(); ++i) {
    const double error = std::abs(static_cast<double>(found[i]) - expected[i]);
    if (std::isnan(error)) return std::numeric_limits<double>::infinity();
    worst = std::max(worst, error);
    largest = std::max(largest, std::abs(expected[i]));
  }
  return worst / largest;
}

inline double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

inline void on_every_isa(const std::function<void()>& test) {
  for (const std::string& isa : isa_names()) {
    SCOPED_TRACE(isa);
    force_isa(isa);
    test();
  }
  force_isa("");
}

// For float32 and for float64: test(T{}).
template <class Test>
void on_every_isa_and_type(const Test& test) {
  on_every_isa([&] {
    test(float{});
    test(double{});
  });
}

}  // namespace convssm::ops::testing
