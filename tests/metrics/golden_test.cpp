// PSNR and SSIM against scikit-image and NumPy (tools/golden/make_metrics.py), with every instruction set.
#include <gtest/gtest.h>

#include "convssm/io/npz.h"
#include "convssm/io/tensor.h"
#include "convssm/metrics/psnr.h"
#include "convssm/metrics/ssim.h"
#include "convssm/ops/isa.h"
#include "tests/support.h"

namespace convssm::metrics {
namespace {

struct Case {
  std::string name;
  at::Tensor truth, forecast;
  double psnr, ssim;
};

std::vector<Case> cases() {
  const io::NpzFile file(CONVSSM_SOURCE_DIR "/tests/golden/metrics.npz");
  const auto read = [&](const std::string& name) { return io::to_tensor(file.read(name)); };
  std::vector<Case> out;
  for (const std::string& member : file.names()) {
    if (!member.ends_with(".psnr")) continue;
    const std::string name = member.substr(0, member.size() - 5);
    out.push_back({name, read(name + ".truth"), read(name + ".forecast"), read(member).item<double>(),
                   read(name + ".ssim").item<double>()});
  }
  return out;
}

TEST(MetricsGolden, PsnrIsThatOfNumpy) {
  const auto all = cases();
  EXPECT_EQ(all.size(), 8u);
  for (const Case& c : all) EXPECT_NEAR(psnr_f01(c.truth, c.forecast).item<double>(), c.psnr, 1e-9) << c.name;
}

TEST(MetricsGolden, SsimIsThatOfScikitImage) {
  for (const std::string& isa : ops::isa_names()) {
    ops::force_isa(isa);
    for (const Case& c : cases()) {
      EXPECT_NEAR(ssim_gauss11(c.truth, c.forecast).item<double>(), c.ssim, 1e-9) << c.name << " " << isa;
    }
  }
  ops::force_isa("");
}

TEST(MetricsGolden, PlainSsimIsThatOfScikitImage) {
  for (const Case& c : cases()) {
    EXPECT_NEAR(ssim_gauss11_plain(c.truth, c.forecast).item<double>(), c.ssim, 1e-9) << c.name;
  }
}

}  // namespace
}  // namespace convssm::metrics
