#include "convssm/base/random.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <set>
#include <vector>

#include "convssm/base/error.h"

namespace convssm {
namespace {

struct Moments {
  double mean, variance, skew, kurtosis;
};

Moments moments_of(const std::function<double()>& draw, int count) {
  std::vector<double> sums(5, 0.0);
  for (int i = 0; i < count; ++i) {
    const double x = draw();
    for (size_t power = 1; power < sums.size(); ++power) sums[power] += std::pow(x, static_cast<double>(power)) / count;
  }
  const double mean = sums[1], variance = sums[2] - mean * mean;
  const double third = sums[3] - 3 * mean * sums[2] + 2 * std::pow(mean, 3);
  const double fourth = sums[4] - 4 * mean * sums[3] + 6 * mean * mean * sums[2] - 3 * std::pow(mean, 4);
  return {mean, variance, third / std::pow(variance, 1.5), fourth / (variance * variance)};
}

// From an independent Python version of SplitMix64, FNV-1a and xoshiro256++. Datasets and initial weights rest on
// these: they never change.
TEST(Stream, FirstValuesNeverChange) {
  Stream plain(0);
  EXPECT_EQ(plain.next(), 0x2d8e8cec881a264aULL);
  EXPECT_EQ(plain.next(), 0x99c7b4ca4cc0ef44ULL);
  EXPECT_EQ(plain.next(), 0xa62e9b70ffb65d8cULL);
  Stream named(7, "digits", 3);
  EXPECT_EQ(named.next(), 0xeac9d7158e7b3967ULL);
  EXPECT_EQ(named.next(), 0x3aea5b5f39a783e8ULL);
  EXPECT_EQ(named.next(), 0x892cda2e69eda453ULL);
  Stream below = Stream(7, "digits", 3).split("noise", 2);
  EXPECT_EQ(below.next(), 0x31a2c7e32ce5c91bULL);
  EXPECT_EQ(below.next(), 0xd4e88c076c143362ULL);
  EXPECT_DOUBLE_EQ(Stream(7, "digits", 3).uniform(), 0.9171423366192187);
  EXPECT_NEAR(Stream(7, "digits", 3).normal(), 0.27780094609302847, 1e-15);
}

TEST(Stream, SeedNameAndIndexEachMakeAnotherStream) {
  std::set<uint64_t> firsts;
  for (uint64_t seed = 0; seed < 10; ++seed) {
    for (const char* name : {"", "a", "b", "ab", "ba"}) {
      for (uint64_t index = 0; index < 10; ++index) firsts.insert(Stream(seed, name, index).next());
    }
  }
  EXPECT_EQ(firsts.size(), 500u);
}

TEST(Stream, DoesNotDependOnOrderOrThreads) {
  constexpr int count = 1000;
  std::vector<uint64_t> forwards(count), backwards(count), parallel(count);
  const auto draw = [](int i) {
    Stream stream(5, "clip", static_cast<uint64_t>(i));
    stream.next();
    return stream.next();
  };
  for (int i = 0; i < count; ++i) forwards[i] = draw(i);
  for (int i = count - 1; i >= 0; --i) backwards[i] = draw(i);
#pragma omp parallel for num_threads(4) schedule(dynamic, 7)
  for (int i = 0; i < count; ++i) parallel[i] = draw(i);
  EXPECT_EQ(forwards, backwards);
  EXPECT_EQ(forwards, parallel);
}

TEST(Stream, SplitNeitherAdvancesNorFollowsTheParent) {
  Stream parent(1, "parent");
  const uint64_t early = parent.split("child").next();
  Stream untouched(1, "parent");
  EXPECT_EQ(parent.next(), untouched.next());
  EXPECT_EQ(parent.split("child").next(), early);
  EXPECT_NE(parent.split("child", 1).next(), early);
  EXPECT_NE(parent.split("other").next(), early);
}

TEST(Stream, NeighbouringStreamsAreUncorrelated) {
  constexpr int count = 100000;
  Stream a(3, "noise", 0), b(3, "noise", 1);
  double product = 0;
  for (int i = 0; i < count; ++i) product += a.normal() * b.normal();
  EXPECT_NEAR(product / count, 0, 5 / std::sqrt(count));
}

TEST(Stream, UniformHasItsMomentsAndBounds) {
  Stream stream(11);
  double least = 1, most = 0;
  const Moments found = moments_of(
      [&] {
        const double x = stream.uniform();
        least = std::min(least, x), most = std::max(most, x);
        return x;
      },
      1000000);
  EXPECT_NEAR(found.mean, 0.5, 0.0015);
  EXPECT_NEAR(found.variance, 1.0 / 12, 0.0004);
  EXPECT_GE(least, 0);
  EXPECT_LT(most, 1);
  for (int i = 0; i < 1000; ++i) {
    const double x = stream.uniform(-3, 5);
    EXPECT_TRUE(x >= -3 && x < 5) << x;
  }
}

TEST(Stream, NormalHasItsMoments) {
  Stream stream(12);
  const Moments found = moments_of([&] { return stream.normal(); }, 1000000);
  EXPECT_NEAR(found.mean, 0, 0.005);
  EXPECT_NEAR(found.variance, 1, 0.008);
  EXPECT_NEAR(found.skew, 0, 0.013);
  EXPECT_NEAR(found.kurtosis, 3, 0.03);
}

TEST(Stream, TruncatedNormalStaysInsideItsBound) {
  Stream stream(13);
  const Moments found = moments_of(
      [&] {
        const double x = stream.truncated_normal(2);
        EXPECT_LE(std::abs(x), 2);
        return x;
      },
      200000);
  EXPECT_NEAR(found.mean, 0, 0.01);
  EXPECT_NEAR(std::sqrt(found.variance), 0.87962566103423978, 0.005);
  for (const double bound : {0.0, -1.0, std::nan("")}) EXPECT_THROW(stream.truncated_normal(bound), Error);
}

TEST(Stream, BelowHitsEveryValueEvenly) {
  Stream stream(14);
  constexpr int values = 7, count = 70000;
  std::vector<int> seen(values, 0);
  for (int i = 0; i < count; ++i) ++seen.at(stream.below(values));
  double chi_squared = 0;
  for (const int n : seen) chi_squared += std::pow(n - count / values, 2) / (count / values);
  EXPECT_LT(chi_squared, 22.5);  // 6 degrees of freedom, p = 0.001
  EXPECT_EQ(stream.below(1), 0u);
}

// With n = 3 * 2^62, bits % n would give the lowest third twice as often as the others.
TEST(Stream, BelowHasNoModuloBias) {
  Stream stream(15);
  constexpr uint64_t n = 3ULL << 62;
  int low = 0;
  for (int i = 0; i < 30000; ++i) {
    const uint64_t value = stream.below(n);
    ASSERT_LT(value, n);
    low += value < (n / 3) ? 1 : 0;
  }
  EXPECT_NEAR(low, 10000, 400);
}

TEST(Stream, BelowZeroIsAnError) {
  Stream stream(16);
  try {
    stream.below(0);
    FAIL() << "did not throw";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    EXPECT_STREQ(error.what(), "[Stream::below] n must be positive, got 0");
  }
}

}  // namespace
}  // namespace convssm
