// Perceiver AR learns and forecasts on a device that is not the CPU, with the numbers of the CPU.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "other_device.h"
#include "tests/models/perceiver_ar_golden.h"

namespace convssm {
namespace {

struct PerceiverOnDevice {
  double loss = 0;
  std::vector<at::Tensor> gradients;
  at::Tensor future;
};

PerceiverOnDevice perceiver_on(at::Device device, const std::string& file, bool gradients) {
  const testing::PerceiverGolden golden(file, {{"dropout", 0.1}});
  const auto model = models::make_model(
      [&] {
        nlohmann::json section = testing::with_shades(golden.section);
        section["name"] = "perceiver_ar";
        return section;
      }(),
      {1, 1, 1});
  {
    torch::NoGradGuard no_grad;
    const auto values = golden.model->named_parameters();
    model->to(at::kDouble);
    for (auto& item : model->named_parameters()) item.value().copy_(values[item.key()]);
  }
  model->to(device);
  const data::Clips clips = data::to_device(golden.clips(), device);
  PerceiverOnDevice out;
  {
    torch::AutoGradMode mode(gradients);
    const models::LossOutput loss = model->loss(clips, {"model", 0, 9, Stream(3)});
    out.loss = loss.loss.item<double>();
    if (gradients) {
      loss.loss.backward();
      const models::Player player = model->players().at(0);
      for (const auto& [name, p] : player.parameters) out.gradients.push_back(p.grad().cpu());
    }
  }
  torch::NoGradGuard no_grad;
  model->eval();
  models::Forecaster& forecaster = models::forecaster_of(*model);
  const at::Tensor video = model->as_tokenizer()->decode(clips.codes), actions = clips.actions;
  models::State state = forecaster.start({video.slice(1, 0, 2), actions.slice(1, 0, 2)}, {4, 5});
  EXPECT_EQ(state.get("random").device(), device);
  for (int64_t k = 2; k < 4; ++k) state = forecaster.next(state, actions.select(1, k)).state;
  state = forecaster.observe(state, video.select(1, 3), actions.select(1, 3));
  out.future = forecaster.next(state, actions.select(1, 4)).frame.cpu();
  return out;
}

class PerceiverDevice : public ::testing::TestWithParam<const char*> {};

TEST_P(PerceiverDevice, LossAndFuturesAreThoseOfTheCpu) {
  const bool gradients = testing::obstacle_to_gradients().empty();
  const PerceiverOnDevice cpu = perceiver_on(at::kCPU, GetParam(), gradients),
                          other = perceiver_on(testing::other_device(), GetParam(), gradients);
  EXPECT_NEAR(other.loss, cpu.loss, 1e-9 * cpu.loss);
  EXPECT_TRUE(other.future.equal(cpu.future));
  ASSERT_EQ(other.gradients.size(), cpu.gradients.size());
  for (size_t i = 0; i < cpu.gradients.size(); ++i) {
    EXPECT_LT(testing::distance(other.gradients[i], cpu.gradients[i]), 1e-8) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(All, PerceiverDevice, ::testing::Values("perceiver_ar_rotary", "perceiver_ar_axes"),
                         [](const auto& i) { return i.param; });

}  // namespace
}  // namespace convssm
