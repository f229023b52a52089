// FVD and LPIPS with the published weights against published values, and against values computed independently in PyTorch
// float64 with the same weights (six digits). Where the weights are not at hand, the tests say so and are skipped.
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <memory>
#include <optional>

#include "convssm/io/png.h"
#include "convssm/metrics/fvd.h"
#include "convssm/metrics/lpips.h"
#include "convssm/metrics/pixels.h"
#include "convssm/metrics/weights_import.h"
#include "tests/base/scratch_folder.h"
#include "tests/support.h"

namespace convssm::metrics {
namespace {

using testing::distance;

const std::string kShared = CONVSSM_SOURCE_DIR "/../shared/assets";

// The TensorFlow checkpoint, brought in as a user does it.
class FvdPublished : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(kShared + "/i3d")) GTEST_SKIP() << "no weights of I3D in " << kShared << "/i3d";
    if (net) return;
    const WeightFolder folder(scratch->path("weights"));
    import_weights("i3d", kShared + "/i3d/rgb_scratch.model.ckpt", folder);
    net = std::make_unique<I3d>(folder.existing("i3d"));
  }
  static void SetUpTestSuite() { scratch = std::make_unique<ScratchFolder>(); }
  static void TearDownTestSuite() { net.reset(), scratch.reset(); }

  // Two equal clips on each side: no covariance, so the distance does not depend on their number.
  static double black_against_white(int64_t frames) {
    const auto features = [&](const at::Tensor& clip) { return net->logits(clip).expand({2, -1}); };
    return fvd_i3d(features(at::zeros({frames, 3, 64, 64})), features(at::ones({frames, 3, 64, 64}))).mean;
  }

  inline static std::unique_ptr<ScratchFolder> scratch;
  inline static std::unique_ptr<I3d> net;
};

// Published: by the authors "131" for 15 frames, in TensorFlow 151.39244 for 30; by ports 152.92 and 338.4 for 16 and 20, and
// 151.26 for 30, of one that resizes otherwise.
TEST_F(FvdPublished, BlackAgainstWhiteOverFrames) {
  std::map<int64_t, double> found;
  for (const int64_t frames : {10, 11, 12, 15, 16, 20, 30}) found[frames] = black_against_white(frames);
  const std::map<int64_t, double> computed = {{10, 569.77}, {11, 486.75}, {12, 552.77},  {15, 133.91},
                                              {16, 152.90}, {20, 338.50}, {30, 151.3926}};
  for (const auto& [frames, value] : computed) EXPECT_NEAR(found[frames], value, 0.006) << frames;
  EXPECT_NEAR(found[15], 131, 3);
  EXPECT_NEAR(found[16], 152.92, 0.03);
  EXPECT_NEAR(found[20], 338.4, 0.15);
  EXPECT_NEAR(found[30], 151.39244, 5e-4);
  EXPECT_NEAR(found[30], 151.26, 0.15);
}

TEST_F(FvdPublished, LogitsOfBlack) {
  const at::Tensor logits = net->logits(at::zeros({15, 3, 64, 64}));
  EXPECT_LT(distance(logits.narrow(0, 0, 3), at::tensor({0.742210, 2.829731, 0.399937})), 2e-5);
  EXPECT_LT(distance(logits.narrow(0, 397, 3), at::tensor({-0.380928, 0.655391, -1.402121})), 2e-5);
}

struct LpipsCase {
  LpipsBackbone backbone;
  const char *features, *head;
  std::vector<double> p0, p1;  // of each layer, of the authors' pictures
  double black_white, noise;
};

const LpipsCase kCases[] = {{LpipsBackbone::squeeze,
                             "squeezenet1_1",
                             "squeeze",
                             {0.009891, 0.006903, 0.128810, 0.260978, 0.150681, 0.088142, 0.065643},
                             {0.016713, 0.003597, 0.014524, 0.036913, 0.029506, 0.022360, 0.024287},
                             0.642093,
                             0.100802},
                            {LpipsBackbone::alex,
                             "alexnet",
                             "alex",
                             {0.018132, 0.286968, 0.159858, 0.119004, 0.137919},
                             {0.011739, 0.029715, 0.035380, 0.034368, 0.026363},
                             0.813954,
                             0.148562},
                            {LpipsBackbone::vgg,
                             "vgg16",
                             "vgg",
                             {0.060839, 0.070204, 0.075812, 0.186467, 0.175291},
                             {0.073910, 0.084017, 0.064279, 0.086217, 0.113241},
                             0.453837,
                             0.348524}};

