// Wrong arguments: every one an error that names the operation, what was expected and what was found.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "convssm/ops/check.h"
#include "convssm/ops/conv2d.h"
#include "convssm/ops/dense.h"
#include "convssm/ops/isa.h"
#include "convssm/ops/norm.h"
#include "convssm/ops/scan.h"
#include "tests/support.h"

namespace convssm::ops::testing {
namespace {

using convssm::testing::expect_error;

const at::Tensor a3 = at::ones({3}, at::kComplexFloat);

TEST(BadUse, ScanShapes) {
  expect_error([] { scan(a3, at::ones({4, 6})); }, {"[scan]", "[L,B,...,P]", "[4,6]"});
  expect_error([] { scan(a3, at::ones({4, 2, 5})); }, {"[scan]", "2P", "[4,2,5]"});
  expect_error([] { scan(a3, at::ones({4, 2, 8})); }, {"[scan]", "P = 4", "[3]"});
  expect_error([] { scan(at::ones({5, 3}, at::kComplexFloat), at::ones({4, 2, 6})); }, {"L = 4", "[5,3]"});
  expect_error([] { scan(at::ones({4, 9, 3}, at::kComplexFloat), at::ones({4, 2, 6})); }, {"B = 2", "[4,9,3]"});
  const at::Tensor b = at::ones({4, 2, 5, 7, 6});  // per pixel: other pixels, halves, too few and too many axes
  for (const std::vector<int64_t>& shape : std::vector<std::vector<int64_t>>{
           {4, 2, 7, 5, 3}, {4, 2, 5, 7, 6}, {4, 2, 5, 3}, {4, 2, 5, 7, 1, 3}, {1, 2, 5, 7, 3}, {2, 5, 7, 3}}) {
    const std::string found = "got " + shape_text(shape);
    expect_error([&] { scan(at::ones(shape, at::kComplexFloat), b); }, {"[scan] a", "[4,2,5,7,3]", found});
  }
  expect_error(
      [] {
        scan_frames_(at::ones({4, 2, 5, 7, 3}, at::kComplexFloat), at::ones({4, 2, 6, 5, 7}));
      },
      {"[scan_frames_] a", "[4,2,3,5,7]", "[4,2,5,7,3]"});
  expect_error([] { scan(a3, at::ones({4, 2, 6}), at::ones({3, 6})); }, {"x0", "[2,6]", "[3,6]"});
}

TEST(BadUse, ScanEmpty) {
  expect_error([] { scan(a3, at::ones({0, 2, 6})); }, {"[scan]", "no size 0", "[0,2,6]"});
  expect_error([] { scan(a3, at::ones({4, 0, 6})); }, {"[scan]", "no size 0"});
  expect_error([] { scan(a3, at::Tensor()); }, {"[scan]", "undefined"});
}

TEST(BadUse, ScanDtypesAndDevices) {
  expect_error([] { scan(a3, at::ones({4, 2, 6}, at::kDouble)); }, {"complex128", "complex64"});
  expect_error([] { scan(a3, at::ones({4, 2, 6}, at::kHalf)); }, {"[scan]", "float32", "float16"});
  expect_error([] { scan(a3, at::ones({4, 2, 6}, at::kLong)); }, {"[scan]", "float32", "int64"});
  expect_error([] { scan(at::ones({3}), at::ones({4, 2, 3}, at::kComplexFloat)); }, {"a must be complex", "complex64"});
  expect_error([] { scan(a3, at::ones({4, 2, 6}), at::ones({2, 6}, at::kDouble)); }, {"x0", "float32", "float64"});
  expect_error([] { scan(a3, at::ones({4, 2, 6}, at::kMeta)); }, {"[scan]", "meta", "cpu"});
}

TEST(BadUse, ScanOptions) {
  expect_error([] { scan(a3, at::ones({4, 2, 6}), {}, {ScanAlgorithm::chunked, -1}); }, {"chunk", "-1"});
  expect_error([] { scan_(a3, at::ones({4, 6, 2}).transpose(1, 2)); }, {"[scan_]", "contiguous"});
  expect_error([] { scan_(a3, at::ones({4, 2, 6}).requires_grad_(true)); }, {"[scan_]", "leaf"});
}

TEST(BadUse, Convolution) {
  const at::Tensor x = at::ones({1, 3, 4, 4}), w = at::ones({2, 3, 3, 3});
  expect_error([&] { ops::conv2d(at::ones({3, 4, 4}), w); }, {"[conv2d]", "[N,C,H,W]", "[3,4,4]"});
  expect_error([&] { ops::conv2d(at::ones({0, 3, 4, 4}), w); }, {"[conv2d]", "no size 0"});
  expect_error([&] { ops::conv2d(x, at::ones({2, 5, 3, 3})); }, {"[O,3,kh,kw]", "[2,5,3,3]"});
  expect_error([&] { ops::conv2d(x, w.to(at::kDouble)); }, {"float32", "float64"});
  expect_error([&] { ops::conv2d(x, w, at::ones({3})); }, {"bias", "[2]", "[3]"});
  expect_error([&] { ops::conv2d(x, w, {}, 0); }, {"stride", "0"});
  expect_error([&] { ops::dense(x, at::ones({2, 5})); }, {"[dense]", "[O,3]", "[2,5]"});
}

TEST(BadUse, Norms) {
  const at::Tensor x = at::ones({1, 6, 4, 4}), w = at::ones({6});
  expect_error([&] { ops::group_norm(x, 4, w, w); }, {"[group_norm]", "C = 6", "4"});
  expect_error([&] { ops::group_norm(x, 0, w, w); }, {"[group_norm]", "C = 6", "0"});
  expect_error([&] { ops::group_norm(x, 3, at::ones({5}), w); }, {"weight", "[6]", "[5]"});
  expect_error([&] { ops::group_norm(at::ones({6, 4, 4}), 3, w, w); }, {"[N,C,H,W]", "[6,4,4]"});
  expect_error([&] { ops::layer_norm(x, w, at::ones({6}, at::kDouble)); }, {"[layer_norm]", "bias", "float64"});
  expect_error([&] { add_layer_norm(x, at::ones({1, 6, 4, 5}), w, w); }, {"[add_layer_norm]", "y", "[1,6,4,5]"});
  expect_error([&] { add_activate(x, at::ones({1}), Activation::relu); }, {"[add_activate]", "[1]"});
  expect_error([] { parse_activation("gelo"); }, {"gelu", "'gelo'"});
}

TEST(BadUse, InstructionSet) {
  expect_error([] { force_isa("AVX9"); }, {"[force_isa]", "AVX9"});
}

}  // namespace
}  // namespace convssm::ops::testing
