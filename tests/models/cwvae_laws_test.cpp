// The law of futures for CW-VAE on pixels and on codes: contexts of every length and in pieces, futures alone and in batches,
// on two threads, stopped and resumed.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <nlohmann/json.hpp>

#include "tests/models/futures_laws.h"

namespace convssm::models {
namespace {

using testing::expect_error;
using testing::FuturesLaws;

// Windows of 4 frames.
nlohmann::json clock_section(bool codes) {
  return testing::law_section({{"name", "cwvae"},
                               {"levels", 3},
                               {"factor", 2},
                               {"stochastic", 3},
                               {"deterministic", 6},
                               {"embedding", 5},
                               {"filters", 2},
                               {"dense_features", 7}},
                              codes);
}

class LawOfClocks : public ::testing::TestWithParam<bool> {
 protected:
  FuturesLaws laws_{clock_section(GetParam())};
};

TEST_P(LawOfClocks, AFutureIsTheSameAloneInABatchOnTwoThreadsAndResumed) {
  laws_.alone_in_a_batch_on_two_threads_and_resumed();
  EXPECT_TRUE(laws_.forecaster().draws());
}

TEST_P(LawOfClocks, AContextInPiecesIsTheSameContext) { laws_.a_context_in_pieces_is_the_same(); }

TEST_P(LawOfClocks, ATrueFrameTakesThePlaceOfItsForecast) { laws_.a_true_frame_takes_the_place_of_its_forecast(); }

TEST_P(LawOfClocks, AnotherSeedIsAnotherBranch) { laws_.another_seed_is_another_branch(); }

TEST_P(LawOfClocks, SeedsActionsAndContextsMatter) {
  laws_.seeds_actions_and_contexts_matter();
  nlohmann::json means = clock_section(GetParam());
  means["mean_only"] = true;
  const FuturesLaws sure(means);
  EXPECT_FALSE(sure.forecaster().draws());
  sure.seeds_actions_and_contexts_matter();
}

TEST_P(LawOfClocks, StatesOfOthersAreRefused) {
  laws_.refuses("features", at::zeros({2, 3, 5}), {"features", "[2,3,5]"});
  laws_.refuses("now.z1", at::zeros({3, 3}), {"now.z1", "2 clips", "3"});
  laws_.refuses("seen", at::zeros({3}, at::kLong), {"seen", "[4]", "[3]"});
  laws_.refuses("random", at::tensor({1, 6, 2, 5}, at::kLong).view({2, 2}), {"same number of frames"});
  laws_.refuses_no_state_and_too_few_frames();
}

INSTANTIATE_TEST_SUITE_P(All, LawOfClocks, ::testing::Values(false, true),
                         [](const auto& i) { return i.param ? "codes" : "pixels"; });

TEST(CwvaeOnCodes, WithoutATokenizerMakesNoFrames) {
  nlohmann::json section = clock_section(false);
  section["codebook"] = {{"count", 6}, {"height", 8}, {"width", 8}, {"features", 3}};
  const auto model = make_model(section, {1, 8, 8});
  EXPECT_EQ(model->as_forecaster(), nullptr);
  EXPECT_EQ(model->as_tokenizer(), nullptr);
  expect_error([&] { model->check_data({{1, 8, 8}, {3, 0}, {}}); }, {"the data has frames"});
  EXPECT_NO_THROW(model->check_data({{1, 8, 8}, {3, 0}, {6, 8, 8}}));
}

}  // namespace
}  // namespace convssm::models
