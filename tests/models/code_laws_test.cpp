// The laws of models and of futures for the models of codes, over every core: contexts in pieces, futures alone and in
// batches, stopped and resumed, many frames at once; and what the options of drawing do.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <nlohmann/json.hpp>

#include "tests/models/code_golden.h"

namespace convssm::models {
namespace {

using testing::distance;
using testing::expect_error;
using testing::some_codes;

constexpr int64_t kSeen = 4, kComing = 4, kShades = 6;

nlohmann::json law_core(const std::string& name) {
  nlohmann::json core = {{"name", name}, {"features", 8}, {"layers", 2}};
  if (name.ends_with("s5") || name == "hybrid") core["state_size"] = 8;
  if (name == "hybrid") core.update({{"heads", 1}, {"window", 3}, {"mlp", 8}});
  if (name == "transformer" || name == "performer") core["heads"] = 2, core["patch"] = 2;
  if (name == "performer") core["random_features"] = 16;
  if (!name.starts_with("conv") && name != "hybrid") core["out_features"] = 6;
  return core;
}

nlohmann::json law_model(const std::string& model, const std::string& core) {
  const int64_t size = model == "teco" ? 8 : 4;
  nlohmann::json section = {{"name", model},
                            {"tokenizer", testing::shades(kShades, size, size, 3)},
                            {"encoder", {{"depths", {4}}}},
                            {"decoder", {{"depths", {6}}, {"blocks", 1}}},
                            {"core", law_core(core)},
                            {"actions", 3},
                            {"action_features", 2}};
  if (model == "teco") {
    section.update({{"encoder", {{"depths", {4, 6}}}},
                    {"decoder", {{"depths", {4, 6}}, {"blocks", 1}}},
                    {"features", 5},
                    {"quantizer", {{"name", "cosine"}, {"size", 8}, {"features", 4}}},
                    {"maskgit",
                     {{"vocabulary", 6},
                      {"features", 8},
                      {"layers", 1},
                      {"heads", 2},
                      {"draft", 3},
                      {"revise", 2},
                      {"rounds", 1}}}});
  }
  return section;
}

// In float64, with parameters that make actions and frames matter.
std::shared_ptr<Model> law_made(const nlohmann::json& section) {
  const auto model = make_model(section, {1, 1, 1});
  torch::NoGradGuard no_grad;
  uint64_t seed = 0;
  for (auto& item : model->named_parameters()) {
    if (item.key().find("tokenizer") == std::string::npos && item.key().find("Lambda") == std::string::npos) {
      item.value().add_(0.3 * testing::randn(item.value().sizes(), ++seed).to(at::kFloat));
    }
  }
  model->to(at::kDouble);
  model->eval();
  return model;
}

struct LawClips {
  at::Tensor video, seen, coming;  // context, its actions, those of the future
};

LawClips law_clips(Model& model, int64_t clips) {
  const CodeFormat grid = model.as_tokenizer()->codes();
  const at::Tensor codes = some_codes({clips, kSeen + kComing, grid.height, grid.width}, kShades, 1);
  const at::Tensor actions = some_codes({clips, kSeen + kComing}, 3, 2);
  return {model.as_tokenizer()->decode(codes), actions.slice(1, 0, kSeen), actions.slice(1, kSeen)};
}

Clips law_context(const LawClips& clips, int64_t first, int64_t count) {
  return {clips.video.slice(0, first, first + count).slice(1, 0, kSeen), clips.seen.slice(0, first, first + count)};
}

at::Tensor law_run(Forecaster& forecaster, State& state, const at::Tensor& coming, int64_t first, int64_t frames) {
  std::vector<at::Tensor> all;
  for (int64_t k = first; k < first + frames; ++k) {
    Forecast out = forecaster.next(state, coming.defined() ? coming.select(1, k) : coming);
    all.push_back(out.frame);
    state = out.state;
  }
  return at::stack(all, 1);
}

at::Tensor law_future(Model& model, const LawClips& clips, int64_t first, int64_t count, const Seeds& seeds) {
  State state = forecaster_of(model).start(law_context(clips, first, count), seeds);
  return law_run(forecaster_of(model), state, clips.coming.slice(0, first, first + count), 0, kComing);
}

class LawOfCodes : public ::testing::TestWithParam<std::tuple<const char*, const char*>> {
 protected:
  nlohmann::json section() const { return law_model(std::get<0>(GetParam()), std::get<1>(GetParam())); }
  nlohmann::json masked(bool like_reference = false) const {
    nlohmann::json json = section();
    json["causal_masking"] = {{"context", 3}};
    json["like_reference"] = like_reference;
    return json;
  }
};

TEST_P(LawOfCodes, AContextInPiecesIsTheSameContext) {
  const auto model = law_made(section());
  Forecaster& forecaster = forecaster_of(*model);
  const LawClips clips = law_clips(*model, 2);
  const at::Tensor whole = law_future(*model, clips, 0, 2, {3, 4});
  for (int64_t cut = 1; cut < kSeen; ++cut) {
    State state = forecaster.start({clips.video.slice(1, 0, cut), clips.seen.slice(1, 0, cut)}, {3, 4});
    for (int64_t k = cut; k < kSeen; ++k) {
      state = forecaster.observe(state, clips.video.select(1, k), clips.seen.select(1, k));
    }
    EXPECT_TRUE(law_run(forecaster, state, clips.coming, 0, kComing).equal(whole)) << cut;
  }
}

TEST_P(LawOfCodes, ATrueFrameTakesThePlaceOfItsForecast) {
  for (const nlohmann::json& json : {section(), masked()}) {
    const auto model = law_made(json);
    Forecaster& forecaster = forecaster_of(*model);
    const LawClips clips = law_clips(*model, 2);
    State state = forecaster.start({clips.video.slice(1, 0, 1), clips.seen.slice(1, 0, 1)}, {});
    for (int64_t k = 1; k < kSeen; ++k) {
      state = forecaster.next(state, clips.seen.select(1, k)).state;
      state = forecaster.observe(state, clips.video.select(1, k), data::masked_like(clips.seen.select(1, k)));
    }
    State whole = forecaster.start(law_context(clips, 0, 2), {});
    whole.set("random", state.get("random"));  // forecasts have drawn
    EXPECT_TRUE(law_run(forecaster, state, clips.coming, 0, kComing)
                    .equal(law_run(forecaster, whole, clips.coming, 0, kComing)));
  }
}

TEST_P(LawOfCodes, AFutureIsTheSameAloneInABatchOnTwoThreadsAndResumed) {
  const auto model = law_made(section());
  const LawClips clips = law_clips(*model, 3);
  const Seeds seeds = {5, 1, 5};
  const int before = at::get_num_threads();
  at::set_num_threads(1);
  const at::Tensor together = law_future(*model, clips, 0, 3, seeds);
  if (std::get<1>(GetParam()) ==
      std::string("convs5")) {  // threads that wait for each other take long on a busy machine
    at::set_num_threads(2);
    EXPECT_TRUE(law_future(*model, clips, 0, 3, seeds).equal(together));
  }
  at::set_num_threads(before);
  for (int64_t i = 0; i < 3; ++i) {
    EXPECT_TRUE(law_future(*model, clips, i, 1, {seeds[static_cast<size_t>(i)]})[0].equal(together[i])) << i;
  }
  Forecaster& forecaster = forecaster_of(*model);
  State state = forecaster.start(law_context(clips, 0, 3), seeds);
  EXPECT_EQ(forecaster.clips_in(state), 3);
  const at::Tensor first = law_run(forecaster, state, clips.coming, 0, 2);
  State saved = state.clone();
  law_run(forecaster, state, clips.coming, 2, 1);  // what goes on from a state does not change it
  const auto other = law_made(section());
  EXPECT_TRUE(at::cat({first, law_run(forecaster_of(*other), saved, clips.coming, 2, kComing - 2)}, 1).equal(together));
  EXPECT_FALSE(law_future(*model, clips, 0, 3, {6, 1, 5})[0].equal(together[0])) << "seeds matter";
  EXPECT_TRUE(forecaster.draws());
}

TEST_P(LawOfCodes, FramesTogetherAreFramesOneByOne) {
  for (const bool like_reference : {false, true}) {
    const auto model = law_made(masked(like_reference));
    Forecaster& forecaster = forecaster_of(*model);
    const LawClips clips = law_clips(*model, 2);
    const State start = forecaster.start(law_context(clips, 0, 2), {3, 4});
    EXPECT_GT(forecaster.frames_at_once(start, clips.coming), 1);
    State state = start;
    const at::Tensor expected = law_run(forecaster, state, clips.coming, 0, kComing);
    Forecast all = forecaster.next_frames(start, clips.coming, kComing);
    EXPECT_TRUE(all.frame.equal(expected));
    Forecast parts = forecaster.next_frames(start, clips.coming.slice(1, 0, 2), 2);
    parts = forecaster.next_frames(parts.state, clips.coming.slice(1, 2, 4), 2);
    EXPECT_TRUE(parts.frame.equal(expected.slice(1, 2)));
    // What follows is the same from all of them.
    const at::Tensor blind = at::full({2, 2}, -1, at::kLong);
    const at::Tensor after = law_run(forecaster, state, blind, 0, 2);
    EXPECT_TRUE(law_run(forecaster, all.state, blind, 0, 2).equal(after));
    EXPECT_TRUE(law_run(forecaster, parts.state, blind, 0, 2).equal(after));
    // The truth takes the place of the last one.
    const at::Tensor truth = clips.video.select(1, 0), action = clips.coming.select(1, 0);
    State one = forecaster.observe(forecaster.next_frames(start, clips.coming, 3).state, truth, action);
    State two = start;
    law_run(forecaster, two, clips.coming, 0, 3);
    two = forecaster.observe(two, truth, action);
    EXPECT_TRUE(law_run(forecaster, one, clips.coming, 0, 2).equal(law_run(forecaster, two, clips.coming, 0, 2)));
  }
}

// Open loop: what was drawn before has no say, but for rows whose action is masked.
TEST_P(LawOfCodes, AMaskedActionMeansClosedLoop) {
  const auto model = law_made(masked());
  Forecaster& forecaster = forecaster_of(*model);
  const LawClips clips = law_clips(*model, 2);
  const State start = forecaster.start(law_context(clips, 0, 2), {3, 4});
  at::Tensor coming = clips.coming.clone();
  coming[1][2] = -1;
  EXPECT_EQ(forecaster.frames_at_once(start, coming), 1);
  EXPECT_EQ(forecaster.frames_at_once(start, {}), 1);
  State state = start;
  EXPECT_TRUE(
      law_run(forecaster, state, coming, 0, kComing).equal(forecaster.next_frames(start, coming, kComing).frame));
  // Two draws of the first frame, then the same draws: only closed loop tells them apart.
  const auto second = [&](uint64_t seed, const at::Tensor& action) {
    State from = forecaster.start(law_context(clips, 0, 1), {seed});
    from = forecaster.next(from, clips.coming.slice(0, 0, 1).select(1, 0)).state;
    from.set("random", at::zeros({1, 2}, at::kLong));
    return forecaster.next(from, action).frame;
  };
  EXPECT_FALSE(
      law_future(*model, clips, 0, 1, {1}).select(1, 0).equal(law_future(*model, clips, 0, 1, {2}).select(1, 0)));
  const at::Tensor given = at::ones({1}, at::kLong);
  EXPECT_TRUE(second(1, given).equal(second(2, given)));
  bool differs = false;
  for (uint64_t seed = 2; seed < 12 && !differs; ++seed) differs = !second(1, -given).equal(second(seed, -given));
  EXPECT_TRUE(differs);
}

TEST_P(LawOfCodes, OnlyLikeTheReferenceTheLastContextFrameIsNotSeen) {
  const auto ends = [&](bool like_reference) {
    const auto model = law_made(masked(like_reference));
    Forecaster& forecaster = forecaster_of(*model);
    LawClips clips = law_clips(*model, 1);
    const State state = forecaster.start(law_context(clips, 0, 1), {});
    clips.video = clips.video.clone();
    clips.video.select(1, kSeen - 1).neg_();
    const State other = forecaster.start(law_context(clips, 0, 1), {});
    at::Tensor action = clips.coming.select(1, 0);
    const auto core = [&](const State& from, const at::Tensor& with) {
      double sum = 0;  // of the core's state after the frame: all that it knows
      for (const auto& [name, value] : forecaster.next(from, with).state.items()) {
        if (name.starts_with("core.")) sum += value.to(at::kDouble).sum().item<double>();
      }
      return sum;
    };
    EXPECT_NE(core(state, at::full_like(action, -1)), core(other, at::full_like(action, -1)));
    return core(state, action) == core(other, action);
  };
  EXPECT_FALSE(ends(false));
  EXPECT_TRUE(ends(true));
}

INSTANTIATE_TEST_SUITE_P(All, LawOfCodes,
                         ::testing::Combine(::testing::Values("codes", "teco"),
                                            ::testing::Values("convs5", "hybrid", "convrnn", "convlstm", "convgru",
                                                              "s5", "transformer", "performer")),
                         [](const auto& i) { return std::string(std::get<0>(i.param)) + "_" + std::get<1>(i.param); });

TEST(CodeFutures, TopOneTakesTheMostLikelyWhateverTheSeed) {
  for (const char* name : {"codes", "teco"}) {
    nlohmann::json section = law_model(name, "convs5");
    section["top_k"] = 1;
    if (section["name"] == "teco") section["maskgit"].update({{"draft", 1}, {"rounds", 0}});
    const auto model = law_made(section);
    const LawClips clips = law_clips(*model, 1);
    EXPECT_TRUE(law_future(*model, clips, 0, 1, {1}).equal(law_future(*model, clips, 0, 1, {2}))) << name;
  }
}

TEST(CodeFutures, OptionsOfDrawingMayChangeOnATrainedModel) {
  for (const char* name : {"codes", "teco"}) {
    const auto& changeable = find_model({{"name", name}}).changeable;
    for (const char* key : {"temperature", "top_k", "like_reference", "core.window"}) {
      EXPECT_NE(std::ranges::find(changeable, key), changeable.end()) << name << " " << key;
    }
    nlohmann::json section = law_model(name, "convs5");
    const auto plain = law_made(section);
    section["temperature"] = 0.05;
    const auto cold = law_made(section);
    EXPECT_EQ(parameter_count(*plain), parameter_count(*cold));
    const LawClips clips = law_clips(*plain, 1);
    EXPECT_FALSE(law_future(*plain, clips, 0, 1, {1}).equal(law_future(*cold, clips, 0, 1, {1}))) << name;
  }
}

TEST(CodeFutures, TheTemperatureOfAForecasterIsThatOfItsOptions) {
  for (const char* name : {"codes", "teco"}) {
    nlohmann::json section = law_model(name, "convs5");
    const auto warm = law_made(section);
    section["temperature"] = 0.05;
    const auto cold = law_made(section);
    const LawClips clips = law_clips(*warm, 1);
    Forecaster& forecaster = forecaster_of(*warm);
    EXPECT_EQ(forecaster.temperature(), 1.0);
    forecaster.set_temperature(0.05);
    EXPECT_TRUE(law_future(*warm, clips, 0, 1, {1}).equal(law_future(*cold, clips, 0, 1, {1}))) << name;
    testing::expect_error([&] { forecaster.set_temperature(-1); }, {"temperature", "above 0", "-1"});
    EXPECT_EQ(forecaster.temperature(), 0.05);
  }
}

TEST(CodeFutures, AnotherSeedIsAnotherBranch) {
  for (const char* name : {"codes", "teco"}) {
    const auto model = law_made(law_model(name, "convs5"));
    const LawClips clips = law_clips(*model, 1);
    Forecaster& forecaster = forecaster_of(*model);
    State state = forecaster.start(law_context(clips, 0, 1), {1});
    State same = forecaster.reseeded(state, {1}), other = forecaster.reseeded(state, {2});
    EXPECT_TRUE(law_run(forecaster, same, clips.coming, 0, kComing).equal(law_future(*model, clips, 0, 1, {1})));
    EXPECT_TRUE(law_run(forecaster, other, clips.coming, 0, kComing).equal(law_future(*model, clips, 0, 1, {2})));
    law_run(forecaster, state, clips.coming, 0, 2);
    testing::expect_error([&] { forecaster.reseeded(state, {1, 2}); }, {"seed for each of 1", "got 2"});
  }
}

TEST(CodeFutures, ContextsLongerThanAPassAreTheSameAsObserved) {
  for (const char* name : {"codes", "teco"}) {
    const auto model = law_made(law_model(name, "convs5"));
    Forecaster& forecaster = forecaster_of(*model);
    const CodeFormat grid = model->as_tokenizer()->codes();
    for (const int64_t T : {16, 17, 18, 33}) {
      const at::Tensor video = model->as_tokenizer()->decode(some_codes({2, T, grid.height, grid.width}, kShades, 1));
      const at::Tensor actions = some_codes({2, T}, 3, 2);
      State whole = forecaster.start({video, actions}, {}), state = forecaster.start({video.slice(1, 0, 1)}, {});
      for (int64_t k = 1; k < T; ++k) state = forecaster.observe(state, video.select(1, k), actions.select(1, k));
      for (const auto& [key, value] : whole.items()) EXPECT_LT(distance(value, state.get(key)), 1e-10) << T << key;
    }
  }
}

// Without a window the state of a Transformer grows with every frame, with one it does not; neither ends anywhere.
TEST(CodeFutures, AWindowBoundsTheStateOfATransformer) {
  for (const int64_t window : {0, 3}) {
    nlohmann::json section = law_model("codes", "transformer");
    section["core"]["window"] = window;
    const auto model = law_made(section);
    Forecaster& forecaster = forecaster_of(*model);
    const LawClips clips = law_clips(*model, 1);
    State state = forecaster.start(law_context(clips, 0, 1), {});
    std::vector<int64_t> sizes;
    for (int64_t k = 0; k < 12; ++k) {
      state = forecaster.next(state, clips.coming.select(1, k % kComing)).state;
      int64_t size = 0;
      for (const auto& [name, value] : state.items()) size += value.numel();
      sizes.push_back(size);
    }
    EXPECT_EQ(sizes.back() > sizes[4], window == 0);
    EXPECT_EQ(model->obstacle_to_chunks().empty(), window > 0);
  }
}

TEST(CodeFutures, StatesThatAreNotTheirsAreRefused) {
  for (const char* name : {"codes", "teco"}) {
    const auto model = law_made(law_model(name, "convs5"));
    Forecaster& forecaster = forecaster_of(*model);
    const LawClips clips = law_clips(*model, 2);
    const at::Tensor action = clips.coming.select(1, 0);
    const State good = forecaster.next(forecaster.start(law_context(clips, 0, 2), {}), action).state;
    EXPECT_NO_THROW(forecaster.next(good, action));
    const auto refused = [&](const char* key, const at::Tensor& value) {
      State bad = good;
      bad.set(key, value);
      EXPECT_THROW(forecaster.next(bad, action), Error) << name << " " << key;
      EXPECT_THROW(forecaster.observe(bad, clips.video.select(1, 0), action), Error) << name << " " << key;
    };
    refused("codes", good.get("codes") + kShades);
    refused("codes", good.get("codes").slice(0, 0, 1));
    refused("codes", good.get("codes").to(at::kDouble));
    refused("random", at::zeros({1, 2}, at::kLong));
    refused("random", at::zeros({2, 3}, at::kLong));
    expect_error([&] { forecaster.next({}, action); }, {"state"});
    if (std::string(name) == "codes") continue;
    for (const at::Tensor& before : {good.get("codes") + kShades, good.get("codes").slice(0, 0, 1)}) {
      State bad = good;
      bad.set("codes_before", before);
      EXPECT_THROW(forecaster.observe(bad, clips.video.select(1, 0), action), Error);
    }
  }
}

}  // namespace
}  // namespace convssm::models
