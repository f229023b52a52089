// A state dict of the public layout becomes a model folder that encodes and decodes as PyTorch does; another network is refused.
#include "convssm/run/import_vqgan.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <filesystem>

#include "convssm/models/tokenizer.h"
#include "convssm/run/model_file.h"
#include "tests/base/scratch_folder.h"
#include "tests/models/vqgan_golden.h"
#include "tests/support.h"

namespace convssm::run {
namespace {

using testing::VqGanGolden;

TEST(ImportVqGan, RunsAsPyTorchDid) {
  const ScratchFolder scratch;
  const VqGanGolden golden;
  io::NamedTensors state = golden.state();
  state.emplace_back("loss.discriminator.main.0.weight", at::ones({2, 2}));
  io::save_tensors(scratch.path("taming.safetensors"), state);
  const ImportedVqGan done = import_vqgan({scratch.path("taming.safetensors"), scratch.path("model"), 16, 12});
  EXPECT_EQ(done.tensors, state.size() - 1);
  EXPECT_EQ(done.left_out, 1u);
  EXPECT_EQ(done.model["multipliers"], nlohmann::json({1, 2}));
  EXPECT_EQ(done.model["attention"], nlohmann::json({8}));
  const LoadedModel loaded = load_model(scratch.path("model"));
  models::Tokenizer& tokenizer = *loaded.model->as_tokenizer();
  const at::Tensor codes = tokenizer.encode(golden.read("x").unsqueeze(0));
  EXPECT_TRUE(codes[0].equal(golden.read("codes")));
  EXPECT_LT(testing::distance(tokenizer.decode(codes)[0], golden.read("decoded").clamp(-1, 1)), 5e-5);
}

TEST(ImportVqGan, RefusesAnotherNetwork) {
  const ScratchFolder scratch;
  const auto refused = [&](const std::function<void(io::NamedTensors&)>& change,
                           const std::vector<std::string>& parts) {
    io::NamedTensors state = VqGanGolden().state();
    change(state);
    io::save_tensors(scratch.path("other.safetensors"), state);
    testing::expect_error(
        [&] {
          import_vqgan({scratch.path("other.safetensors"), scratch.path("out"), 16, 12});
        },
        parts);
    EXPECT_FALSE(std::filesystem::exists(scratch.path("out/model.safetensors")));
  };
  refused([](auto& state) { state.emplace_back("encoder.more.weight", at::ones({2})); },
          {"encoder.more.weight", "not know"});
  refused([](auto& state) { state.erase(state.begin() + 7); }, {"has no"});
  refused([](auto& state) { state[1].second = at::ones({33}); }, {"encoder.conv_in.bias", "[32]", "[33]"});
  refused([](auto& state) { state[0].second.fill_(NAN); }, {"NaN"});
  testing::expect_error(
      [&] {
        import_vqgan({scratch.path("other.safetensors"), scratch.path("out"), 0, 0});
      },
      {"--size"});
}

}  // namespace
}  // namespace convssm::run
