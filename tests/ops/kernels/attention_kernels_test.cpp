// One head of attention against its formula, on every instruction set.
#include "convssm/ops/attention_kernels.h"

#include "tests/ops/kernels/kernel_test.h"

namespace convssm::ops::testing {
namespace {

std::vector<double> attended(const AttentionHead& a) {
  std::vector<double> out(static_cast<size_t>(a.queries * a.size));
  for (int64_t i = 0; i < a.queries; ++i) {
    std::vector<double> weights;
    double sum = 0;
    for (int64_t j = 0; j < a.keys; ++j) {
      double score = 0;
      for (int64_t c = 0; c < a.size; ++c) score += static_cast<double>(a.q[i * a.stride + c]) * a.k[j * a.stride + c];
      weights.push_back(std::exp(score * a.scale));
      sum += weights.back();
    }
    for (int64_t c = 0; c < a.size; ++c) {
      double mixed = 0;
      for (int64_t j = 0; j < a.keys; ++j) mixed += weights[static_cast<size_t>(j)] / sum * a.v[j * a.stride + c];
      out[static_cast<size_t>(i * a.size + c)] = mixed;
    }
  }
  return out;
}

TEST(AttentionKernels, OneHead) {
  on_every_isa([] {
    for (const int64_t size : {1, 4, 7, 16, 33}) {
      for (const auto& [queries, keys] : {std::pair<int64_t, int64_t>{1, 1}, {3, 5}, {8, 64}, {13, 17}}) {
        const int64_t stride = size + 3;
        const auto q = normals<float>(queries * stride, 1), k = normals<float>(keys * stride, 2),
                   v = normals<float>(keys * stride, 3);
        auto out = unwritten<float>(queries * stride);
        std::vector<float> scratch(static_cast<size_t>(attention_scratch(keys, size)));
        const AttentionHead head{queries,  keys,     size,     stride,     0.7f,
                                 q.data(), k.data(), v.data(), out.data(), scratch.data()};
        attention_head(head);
        std::vector<float> found;
        for (int64_t i = 0; i < queries; ++i) {
          for (int64_t c = 0; c < size; ++c) found.push_back(out[static_cast<size_t>(i * stride + c)]);
        }
        EXPECT_LT(difference(found, attended(head)), 1e-5) << size << " " << queries << " " << keys;
      }
    }
  });
}

TEST(AttentionKernels, ARowDoesNotDependOnThoseBesideIt) {
  const int64_t queries = 9, keys = 20, size = 12;
  const auto q = normals<float>(queries * size, 1), k = normals<float>(keys * size, 2),
             v = normals<float>(keys * size, 3);
  std::vector<float> together(static_cast<size_t>(queries * size)), alone(static_cast<size_t>(size));
  std::vector<float> scratch(static_cast<size_t>(attention_scratch(keys, size)));
  attention_head({queries, keys, size, size, 1, q.data(), k.data(), v.data(), together.data(), scratch.data()});
  for (int64_t i = 0; i < queries; ++i) {
    attention_head({1, keys, size, size, 1, q.data() + i * size, k.data(), v.data(), alone.data(), scratch.data()});
    for (int64_t c = 0; c < size; ++c) {
      EXPECT_EQ(alone[static_cast<size_t>(c)], together[static_cast<size_t>(i * size + c)]) << i << " " << c;
    }
  }
}

}  // namespace
}  // namespace convssm::ops::testing
