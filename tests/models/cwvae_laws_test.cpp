// The law of futures for CW-VAE on pixels and on codes: contexts of every length and in pieces, futures alone and in batches,
// on two threads, stopped and resumed.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <nlohmann/json.hpp>

#include "tests/models/code_golden.h"

namespace convssm::models {
namespace {

using testing::distance;
using testing::expect_error;

constexpr int64_t kClockSeen = 6, kClockComing = 7, kClockSide = 8;  // windows of 4 frames

nlohmann::json clock_section(bool codes) {
  nlohmann::json section = {{"name", "cwvae"},    {"levels", 3},         {"factor", 2},  {"stochastic", 3},
                            {"deterministic", 6}, {"embedding", 5},      {"filters", 2}, {"dense_features", 7},
                            {"actions", 3},       {"action_features", 2}};
  if (codes) section["tokenizer"] = testing::shades(6, kClockSide, kClockSide, 3);
  return section;
}

std::shared_ptr<Model> clock_model(const nlohmann::json& section) {
  const auto model = make_model(section, {1, kClockSide, kClockSide});
  torch::NoGradGuard no_grad;
  uint64_t seed = 0;
  for (auto& item : model->named_parameters()) {
    if (item.key().find("tokenizer") != std::string::npos) continue;
    item.value().add_(0.3 * testing::randn(item.value().sizes(), ++seed).to(at::kFloat));
  }
  model->to(at::kDouble);
  model->eval();
  return model;
}

struct ClockClips {
  at::Tensor video, actions;  // of context and future

