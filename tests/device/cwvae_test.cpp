// CW-VAE learns and forecasts on a device that is not the CPU, with the numbers of the CPU.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "other_device.h"
#include "tests/models/cwvae_golden.h"
#include "tests/support.h"

namespace convssm {
namespace {

struct CwvaeOnDevice {
  double loss = 0;
  std::vector<at::Tensor> gradients;
  at::Tensor future;
};

CwvaeOnDevice cwvae_on(at::Device device, const std::string& file, bool gradients) {
  const testing::CwvaeGolden golden(file);
  models::CwvaeOptions o = models::CwvaeOptions::from_json(golden.section);
  const data::Clips clips = data::to_device(golden.clips(), device);
  golden.model->to(device);
  CwvaeOnDevice out;
  torch::AutoGradMode mode(gradients);
  const models::LossOutput loss = golden.model->loss(clips, {"model", 0, 1, Stream(3)});
  out.loss = loss.loss.item<double>();
  if (gradients) {
    loss.loss.backward();
    for (const auto& p : golden.model->parameters()) out.gradients.push_back(p.grad().cpu());
  }
  if (golden.on_codes()) return out;
  o.frames.channels = clips.video.size(2), o.frames.height = clips.video.size(3), o.frames.width = clips.video.size(4);
  models::Cwvae drawing(o);
  drawing.to(device, at::kDouble);
  models::State state = drawing.start(data::frames_of(clips, 0, 3), {4, 5});
  EXPECT_EQ(state.get("random").device(), device);
  for (int64_t k = 3; k < 6; ++k) state = drawing.next(state, clips.actions.select(1, k)).state;
  state = drawing.observe(state, clips.video.select(1, 5), clips.actions.select(1, 5));
  out.future = drawing.next(state, clips.actions.select(1, 6)).frame.cpu();
  return out;
}

class CwvaeDevice : public ::testing::TestWithParam<const char*> {};

TEST_P(CwvaeDevice, LossAndFuturesAreThoseOfTheCpu) {
  const bool gradients = testing::obstacle_to_gradients().empty();
  const CwvaeOnDevice cpu = cwvae_on(at::kCPU, GetParam(), gradients),
                      other = cwvae_on(testing::other_device(), GetParam(), gradients);
  EXPECT_NEAR(other.loss, cpu.loss, 1e-9 * cpu.loss);
  if (cpu.future.defined()) {
    EXPECT_LT(testing::distance(other.future, cpu.future), 1e-9);
  }
  ASSERT_EQ(other.gradients.size(), cpu.gradients.size());
  for (size_t i = 0; i < cpu.gradients.size(); ++i) {
    EXPECT_LT(testing::distance(other.gradients[i], cpu.gradients[i]), 1e-8) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(All, CwvaeDevice, ::testing::Values("cwvae_plain", "cwvae_options", "cwvae_codes"),
                         [](const auto& i) { return i.param; });

}  // namespace
}  // namespace convssm
