// I3D against an independent PyTorch computation (tools/golden/make_i3d.py), its own plain version, and other windows;
// FVD on top of it. The weights are made up by a formula that both sides know.
#include "convssm/metrics/i3d.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <numeric>

#include "convssm/io/npz.h"
#include "convssm/io/tensor.h"
#include "convssm/metrics/fvd.h"
#include "convssm/metrics/i3d_layout.h"
#include "convssm/metrics/i3d_plain.h"
#include "convssm/metrics/i3d_stream.h"
#include "tests/base/scratch_folder.h"
#include "tests/metrics/i3d_weights.h"
#include "tests/support.h"

namespace convssm::metrics {
namespace {

using testing::distance;
using testing::expect_error;
using testing::max_abs;

class I3dTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    scratch = new ScratchFolder;
    weights = scratch->path("i3d.safetensors");
    io::write_safetensors(weights, testing::made_up_i3d());
  }
  static void TearDownTestSuite() { delete scratch; }

  inline static ScratchFolder* scratch = nullptr;
  inline static std::string weights;
};

at::Tensor random_clip(at::IntArrayRef shape) {
  at::manual_seed(5);
  return at::rand(shape);
}

TEST_F(I3dTest, LogitsAreThoseOfPyTorch) {
  const io::NpzFile file(CONVSSM_SOURCE_DIR "/tests/golden/i3d.npz");
  int cases = 0;
  for (const std::string& member : file.names()) {
    if (!member.ends_with(".clip")) continue;
    const std::string name = member.substr(0, member.find('.'));
    const auto read = [&](const char* part) { return io::to_tensor(file.read(name + part)); };
    I3dOptions options;
    if (read(".half_pixel").item<int64_t>() != 0) options.resize = I3dResize::half_pixel;
    const at::Tensor expected = read(".logits");
    const at::Tensor ours = I3d(weights, options).logits(read(".clip")).to(at::kDouble);
    EXPECT_LT(distance(ours, expected), 2e-5 * max_abs(expected)) << name;
    ++cases;
  }
  EXPECT_EQ(cases, 5);
}

TEST_F(I3dTest, BytesAndFloatsAndThePlainVersionAgree) {
  const at::Tensor bytes = (random_clip({10, 3, 20, 24}) * 255).to(at::kByte);
  const I3d net(weights);
  const at::Tensor ours = net.logits(bytes);
  EXPECT_LT(distance(ours, net.logits(bytes.to(at::kFloat) / 255)), 2e-5 * max_abs(ours));
  EXPECT_LT(distance(ours, i3d_logits_plain(weights, bytes)), 5e-5 * max_abs(ours));
}

TEST_F(I3dTest, TheWindowDoesNotChangeTheResult) {
  const at::Tensor clip = random_clip({43, 1, 32, 32});
  const at::Tensor whole = I3d(weights, {.window = 43}).logits(clip);
  for (const int64_t window : {5, 16, 32}) {
    EXPECT_LT(distance(I3d(weights, {.window = window}).logits(clip), whole), 2e-5 * max_abs(whole)) << window;
  }
}

TEST_F(I3dTest, GreyIsThreeEqualChannels) {
  const at::Tensor grey = random_clip({12, 1, 16, 16});
  const I3d net(weights);
  const at::Tensor ours = net.logits(grey);
  EXPECT_LT(distance(ours, net.logits(grey.expand({12, 3, 16, 16}))), 2e-5 * max_abs(ours));
}

TEST_F(I3dTest, FvdOfIdenticalSetsIsZeroAndOfOthersIsNot) {
  const I3d net(weights);
  const at::Tensor real = random_clip({3, 10, 1, 16, 16}), fake = real.square();
  const at::Tensor a = fvd_features(net, real), b = fvd_features(net, fake);
  EXPECT_EQ(a.sizes(), at::IntArrayRef({3, 400}));
  EXPECT_LT(fvd_i3d(a, fvd_features(net, real.clone())).mean, 1e-6);
  EXPECT_GT(fvd_i3d(a, b).mean, 1e-3);
}

TEST_F(I3dTest, KeepsFeaturesByContent) {
  const ScratchFolder folder;
  const std::string kept = folder.path("features");
  const auto files = [&] {
    std::vector<std::string> paths;
    for (const auto& entry : std::filesystem::directory_iterator(kept)) paths.push_back(entry.path());
    return paths;
  };
  const at::Tensor clip = random_clip({10, 1, 16, 16});
  const at::Tensor plain = I3d(weights).logits(clip), first = I3d(weights, {.features = kept}).logits(clip);
  EXPECT_TRUE(plain.equal(first));
  ASSERT_EQ(files().size(), 1u);
  io::save_tensors(files()[0], {{"features", at::full({400}, 7.0f)}});  // what is there is taken
  EXPECT_TRUE(I3d(weights, {.features = kept}).logits(clip).eq(7).all().item<bool>());
  EXPECT_TRUE(I3d(weights, {.features = kept}).logits(clip.slice(0, 0, 10) * 0.5).ne(7).any().item<bool>());
  I3d(weights, {.resize = I3dResize::half_pixel, .features = kept}).logits(clip);
  EXPECT_EQ(files().size(), 3u);  // another clip, another network
  for (const std::string& path : files()) std::filesystem::resize_file(path, 20);
  EXPECT_TRUE(I3d(weights, {.features = kept}).logits(clip).equal(plain));  // damaged: made anew
}

