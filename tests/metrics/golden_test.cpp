// PSNR, SSIM and pixel sums against scikit-image and NumPy (tools/golden/make_metrics.py), with every instruction set.
#include <gtest/gtest.h>

#include "convssm/io/npz.h"
#include "convssm/io/tensor.h"
#include "convssm/metrics/pixel_sums.h"
#include "convssm/metrics/psnr.h"
#include "convssm/metrics/ssim.h"
#include "convssm/ops/isa.h"
#include "tests/support.h"

namespace convssm::metrics {
namespace {

struct Case {
  std::string name;
  at::Tensor truth, forecast;
  double psnr, ssim, psnr_u8, ssim_uniform7, mse_sum, mae_sum;
};

std::vector<Case> cases() {
  const io::NpzFile file(CONVSSM_SOURCE_DIR "/tests/golden/metrics.npz");
  const auto read = [&](const std::string& name) { return io::to_tensor(file.read(name)); };
  std::vector<Case> out;
  for (const std::string& member : file.names()) {
    if (!member.ends_with(".psnr")) continue;
    const std::string name = member.substr(0, member.size() - 5);
    const auto value = [&](const char* metric) { return read(name + "." + metric).item<double>(); };
    out.push_back({name, read(name + ".truth"), read(name + ".forecast"), value("psnr"), value("ssim"),
                   value("psnr_u8"), value("ssim_uniform7"), value("mse_sum"), value("mae_sum")});
  }
  return out;
}

TEST(MetricsGolden, PsnrIsThatOfNumpy) {
  const auto all = cases();
  EXPECT_EQ(all.size(), 8u);
  for (const Case& c : all) EXPECT_NEAR(psnr_f01(c.truth, c.forecast).item<double>(), c.psnr, 1e-9) << c.name;
}

TEST(MetricsGolden, PsnrOfBytesIsThatOfScikitImage) {
  const auto bytes = [](const at::Tensor& x) { return at::round(x.to(at::kDouble) * 255).to(at::kByte); };
  for (const Case& c : cases()) {
    const double ours = psnr_u8(bytes(c.truth), bytes(c.forecast)).item<double>();
    EXPECT_TRUE(ours == c.psnr_u8 || std::abs(ours - c.psnr_u8) < 1e-9) << c.name << " " << ours;  // one is infinite
  }
}

TEST(MetricsGolden, PixelSumsAreThoseOfNumpy) {
  for (const Case& c : cases()) {
    EXPECT_NEAR(mse_sum(c.truth, c.forecast).item<double>(), c.mse_sum, 1e-12 * (1 + c.mse_sum)) << c.name;
    EXPECT_NEAR(mae_sum(c.truth, c.forecast).item<double>(), c.mae_sum, 1e-12 * (1 + c.mae_sum)) << c.name;
  }
}

TEST(MetricsGolden, SsimIsThatOfScikitImage) {
  for (const std::string& isa : ops::isa_names()) {
    ops::force_isa(isa);
    for (const Case& c : cases()) {
      EXPECT_NEAR(ssim_gauss11(c.truth, c.forecast).item<double>(), c.ssim, 1e-9) << c.name << " " << isa;
      EXPECT_NEAR(ssim_uniform7(c.truth, c.forecast).item<double>(), c.ssim_uniform7, 1e-9) << c.name << " " << isa;
    }
  }
  ops::force_isa("");
}

TEST(MetricsGolden, PlainSsimIsThatOfScikitImage) {
  for (const Case& c : cases()) {
    EXPECT_NEAR(ssim_gauss11_plain(c.truth, c.forecast).item<double>(), c.ssim, 1e-9) << c.name;
    EXPECT_NEAR(ssim_uniform7_plain(c.truth, c.forecast).item<double>(), c.ssim_uniform7, 1e-9) << c.name;
  }
}

}  // namespace
}  // namespace convssm::metrics
