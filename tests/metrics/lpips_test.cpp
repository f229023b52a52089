// LPIPS against PyTorch with weights by a formula (tools/golden/make_lpips.py), its gradients, and what is refused. Published values:
// published_test.cpp.
#include "convssm/metrics/lpips.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "convssm/io/npz.h"
#include "convssm/io/png.h"
#include "convssm/io/tensor.h"
#include "convssm/metrics/lpips_kernels.h"
#include "convssm/metrics/pixels.h"
#include "convssm/ops/isa.h"
#include "tests/base/scratch_folder.h"
#include "tests/support.h"

namespace convssm::metrics {
namespace {

using testing::distance;
using testing::expect_error;
using testing::randn;

constexpr LpipsBackbone kBackbones[] = {LpipsBackbone::squeeze, LpipsBackbone::alex, LpipsBackbone::vgg};

// Number i of tensor t of the golden file's weights, in [0,1).
double uniform(uint32_t t, uint32_t i) {
  uint32_t x = t * 0x9E3779B9u + i;
  x = (x ^ (x >> 16)) * 0x7FEB352Du;
  x = (x ^ (x >> 15)) * 0x846CA68Bu;
  return (x ^ (x >> 16)) / 4294967296.0;
}

io::NamedArray formula(const std::string& name, uint32_t t, std::vector<int64_t> shape, double scale, double offset) {
  io::NamedArray named{name, io::Array(io::DType::f32, std::move(shape))};
  uint32_t i = 0;
  for (float& value : named.array.values<float>()) value = static_cast<float>((uniform(t, i++) + offset) * scale);
  return named;
}

using Shape = std::vector<int64_t>;

std::vector<std::pair<std::string, Shape>> convolutions(LpipsBackbone backbone) {
  if (backbone == LpipsBackbone::alex) {
    return {{"0", {64, 3, 11, 11}},
            {"3", {192, 64, 5, 5}},
            {"6", {384, 192, 3, 3}},
            {"8", {256, 384, 3, 3}},
            {"10", {256, 256, 3, 3}}};
  }
  std::vector<std::pair<std::string, Shape>> out{{"0", {64, 3, 3, 3}}};
  if (backbone == LpipsBackbone::vgg) {
    const int64_t numbers[] = {2, 5, 7, 10, 12, 14, 17, 19, 21, 24, 26, 28};
    const int64_t widths[] = {64, 128, 128, 256, 256, 256, 512, 512, 512, 512, 512, 512};
    for (int i = 0; i < 12; ++i) {
      out.push_back({std::to_string(numbers[i]), {widths[i], out.back().second[0], 3, 3}});
    }
    return out;
  }
  const int64_t numbers[] = {3, 4, 6, 7, 9, 10, 11, 12}, squeezed[] = {16, 16, 32, 32, 48, 48, 64, 64};
  int64_t in = 64;
  for (int i = 0; i < 8; in = 8 * squeezed[i++]) {
    const std::string name = std::to_string(numbers[i]);
    out.push_back({name + ".squeeze", {squeezed[i], in, 1, 1}});
    out.push_back({name + ".expand1x1", {4 * squeezed[i], squeezed[i], 1, 1}});
    out.push_back({name + ".expand3x3", {4 * squeezed[i], squeezed[i], 3, 3}});
  }
  return out;
}

// The metric with the golden file's weights, through files in `folder`.
Lpips formula_lpips(LpipsBackbone backbone, const ScratchFolder& folder) {
  std::vector<io::NamedArray> features, heads;
  uint32_t t = 0;
  for (const auto& [name, shape] : convolutions(backbone)) {
    const double fan_in = static_cast<double>(shape[1] * shape[2] * shape[3]);
    features.push_back(formula(name + ".weight", t++, shape, 2 * std::sqrt(6 / fan_in), -0.5));
    features.push_back(formula(name + ".bias", t++, {shape[0]}, 0.2, -0.5));
  }
  for (const int64_t channels : LpipsNetwork::channels(backbone)) {
    const std::string name = "lin" + std::to_string(heads.size()) + ".model.1.weight";
    heads.push_back(formula(name, t++, {1, channels, 1, 1}, 1, 0));
  }
  const std::string base = folder.path(lpips_name(backbone));
  io::write_safetensors(base + ".features", features);
  io::write_safetensors(base + ".heads", heads);
  return {backbone, base + ".features", base + ".heads"};
}

const Lpips& formula_squeeze() {
  static const ScratchFolder folder;
  static const Lpips lpips = formula_lpips(LpipsBackbone::squeeze, folder);
  return lpips;
}

at::Tensor frames(at::IntArrayRef shape, uint64_t seed) { return randn(shape, seed).sigmoid().to(at::kFloat); }

TEST(LpipsGolden, EveryLayerOfEveryBackboneIsThatOfPyTorch) {
  const io::NpzFile file(CONVSSM_SOURCE_DIR "/tests/golden/lpips.npz");
  const auto read = [&](const std::string& name) { return io::to_tensor(file.read(name)); };
  for (const LpipsBackbone backbone : kBackbones) {
    const ScratchFolder folder;
    const Lpips lpips = formula_lpips(backbone, folder);
    const std::string kind = std::string(lpips_name(backbone)).substr(6);
    for (const std::string name : {"rgb", "grey"}) {
      const auto truth = u8_to_f01(read(name + ".truth")), forecast = u8_to_f01(read(name + ".forecast"));
      const auto expected = read(name + "." + kind);
      const auto relative = [&](const at::Tensor& found) {
        return distance(found / expected, at::ones_like(expected));
      };
      EXPECT_LT(relative(lpips.layers(truth, forecast)), 4e-5) << name << " " << kind;
      const auto total = lpips(truth, forecast), loss = lpips.loss(truth * 2 - 1, forecast * 2 - 1);
      EXPECT_LT(distance(total / expected.sum(0), at::ones_like(total)), 1e-5) << name << " " << kind;
      EXPECT_LT(distance(loss / expected.sum(0), at::ones_like(total)), 1e-5) << name << " " << kind;
    }
  }
}

TEST(Lpips, IsZeroForIdenticalFramesAndSymmetric) {
  const auto x = frames({3, 3, 40, 33}, 1), y = frames({3, 3, 40, 33}, 2);
  EXPECT_EQ(formula_squeeze()(x, x).abs().max().item<double>(), 0);
  EXPECT_LT(distance(formula_squeeze()(x, y), formula_squeeze()(y, x)), 1e-6);
  EXPECT_GT(formula_squeeze()(x, y).min().item<double>(), 0);
}

TEST(Lpips, OfManyFramesIsThatOfEachFrame) {
  const auto x = frames({5, 9, 1, 35, 32}, 1), y = frames({5, 9, 1, 35, 32}, 2);
  const auto all = formula_squeeze().layers(x, y);
  ASSERT_EQ(all.sizes(), at::IntArrayRef({7, 5, 9}));
  ASSERT_EQ(formula_squeeze()(x, y).sizes(), at::IntArrayRef({5, 9}));
  for (int64_t i : {0, 2, 4}) {
    EXPECT_LT(distance(formula_squeeze().layers(x[i][8], y[i][8]), all.select(1, i).select(1, 8)), 1e-6);
  }
  const auto rgb = [](const at::Tensor& grey) { return grey.expand({5, 9, 3, 35, 32}); };
  EXPECT_LT(distance(formula_squeeze().layers(rgb(x), rgb(y)), all), 1e-6);
}

TEST(Lpips, DoesNotDependOnTheThreadsOrTheLayout) {
  const auto x = frames({21, 3, 64, 64}, 1), y = frames({21, 3, 64, 64}, 2);
  const auto many = formula_squeeze()(x, y);
  const auto last = [](const at::Tensor& t) { return t.contiguous(at::MemoryFormat::ChannelsLast); };
  EXPECT_LT(distance(formula_squeeze()(last(x), last(y)), many), 1e-6);
  const int threads = at::get_num_threads();
  for (const int count : {1, 2}) {
    at::set_num_threads(count);
    EXPECT_LT(distance(formula_squeeze()(x, y), many), 1e-6);
  }
  at::set_num_threads(threads);
}

TEST(Lpips, LossIsTheMetric) {
  const auto x = frames({3, 3, 37, 50}, 1), y = frames({3, 3, 37, 50}, 2);
  const auto metric = formula_squeeze()(x, y);
  const auto loss = formula_squeeze().loss((x * 2 - 1).requires_grad_(), y * 2 - 1);
  EXPECT_TRUE(loss.requires_grad());
  EXPECT_LT(distance(loss.detach().to(at::kDouble), metric), 1e-5);
  const auto wide = formula_squeeze().to(at::kDouble).loss(x.to(at::kDouble) * 2 - 1, y.to(at::kDouble) * 2 - 1);
  EXPECT_EQ(wide.scalar_type(), at::kDouble);
  EXPECT_LT(distance(wide, metric), 1e-5);
}

// The slope along random directions, in float64. A step over a corner of ReLU or of a maximum would show: the step is
// small, and the features of random frames have no ties.
TEST(Lpips, GradientIsThatOfFiniteDifferences) {
  const Lpips lpips = formula_squeeze().to(at::kDouble);
  auto x = randn({2, 1, 32, 34}, 1).tanh().requires_grad_(), y = randn({2, 1, 32, 34}, 2).tanh().requires_grad_();
  const auto gradients = torch::autograd::grad({lpips.loss(x, y).sum()}, {x, y});
  const torch::NoGradGuard no_grad;
  for (uint64_t seed = 3; seed < 8; ++seed) {
    const auto u = randn({2, 1, 32, 34}, seed), v = randn({2, 1, 32, 34}, seed + 10);
    const auto at = [&](double h) { return lpips.loss(x + h * u, y + h * v).sum().item<double>(); };
    const double h = 1e-7, slope = (at(h) - at(-h)) / (2 * h);
    const double expected = (gradients[0] * u + gradients[1] * v).sum().item<double>();
    EXPECT_NEAR(slope, expected, 1e-6 * std::abs(expected) + 1e-8);
  }
}

TEST(Lpips, GradientIsFiniteWhereNothingIsActive) {
  for (const double brightness : {-1.0, 0.0, 1.0}) {
    auto x = at::full({1, 3, 48, 48}, brightness).requires_grad_();
    const auto same = formula_squeeze().loss(x, x.detach());
    EXPECT_EQ(same.item<double>(), 0);
    EXPECT_TRUE(at::isfinite(torch::autograd::grad({same}, {x})[0]).all().item<bool>());
    const auto other = formula_squeeze().loss(x, frames({1, 3, 48, 48}, 1));
    EXPECT_TRUE(at::isfinite(torch::autograd::grad({other}, {x})[0]).all().item<bool>());
  }
  // Heavily negative biases switch off whole layers.
  const ScratchFolder folder;
  formula_lpips(LpipsBackbone::alex, folder);
  auto tensors = io::load_tensors(folder.path("lpips_alex.features"));
  for (auto& [name, tensor] : tensors) {
    if (name == "3.bias") tensor.fill_(-1e3);
  }
  io::save_tensors(folder.path("dark.features"), tensors);
  const Lpips dark(LpipsBackbone::alex, folder.path("dark.features"), folder.path("lpips_alex.heads"));
  auto x = frames({2, 3, 40, 40}, 1).requires_grad_();
  const auto loss = dark.loss(x, frames({2, 3, 40, 40}, 2));
  const auto gradient = torch::autograd::grad({loss.sum()}, {x})[0];
  EXPECT_TRUE(at::isfinite(gradient).all().item<bool>());
  EXPECT_GT(gradient.abs().max().item<double>(), 0);
  EXPECT_EQ(dark.layers(x.detach(), frames({2, 3, 40, 40}, 2))[1].abs().max().item<double>(), 0);
}

TEST(Lpips, TargetWithoutGradientsGetsNone) {
  auto x = frames({1, 3, 32, 32}, 1).requires_grad_();
  const auto y = frames({1, 3, 32, 32}, 2);
  formula_squeeze().loss(x, y).sum().backward();
  EXPECT_TRUE(x.grad().defined());
  EXPECT_FALSE(y.grad().defined());
}

TEST(LpipsKernels, MatchTensorOperationsWithEveryInstructionSet) {
  const auto nhwc = [](at::IntArrayRef shape, uint64_t seed) {
    return randn(shape, seed).to(at::kFloat).contiguous(at::MemoryFormat::ChannelsLast);
  };
  for (const std::string& isa : ops::isa_names()) {
    ops::force_isa(isa);
    for (const int64_t channels : {1, 7, 16, 64, 83}) {
      const auto f = nhwc({1, channels, 5, 6}, 1), g = nhwc({1, channels, 5, 6}, 2);
      const auto head = randn({channels}, 3).abs().to(at::kFloat);
      const auto unit = [](const at::Tensor& t) {
        return t.to(at::kDouble) / (t.to(at::kDouble).norm(2, 1, true) + 1e-10);
      };
      const auto expected = ((unit(f) - unit(g)).square() * head.view({1, -1, 1, 1})).sum().item<double>();
      const auto* x = f.data_ptr<float>();
      const auto* y = g.data_ptr<float>();
      EXPECT_NEAR(lpips_sum({x, y, head.data_ptr<float>(), 30, channels}) / expected, 1, 1e-5) << isa;

      auto both = at::empty({1, 2 * channels, 5, 6}, at::MemoryFormat::ChannelsLast);
      relu_concat({x, y, both.data_ptr<float>(), 30, channels});
      EXPECT_EQ(distance(both, at::relu(at::cat({f, g}, 1))), 0) << isa;

      for (const auto& [kernel, ceil] : std::vector<std::pair<int64_t, bool>>{{3, true}, {3, false}, {2, false}}) {
        const auto wanted = at::max_pool2d(f, kernel, 2, 0, 1, ceil);
        auto pooled = at::empty(wanted.sizes(), at::MemoryFormat::ChannelsLast);
        max_pool({x, pooled.data_ptr<float>(), 5, 6, channels, wanted.size(2), wanted.size(3), kernel});
        EXPECT_EQ(distance(pooled, wanted), 0) << isa << " kernel " << kernel;
      }
    }
  }
  ops::force_isa("");
}

TEST(Lpips, RefusesOtherFrames) {
  const Lpips& lpips = formula_squeeze();
  const auto good = frames({2, 3, 32, 40}, 1);
  const auto refused = [&](const at::Tensor& x, const at::Tensor& y, std::vector<std::string> parts) {
    parts.insert(parts.begin(), "[lpips_squeeze]");
    expect_error([&] { lpips(x, y); }, parts);
  };
  refused(good * 2 - 1, good, {"truth", "[0,1]", "-0."});
  refused(good, good * 255, {"forecast", "[0,1]"});
  refused(good, good * NAN, {"forecast", "NaN"});
  refused(good, good[0], {"[2,3,32,40]", "[3,32,40]"});
  refused(good.narrow(1, 0, 2), good.narrow(1, 0, 2), {"1 or 3 channels", "2"});
  refused(good.narrow(3, 0, 31), good.narrow(3, 0, 31), {"32x32", "32x31"});
  refused(good, good.to(at::kByte), {"float32", "u8_to_f01"});
  expect_error([&] { lpips.loss(good, good[0]); }, {"[lpips_squeeze]", "y must be [2,3,32,40]", "[3,32,40]"});
  expect_error([&] { lpips.loss(good[0], good[0]); }, {"[lpips_squeeze]", "[N,C,H,W]"});
  expect_error([&] { lpips.loss(good.to(at::kDouble), good); }, {"[lpips_squeeze]", "x must be float32", "float64"});
  expect_error([&] { lpips.to(at::kDouble)(good, good); }, {"[lpips_squeeze]", "weights", "float32", "float64"});
}

TEST(Lpips, RefusesWeightsOfAnotherBackbone) {
  const ScratchFolder folder;
  formula_lpips(LpipsBackbone::squeeze, folder);
  formula_lpips(LpipsBackbone::alex, folder);
  const auto path = [&](const char* name) { return folder.path(name); };
  const auto make = [&](LpipsBackbone backbone, const char* features, const char* heads) {
    return [=, &path] { Lpips(backbone, path(features), path(heads)); };
  };
  expect_error(make(LpipsBackbone::alex, "lpips_squeeze.features", "lpips_alex.heads"),
               {"[lpips_alex]", path("lpips_squeeze.features"), "0.weight", "[64,3,11,11]", "got f32 [64,3,3,3]"});
  expect_error(make(LpipsBackbone::vgg, "lpips_squeeze.features", "lpips_alex.heads"),
               {"[lpips_vgg]", "2.weight", "[64,64,3,3]", "no such tensor"});
  expect_error(make(LpipsBackbone::squeeze, "lpips_squeeze.features", "lpips_alex.heads"),
               {"[lpips_squeeze]", path("lpips_alex.heads"), "lin1.model.1.weight", "[1,128,1,1]", "[1,192,1,1]"});

  auto tensors = io::load_tensors(path("lpips_alex.features"));
  tensors[0].second.view({-1})[5] = NAN;
  io::save_tensors(path("nan.features"), tensors);
  expect_error(make(LpipsBackbone::alex, "nan.features", "lpips_alex.heads"),
               {"[lpips_alex]", "0.weight", "nan.features", "NaN"});
}

}  // namespace
}  // namespace convssm::metrics
