// MaskGit against an independent NumPy computation (tools/golden/make_codes.py), and its gradients.
#include "convssm/nn/maskgit.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "convssm/io/npz.h"
#include "convssm/io/tensor.h"
#include "convssm/nn/watched_plan.h"
#include "tests/support.h"

namespace convssm::nn {
namespace {

using testing::distance;
using testing::randn;

at::Tensor tokens_of_test(at::IntArrayRef shape, int64_t count) {
  Stream stream(4, "tokens");
  at::Tensor tokens = at::empty(shape, at::kLong);
  for (int64_t i = 0; i < tokens.numel(); ++i) {
    tokens.data_ptr<int64_t>()[i] = static_cast<int64_t>(stream.below(static_cast<uint64_t>(count)));
  }
  return tokens;
}

TEST(MaskGit, GivesTheLogitsOfTheOracle) {
  for (const auto& [name, cond] : {std::pair{"teco_convs5", 8}, std::pair{"teco_transformer", 7}}) {
    const io::NpzFile file(std::string(CONVSSM_SOURCE_DIR) + "/tests/golden/" + name + ".npz");
    const auto read = [&](const std::string& key) { return io::to_tensor(file.read(key)); };
    MaskGit maskgit(MaskGitOptions{9, cond, 2, 3, 6, 10, 2, 2, 12}, Stream(1));
    {
      torch::NoGradGuard no_grad;
      for (auto& item : maskgit->named_parameters()) item.value().copy_(read("param.prior." + item.key()));
    }
    maskgit->to(at::kDouble);
    const at::Tensor logits = maskgit(read("maskgit.tokens"), read("maskgit.cond").to(at::kDouble));
    EXPECT_LT(distance(logits, read("maskgit.logits")), 1e-12);
  }
}

TEST(MaskGit, APlanInBytesIsNearTheOneInFloat32) {
  MaskGit maskgit(MaskGitOptions{.codes = 32,
                                 .cond = 16,
                                 .height = 4,
                                 .width = 4,
                                 .vocabulary = 16,
                                 .features = 32,
                                 .layers = 2,
                                 .heads = 2,
                                 .mlp = 64},
                  Stream(1));
  const at::NoGradGuard no_grad;
  maskgit->eval();
  for (auto& item : maskgit->named_parameters()) {
    if (item.key() == "tokens") item.value().mul_(50);  // what is drawn for training leaves nothing to round
  }
  WatchedPlan plan(2, true, [&](FramePlan& p) { maskgit->plan(p, 5); });
  plan->doors().at("tokens").copy_(tokens_of_test({2, 16}, 33));
  plan->doors().at("places").copy_(at::arange(10).view({2, 5}));
  plan->doors().at("known").copy_(randn({2, 32, 4, 4}, 3));
  plan->run();
  const at::Tensor exact = plan->doors().at("logits").clone();
  EXPECT_TRUE(plan.watching());
  plan.settle();
  EXPECT_FALSE(plan.watching());
  plan->run();  // the doors have their values still
  const at::Tensor found = plan->doors().at("logits");
  EXPECT_LT(distance(found, exact), 0.05 * exact.abs().max().item<double>());
  EXPECT_FALSE(found.equal(exact)) << "not in bytes";
}

TEST(MaskGit, GradientsMatchFiniteDifferences) {
  MaskGit maskgit(MaskGitOptions{4, 2, 2, 2, 3, 5, 1, 1, 4}, Stream(1));  // an odd feature
  maskgit->to(at::kDouble);
  {
    torch::NoGradGuard no_grad;
    uint64_t seed = 1;
    for (auto& p : maskgit->parameters()) p.add_(0.3 * randn(p.sizes(), ++seed));
  }
  const at::Tensor tokens = tokens_of_test({2, 2, 2}, 5), cond = randn({2, 2, 2, 2}, 1);
  const at::Tensor weights = randn({2, 4, 2, 2}, 2);
  std::vector<at::Tensor> inputs = maskgit->parameters();
  inputs.push_back(cond);
  EXPECT_LT(testing::gradient_error([&] { return (maskgit(tokens, cond).tanh() * weights).sum(); }, inputs), 1e-6);
}

TEST(MaskGit, EveryTokenSeesAllOfItsFrameAndNoOther) {
  MaskGit maskgit(MaskGitOptions{5, 0, 2, 3, 4, 8, 1, 2, 8}, Stream(1));
  maskgit->to(at::kDouble);
  torch::NoGradGuard no_grad;
  for (auto& p : maskgit->parameters()) p.add_(0.5 * randn(p.sizes(), 5));
  const at::Tensor tokens = tokens_of_test({2, 2, 3}, 5), none = at::empty({2, 0, 2, 3}, at::kDouble);
  const at::Tensor before = maskgit(tokens, none);
  at::Tensor other = tokens.clone();
  other[1][1][2] = (tokens[1][1][2].item<int64_t>() + 1) % 5;
  const at::Tensor after = maskgit(other, none);
  EXPECT_TRUE(after[0].equal(before[0]));
  EXPECT_GT((after[1] - before[1]).abs().amax(0).min().item<double>(), 1e-6);
  EXPECT_LT(distance(maskgit(tokens.slice(0, 1, 2), none.slice(0, 1, 2))[0], before[1]), 1e-12);
}

TEST(MaskGit, BeginsWithSmallTablesAndSaysWhatDoesNotFit) {
  const MaskGitOptions options{400, 4, 2, 2, 50, 16, 1, 2, 32};
  MaskGit maskgit(options, Stream(1));
  for (const auto& item : maskgit->named_parameters()) {
    if (item.key() != "tokens" && item.key() != "head.weight") continue;
    EXPECT_NEAR(item.value().std().item<double>(), 0.02, 0.002) << item.key();
  }
  EXPECT_EQ(maskgit->hidden_token(), 400);
  EXPECT_EQ(maskgit(at::full({1, 2, 2}, 400, at::kLong), at::zeros({1, 4, 2, 2})).sizes(),
            at::IntArrayRef({1, 400, 2, 2}));
  testing::expect_error([&] { maskgit(at::zeros({1, 2, 3}, at::kLong), at::zeros({1, 4, 2, 2})); }, {"tokens"});
  testing::expect_error([&] { maskgit(at::zeros({1, 2, 2}, at::kLong), at::zeros({1, 3, 2, 2})); }, {"cond"});
  testing::expect_error([&] { MaskGit(MaskGitOptions{1}, Stream(1)); }, {"codes"});
}

}  // namespace
}  // namespace convssm::nn
