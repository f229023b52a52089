// The law of futures for Perceiver AR: contexts in pieces, futures alone and in batches, on two threads, stopped and resumed, with
// latents that are rebuilt within frames and a context that slides.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <nlohmann/json.hpp>

#include "tests/models/code_golden.h"

namespace convssm::models {
namespace {

using testing::distance;
using testing::expect_error;

constexpr int64_t kWordSeen = 4, kWordComing = 9, kWordSide = 3;  // 9 codes a frame

// Caches of 16 latents are rebuilt in most frames, those of 40 in some; of 117 codes 50 are in sight.
nlohmann::json word_section(int64_t latents) {
  return {{"name", "perceiver_ar"},
          {"tokenizer", testing::shades(6, kWordSide, kWordSide, 2)},
          {"features", 16},
          {"layers", 2},
          {"heads", 2},
          {"latents", latents},
          {"context", 50},
          {"axes", latents == 40},
          {"actions", 3}};
}

std::shared_ptr<Model> word_model(const nlohmann::json& section) {
  const auto model = make_model(section, {1, kWordSide, kWordSide});
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

struct WordClips {
  at::Tensor video, actions;  // of context and future

  explicit WordClips(int64_t clips) {
    const std::vector<int64_t> sizes{clips, kWordSeen + kWordComing, kWordSide, kWordSide};
    video = (testing::some_codes(sizes, 6, 1).to(at::kDouble) / 2.5 - 1).unsqueeze(2);
    actions = testing::some_codes({clips, kWordSeen + kWordComing}, 3, 2);
  }
  Clips context(int64_t first, int64_t count, int64_t frames = kWordSeen) const {
    return {video.slice(0, first, first + count).slice(1, 0, frames),
            actions.slice(0, first, first + count).slice(1, 0, frames)};
  }
  at::Tensor coming(int64_t first, int64_t count) const {
    return actions.slice(0, first, first + count).slice(1, kWordSeen);
  }
};

at::Tensor word_run(Forecaster& forecaster, State& state, const at::Tensor& coming, int64_t first, int64_t frames) {
  std::vector<at::Tensor> all;
  for (int64_t k = first; k < first + frames; ++k) {
    Forecast out = forecaster.next(state, coming.select(1, k));
    all.push_back(out.frame);
    state = out.state;
  }
  return at::stack(all, 1);
}

at::Tensor word_future(Model& model, const WordClips& clips, int64_t first, int64_t count, const Seeds& seeds) {
  State state = forecaster_of(model).start(clips.context(first, count), seeds);
  return word_run(forecaster_of(model), state, clips.coming(first, count), 0, kWordComing);
}

void expect_equal_states(const State& a, const State& b) {
  ASSERT_EQ(a.items().size(), b.items().size());
  for (const auto& [name, value] : a.items()) EXPECT_TRUE(value.equal(b.get(name))) << name;
}

class LawOfWords : public ::testing::TestWithParam<int64_t> {
 protected:
  nlohmann::json section() const { return word_section(GetParam()); }
};

TEST_P(LawOfWords, AFutureIsTheSameAloneInABatchOnTwoThreadsAndResumed) {
  const auto model = word_model(section());
  const WordClips clips(3);
  const Seeds seeds = {5, 1, 5};
  const int before = at::get_num_threads();
  at::set_num_threads(1);
  const at::Tensor together = word_future(*model, clips, 0, 3, seeds);
  at::set_num_threads(2);
  EXPECT_TRUE(word_future(*model, clips, 0, 3, seeds).equal(together));
  at::set_num_threads(before);
  for (int64_t i = 0; i < 3; ++i) {
    const at::Tensor alone = word_future(*model, clips, i, 1, {seeds[static_cast<size_t>(i)]});
    EXPECT_TRUE(alone[0].equal(together[i])) << i;
  }
  Forecaster& forecaster = forecaster_of(*model);
  const State state = forecaster.start(clips.context(0, 3), seeds);
  EXPECT_EQ(forecaster.clips_in(state), 3);
  State end = state;
  word_run(forecaster, end, clips.coming(0, 3), 0, kWordComing);
  for (int64_t cut = 1; cut < kWordComing; ++cut) {
    State now = state;
    const at::Tensor first = word_run(forecaster, now, clips.coming(0, 3), 0, cut);
    State saved = now.clone();
    word_run(forecaster, now, clips.coming(0, 3), cut, 1);  // what goes on from a state does not change it
    const auto other = word_model(section());
    const at::Tensor rest = word_run(forecaster_of(*other), saved, clips.coming(0, 3), cut, kWordComing - cut);
    EXPECT_TRUE(at::cat({first, rest}, 1).equal(together)) << cut;
    expect_equal_states(saved, end);  // bit for bit, not only in the codes that were drawn
  }
  EXPECT_TRUE(forecaster.draws());
}

// What goes on from a state leaves its tensors as they are, although steps write into their caches.
TEST_P(LawOfWords, AStateIsAValue) {
  const auto model = word_model(section());
  Forecaster& forecaster = forecaster_of(*model);
  const WordClips clips(2);
  State state = forecaster.start(clips.context(0, 2), {3, 4});
  for (int64_t k = 0; k < kWordComing; ++k) {
    const State copy = state.clone();
    const Forecast out = forecaster.next(state, clips.coming(0, 2).select(1, k));
    forecaster.observe(out.state, clips.video.select(1, kWordSeen + k), {});
    forecaster.observe(state, clips.video.select(1, kWordSeen + k), {});
    expect_equal_states(state, copy);
    state = out.state;
  }
}

TEST_P(LawOfWords, AContextInPiecesIsTheSameContext) {
  const auto model = word_model(section());
  Forecaster& forecaster = forecaster_of(*model);
  const WordClips clips(2);
  const at::Tensor whole = word_future(*model, clips, 0, 2, {3, 4});
  for (int64_t cut = 1; cut < kWordSeen; ++cut) {
    State state = forecaster.start(clips.context(0, 2, cut), {3, 4});
    for (int64_t k = cut; k < kWordSeen; ++k)
      state = forecaster.observe(state, clips.video.select(1, k), clips.actions.select(1, k));
    EXPECT_TRUE(word_run(forecaster, state, clips.coming(0, 2), 0, kWordComing).equal(whole)) << cut;
  }
}

TEST_P(LawOfWords, ATrueFrameTakesThePlaceOfItsForecast) {
  const auto model = word_model(section());
  Forecaster& forecaster = forecaster_of(*model);
  const WordClips clips(2);
  const int64_t frames = kWordSeen + kWordComing - 1;
  State state = forecaster.start(clips.context(0, 2, 1), {3, 4});
  for (int64_t k = 1; k < frames; ++k) {
    state = forecaster.next(state, clips.actions.select(1, k)).state;
    state = forecaster.observe(state, clips.video.select(1, k), data::masked_like(clips.actions.select(1, k)));
    const State whole = forecaster.start(clips.context(0, 2, k + 1), {3, 4});
    for (const auto& [name, value] : whole.items()) {
      const at::Tensor found = state.get(name);
      const int64_t kept =
          name == "inputs.k" || name == "inputs.v" ? value.size(2) : 0;  // it may have more than is seen
      const at::Tensor last = kept > 0 ? found.slice(2, found.size(2) - kept) : found;
      EXPECT_LT(distance(last, value), 1e-9) << name << " after " << k;
    }
  }
}

// However long a future: no more than the context is kept, and it does not matter what was before.
TEST_P(LawOfWords, ALongFutureHasAStateOfOneSize) {
  const auto model = word_model(section());
  Forecaster& forecaster = forecaster_of(*model);
  const WordClips clips(1);
  State state = forecaster.start(clips.context(0, 1), {3});
  int64_t most = 0;
  for (int64_t k = 0; k < 40; ++k) {
    state = forecaster.next(state, at::full({1}, k % 3, at::kLong)).state;
    most = std::max(most, state.get("inputs.k").size(2));
    EXPECT_LE(state.get("layer1.v").size(2), GetParam());
  }
  EXPECT_LE(most, 50 + kWordSide * kWordSide);
  EXPECT_GE(most, 50 - kWordSide * kWordSide);
}

// Only differences of positions matter, so there is no last one. 13 frames are 72 codes less than 21: rebuilds are in phase.
TEST(PerceiverArFutures, DoNotKnowWhatIsOutOfSight) {
  const auto model = word_model(word_section(16));
  Forecaster& forecaster = forecaster_of(*model);
  const at::Tensor video = (testing::some_codes({1, 21, 3, 3}, 6, 1).to(at::kDouble) / 2.5 - 1).unsqueeze(2),
                   actions = testing::some_codes({1, 21}, 3, 2);
  const State all = forecaster.start({video, actions}, {3}),
              last = forecaster.start({video.slice(1, 8), actions.slice(1, 8)}, {3});
  ASSERT_LT(last.get("inputs.v").size(2), 50) << "the context has slid";
  for (const char* name : {"inputs.v", "layer0.v", "layer1.v"}) {
    EXPECT_LT(distance(all.get(name), last.get(name)), 1e-9) << name;
  }
}

TEST_P(LawOfWords, SeedsActionsAndContextsMatter) {
  const auto model = word_model(section());
  Forecaster& forecaster = forecaster_of(*model);
  const WordClips clips(1);
  const at::Tensor first = word_future(*model, clips, 0, 1, {1});
  EXPECT_FALSE(word_future(*model, clips, 0, 1, {2}).equal(first));
  State state = forecaster.start(clips.context(0, 1), {1});
  EXPECT_FALSE(word_run(forecaster, state, 2 - clips.coming(0, 1), 0, kWordComing).equal(first));
  state = forecaster.start(clips.context(0, 1), {1});
  EXPECT_FALSE(word_run(forecaster, state, data::masked_like(clips.coming(0, 1)), 0, kWordComing).equal(first));
  Clips other = clips.context(0, 1);
  other.video = -other.video;
  state = forecaster.start(other, {1});
  EXPECT_FALSE(word_run(forecaster, state, clips.coming(0, 1), 0, kWordComing).equal(first));
  nlohmann::json likely = section();
  likely["top_k"] = 1;
  const auto sure = word_model(likely);
  EXPECT_FALSE(forecaster_of(*sure).draws());
  EXPECT_TRUE(word_future(*sure, clips, 0, 1, {1}).equal(word_future(*sure, clips, 0, 1, {2})));
}

TEST_P(LawOfWords, StatesOfOthersAreRefused) {
  const auto model = word_model(section());
  Forecaster& forecaster = forecaster_of(*model);
  const State good = forecaster.start(WordClips(2).context(0, 2), {});
  const auto refused = [&](const char* name, const at::Tensor& value, const std::vector<std::string>& parts) {
    State bad = good;
    bad.set(name, value);
    expect_error([&] { forecaster.next(bad, {}); }, parts);
    expect_error([&] { forecaster.clips_in(bad); }, parts);
  };
  refused("codes", at::zeros({2, 3, 3}, at::kLong), {"codes", "[2,3,3]"});
  refused("codes", at::full_like(good.get("codes"), 6), {"codes of 0 to 5"});
  refused("random", at::tensor({1, 4, 2, 5}, at::kLong).view({2, 2}), {"same number of frames"});
  refused("random", at::tensor({1, 0, 2, 0}, at::kLong).view({2, 2}), {"at least 1"});
  refused("inputs.k", at::zeros({2, 2, 3, 8}), {"inputs.k", "[2,2,3,8]"});
  refused("layer1.v", good.get("layer1.v").slice(0, 0, 1), {"layer1.v", "2 clips", "1"});
  refused("layer1.k", at::zeros({2, 2, 37, 8}), {"layer1.k"});
  State less;
  for (const auto& [name, value] : good.items())
    if (name != "layer0.k") less.set(name, value);
  expect_error([&] { forecaster.next(less, {}); }, {"no layer0.k"});
  expect_error([&] { forecaster.next({}, {}); }, {"empty"});
  expect_error([&] { forecaster.observe({}, at::zeros({1, 1, 3, 3}), {}); }, {"empty"});
  expect_error([&] { forecaster.observe(good, at::zeros({1, 1, 3, 3}, at::kDouble), {}); }, {"each of 2 clips"});
  expect_error([&] { forecaster.start({}, {}); }, {"at least 1 frame"});
}

INSTANTIATE_TEST_SUITE_P(All, LawOfWords, ::testing::Values(16, 40),
                         [](const auto& i) { return "latents_" + std::to_string(i.param); });

// Which generation sees as a model that diverged.
TEST(PerceiverArFutures, AreNotNumbersWhereTheModelSaysNone) {
  const auto model = word_model(word_section(16));
  torch::NoGradGuard no_grad;
  model->named_parameters()["network.logits.bias"].fill_(std::nan(""));
  Forecaster& forecaster = forecaster_of(*model);
  const State state = forecaster.start(WordClips(1).context(0, 1), {});
  EXPECT_TRUE(at::isnan(forecaster.next(state, {}).frame).all().item<bool>());
}

}  // namespace
}  // namespace convssm::models
