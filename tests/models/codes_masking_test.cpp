// What a training step of the models of codes leaves to chance, and how tokens and codes are drawn.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "convssm/models/clip_random.h"
#include "convssm/models/codes/code_loss.h"
#include "convssm/models/codes/masking.h"
#include "convssm/models/teco/draft_and_revise.h"
#include "convssm/models/teco/mask_schedule.h"
#include "tests/support.h"

namespace convssm::models {
namespace {

using testing::distance;
using testing::expect_error;
using testing::randn;

TEST(MaskSchedule, HidesTheShareOfItsName) {
  const auto hidden = [](const char* name, double u, double power = 2) {
    return MaskSchedule{name, power}.hidden(u, 64);
  };
  EXPECT_EQ(hidden("cosine", 0), 64);
  EXPECT_EQ(hidden("cosine", 0.5), 45);  // floor(64 cos(pi/4)) = floor(45.25)
  EXPECT_EQ(hidden("cosine", 2.0 / 3), 32 - 0);
  EXPECT_EQ(hidden("cosine", 1), 1);
  EXPECT_EQ(hidden("uniform", 0.25), 48);
  EXPECT_EQ(hidden("pow", 0.5), 48);
  EXPECT_EQ(hidden("pow", 0.5, 3), 56);
  EXPECT_EQ(hidden("log", 0.5), 10);   // 64 / 6 bits
  EXPECT_EQ(hidden("log", 1e-9), 64);  // no more than all
  EXPECT_EQ(hidden("exp", 0.5), 56);   // 64 (1 - 1/8)
  EXPECT_EQ(hidden("exp", 1), 1);
  EXPECT_EQ(MaskSchedule{}.hidden(0.3, 1), 1);
  expect_error([] { MaskSchedule{"cosin"}.check(); }, {"maskgit.schedule", "cosin", "cosine"});
  expect_error([] { (MaskSchedule{"pow", 0}.check()); }, {"maskgit.power", "positive"});
}

TEST(MaskSchedule, EveryFrameDrawsItsOwnNumberAndPlaces) {
  const at::Tensor masks = draw_masks({}, 4000, 4, 4, Stream(1, "test"));
  EXPECT_TRUE(masks.equal(draw_masks({}, 4000, 4, 4, Stream(1, "test"))));
  EXPECT_FALSE(masks.equal(draw_masks({}, 4000, 4, 4, Stream(2, "test"))));
  const at::Tensor counts = masks.flatten(1).sum(1);
  EXPECT_EQ(counts.min().item<int64_t>(), 1);
  EXPECT_EQ(counts.max().item<int64_t>(), 15) << "16 needs u = 0";
  double expected = 0;  // of floor(16 cos(pi u / 2)), at least 1, over u
  for (int i = 0; i < 100000; ++i) expected += static_cast<double>(MaskSchedule{}.hidden((i + 0.5) / 100000, 16)) / 1e5;
  EXPECT_NEAR(counts.to(at::kDouble).mean().item<double>(), expected, 0.2);
  const at::Tensor places = masks.to(at::kDouble).mean(0);  // none is preferred
  EXPECT_LT(distance(places, at::full({4, 4}, expected / 16, at::kDouble)), 0.03);
}

TEST(DropLoss, DrawsSomeFramesWithReplacement) {
  MaskingOptions options;
  options.drop_loss = 0.9;
  std::map<int64_t, int> seen;
  for (uint64_t step = 0; step < 400; ++step) {
    const Choices choices = draw_choices(options, 299, Stream(1, "test", step));
    ASSERT_EQ(choices.frames.size(), 29u);
    for (const int64_t s : choices.frames) ++seen[s];
  }
  EXPECT_EQ(seen.begin()->first, 0);
  EXPECT_EQ(seen.rbegin()->first, 298);
  EXPECT_GT(seen.size(), 290u);
  EXPECT_LT(seen.rbegin()->second, 75) << "the last one is no more likely than others (38.8)";
  EXPECT_EQ(draw_choices(options, 5, Stream(1)).frames.size(), 1u);
  EXPECT_EQ(draw_choices(options, 300, Stream(1)).frames.size(), 30u) << "0.1 is 0.1";
  options.drop_loss = 0;
  EXPECT_EQ(draw_choices(options, 4, Stream(1)).frames, (std::vector<int64_t>{0, 1, 2, 3}));
}

TEST(CausalMasking, HidesWhatComesAfterTheContextFromClipsWithActions) {
  const MaskingOptions options{2, -2, 0, false};
  const at::Tensor features = randn({4 * 3, 2, 1, 1}, 1), blind = at::tensor({0, 1, 0}, at::kLong).to(at::kBool);
  const at::Tensor hidden = hide_frames(features, 3, options, blind).view({4, 3, 2});
  const at::Tensor was = features.view({4, 3, 2});
  for (int64_t t = 0; t < 4; ++t) {
    for (int64_t b = 0; b < 3; ++b) {
      const at::Tensor expected = t >= 2 && b != 1 ? at::full({2}, -2, at::kDouble) : was[t][b];
      EXPECT_TRUE(hidden[t][b].equal(expected)) << t << " " << b;
    }
  }
  EXPECT_TRUE(hide_frames(features, 3, MaskingOptions{}, blind).equal(features));
}

TEST(CausalMasking, KnowsWhichClipsHaveActions) {
  const at::Tensor whole = at::tensor({0, 1, -1, -1, 2, -1}, at::kLong).view({3, 2});
  EXPECT_TRUE(blind_rows(whole, 3).equal(at::tensor({0, 1, 0}, at::kLong).to(at::kBool)));
  EXPECT_TRUE(blind_rows({}, 2).equal(at::ones({2}, at::kBool)));
  at::Tensor numbers = at::zeros({2, 3, 2});
  numbers[1].fill_(NAN);
  numbers[0][1].fill_(NAN);
  EXPECT_TRUE(blind_rows(numbers, 2).equal(at::tensor({0, 1}, at::kLong).to(at::kBool)));
  EXPECT_TRUE(masked_rows(numbers.select(1, 1), 2, {}).equal(at::ones({2}, at::kBool)));
  EXPECT_TRUE(masked_rows(at::tensor({4, -1}, at::kLong), 2, {}).equal(at::tensor({0, 1}, at::kLong).to(at::kBool)));
}

TEST(CausalMasking, WeightsAreThoseOfTwoMeans) {
  const at::Tensor blind = at::tensor({1, 0}, at::kLong).to(at::kBool);
  // Predictions 0, 2, 3, 3; with a context of 3 frames number 2 is the first that counts for the second clip.
  const at::Tensor weights = frame_weights({0, 2, 3, 3}, 3, blind);
  const double quarter = 1.0 / 4 / 2, third = 1.0 / 3 / 2;
  const at::Tensor expected =
      at::tensor({quarter, 0.0, quarter, third, quarter, third, quarter, third}, at::kDouble).view({4, 2});
  EXPECT_LT(distance(weights, expected), 1e-15);
  EXPECT_EQ(frame_weights({0, 1}, 9, at::zeros({2}, at::kBool)).abs().max().item<double>(), 0) << "none is late";
  EXPECT_LT(distance(frame_weights({0, 1}, 0, blind), at::full({2, 2}, 0.25, at::kDouble)), 1e-15);
}

TEST(CodeLoss, IsTheCrossEntropyOfSmoothedLabels) {
  const at::Tensor logits = 3 * randn({2, 5, 2, 3}, 1), labels = at::arange(12).view({2, 2, 3}).remainder(5);
  for (const double smoothing : {0.0, 0.1}) {
    const at::Tensor y = (1 - smoothing) * at::one_hot(labels, 5).to(at::kDouble) + smoothing / 5;
    const at::Tensor expected = -(y * logits.permute({0, 2, 3, 1}).log_softmax(-1)).sum(-1);
    EXPECT_LT(distance(cross_entropy(logits, labels, smoothing), expected), 1e-12);
  }
  EXPECT_LT(testing::gradient_error([&] { return cross_entropy(logits, labels, 0.1).sum(); }, {logits}), 1e-8);
  EXPECT_NEAR(label_entropy(1024, 0.01), 5.953012371410032, 1e-12);
  EXPECT_NEAR(label_entropy(1024, 0), 5.933148408912406, 1e-12);
  expect_error([&] { cross_entropy(logits, labels[0], 0); }, {"labels"});
}

at::Tensor shares(const at::Tensor& logits, const SamplingOptions& options) {
  at::Tensor position = first_position({3}, 1);
  const at::Tensor many = logits.view({1, -1, 1, 1}).expand({1, logits.size(0), 100, 200});
  return draw_codes(position, many, options).flatten().bincount({}, logits.size(0)).to(at::kDouble) / 20000;
}

TEST(DrawCodes, FollowsTemperatureAndTopK) {
  const at::Tensor logits = at::tensor({0.5, 2.0, -1.0, 1.0}, at::kDouble);
  EXPECT_LT(distance(shares(logits, {}), logits.softmax(0)), 0.012);
  EXPECT_LT(distance(shares(logits, {0.5, 0}), (2 * logits).softmax(0)), 0.012);
  EXPECT_LT(distance(shares(logits, {2.0, 0}), (logits / 2).softmax(0)), 0.012);
  at::Tensor two = logits.clone();
  two[0] = two[2] = -1e9;
  EXPECT_LT(distance(shares(logits, {1.0, 2}), two.softmax(0)), 0.012);
  EXPECT_TRUE(shares(logits, {1.0, 1}).equal(at::tensor({0, 1, 0, 0}, at::kDouble)));
  EXPECT_TRUE(shares(logits, {1e-6, 0}).equal(at::tensor({0, 1, 0, 0}, at::kDouble)));
  EXPECT_LT(distance(shares(logits, {1.0, 9}), logits.softmax(0)), 0.012) << "more than there are: all";
}

// A prior that records what it is asked: what is hidden, and at which places.
struct AskedPrior {
  int64_t n, hidden;
  std::vector<int64_t> sizes;
  std::vector<at::Tensor> tokens, places;
  PlaceLogits logits() {
    return [this](const at::Tensor& now, const at::Tensor& at) {
      tokens.push_back(now.clone()), places.push_back(at.clone());
      sizes.push_back(at.size(1));
      return randn({n, hidden}, 5).index_select(0, at.flatten()).view({at.size(0), at.size(1), hidden});
    };
  }
};

TEST(DraftAndRevise, DrawsEveryTokenInEveryRound) {
  AskedPrior prior{64, 10, {}, {}, {}};
  at::Tensor position = first_position({1, 2}, 2);
  const at::Tensor tokens = draft_and_revise(position, 64, 10, {}, prior.logits());
  EXPECT_EQ(DraftOptions{}.passes(), 24);
  ASSERT_EQ(prior.sizes, std::vector<int64_t>(24, 8));
  EXPECT_TRUE(tokens.ge(0).logical_and(tokens < 10).all().item<bool>());
  for (int64_t b = 0; b < 2; ++b) {
    for (size_t round = 0; round < 3; ++round) {
      std::set<int64_t> drawn;
      for (size_t c = 8 * round; c < 8 * round + 8; ++c) {
        const at::Tensor asked = prior.places[c][b], now = prior.tokens[c][b];
        for (int64_t i = 0; i < 8; ++i) drawn.insert(asked[i].item<int64_t>());
        EXPECT_TRUE(now.index_select(0, asked).eq(10).all().item<bool>()) << "hidden while they are drawn";
        const int64_t still = round == 0 ? 64 - 8 * static_cast<int64_t>(c) : 8;
        EXPECT_EQ(now.eq(10).sum().item<int64_t>(), still);
      }
      EXPECT_EQ(drawn.size(), 64u);
    }
  }
  EXPECT_FALSE(prior.places[0][0].equal(prior.places[0][1])) << "orders of their own";
  EXPECT_FALSE(prior.places[0][0].equal(prior.places[8][0])) << "in every round";
}

TEST(DraftAndRevise, ChunksDifferByOneAtMost) {
  AskedPrior prior{7, 4, {}, {}, {}};
  at::Tensor position = first_position({1}, 1);
  draft_and_revise(position, 7, 4, {3, 2, 1, {}}, prior.logits());
  EXPECT_EQ(prior.sizes, (std::vector<int64_t>{3, 2, 2, 4, 3}));
  prior.sizes.clear();
  draft_and_revise(position, 7, 4, {100, 1, 0, {}}, prior.logits());
  EXPECT_EQ(prior.sizes, std::vector<int64_t>(7, 1)) << "no more chunks than tokens";
}

TEST(DraftAndRevise, AClipIsDrawnAsItIsAlone) {
  const auto drawn = [](const Seeds& seeds) {
    AskedPrior prior{12, 5, {}, {}, {}};
    at::Tensor position = first_position(seeds, static_cast<int64_t>(seeds.size()));
    return draft_and_revise(position, 12, 5, {}, prior.logits());
  };
  const at::Tensor together = drawn({4, 9, 4, 2});
  EXPECT_TRUE(together[1].equal(drawn({9})[0]));
  EXPECT_TRUE(together[3].equal(drawn({2})[0]));
  EXPECT_TRUE(together[0].equal(together[2]));
  EXPECT_FALSE(together[0].equal(together[1]));
}

}  // namespace
}  // namespace convssm::models
