// Checkpoints of others brought in: I3D from a TensorFlow bundle with made-up values, SqueezeNet from a file of PyTorch;
// damaged ones are refused and leave nothing behind.
#include "convssm/metrics/weights_import.h"

#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "convssm/io/safetensors.h"
#include "convssm/metrics/lpips_backbones.h"
#include "tests/base/scratch_folder.h"
#include "tests/io/table_parts.h"
#include "tests/metrics/i3d_weights.h"
#include "tests/support.h"

namespace convssm::metrics {
namespace {

namespace fs = std::filesystem;
using testing::expect_error;

std::vector<io::NamedArray> sorted_i3d() {
  auto tensors = testing::made_up_i3d();
  std::sort(tensors.begin(), tensors.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  return tensors;
}

TEST(WeightsImport, I3dFromATensorFlowCheckpoint) {
  const ScratchFolder scratch;
  const auto tensors = sorted_i3d();
  io::BundleBytes bundle = io::make_bundle(tensors, 20, 16);
  EXPECT_EQ(bundle.data.size(), 50818176u);  // that of the published checkpoint
  scratch.write("model.ckpt.index", bundle.index);
  scratch.write("model.ckpt.data-00000-of-00001", bundle.data);
  const WeightFolder to(scratch.path("weights"));
  for (const char* name : {"model.ckpt", "model.ckpt.index", "model.ckpt.data-00000-of-00001"}) {
    const ImportedWeights done = import_weights("i3d", scratch.path(name), to);
    EXPECT_EQ(done.tensors, 230u);
    EXPECT_EQ(done.bytes, bundle.data.size());
  }
  const io::SafetensorsFile file(to.existing("i3d"));
  for (const io::NamedArray& tensor : tensors) {
    const io::Array found = file.read(tensor.name);
    ASSERT_TRUE(std::ranges::equal(found.bytes(), tensor.array.bytes())) << tensor.name;
  }

  fs::remove(to.path("i3d"));
  bundle.data[30000000] ^= 1;
  scratch.write("model.ckpt.data-00000-of-00001", bundle.data);
  expect_error([&] { import_weights("i3d", scratch.path("model.ckpt"), to); },
               {"the checksum of", "Mixed_4f", "damaged"});
  EXPECT_FALSE(to.has("i3d"));
}

TEST(WeightsImport, OnlyOfTheRightNetwork) {
  const ScratchFolder scratch;
  const io::BundleBytes bundle = io::make_bundle({{"other/w", io::Array(io::DType::f32, {1})}}, 20, 16);
  scratch.write("model.ckpt.index", bundle.index);
  scratch.write("model.ckpt.data-00000-of-00001", bundle.data);
  const WeightFolder to(scratch.path("weights"));
  expect_error([&] { import_weights("i3d", scratch.path("model.ckpt"), to); },
               {"model.ckpt", "RGB/inception_i3d/Conv3d_1a_7x7/conv_3d/w"});
  EXPECT_FALSE(to.has("i3d"));
  expect_error([&] { import_weights("i3d", scratch.path("my.data-set/model.ckpt"), to); },
               {"my.data-set/model.ckpt.index"});
}

// torch.save of the state dict as torchvision names it. Without python3-torch there is no such file.
TEST(WeightsImport, SqueezeNetFromAFileOfPyTorch) {
  const ScratchFolder scratch;
  std::string script = "import torch, collections\nstate = collections.OrderedDict()\n";
  for (const auto& [name, shape] : lpips_network_tensors(LpipsBackbone::squeeze)) {
    script += fmt::format("state['features.{}'] = torch.rand({})\n", name, fmt::format("{}", fmt::join(shape, ", ")));
  }
  script += "state['classifier.1.weight'] = torch.rand(4)\n";
  script += fmt::format("torch.save(state, '{}')\n", scratch.path("squeezenet.pth"));
  scratch.write("make.py", script);
  const std::string command = fmt::format("/usr/bin/python3 '{}' > /dev/null 2>&1", scratch.path("make.py"));
  if (std::system(command.c_str()) != 0) GTEST_SKIP() << "python3-torch is not installed";

  const WeightFolder to(scratch.path("weights"));
  const ImportedWeights done = import_weights("squeezenet", scratch.path("squeezenet.pth"), to);
  EXPECT_EQ(done.tensors, lpips_network_tensors(LpipsBackbone::squeeze).size());
  const LpipsNetwork network(LpipsBackbone::squeeze, to.existing("squeezenet"));
  expect_error([&] { import_weights("alexnet", scratch.path("squeezenet.pth"), to); },
               {"squeezenet.pth", "does not hold the weights 'alexnet'", "0.weight", "[64,3,11,11]", "[64,3,3,3]"});
  EXPECT_FALSE(to.has("alexnet"));
}

}  // namespace
}  // namespace convssm::metrics
