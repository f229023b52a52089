// The law of futures for Latent FDM, on pixels and on latents, of every scheme: alone and in batches, on two threads, stopped and
// resumed, contexts in pieces, true frames; what actions that are known ahead change; and the size of the state.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <nlohmann/json.hpp>

#include "tests/models/latent_fdm_golden.h"

namespace convssm::models {
namespace {

using testing::distance;
using testing::expect_error;
using testing::stirred_fdm;

constexpr int64_t kBlockSeen = 5, kBlockComing = 9, kBlockSide = 8;  // blocks of 2 of 5 frames, horizons of 10

nlohmann::json block_section(const std::string& scheme, bool latents, int64_t actions = 0) {
  nlohmann::json section = {
      {"name", "latent_fdm"},
      {"frames", 5},
      {"channels", 4},
      {"multipliers", {1, 2}},
      {"attention", {latents ? 2 : 4}},
      {"heads", 2},
      {"groups", 2},
      {"actions", actions},
      {"diffusion", {{"steps", 20}}},
      {"sampling", {{"scheme", scheme}, {"frames", 2}, {"steps", 2}, {"horizon", 10}, {"eta", 0.5}}}};
  if (latents) section["tokenizer"] = testing::squares(kBlockSide, kBlockSide);
  return section;
}

std::shared_ptr<Model> block_model(const nlohmann::json& section) {
  return stirred_fdm(section, {1, kBlockSide, kBlockSide});
}

struct BlockClips {
  at::Tensor video, actions;

