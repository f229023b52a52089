// Who gets which perceptual network, and what is said where there is none.
#include "convssm/run/perceptual.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <filesystem>

#include "../base/scratch_folder.h"
#include "convssm/models/vqgan/vqgan.h"
#include "tests/models/tiny_vqgan.h"

namespace convssm::run {
namespace {

namespace fs = std::filesystem;

models::LossOutput loss_on(models::Model& model, const data::FrameFormat& frames) {
  model.train();
  const at::Tensor video = testing::noise_video({1, 2, frames.depth(), frames.height, frames.width}, 1);
  return model.loss({video}, {.player = "autoencoder", .steps = 10});
}

std::string warning_of(const data::FrameFormat& frames, const metrics::WeightFolder& weights) {
  const auto model = models::make_model(testing::tiny_vqgan({{"perceptual", "squeeze"}}), frames);
  give_perceptual(*model, weights);
  return loss_on(*model, frames).warning;
}

TEST(Perceptual, TheReasonIsSaid) {
  const ScratchFolder scratch;
  const metrics::WeightFolder none(scratch.path());
  const std::string missing = warning_of({3, 32, 32}, none);
  for (const char* part : {"no LPIPS (squeeze)", "squeezenet", scratch.path().c_str()}) {
    EXPECT_NE(missing.find(part), std::string::npos) << missing;
  }
  EXPECT_NE(warning_of({2, 32, 32}, none).find("1 or 3 channels"), std::string::npos);
  EXPECT_NE(warning_of({3, 16, 16}, none).find("32x32"), std::string::npos) << warning_of({3, 16, 16}, none);
}

// A training that began with the network goes on with it, and not without, nor the other way round.
TEST(Perceptual, IsFoundAmongTheWeightsOfTheMetrics) {
  const std::string assets = std::string(CONVSSM_SOURCE_DIR) + "/../shared/assets/lpips/";
  if (!fs::exists(assets)) GTEST_SKIP() << "no weights in " << assets;
  const ScratchFolder scratch;
  const metrics::WeightFolder weights(scratch.path()), none(scratch.path("none"));
  fs::copy_file(assets + "squeezenet1_1.features.safetensors", weights.path("squeezenet"));
  fs::copy_file(assets + "lpips_squeeze.linear.v0_1.safetensors", weights.path("lpips_squeeze"));
  const data::FrameFormat frames(3, 32, 32);
  const auto model = models::make_model(testing::tiny_vqgan({{"perceptual", "squeeze"}}), frames);
  give_perceptual(*model, weights);
  const models::LossOutput out = loss_on(*model, frames);
  EXPECT_EQ(out.warning, "");
  const auto is_lpips = [](const auto& part) { return part.first == "lpips"; };
  EXPECT_TRUE(std::ranges::any_of(out.parts, is_lpips));
  give_perceptual(*model, none);
  testing::expect_error([&] { loss_on(*model, frames); }, {"began with LPIPS (squeeze)", "squeezenet"});
  model->named_buffers()["began_with"].zero_();
  loss_on(*model, frames);
  give_perceptual(*model, weights);
  testing::expect_error([&] { loss_on(*model, frames); }, {"began without LPIPS", "CONVSSM_WEIGHTS"});
}

}  // namespace
}  // namespace convssm::run
