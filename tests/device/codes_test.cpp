// The models of codes learn and forecast on a device that is not the CPU, with the numbers of the CPU.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <nlohmann/json.hpp>

#include "other_device.h"
#include "tests/models/code_golden.h"

namespace convssm {
namespace {

struct CodesOnDevice {
  double loss = 0;
  std::vector<at::Tensor> gradients;
  at::Tensor future, open_loop;
};

CodesOnDevice codes_on(at::Device device, const std::string& file, bool gradients) {
  const testing::CodeGolden golden(file);
  const auto model = golden.model("masked", true);
  model->to(device);
  const data::Clips clips = data::to_device(golden.clips(), device);
  const models::LossContext context{"model", 0, 1, Stream(3)};
  CodesOnDevice out;
  {
    torch::AutoGradMode mode(gradients);
    const models::LossOutput loss = model->loss(clips, context);
    out.loss = loss.loss.item<double>();
    if (gradients) {
      loss.loss.backward();
      const models::Player player = model->players()[0];
      for (const auto& [name, p] : player.parameters) out.gradients.push_back(p.grad().cpu());
    }
  }
  torch::NoGradGuard no_grad;
  models::Forecaster& forecaster = models::forecaster_of(*model);
  const at::Tensor video = model->as_tokenizer()->decode(clips.codes), coming = clips.actions.slice(1, 3, 6);
  const models::State state = forecaster.start({video.slice(1, 0, 3), clips.actions.slice(1, 0, 3)}, {1, 2, 3, 4});
  EXPECT_EQ(state.get("random").device(), device);
  models::Forecast next = forecaster.next_frames(state, coming, 2);
  next = forecaster.next(forecaster.observe(next.state, video.select(1, 4), coming.select(1, 1)), coming.select(1, 2));
  out.future = next.frame.cpu();
  const models::State last = forecaster.start({video.slice(0, 3, 4), clips.actions.slice(0, 3, 4)}, {5});
  out.open_loop = forecaster.next_frames(last, coming.slice(0, 3, 4), 3).frame.cpu();
  return out;
}

class CodesDevice : public ::testing::TestWithParam<const char*> {};

TEST_P(CodesDevice, LossAndFuturesAreThoseOfTheCpu) {
  const bool gradients = testing::obstacle_to_gradients().empty();
  const CodesOnDevice cpu = codes_on(at::kCPU, GetParam(), gradients),
                      other = codes_on(testing::other_device(), GetParam(), gradients);
  EXPECT_NEAR(other.loss, cpu.loss, 1e-9 * cpu.loss);
  EXPECT_TRUE(other.future.equal(cpu.future));
  EXPECT_TRUE(other.open_loop.equal(cpu.open_loop));
  ASSERT_EQ(other.gradients.size(), cpu.gradients.size());
  for (size_t i = 0; i < cpu.gradients.size(); ++i) {
    EXPECT_LT(testing::distance(other.gradients[i], cpu.gradients[i]), 1e-8) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(All, CodesDevice,
                         ::testing::Values("codes_deep", "codes_transformer", "teco_convs5", "teco_transformer"),
                         [](const auto& i) { return i.param; });

}  // namespace
}  // namespace convssm
