// FitVid learns and forecasts on a device that is not the CPU, with the numbers of the CPU.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "other_device.h"
#include "tests/models/fitvid_golden.h"
#include "tests/support.h"

namespace convssm {
namespace {

struct FitVidOnDevice {
  double loss = 0;
  std::vector<at::Tensor> gradients, running;
  at::Tensor future;
};

FitVidOnDevice fitvid_on(at::Device device, const std::string& file, bool gradients) {
  const testing::FitVidGolden golden(file);
  models::FitVidOptions o = models::FitVidOptions::from_json(golden.section);
  const data::Clips clips = data::to_device(golden.clips(), device);
  golden.model->to(device);
  FitVidOnDevice out;
  torch::AutoGradMode mode(gradients);
  const models::LossOutput loss = golden.model->loss(clips, {"model", 0, 1, Stream(3)});
  out.loss = loss.loss.item<double>();
  for (const auto& buffer : golden.model->buffers()) out.running.push_back(buffer.cpu());
  if (gradients) {
    loss.loss.backward();
    for (const auto& p : golden.model->parameters()) out.gradients.push_back(p.grad().cpu());
  }
  if (golden.on_codes()) return out;
  o.frames = {clips.video.size(2), clips.video.size(3), clips.video.size(4)};
  models::FitVid drawing(o);
  drawing.to(device, at::kDouble);
  models::State state = drawing.start(data::frames_of(clips, 0, 2), {4, 5, 6});
  EXPECT_EQ(state.get("random").device(), device);
  for (int64_t k = 2; k < 4; ++k) state = drawing.next(state, clips.actions.select(1, k)).state;
  state = drawing.observe(state, clips.video.select(1, 3), clips.actions.select(1, 3));
  out.future = drawing.next(state, clips.actions.select(1, 4)).frame.cpu();
  return out;
}

class FitVidDevice : public ::testing::TestWithParam<const char*> {};

TEST_P(FitVidDevice, LossStatisticsAndFuturesAreThoseOfTheCpu) {
  const bool gradients = testing::obstacle_to_gradients().empty();
  const FitVidOnDevice cpu = fitvid_on(at::kCPU, GetParam(), gradients),
                       other = fitvid_on(testing::other_device(), GetParam(), gradients);
  EXPECT_NEAR(other.loss, cpu.loss, 1e-9 * cpu.loss);
  if (cpu.future.defined()) {
    EXPECT_LT(testing::distance(other.future, cpu.future), 1e-9);
  }
  ASSERT_EQ(other.gradients.size(), cpu.gradients.size());
  for (size_t i = 0; i < cpu.gradients.size(); ++i) {
    EXPECT_LT(testing::distance(other.gradients[i], cpu.gradients[i]), 1e-8) << i;
  }
  ASSERT_EQ(other.running.size(), cpu.running.size());
  for (size_t i = 0; i < cpu.running.size(); ++i) {
    EXPECT_LT(testing::distance(other.running[i], cpu.running[i]), 1e-9) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(All, FitVidDevice, ::testing::Values("fitvid_plain", "fitvid_options", "fitvid_codes"),
                         [](const auto& i) { return i.param; });

}  // namespace
}  // namespace convssm
