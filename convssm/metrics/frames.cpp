// The range is checked and not repaired: frames in [-1,1] or in [0,255] give plausible numbers in any metric, and
// nobody would notice. Leading dimensions are kept aside, so that every metric works on a plain list of frames.
#include "convssm/metrics/frames.h"

#include <ATen/ATen.h>

#include <cmath>

#include "convssm/ops/check.h"

namespace convssm::metrics {
namespace {

void check_frames(const char* metric, const char* name, const at::Tensor& x, at::ScalarType type,
                  const char* expected) {
  ops::require(metric, x.defined(), "{} must be frames [...,C,H,W], got an undefined tensor", name);
  ops::require(metric, x.dim() >= 3 && x.numel() > 0, "{} must be frames [...,C,H,W] with no size 0, got {}", name,
               ops::shape_text(x.sizes()));
  ops::require(metric, x.scalar_type() == type, "{} must be {}, got {}", name, expected, ops::dtype_text(x));
}

FramePairs check_pairs(const char* metric, const at::Tensor& truth, const at::Tensor& forecast, at::ScalarType type,
                       const char* expected) {
  check_frames(metric, "truth", truth, type, expected);
  check_frames(metric, "forecast", forecast, type, expected);
  ops::require(metric, truth.sizes() == forecast.sizes(), "forecast must be {} as truth is, got {}",
               ops::shape_text(truth.sizes()), ops::shape_text(forecast.sizes()));
  FramePairs pairs;
  pairs.truth = truth.detach().cpu().contiguous();
  pairs.forecast = forecast.detach().cpu().contiguous();
  pairs.leading = truth.sizes().slice(0, truth.dim() - 3).vec();
  pairs.channels = truth.size(-3);
  pairs.height = truth.size(-2);
  pairs.width = truth.size(-1);
  pairs.frames = truth.numel() / pairs.frame();
  return pairs;
}

}  // namespace

void check_f01_range(const char* metric, const char* name, const at::Tensor& x) {
  const auto [low, high] = at::aminmax(x);
  const float least = low.item<float>(), most = high.item<float>();
  if (std::isnan(least) || std::isnan(most)) {
    fail(ErrorKind::numeric, "[{}] {} holds NaN; the model has diverged or the file is damaged", metric, name);
  }
  ops::require(metric, least >= 0 && most <= 1,
               "{} must be in [0,1], got values from {} to {}; use u8_to_f01(truncate_u8(x)) for frames in [-1,1]",
               name, least, most);
}

FramePairs check_f01_frames(const char* metric, const at::Tensor& truth, const at::Tensor& forecast) {
  const FramePairs pairs = check_pairs(metric, truth, forecast, at::kFloat,
                                       "float32 in [0,1] (use u8_to_f01 for bytes, .to(float32) for other floats)");
  check_f01_range(metric, "truth", truth);
  check_f01_range(metric, "forecast", forecast);
  return pairs;
}

FramePairs check_u8_frames(const char* metric, const at::Tensor& truth, const at::Tensor& forecast) {
  return check_pairs(metric, truth, forecast, at::kByte, "uint8 (use truncate_u8 for frames in [-1,1])");
}

}  // namespace convssm::metrics
