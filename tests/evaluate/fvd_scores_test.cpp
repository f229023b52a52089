// FVD gathered clip by clip is that of the features of all clips; a horizon sees its own frames only.
#include "convssm/evaluate/fvd_scores.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "convssm/io/safetensors.h"
#include "convssm/metrics/fvd.h"
#include "tests/base/scratch_folder.h"
#include "tests/metrics/i3d_weights.h"
#include "tests/support.h"

namespace convssm::evaluate {
namespace {

TEST(FvdScores, AreThoseOfWholeClipsOfEachHorizon) {
  const ScratchFolder scratch;
  io::write_safetensors(scratch.path("i3d.safetensors"), testing::made_up_i3d());
  const metrics::I3d net(scratch.path("i3d.safetensors"));
  at::manual_seed(2);
  const at::Tensor truth = at::rand({3, 12, 1, 16, 16}), a = at::rand({3, 12, 1, 16, 16}), b = truth.square();
  FvdScores scores(net, {10, 12}, 2);
  for (int64_t i = 0; i < 3; ++i) scores.add(truth[i], {a[i], b[i]});
  const auto expected = [&](const at::Tensor& forecast, int64_t frames) {
    return metrics::fvd_i3d(metrics::fvd_features(net, truth.slice(1, 0, frames)),
                            metrics::fvd_features(net, forecast.slice(1, 0, frames)))
        .mean;
  };
  EXPECT_NEAR(scores.value(0, 0)["mean"].get<double>(), expected(a, 10), 1e-6 * expected(a, 10));
  EXPECT_NEAR(scores.value(1, 1)["mean"].get<double>(), expected(b, 12), 1e-6 * expected(b, 12));
  FvdScores one(net, {10}, 1, 2);
  one.add(truth[0], {a[0]});
  EXPECT_TRUE(one.value(0, 0).is_null());
  one.add(truth[1], {a[1]});
  one.add(truth[2], {a[2]});
  EXPECT_EQ(one.value(0, 0)["left_over"], 1);
  testing::expect_error([&] { FvdScores(net, {10}, 1, 1); }, {"at least 2 clips", "got 1"});
}

}  // namespace
}  // namespace convssm::evaluate
