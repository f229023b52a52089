// Latent FDM learns and forecasts on a device that is not the CPU, with the numbers of the CPU.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "other_device.h"
#include "tests/models/latent_fdm_golden.h"
#include "tests/support.h"

namespace convssm {
namespace {

struct FdmOnDevice {
  double loss = 0;
  std::vector<at::Tensor> gradients;
  at::Tensor future;
};

FdmOnDevice fdm_on(at::Device device, bool latents, const char* scheme, bool gradients) {
  nlohmann::json section = {{"name", "latent_fdm"},
                            {"frames", 5},
                            {"channels", 4},
                            {"multipliers", {1, 2}},
                            {"attention", {4}},
                            {"heads", 2},
                            {"groups", 2},
                            {"actions", 3},
                            {"sampling", {{"scheme", scheme}, {"steps", 3}, {"eta", 1}, {"horizon", 9}}}};
  if (latents) section["tokenizer"] = testing::squares(8, 8);
  const auto model = testing::stirred_fdm(section, {1, 8, 8});
  model->to(device);
  model->train();
  const data::Clips clips = data::to_device(
      {testing::randn({2, 9, 1, 8, 8}, 1).tanh(), at::arange(18).view({2, 9}).remainder(4) - 1}, device);
  FdmOnDevice out;
  {
    torch::AutoGradMode mode(gradients);
    const models::LossOutput loss = model->loss(clips, {"model", 0, 1, Stream(3)});
    out.loss = loss.loss.item<double>();
    if (gradients) loss.loss.backward();
  }
  for (const auto& p : model->parameters()) {
    if (p.grad().defined()) out.gradients.push_back(p.grad().cpu());
  }
  model->eval();
  models::Forecaster& forecaster = models::forecaster_of(*model);
  models::State state = forecaster.start(data::frames_of(clips, 0, 3), {4, 5});
  EXPECT_EQ(state.get("random").device(), device);
  EXPECT_EQ(state.get("numbers").device(), device);
  state = forecaster.next_frames(state, clips.actions.slice(1, 3), 2).state;
  state = forecaster.observe(state, clips.video.select(1, 4), clips.actions.select(1, 4));
  out.future = forecaster.next_frames(state, clips.actions.slice(1, 5), 4).frame.cpu();
  return out;
}

class LatentFdmDevice : public ::testing::TestWithParam<std::tuple<bool, const char*>> {};

TEST_P(LatentFdmDevice, LossAndFuturesAreThoseOfTheCpu) {
  const auto [latents, scheme] = GetParam();
  const bool gradients = testing::obstacle_to_gradients().empty();
  const FdmOnDevice cpu = fdm_on(at::kCPU, latents, scheme, gradients),
                    other = fdm_on(testing::other_device(), latents, scheme, gradients);
  EXPECT_NEAR(other.loss, cpu.loss, 1e-9 * cpu.loss);
  EXPECT_LT(testing::distance(other.future, cpu.future), 1e-9);
  ASSERT_EQ(other.gradients.size(), cpu.gradients.size());
  for (size_t i = 0; i < cpu.gradients.size(); ++i) {
    EXPECT_LT(testing::distance(other.gradients[i], cpu.gradients[i]), 1e-8) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(All, LatentFdmDevice,
                         ::testing::Values(std::tuple{false, "autoreg"}, std::tuple{true, "long-range"},
                                           std::tuple{true, "hierarchy-2"}),
                         [](const auto& i) { return std::string(std::get<1>(i.param)).substr(0, 4); });

}  // namespace
}  // namespace convssm
