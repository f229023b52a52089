// Fields on a device that is not the CPU: masks, maps and chosen channels are made where the model is.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "convssm/generate/predictor.h"
#include "convssm/generate/rollout.h"
#include "convssm/train/carried_states.h"
#include "convssm/train/gradients.h"
#include "convssm/train/self_feed.h"
#include "other_device.h"
#include "tests/models/field_model.h"

namespace convssm {
namespace {

using testing::distance;

TEST(FieldsOnDevices, AreTheSame) {
  if (const auto why = testing::obstacle_to_gradients(); !why.empty()) GTEST_SKIP() << why;
  const data::Clips clips = testing::field_clips(2, 9, 1, at::kFloat);
  const auto run = [&](at::Device device) {
    const auto model = testing::field_model();
    model->to(device);
    const data::Clips there = data::to_device(clips, device);
    const data::Clips fed = train::self_fed(*model->as_forecaster(), there, 0.5, 2, Stream(1));
    const train::LossValues values = train::add_gradients(*model, fed, {}, 3);
    train::CarriedStates carried(2);
    carried.keep({0, 1}, values.state);
    carried.commit();
    const auto start = carried.groups(0, 2, {false, true}).at(0).start;
    train::add_gradients(*model, data::rows_at(there, {0}), {}, 0, train::share_of(*model, there, there), false, start);
    generate::Predictor predictor(*model, {.batch = 2});
    predictor.start(data::frames_of(clips, 0, 5));
    predictor.next_after(clips.actions.select(1, 5));
    predictor.observe(data::with_missing(there).select(1, 5), there.actions.select(1, 5));
    const at::Tensor future = generate::rollout(predictor, clips.actions.slice(1, 6), 3);
    EXPECT_EQ(future.device(), device);
    return std::tuple(values.loss, future.cpu(), model->parameters()[0].grad().cpu());
  };
  const auto [loss, future, gradient] = run(at::kCPU);
  const int64_t before = testing::operations_on_other_device();
  const auto [found, there, moved] = run(testing::other_device());
  EXPECT_GT(testing::operations_on_other_device(), before + 500);
  EXPECT_NEAR(found, loss, 1e-4 * loss);
  EXPECT_LT(distance(there, future), 1e-3);
  EXPECT_LT(distance(moved, gradient), 1e-3 * (1 + testing::max_abs(gradient)));
}

}  // namespace
}  // namespace convssm
