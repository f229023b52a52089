// The nearest row against a plain search, on every instruction set.
#include "convssm/ops/nearest_kernels.h"

#include "tests/ops/kernels/kernel_test.h"

namespace convssm::ops::testing {
namespace {

std::vector<int64_t> search(const NearestRows& p) {
  std::vector<int64_t> found;
  for (int64_t i = 0; i < p.rows; ++i) {
    int64_t nearest = 0;
    double least = 1e300;
    for (int64_t j = 0; j < p.codes; ++j) {
      double distance = 0;
      for (int64_t c = 0; c < p.features; ++c) {
        const double by = static_cast<double>(p.x[i * p.features + c]) - p.table[j * p.features + c];
        distance += by * by;
      }
      if (distance < least) least = distance, nearest = j;
    }
    found.push_back(nearest);
  }
  return found;
}

std::vector<float> half_squares(const std::vector<float>& table, int64_t features) {
  std::vector<float> bias;
  for (size_t j = 0; j < table.size(); j += static_cast<size_t>(features)) {
    double sum = 0;
    for (int64_t c = 0; c < features; ++c) sum += std::pow(table[j + static_cast<size_t>(c)], 2);
    bias.push_back(static_cast<float>(-sum / 2));
  }
  return bias;
}

TEST(NearestKernels, FindTheNearestRow) {
  on_every_isa([] {
    for (const int64_t features : {1, 5, 16, 33}) {
      for (const auto& [rows, codes] : {std::pair<int64_t, int64_t>{1, 1}, {3, 7}, {4, 16}, {9, 50}, {21, 129}}) {
        const auto x = normals<float>(rows * features, 1), table = normals<float>(codes * features, 2),
                   bias = half_squares(table, features);
        std::vector<int64_t> chosen(static_cast<size_t>(rows), -1);
        std::vector<float> scratch(static_cast<size_t>(nearest_scratch(rows, features)));
        const NearestRows problem{rows,         codes,       features,      x.data(),
                                  table.data(), bias.data(), chosen.data(), scratch.data()};
        nearest_rows(problem);
        EXPECT_EQ(chosen, search(problem)) << features << " " << rows << " " << codes;
      }
    }
  });
}

TEST(NearestKernels, TheFirstOfEqualRowsIsTaken) {
  on_every_isa([] {
    const int64_t features = 3, codes = 40;
    std::vector<float> table(static_cast<size_t>(codes * features), 1);
    for (int64_t c = 0; c < features; ++c) table[static_cast<size_t>(c)] = 9;  // code 0 is far
    const auto bias = half_squares(table, features);
    const std::vector<float> x(static_cast<size_t>(features), 1);
    std::vector<float> scratch(static_cast<size_t>(nearest_scratch(1, features)));
    int64_t chosen = -1;
    nearest_rows({1, codes, features, x.data(), table.data(), bias.data(), &chosen, scratch.data()});
    EXPECT_EQ(chosen, 1);
  });
}

}  // namespace
}  // namespace convssm::ops::testing
