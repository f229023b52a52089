// Fields run by a compiled plan: the same frames as those of the model, with maps, masks and diagnostic channels; states go
// between both, and integers stay close.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "convssm/generate/actions.h"
#include "convssm/generate/predictor.h"
#include "convssm/generate/rollout.h"
#include "tests/models/field_model.h"

namespace convssm::generate {
namespace {

using testing::distance;
using testing::expect_error;
using testing::field_clips;

constexpr int64_t kSeenFields = 5;

std::shared_ptr<models::Model> runnable(const nlohmann::json& core, bool mask) {
  const auto model = testing::field_model(core, mask);
  torch::NoGradGuard no_grad;
  for (auto& item : model->named_parameters()) {
    if (item.key() == "decoder.last.weight") item.value().mul_(0.25);  // else rollouts are chaotic: any rounding grows
  }
  model->eval();
  return model;
}

at::Tensor after(Predictor& predictor, const data::Clips& clips, int64_t begin, int64_t end) {
  return rollout(predictor, clips.actions.slice(1, kSeenFields + begin, kSeenFields + end), end - begin);
}

TEST(PredictorOfFields, IsTheModelCompiled) {
  const std::vector<nlohmann::json> cores{testing::kFieldCore, {{"name", "convlstm"}, {"features", 8}}};
  const data::Clips clips = field_clips(2, kSeenFields + 40, 1, at::kFloat);
  const at::Tensor video = data::with_missing(clips);
  for (const bool mask : {true, false}) {
    for (const auto& core : cores) {
      const auto model = runnable(core, mask);
      Predictor compiled(*model, {.batch = 2}), eager(*model, {.batch = 2, .compile = false});
      ASSERT_TRUE(compiled.compiled());
      for (const int64_t seen : {int64_t{1}, kSeenFields}) {
        compiled.start(data::frames_of(clips, kSeenFields - seen, kSeenFields));
        eager.start(data::frames_of(clips, kSeenFields - seen, kSeenFields));
        EXPECT_LT(distance(after(compiled, clips, 0, 20), after(eager, clips, 0, 20)), 1e-4) << core << seen;
      }
      for (int64_t k = 20; k < 30;
           ++k) {  // frames that are not whole take the places of forecasts, and follow each other
        const auto t = kSeenFields + k;
        if (k > 20) compiled.observe(video.select(1, t - 1), clips.actions.select(1, t - 1));
        if (k > 20) eager.observe(video.select(1, t - 1), clips.actions.select(1, t - 1));
        if (k % 3 == 0) continue;
        EXPECT_LT(distance(after(compiled, clips, k, k + 1), after(eager, clips, k, k + 1)), 1e-4) << core << k;
      }
      Predictor resumed(*model, {.batch = 2});
      resumed.start(compiled.state());
      const at::Tensor rest = after(compiled, clips, 30, 40);
      EXPECT_TRUE(after(resumed, clips, 30, 40).equal(rest));
      Predictor other(*model, {.batch = 2});
      other.start(eager.state());
      EXPECT_LT(distance(after(other, clips, 30, 40), after(eager, clips, 30, 40)), 1e-4);
      for (Predictor* each : {&compiled, &eager}) {
        expect_error([&] { each->next_after(clips.actions.select(1, 0).slice(2, 0, 6)); }, {"action", "[2,2,7,9]"});
      }
    }
  }
}

double psnr_of(const at::Tensor& x, const at::Tensor& y) {
  return -10 * std::log10((x - y).square().mean().item<double>() / 4);
}

TEST(PredictorOfFields, IsCloseInIntegers) {
  nlohmann::json core = testing::kFieldCore;
  core["features"] = 16, core["state_size"] = 16;
  const auto model = runnable(core, true);
  const data::Clips clips = field_clips(2, kSeenFields + 5, 1, at::kFloat);
  for (const int64_t seen : {int64_t{1}, kSeenFields}) {
    const data::Clips context = data::frames_of(clips, kSeenFields - seen, kSeenFields);
    Predictor exact(*model, {.batch = 2}), fast(*model, {.batch = 2, .precision = Precision::int8});
    exact.start(context);
    fast.start(context);
    const at::Tensor expected = after(exact, clips, 0, 3), found = after(fast, clips, 0, 3);
    EXPECT_GT(psnr_of(found, expected), 33) << seen;
    EXPECT_GT(distance(found, expected), 1e-6) << "not in integers";
    fast.start(context);
    EXPECT_TRUE(after(fast, clips, 0, 3).equal(found)) << "a second start gives the same";
    Predictor later(*model, {.batch = 2, .precision = Precision::int8});
    later.start(exact.state());
    EXPECT_GT(psnr_of(after(later, clips, 3, 5), after(exact, clips, 3, 5)), 33) << seen;
  }
}

TEST(ActionsOfFields, AreCompletedMaskedAndRepeated) {
  const data::ActionFormat format{.maps = 2, .height = 7, .width = 9};
  const at::Tensor maps = testing::randn({1, 4, 2, 7, 9}, 3).to(at::kFloat);
  const at::Tensor all = complete_actions(maps, 1, 6, {format, true}, "a.nc", "hint");
  ASSERT_EQ(all.sizes(), (at::IntArrayRef{1, 6, 2, 7, 9}));
  EXPECT_TRUE(all.slice(1, 0, 4).equal(maps));
  EXPECT_TRUE(all.slice(1, 4).isnan().all().item<bool>());
  EXPECT_TRUE(complete_actions(maps, 1, 3, {format, false}, "a.nc", "hint").equal(maps.slice(1, 0, 3)));
  EXPECT_EQ(complete_actions({}, 2, 3, {format, true}, "a.nc", "hint").sizes(), (at::IntArrayRef{2, 3, 2, 7, 9}));
  expect_error(
      [&] {
        complete_actions(maps, 1, 6, {format, false}, "a.nc", "Give them");
      },
      {"a.nc has actions for 4 of 6 frames", "2 maps for each frame", "Give them"});
  expect_error(
      [&] {
        complete_actions(maps[0].select(1, 0).select(1, 0).unsqueeze(0), 1, 3, {format, true}, "a", "b");
      },
      {"a has actions of 9 numbers", "takes 2 maps"});
  expect_error([&] { complete_actions(maps, 1, 3, {{.values = 2}, true}, "a", "b"); }, {"2 maps", "takes 2 numbers"});
  EXPECT_EQ(for_each_clip(maps, 3, "a").sizes(), (at::IntArrayRef{3, 4, 2, 7, 9}));
}

}  // namespace
}  // namespace convssm::generate
