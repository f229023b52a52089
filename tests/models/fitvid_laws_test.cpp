// The law of futures for FitVid on pixels and on codes, with skips of both kinds: futures alone and in batches, on two threads,
// stopped and resumed, contexts in pieces.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <nlohmann/json.hpp>

#include "tests/models/futures_laws.h"

namespace convssm::models {
namespace {

using testing::distance;
using testing::expect_error;
using testing::FuturesLaws;

struct ShownCase {
  const char* name;
  bool codes, concat, stochastic;
};

nlohmann::json shown_section(const ShownCase& c) {
  return testing::law_section({{"name", "fitvid"},
                               {"stages", 2},
                               {"filters", 3},
                               {"expansion", 2},
                               {"hidden", 6},
                               {"memory", 7},
                               {"latent", 3},
                               {"skips", c.concat ? "concat" : "residual"},
                               {"stochastic", c.stochastic}},
                              c.codes);
}

// What is told has to be seen in codes.
std::shared_ptr<Model> shown_model(const nlohmann::json& section) {
  const auto model = testing::law_model(section);
  torch::NoGradGuard no_grad;
  auto parameters = model->named_parameters();
  for (const char* name : {"actions", "predictor.mean.weight", "decoder.first.weight", "decoder.last.weight"}) {
    parameters[name].mul_(4);
  }
  return model;
}

class LawOfFitVid : public ::testing::TestWithParam<ShownCase> {
 protected:
  FuturesLaws laws_{shown_section(GetParam()), {.seen = 4, .coming = 5, .make = shown_model}};
};

TEST_P(LawOfFitVid, AFutureIsTheSameAloneInABatchOnTwoThreadsAndResumed) {
  laws_.alone_in_a_batch_on_two_threads_and_resumed();
  EXPECT_EQ(laws_.forecaster().draws(), GetParam().stochastic || GetParam().codes);
}

TEST_P(LawOfFitVid, AFutureTakesRunningStatisticsInTrainingModeToo) {
  const at::Tensor expected = laws_.future(0, 3, {1, 2, 3});
  laws_.model().train();
  EXPECT_TRUE(laws_.future(0, 3, {1, 2, 3}).equal(expected));
}

TEST_P(LawOfFitVid, AContextInPiecesIsTheSameContext) { laws_.a_context_in_pieces_is_the_same(); }

// More frames than the encoder sees at once.
TEST_P(LawOfFitVid, ALongContextIsTheSameInPieces) {
  Forecaster& forecaster = laws_.forecaster();
  const at::Tensor video = laws_.context(0, 3, 9).video.flatten(0, 1).repeat({2, 1, 1, 1}).unsqueeze(0);  // 54 frames
  const Clips all{video, at::ones({1, video.size(1)}, at::kLong)};
  State pieces = forecaster.start(data::frames_of(all, 0, 17), {8});
  for (int64_t k = 17; k < video.size(1); ++k) {
    pieces = forecaster.observe(pieces, video.select(1, k), all.actions.select(1, k));
  }
  const at::Tensor coming = laws_.coming(0, 1);
  EXPECT_LT(distance(laws_.future_from(pieces, coming), laws_.future_from(forecaster.start(all, {8}), coming)), 1e-9);
}

TEST_P(LawOfFitVid, ATrueFrameTakesThePlaceOfItsForecast) { laws_.a_true_frame_takes_the_place_of_its_forecast(); }

TEST_P(LawOfFitVid, AnotherSeedIsAnotherBranch) { laws_.another_seed_is_another_branch(); }

TEST_P(LawOfFitVid, SeedsActionsAndContextsMatter) { laws_.seeds_actions_and_contexts_matter(); }

TEST_P(LawOfFitVid, StatesOfOthersAreRefused) {
  laws_.refuses("hidden", at::zeros({2, 5}), {"hidden", "[2,5]"});
  laws_.refuses("predictor.c1", at::zeros({3, 7}), {"predictor.c1", "2 clips", "3"});
  laws_.refuses("skip3", at::zeros({2, 6, 8, 8}), {"skip3", "[2,6,8,8]"});
  laws_.refuses("random", at::zeros({2, 2}), {"random", "float32"});
  laws_.refuses_no_state_and_too_few_frames();
  const State good = laws_.forecaster().start(laws_.context(0, 2, 4), {});
  expect_error([&] { laws_.forecaster().next(good, at::full({2}, 3, at::kLong)); }, {"below model.actions = 3"});
}

INSTANTIATE_TEST_SUITE_P(All, LawOfFitVid,
                         ::testing::Values(ShownCase{"pixels", false, false, true},
                                           ShownCase{"codes", true, false, true},
                                           ShownCase{"sure_pixels", false, true, false},
                                           ShownCase{"codes_beside", true, true, false}),
                         [](const auto& i) { return i.param.name; });

TEST(FitVidOnCodes, TheMostLikelyCodesAreNotDrawn) {
  nlohmann::json section = shown_section({"", true, false, false});
  section["top_k"] = 1;
  const FuturesLaws laws(section, {.seen = 4, .coming = 5, .make = shown_model});
  EXPECT_FALSE(laws.forecaster().draws());
  EXPECT_TRUE(laws.future(0, 1, {1}).equal(laws.future(0, 1, {2})));
}

TEST(FitVidOnCodes, WithoutATokenizerMakesNoFrames) {
  nlohmann::json section = shown_section({"", false, false, true});
  section["codebook"] = {{"count", 6}, {"height", 8}, {"width", 8}, {"features", 3}};
  const auto model = make_model(section, {1, 8, 8});
  EXPECT_EQ(model->as_forecaster(), nullptr);
  EXPECT_EQ(model->as_tokenizer(), nullptr);
  EXPECT_EQ(model->given_frames(), 1);
  expect_error([&] { model->check_data({{1, 8, 8}, {3, 0}, {}}); }, {"the data has frames"});
  EXPECT_NO_THROW(model->check_data({{1, 8, 8}, {3, 0}, {6, 8, 8}}));
}

}  // namespace
}  // namespace convssm::models