TEST_F(I3dTest, RefusesWrongClipsAndWeights) {
  const I3d net(weights);
  expect_error([&] { net.logits(random_clip({9, 1, 16, 16})); }, {"[fvd_i3d]", "at least 10 frames", "got 9"});
  expect_error([&] { net.logits(random_clip({12, 2, 16, 16})); }, {"[fvd_i3d]", "1 (grey) or 3 (RGB)", "[12,2,16,16]"});
  expect_error([&] { net.logits(random_clip({12, 3, 16, 16}) * 2 - 1); }, {"[fvd_i3d]", "[0,1]"});
  expect_error([&] { net.logits(random_clip({12, 16, 16})); }, {"[fvd_i3d]", "[T,C,H,W]"});
  expect_error([&] { I3d("/nonexistent"); }, {"/nonexistent"});
  const std::string other = scratch->path("other.safetensors");
  auto tensors = testing::made_up_i3d();
  tensors[0].array = io::Array(io::DType::f32, {7, 7, 7, 3, 63});
  io::write_safetensors(other, tensors);
  expect_error([&] { I3d{other}; }, {"other.safetensors", "Conv3d_1a_7x7/conv_3d/w", "[7, 7, 7, 3, 64]", "63"});
  tensors.erase(tensors.begin());
  io::write_safetensors(other, tensors);
  expect_error([&] { I3d{other}; }, {"other.safetensors", "Conv3d_1a_7x7/conv_3d/w", "rgb_scratch"});
}

TEST(I3dLayout, PaddingIsThatOfTensorFlow) {
  const auto pads = [](int64_t n, int64_t kernel, int64_t stride) {
    const SamePadding p = same_padding(n, kernel, stride);
    return std::pair(p.front, p.back);
  };
  EXPECT_EQ(pads(224, 7, 2), (std::pair<int64_t, int64_t>(2, 3)));
  EXPECT_EQ(pads(17, 7, 2), (std::pair<int64_t, int64_t>(3, 3)));
  EXPECT_EQ(pads(112, 3, 2), (std::pair<int64_t, int64_t>(0, 1)));
  EXPECT_EQ(pads(9, 3, 1), (std::pair<int64_t, int64_t>(1, 1)));
  EXPECT_EQ(pads(5, 2, 2), (std::pair<int64_t, int64_t>(0, 1)));
  EXPECT_EQ(i3d_tensors().size(), 230u);
}

// The names and shapes that the script has compared with the index of the published checkpoint.
TEST(I3dLayout, TensorsAreThoseOfThePublishedCheckpoint) {
  auto tensors = i3d_tensors();
  std::sort(tensors.begin(), tensors.end());
  std::string catalogue;
  int64_t values = 0;
  for (const auto& [name, shape] : tensors) {
    catalogue += name + io::shape_text(shape) + "\n";
    values += std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
  }
  const io::NpzFile file(CONVSSM_SOURCE_DIR "/tests/golden/i3d.npz");
  EXPECT_EQ(testing::crc32(catalogue), io::to_tensor(file.read("catalogue_crc32")).item<int64_t>());
  EXPECT_EQ(4 * values, 50818176);
}

// Sums over time with padding: frames pushed in chunks of any size give what all of them at once give.
TEST(I3dStream, GivesTheSameForAnyChunks) {
  const std::vector<TimeKernel> kernels = {{7, 2}, {3, 1}, {3, 2}, {2, 2}, {3, 1}};
  const auto run = [&](const at::Tensor& clip, int64_t chunk) {
    std::vector<at::Tensor> outputs;
    I3dStream stream(
        kernels, clip.size(1),
        [&](size_t layer, const at::Tensor& x, int64_t front, int64_t back) {
          const TimeKernel k = kernels[layer];
          const at::Tensor padded = at::constant_pad_nd(x, {front, back});
          return padded.unfold(1, k.size, k.stride).sum(-1);
        },
        [&](const at::Tensor& x) { outputs.push_back(x); });
    for (int64_t begin = 0; begin < clip.size(1); begin += chunk) {
      stream.push(clip.slice(1, begin, begin + chunk));
    }
    return at::cat(outputs, 1);
  };
  for (const int64_t frames : {10, 17, 40}) {
    const at::Tensor clip = testing::randn({2, frames}, 3), whole = run(clip, frames);
    EXPECT_EQ(whole.size(1), (((frames + 1) / 2 + 1) / 2 + 1) / 2);
    for (const int64_t chunk : {1, 2, 3, 7, 16}) EXPECT_LT(distance(run(clip, chunk), whole), 1e-12) << chunk;
  }
}

TEST(Fvd, IsTheMeanOverWholeChunks) {
  const at::Tensor real = testing::randn({11, 6}, 1), fake = 2 * testing::randn({11, 6}, 2) + 1;
  const FvdScore score = fvd_i3d(real, fake, 4);
  const auto of = [&](int64_t begin, int64_t end) {
    return fvd_i3d(real.slice(0, begin, end), fake.slice(0, begin, end)).all;
  };
  EXPECT_EQ(score.chunks, 2);
  EXPECT_EQ(score.left_over, 3);
  EXPECT_NEAR(score.mean, (of(0, 4) + of(4, 8)) / 2, 1e-12);
  EXPECT_NEAR(score.deviation, std::abs(of(0, 4) - of(4, 8)) / 2, 1e-12);
  EXPECT_NEAR(score.all, of(0, 11), 1e-12);
  EXPECT_EQ(fvd_i3d(real, fake).mean, score.all);
  expect_error([&] { fvd_i3d(real, fake.narrow(0, 0, 10)); }, {"[fvd_i3d]", "fake"});
  expect_error([&] { fvd_i3d(real, fake, 1); }, {"at least 2 clips", "got 1"});
  expect_error([&] { fvd_i3d(real.narrow(0, 0, 1), fake.narrow(0, 0, 1)); }, {"at least 2 clips"});
}

}  // namespace
}  // namespace convssm::metrics