void PrintTo(const LpipsCase& network, std::ostream* out) { *out << network.head; }

at::Tensor picture(const std::string& name) {
  io::Image image = io::read_png(kShared + "/lpips/" + name);
  const auto pixels = at::from_blob(image.pixels.data(), {image.height, image.width, image.channels}, at::kByte);
  return u8_to_f01(pixels.permute({2, 0, 1}).contiguous());
}

Lpips load(const LpipsCase& network) {
  return {network.backbone, kShared + "/lpips/" + network.features + ".features.safetensors",
          kShared + "/lpips/lpips_" + network.head + ".linear.v0_1.safetensors"};
}

class LpipsPublished : public ::testing::TestWithParam<LpipsCase> {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(kShared + "/lpips")) GTEST_SKIP() << "no " << kShared << "/lpips";
    net.emplace(load(GetParam()));
  }
  double sum(const at::Tensor& x, const at::Tensor& y) { return (*net)(x, y).mean().item<double>(); }

  std::optional<Lpips> net;
};

TEST_P(LpipsPublished, AuthorsPicturesLayerByLayer) {
  const auto reference = picture("ex_ref.png"), p0 = picture("ex_p0.png"), p1 = picture("ex_p1.png");
  const auto layers = [](const std::vector<double>& values) { return at::tensor(values, at::kDouble); };
  EXPECT_LT(distance(net->layers(reference, p0), layers(GetParam().p0)), 2e-6);
  EXPECT_LT(distance(net->layers(reference, p1), layers(GetParam().p1)), 2e-6);
  EXPECT_NEAR(sum(reference, p0), layers(GetParam().p0).sum().item<double>(), 4e-6);
  EXPECT_NEAR(sum(reference, p1), layers(GetParam().p1).sum().item<double>(), 4e-6);
}

TEST_P(LpipsPublished, BlackAgainstWhite) {
  const auto black = at::zeros({3, 64, 64}), white = at::ones({3, 64, 64});
  EXPECT_NEAR(sum(black, white), GetParam().black_white, 2e-6);
  EXPECT_NEAR(sum(black[0].unsqueeze(0), white[0].unsqueeze(0)), GetParam().black_white, 2e-6);
}

// The noise of the documentation of torchmetrics, whose value for SqueezeNet is 0.1008.
TEST_P(LpipsPublished, DocumentedNoise) {
  at::manual_seed(123);
  const auto x = at::rand({10, 3, 100, 100}), y = at::rand({10, 3, 100, 100});
  EXPECT_NEAR(sum(x, y), GetParam().noise, 2e-6);
  EXPECT_NEAR(net->loss(x * 2 - 1, y * 2 - 1).mean().item<double>(), GetParam().noise, 2e-6);
}

INSTANTIATE_TEST_SUITE_P(All, LpipsPublished, ::testing::ValuesIn(kCases),
                         [](const auto& network) { return std::string(network.param.head); });

// What others have printed: of the authors' pictures by VGG, of black and white by AlexNet (on a GPU), and of noise by VGG
// (torchmetrics, which may have drawn it otherwise: draws differ by some 1e-3).
TEST(LpipsPrinted, Values) {
  if (!std::filesystem::exists(kShared + "/lpips")) GTEST_SKIP() << "no " << kShared << "/lpips";
  const Lpips alex = load(kCases[1]), vgg = load(kCases[2]);
  const auto value = [](const Lpips& net, const at::Tensor& x, const at::Tensor& y) {
    return net(x, y).mean().item<double>();
  };
  EXPECT_NEAR(value(vgg, picture("ex_ref.png"), picture("ex_p0.png")), 0.569, 5e-4);
  EXPECT_NEAR(value(vgg, picture("ex_ref.png"), picture("ex_p1.png")), 0.422, 5e-4);
  EXPECT_NEAR(value(alex, at::zeros({3, 64, 64}), at::ones({3, 64, 64})), 0.814009, 1e-4);
  at::manual_seed(123);
  const auto x = at::rand({10, 3, 100, 100}), y = at::rand({10, 3, 100, 100});
  EXPECT_NEAR(value(vgg, x, y), 0.3493, 2e-3);
}

}  // namespace
}  // namespace convssm::metrics