  explicit BlockClips(int64_t clips) {
    video = testing::randn({clips, kBlockSeen + kBlockComing, 1, kBlockSide, kBlockSide}, 1).tanh();
    actions = (testing::randn({clips, kBlockSeen + kBlockComing}, 2) * 10).to(at::kLong).remainder(3);
  }
  Clips context(int64_t first, int64_t count, int64_t frames = kBlockSeen) const {
    return {video.slice(0, first, first + count).slice(1, 0, frames),
            actions.slice(0, first, first + count).slice(1, 0, frames)};
  }
  at::Tensor coming(int64_t first, int64_t count) const {
    return actions.slice(0, first, first + count).slice(1, kBlockSeen);
  }
};

// One frame at a time, without actions.
at::Tensor block_run(Forecaster& forecaster, State& state, int64_t frames) {
  std::vector<at::Tensor> all;
  for (int64_t k = 0; k < frames; ++k) {
    Forecast out = forecaster.next(state, {});
    all.push_back(out.frame);
    state = out.state;
  }
  return at::stack(all, 1);
}

at::Tensor block_future(Model& model, const BlockClips& clips, int64_t first, int64_t count, const Seeds& seeds) {
  State state = forecaster_of(model).start(clips.context(first, count), seeds);
  return block_run(forecaster_of(model), state, kBlockComing);
}

class LawOfBlocks : public ::testing::TestWithParam<std::tuple<const char*, bool>> {
 protected:
  nlohmann::json section(int64_t actions = 0) const {
    return block_section(std::get<0>(GetParam()), std::get<1>(GetParam()), actions);
  }
  bool hierarchy() const { return std::string(std::get<0>(GetParam())) == "hierarchy-2"; }
};

TEST_P(LawOfBlocks, AFutureIsTheSameAloneInABatchOnTwoThreadsAndResumed) {
  const auto model = block_model(section());
  const BlockClips clips(3);
  const Seeds seeds = {5, 1, 5};
  const int before = at::get_num_threads();
  at::set_num_threads(1);
  const at::Tensor together = block_future(*model, clips, 0, 3, seeds);
  at::set_num_threads(2);
  EXPECT_LT(distance(block_future(*model, clips, 0, 3, seeds), together), 1e-9);
  at::set_num_threads(before);
  for (int64_t i = 0; i < 3; ++i) {
    const at::Tensor alone = block_future(*model, clips, i, 1, {seeds[static_cast<size_t>(i)]});
    EXPECT_LT(distance(alone[0], together[i]), 1e-9) << i;
  }
  Forecaster& forecaster = forecaster_of(*model);
  EXPECT_TRUE(forecaster.draws());
  const State state = forecaster.start(clips.context(0, 3), seeds);
  EXPECT_EQ(forecaster.clips_in(state), 3);
  for (int64_t cut = 1; cut < kBlockComing; cut += 3) {
    State now = state;
    const at::Tensor first = block_run(forecaster, now, cut);
    State saved = now.clone();
    block_run(forecaster, now, 1);  // what goes on from a state does not change it
    const auto other = block_model(section());
    const at::Tensor rest = block_run(forecaster_of(*other), saved, kBlockComing - cut);
    EXPECT_TRUE(at::cat({first, rest}, 1).equal(together)) << cut;
    const Forecast some = forecaster.next_frames(state, {}, cut);
    EXPECT_LT(distance(some.frame, first), 1e-12) << "together";
    State after = some.state;
    EXPECT_TRUE(block_run(forecaster, after, kBlockComing - cut).equal(rest)) << cut;
  }
}

TEST_P(LawOfBlocks, AContextInPiecesIsTheSameContext) {
  const auto model = block_model(section(3));
  Forecaster& forecaster = forecaster_of(*model);
  const BlockClips clips(2);
  const at::Tensor whole = block_future(*model, clips, 0, 2, {3, 4});
  for (int64_t cut = 1; cut < kBlockSeen; ++cut) {
    State state = forecaster.start(clips.context(0, 2, cut), {3, 4});
    for (int64_t k = cut; k < kBlockSeen; ++k)
      state = forecaster.observe(state, clips.video.select(1, k), clips.actions.select(1, k));
    EXPECT_LT(distance(block_run(forecaster, state, kBlockComing), whole), 1e-9) << cut;
  }
}

// What was drawn ahead of it is drawn anew.
TEST_P(LawOfBlocks, ATrueFrameTakesThePlaceOfItsForecast) {
  const auto model = block_model(section());
  Forecaster& forecaster = forecaster_of(*model);
  const BlockClips clips(2);
  State state = forecaster.start(clips.context(0, 2, 1), {3, 4});
  for (int64_t k = 1; k < kBlockSeen; ++k) {
    state = forecaster.next(state, {}).state;
    state = forecaster.observe(state, clips.video.select(1, k), {});
  }
  const at::Tensor whole = block_future(*model, clips, 0, 2, {3, 4});
  EXPECT_LT(distance(block_run(forecaster, state, kBlockComing), whole), 1e-9);
}

// With actions: as many frames together as there are actions, and how they are handed over is otherwise no matter.
TEST_P(LawOfBlocks, ActionsThatAreKnownMakeABlock) {
  const auto model = block_model(section(3));
  Forecaster& forecaster = forecaster_of(*model);
  const BlockClips clips(2);
  const at::Tensor coming = clips.coming(0, 2);
  const State start = forecaster.start(clips.context(0, 2), {3, 4});
  if (hierarchy()) return;  // LatentFdmForecasts
  State state = start;
  std::vector<at::Tensor> blocks, ones;
  for (int64_t k = 0; k + 2 <= kBlockComing; k += 2) {
    Forecast out = forecaster.next_frames(state, coming.slice(1, k, k + 2), 2);
    blocks.push_back(out.frame);
    state = out.state;
  }
  const at::Tensor all = at::cat(blocks, 1);
  EXPECT_LT(distance(forecaster.next_frames(start, coming, 8).frame, all), 1e-9);
  Forecast early = forecaster.next_frames(start, coming, 1);  // the second frame waits, with its action
  EXPECT_LT(distance(early.frame.select(1, 0), all.select(1, 0)), 1e-9);
  EXPECT_LT(distance(forecaster.next(early.state, coming.select(1, 1)).frame, all.select(1, 1)), 1e-9);
  expect_error([&] { forecaster.next(early.state, 2 - coming.select(1, 1)); },
               {"frame 6", "drawn ahead", "other actions"});
  expect_error([&] { forecaster.next(early.state, {}); }, {"other actions"});
  state = start;
  for (int64_t k = 0; k < 8; ++k) {
    Forecast out = forecaster.next(state, coming.select(1, k));
    ones.push_back(out.frame);
    state = out.state;
  }
  EXPECT_GT(distance(at::stack(ones, 1), all), 1e-6) << "one at a time is another future";
}

TEST_P(LawOfBlocks, SeedsActionsAndContextsMatter) {
  const auto model = block_model(section(3));
  Forecaster& forecaster = forecaster_of(*model);
  const BlockClips clips(1);
  const int64_t block = hierarchy() ? 5 : 2;
  const auto future = [&](const Clips& context, const at::Tensor& coming, const Seeds& seeds) {
    return forecaster.next_frames(forecaster.start(context, seeds), coming.slice(1, 0, block), block).frame;
  };
  const Clips context = clips.context(0, 1);
  const at::Tensor coming = clips.coming(0, 1), first = future(context, coming, {1});
  EXPECT_TRUE(future(context, coming, {1}).equal(first));
  EXPECT_FALSE(future(context, coming, {2}).equal(first));
  EXPECT_FALSE(future(context, 2 - coming, {1}).equal(first));
  EXPECT_FALSE(future(context, data::masked_like(coming), {1}).equal(first));
  EXPECT_TRUE(future(context, data::masked_like(coming), {1})
                  .equal(forecaster.next_frames(forecaster.start(context, {1}), {}, block).frame));
  EXPECT_FALSE(future({-context.video, context.actions}, coming, {1}).equal(first));
  EXPECT_FALSE(future({context.video, 2 - context.actions}, coming, {1}).equal(first));
}

TEST_P(LawOfBlocks, TheStateStaysBounded) {
  const auto model = block_model(section());
  Forecaster& forecaster = forecaster_of(*model);
  State state = forecaster.start({testing::randn({1, 40, 1, kBlockSide, kBlockSide}, 5).tanh()}, {});
  const int64_t most = hierarchy() ? 20 : 2 * 3 + 2;
  for (int64_t k = 0; k < 25; ++k) {
    EXPECT_LE(state.get("frames").size(1), most) << k;
    EXPECT_EQ(state.get("numbers").size(0), state.get("frames").size(1));
    state = k % 9 == 8 ? forecaster.observe(state, at::zeros({1, 1, kBlockSide, kBlockSide}, at::kDouble), {})
                       : forecaster.next(state, {}).state;
  }
}

TEST_P(LawOfBlocks, StatesOfOthersAreRefused) {
  const auto model = block_model(section(3));
  Forecaster& forecaster = forecaster_of(*model);
  const State good = forecaster.start(BlockClips(2).context(0, 2), {});
  const int64_t N = good.get("numbers").size(0);
  const auto refused = [&](const char* name, const at::Tensor& value, const std::vector<std::string>& parts) {
    State bad = good;
    bad.set(name, value);
    expect_error([&] { forecaster.next(bad, {}); }, parts);
    expect_error([&] { forecaster.clips_in(bad); }, parts);
  };
  refused("frames", at::zeros({2, N, 3, 8, 8}), {"frames", "[2," + std::to_string(N) + ",3,8,8]"});
  refused("numbers", at::zeros({N}), {"numbers", "float32"});
  refused("numbers", at::arange(N).flip(0), {"frames in order"});
  refused("numbers", at::arange(N) + 7, {"the last of which is there"});
  refused("actions", at::zeros({3, N}, at::kLong), {"actions", "2 clips", "3"});
  refused("actions", at::full({2, N}, 3, at::kLong), {"below model.actions = 3", "3"});
  refused("random", at::tensor({1, 5, 2, 6}, at::kLong).view({2, 2}), {"same number of frames"});
  refused("begin", at::tensor({9}, at::kLong), {"same number of frames"});
  expect_error([&] { forecaster.next({}, {}); }, {"empty"});
  expect_error([&] { forecaster.observe(good, at::zeros({1, 1, 8, 8}, at::kDouble), {}); }, {"each of 2 clips"});
  expect_error([&] { forecaster.next(good, at::zeros({2, 4})); }, {"whole numbers"});
}

INSTANTIATE_TEST_SUITE_P(All, LawOfBlocks,
                         ::testing::Combine(::testing::Values("autoreg", "long-range", "hierarchy-2"),
                                            ::testing::Bool()),
                         [](const auto& i) {
                           std::string name = std::get<0>(i.param);
                           std::ranges::replace(name, '-', '_');
                           return name + (std::get<1>(i.param) ? "_latents" : "_pixels");
                         });

TEST(LatentFdmForecasts, NumbersAsActions) {
  nlohmann::json section = block_section("autoreg", false);
  section["action_values"] = 2;
  const auto model = block_model(section);
  Forecaster& forecaster = forecaster_of(*model);
  Clips context = BlockClips(2).context(0, 2);
  context.actions = testing::randn({2, kBlockSeen, 2}, 7).to(at::kFloat);
  const State start = forecaster.start(context, {});
  const at::Tensor coming = testing::randn({2, 2, 2}, 8).to(at::kFloat);
  const at::Tensor first = forecaster.next_frames(start, coming, 2).frame;
  EXPECT_GT(distance(forecaster.next_frames(start, -coming, 2).frame, first), 1e-6);
  EXPECT_LT(distance(forecaster.next_frames(start, at::full_like(coming, NAN), 2).frame,
                     forecaster.next_frames(start, {}, 2).frame),
            1e-12);
  Forecast early = forecaster.next_frames(start, at::full_like(coming, NAN), 1);
  EXPECT_NO_THROW(forecaster.next(early.state, {})) << "masked is masked";
}

// Options of sampling may be changed on a trained model; a state of another scheme may lack what this one looks at.
TEST(LatentFdmForecasts, AHierarchyNeedsItsContext) {
  const BlockClips clips(1);
  const State state = forecaster_of(*block_model(block_section("autoreg", false))).start(clips.context(0, 1), {});
  const auto other = block_model(block_section("hierarchy-2", false));
  expect_error([&] { forecaster_of(*other).next(state, {}); }, {"no frame 0", "sampling.scheme"});
  nlohmann::json untrained = block_section("hierarchy-2", false);
  untrained["sampling"].erase("horizon");
  expect_error([&] { forecaster_of(*block_model(untrained)).start(clips.context(0, 1), {}); },
               {"model.sampling.horizon"});
}

// The whole hierarchy of known actions is drawn at once; beyond its horizon another begins.
TEST(LatentFdmForecasts, HierarchiesFollowEachOther) {
  const auto model = block_model(block_section("hierarchy-2", false, 3));
  Forecaster& forecaster = forecaster_of(*model);
  const BlockClips clips(1);
  const State start = forecaster.start(clips.context(0, 1), {2});
  const at::Tensor coming = clips.coming(0, 1);
  Forecast out = forecaster.next_frames(start, coming.slice(1, 0, 5), 5);
  Forecast early = forecaster.next_frames(start, coming, 2);
  EXPECT_LT(distance(early.frame, out.frame.slice(1, 0, 2)), 1e-12) << "actions beyond the horizon do not matter";
  EXPECT_LT(distance(forecaster.next(early.state, coming.select(1, 2)).frame, out.frame.select(1, 2)), 1e-12)
      << "waits";
  const at::Tensor all = forecaster.next_frames(start, coming, kBlockComing).frame;
  EXPECT_LT(distance(all.slice(1, 0, 5), out.frame), 1e-12);
  const at::Tensor rest = forecaster.next_frames(out.state, coming.slice(1, 5), kBlockComing - 5).frame;
  EXPECT_LT(distance(all.slice(1, 5), rest), 1e-12);
}

// Sooner than at its horizon, where the actions end; then another begins.
TEST(LatentFdmForecasts, AHierarchyEndsWithItsActions) {
  const auto model = block_model(block_section("hierarchy-2", false, 3));
  nlohmann::json shorter = block_section("hierarchy-2", false, 3);
  shorter["sampling"]["horizon"] = kBlockSeen + 3;
  const BlockClips clips(1);
  const at::Tensor coming = clips.coming(0, 1);
  const auto to_there = block_model(shorter);
  Forecaster &forecaster = forecaster_of(*model), &other = forecaster_of(*to_there);
  const State start = forecaster.start(clips.context(0, 1), {2});
  const Forecast three = forecaster.next_frames(start, coming.slice(1, 0, 3), 3);
  EXPECT_LT(distance(three.frame, other.next_frames(start, coming.slice(1, 0, 3), 3).frame), 1e-12);
  EXPECT_GT(distance(three.frame, forecaster.next_frames(start, coming, 3).frame), 1e-6) << "of a longer one";
  State state = three.state;
  for (int64_t k = 3; k < kBlockComing; ++k) {
    const Forecast one = forecaster.next(state, coming.select(1, k));  // a hierarchy of one frame
    EXPECT_TRUE(at::isfinite(one.frame).all().item<bool>()) << k;
    state = one.state;
  }
}

// What the program hands over where nobody told an action: a tensor of masked ones, of any length.
TEST(LatentFdmForecasts, MaskedActionsAreNone) {
  for (const char* scheme : {"autoreg", "long-range", "hierarchy-2"}) {
    const auto model = block_model(block_section(scheme, false, 3));
    Forecaster& forecaster = forecaster_of(*model);
    State state = forecaster.start(BlockClips(1).context(0, 1), {2});
    const at::Tensor together = forecaster.next_frames(state, at::full({1, 7}, -1, at::kLong), 7).frame;
    const State begin = state;
    EXPECT_LT(distance(block_run(forecaster, state, 7), together), 1e-12) << scheme;
    State once = begin;
    for (int64_t k = 0; k < 7; ++k) {
      const Forecast out = forecaster.next(once, at::full({1}, -1, at::kLong));
      EXPECT_LT(distance(out.frame, together.select(1, k)), 1e-12) << scheme << " " << k;
      once = out.state;
    }
  }
}

// A state that goes on with other options of sampling: frames that wait beyond a gap are dropped.
TEST(LatentFdmForecasts, AnotherSchemeGoesOnFromAState) {
  const auto hierarchy = block_model(block_section("hierarchy-2", false));
  State state = forecaster_of(*hierarchy).start(BlockClips(1).context(0, 1), {2});
  block_run(forecaster_of(*hierarchy), state, 1);
  const int64_t number = kBlockSeen + 1, given = state.get("numbers").lt(number).sum().item<int64_t>();
  ASSERT_LT(given, state.get("numbers").size(0)) << "a frame waits";
  ASSERT_FALSE(state.get("numbers").eq(number).any().item<bool>()) << "but not the next";
  State without = state;
  without.set("numbers", state.get("numbers").slice(0, 0, given));
  without.set("frames", state.get("frames").slice(1, 0, given));
  for (const char* scheme : {"autoreg", "long-range"}) {
    const auto other = block_model(block_section(scheme, false));
    State one = state, two = without;
    EXPECT_TRUE(block_run(forecaster_of(*other), one, 5).equal(block_run(forecaster_of(*other), two, 5))) << scheme;
  }
  nlohmann::json section = block_section("hierarchy-2", false);
  section["sampling"]["horizon"] = number;  // before what waits
  const auto shorter = block_model(section);
  State one = state, two = without;
  EXPECT_TRUE(block_run(forecaster_of(*shorter), one, 5).equal(block_run(forecaster_of(*shorter), two, 5)));
}

}  // namespace
}  // namespace convssm::models
