// What was not measured counts in no metric.
#include "convssm/metrics/measured.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>

#include "convssm/metrics/psnr.h"

namespace convssm::metrics {
namespace {

TEST(Measured, PsnrIsThatOfTheMeasuredPixels) {
  const at::Tensor truth = at::rand({2, 3, 1, 6, 8}) - 0.5, video = truth + 0.2 * at::rand({2, 3, 1, 6, 8});
  at::Tensor valid = at::ones(truth.sizes(), at::kBool);
  valid.slice(4, 0, 3).fill_(false);
  valid[1][2].fill_(false);
  const auto psnr = [&](const at::Tensor& x) {
    const Measured clips(truth, valid);
    const Frames a = clips.truth(false), b = clips.forecast(x, false);
    return of_measured("psnr_f01", psnr_f01(a.f01, b.f01), a.share);
  };
  const at::Tensor found = psnr(video);
  EXPECT_TRUE(found.slice(0, 0, 1).equal(psnr(at::where(valid, video, at::full({}, 0.9f))).slice(0, 0, 1)));
  EXPECT_TRUE(std::isnan(found[1][2].item<double>())) << "of a frame without any";
  const at::Tensor error = ((video - truth) / 2).slice(4, 3).to(at::kDouble).square().mean({2, 3, 4});
  EXPECT_TRUE(found[0].allclose(-10 * error[0].log10(), 1e-4, 1e-4));
  EXPECT_FALSE(Measured(truth, {}).truth(false).share.defined());
}

TEST(Measured, TheLastValueIsTheLastThatWasMeasured) {
  const at::Tensor video = at::arange(8, at::kFloat).view({1, 4, 1, 1, 2});
  at::Tensor valid = at::ones(video.sizes(), at::kBool);
  valid[0][3][0][0][1] = false, valid[0][2][0][0][1] = false;
  EXPECT_TRUE(last_measured(video, valid).flatten().equal(at::tensor({6.0f, 3.0f})));
  EXPECT_TRUE(last_measured(video, {}).flatten().equal(at::tensor({6.0f, 7.0f})));
}

}  // namespace
}  // namespace convssm::metrics
