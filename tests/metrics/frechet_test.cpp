// The Frechet distance against SciPy's matrix square root, closed forms, and sets smaller than their dimension.
#include "convssm/metrics/frechet.h"

#include <gtest/gtest.h>

#include <cmath>

#include "convssm/io/npz.h"
#include "convssm/io/tensor.h"
#include "tests/support.h"

namespace convssm::metrics {
namespace {

using testing::expect_error;
using testing::randn;

TEST(Frechet, IsThatOfScipy) {
  const io::NpzFile file(CONVSSM_SOURCE_DIR "/tests/golden/frechet.npz");
  int cases = 0;
  for (const std::string& member : file.names()) {
    if (!member.ends_with(".distance")) continue;
    const std::string name = member.substr(0, member.find('.'));
    const auto read = [&](const char* part) { return io::to_tensor(file.read(name + part)); };
    const double expected = read(".distance").item<double>();
    EXPECT_NEAR(frechet_distance(read(".x"), read(".y")), expected, 1e-6 * expected) << name;
    ++cases;
  }
  EXPECT_EQ(cases, 4);
}

// Of one feature: (m1 - m2)^2 + (s1 - s2)^2.
TEST(Frechet, OfNormalDistributionsOnTheLine) {
  const at::Tensor x = at::tensor({0.0, 2.0, 4.0}).view({3, 1}), y = at::tensor({10.0, 11.0}).view({2, 1});
  EXPECT_NEAR(frechet_distance(x, y), 8.5 * 8.5 + std::pow(2 - std::sqrt(0.5), 2), 1e-12);
}

// Independent features, each with its own variance: the sum over features of the above. The columns of a Hadamard
// matrix make the sample covariance exactly diagonal.
TEST(Frechet, OfDiagonalCovariances) {
  at::Tensor h = at::ones({1, 1}, at::kDouble);
  for (int i = 0; i < 4; ++i) h = at::cat({at::cat({h, h}, 1), at::cat({h, -h}, 1)});
  const at::Tensor columns = h.slice(1, 1, 6);  // [16,5], mean 0, variance 16/15
  const at::Tensor a = at::tensor({1.0, 2.0, 0.0, 3.0, 0.5}), b = at::tensor({1.0, 0.5, 4.0, 0.0, 0.25});
  const at::Tensor m = at::tensor({0.0, 1.0, -1.0, 2.0, 0.0});
  const double expected = m.square().sum().item<double>() + ((a - b).square().sum() * 16 / 15).item<double>();
  EXPECT_NEAR(frechet_distance(columns * a, columns * b + m), expected, 1e-12);
}

TEST(Frechet, OfAShiftIsItsSquare) {
  for (const int64_t d : {3, 40, 400}) {
    const at::Tensor x = randn({256, d}, 1), shift = randn({d}, 2);
    const double expected = shift.square().sum().item<double>();
    EXPECT_NEAR(frechet_distance(x, x + shift), expected, 1e-9 * expected) << d;
  }
}

TEST(Frechet, OfASetWithItselfIsZeroAndSymmetric) {
  for (const int64_t n : {2, 100, 256, 500}) {
    const at::Tensor x = 10 * randn({n, 400}, 1), y = randn({n, 400}, 2);
    EXPECT_LT(frechet_distance(x, x.clone()), 1e-6) << n;
    const double distance = frechet_distance(x, y);
    EXPECT_GT(distance, 1);
    EXPECT_NEAR(distance, frechet_distance(y, x), 1e-9 * distance);
    EXPECT_NEAR(distance, frechet_distance(x.to(at::kFloat), y.to(at::kFloat)), 1e-5 * distance);
  }
}

TEST(Frechet, RefusesWhatHasNoCovariance) {
  const at::Tensor x = randn({5, 3}, 1);
  expect_error([&] { frechet_distance(x, x.narrow(0, 0, 1)); }, {"[frechet_distance]", "at least 2 rows", "[1,3]"});
  expect_error([&] { frechet_distance(x, randn({5, 4}, 1)); }, {"[m,3]", "[5,4]"});
  expect_error([&] { frechet_distance(x, x.to(at::kLong)); }, {"float32 or float64"});
  expect_error([&] { frechet_distance(x / 0, x); }, {"finite"});
}

}  // namespace
}  // namespace convssm::metrics