  explicit ClockClips(int64_t clips) {
    const std::vector<int64_t> sizes{clips, kClockSeen + kClockComing, kClockSide, kClockSide};
    video = (testing::some_codes(sizes, 6, 1).to(at::kDouble) / 2.5 - 1).unsqueeze(2);
    actions = testing::some_codes({clips, kClockSeen + kClockComing}, 3, 2);
  }
  Clips context(int64_t first, int64_t count, int64_t frames = kClockSeen) const {
    return {video.slice(0, first, first + count).slice(1, 0, frames),
            actions.slice(0, first, first + count).slice(1, 0, frames)};
  }
  at::Tensor coming(int64_t first, int64_t count) const {
    return actions.slice(0, first, first + count).slice(1, kClockSeen);
  }
};

at::Tensor clock_run(Forecaster& forecaster, State& state, const at::Tensor& coming, int64_t first, int64_t frames) {
  std::vector<at::Tensor> all;
  for (int64_t k = first; k < first + frames; ++k) {
    Forecast out = forecaster.next(state, coming.select(1, k));
    all.push_back(out.frame);
    state = out.state;
  }
  return at::stack(all, 1);
}

at::Tensor clock_future(Model& model, const ClockClips& clips, int64_t first, int64_t count, const Seeds& seeds) {
  State state = forecaster_of(model).start(clips.context(first, count), seeds);
  return clock_run(forecaster_of(model), state, clips.coming(first, count), 0, kClockComing);
}

class LawOfClocks : public ::testing::TestWithParam<bool> {
 protected:
  nlohmann::json section() const { return clock_section(GetParam()); }
};

TEST_P(LawOfClocks, AFutureIsTheSameAloneInABatchOnTwoThreadsAndResumed) {
  const auto model = clock_model(section());
  const ClockClips clips(3);
  const Seeds seeds = {5, 1, 5};
  const int before = at::get_num_threads();
  at::set_num_threads(1);
  const at::Tensor together = clock_future(*model, clips, 0, 3, seeds);
  at::set_num_threads(2);
  EXPECT_LT(distance(clock_future(*model, clips, 0, 3, seeds), together), 1e-9);
  at::set_num_threads(before);
  for (int64_t i = 0; i < 3; ++i) {
    const at::Tensor alone = clock_future(*model, clips, i, 1, {seeds[static_cast<size_t>(i)]});
    EXPECT_LT(distance(alone[0], together[i]), 1e-9) << i;
  }
  Forecaster& forecaster = forecaster_of(*model);
  State state = forecaster.start(clips.context(0, 3), seeds);
  EXPECT_EQ(forecaster.clips_in(state), 3);
  const size_t tensors = state.items().size();
  for (int64_t cut = 1; cut < kClockComing; ++cut) {
    State now = state;
    const at::Tensor first = clock_run(forecaster, now, clips.coming(0, 3), 0, cut);
    EXPECT_LE(now.items().size(), tensors + 1) << "of one size, and a mark";
    State saved = now.clone();
    clock_run(forecaster, now, clips.coming(0, 3), cut, 1);  // what goes on from a state does not change it
    const auto other = clock_model(section());
    const at::Tensor rest = clock_run(forecaster_of(*other), saved, clips.coming(0, 3), cut, kClockComing - cut);
    EXPECT_TRUE(at::cat({first, rest}, 1).equal(together)) << cut;
  }
  EXPECT_TRUE(forecaster.draws());
}

TEST_P(LawOfClocks, AContextInPiecesIsTheSameContext) {
  const auto model = clock_model(section());
  Forecaster& forecaster = forecaster_of(*model);
  const ClockClips clips(2);
  const at::Tensor whole = clock_future(*model, clips, 0, 2, {3, 4});
  for (int64_t cut = 1; cut < kClockSeen; ++cut) {
    State state = forecaster.start(clips.context(0, 2, cut), {3, 4});
    for (int64_t k = cut; k < kClockSeen; ++k)
      state = forecaster.observe(state, clips.video.select(1, k), clips.actions.select(1, k));
    EXPECT_LT(distance(clock_run(forecaster, state, clips.coming(0, 2), 0, kClockComing), whole), 1e-9) << cut;
  }
}

TEST_P(LawOfClocks, ATrueFrameTakesThePlaceOfItsForecast) {
  const auto model = clock_model(section());
  Forecaster& forecaster = forecaster_of(*model);
  const ClockClips clips(2);
  State state = forecaster.start(clips.context(0, 2, 1), {3, 4});
  for (int64_t k = 1; k < kClockSeen; ++k) {
    state = forecaster.next(state, clips.actions.select(1, k)).state;
    state = forecaster.observe(state, clips.video.select(1, k), data::masked_like(clips.actions.select(1, k)));
  }
  const at::Tensor whole = clock_future(*model, clips, 0, 2, {3, 4});
  EXPECT_LT(distance(clock_run(forecaster, state, clips.coming(0, 2), 0, kClockComing), whole), 1e-9);
}

TEST_P(LawOfClocks, SeedsActionsAndContextsMatter) {
  const auto model = clock_model(section());
  Forecaster& forecaster = forecaster_of(*model);
  const ClockClips clips(1);
  const at::Tensor first = clock_future(*model, clips, 0, 1, {1});
  EXPECT_FALSE(clock_future(*model, clips, 0, 1, {2}).equal(first));
  State state = forecaster.start(clips.context(0, 1), {1});
  EXPECT_FALSE(clock_run(forecaster, state, 2 - clips.coming(0, 1), 0, kClockComing).equal(first));
  state = forecaster.start(clips.context(0, 1), {1});
  EXPECT_FALSE(clock_run(forecaster, state, data::masked_like(clips.coming(0, 1)), 0, kClockComing).equal(first));
  Clips other = clips.context(0, 1);
  other.video = -other.video;
  state = forecaster.start(other, {1});
  EXPECT_FALSE(clock_run(forecaster, state, clips.coming(0, 1), 0, kClockComing).equal(first));
  nlohmann::json means = section();
  means["mean_only"] = true;
  const auto sure = clock_model(means);
  EXPECT_FALSE(forecaster_of(*sure).draws());
  EXPECT_TRUE(clock_future(*sure, clips, 0, 1, {1}).equal(clock_future(*sure, clips, 0, 1, {2})));
}

TEST_P(LawOfClocks, StatesOfOthersAreRefused) {
  const auto model = clock_model(section());
  Forecaster& forecaster = forecaster_of(*model);
  const State good = forecaster.start(ClockClips(2).context(0, 2), {});
  const auto refused = [&](const char* name, const at::Tensor& value, const std::vector<std::string>& parts) {
    State bad = good;
    bad.set(name, value);
    expect_error([&] { forecaster.next(bad, {}); }, parts);
    expect_error([&] { forecaster.clips_in(bad); }, parts);
  };
  refused("features", at::zeros({2, 3, 5}), {"features", "[2,3,5]"});
  refused("now.z1", at::zeros({3, 3}), {"now.z1", "2 clips", "3"});
  refused("seen", at::zeros({3}, at::kLong), {"seen", "[4]", "[3]"});
  refused("random", at::tensor({1, 6, 2, 5}, at::kLong).view({2, 2}), {"same number of frames"});
  expect_error([&] { forecaster.next({}, {}); }, {"empty"});
  expect_error([&] { forecaster.observe(good, at::zeros({1, 1, 8, 8}, at::kDouble), {}); }, {"each of 2 clips"});
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
