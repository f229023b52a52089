// At each level of a pyramid, the earlier frame is warped by the motion so far, and what is left is solved for in Gaussian
// windows. Then the motion is averaged with its neighbours, each by how well its window told it: flat regions follow textured
// ones. Values are centred and their tails drawn in, which moves nothing and keeps single cells of heavy rain from deciding.
#include "convssm/evaluate/advection.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "convssm/base/error.h"
#include "convssm/metrics/measured.h"

namespace convssm::evaluate {
namespace {

constexpr int64_t kFrames = 3, kSmallest = 16, kLevels = 5, kIterations = 4;
constexpr double kWindow = 4, kSmoothing = 6;  // pixels, of each level

// [size,size]: Gaussian weights of the neighbours of each pixel of a line, nothing outside.
at::Tensor gaussian_band(int64_t size, double sigma) {
  const at::Tensor place = at::arange(size, at::kFloat), apart = (place.unsqueeze(1) - place).abs();
  const at::Tensor weights = at::exp(-apart.square() / (2 * sigma * sigma)) * (apart <= std::ceil(3 * sigma));
  return weights / (sigma * std::sqrt(2 * std::numbers::pi));
}

// Of [...,H,W], as two products of matrices: a convolution of one channel costs several times that.
at::Tensor blur(const at::Tensor& x, double sigma) {
  return at::matmul(gaussian_band(x.size(-2), sigma), at::matmul(x, gaussian_band(x.size(-1), sigma)));
}

// Mean of x in Gaussian windows, each pixel by its weight [n,1,H,W].
at::Tensor weighted_blur(const at::Tensor& x, const at::Tensor& weight, double sigma) {
  return blur(x * weight, sigma) / blur(weight, sigma).clamp_min(1e-20);
}

// x [n,c,H,W] at the places [n,2,H,W] in pixels, x before y; outside the nearest pixel.
at::Tensor sample(const at::Tensor& x, const at::Tensor& places) {
  const auto scaled = [](const at::Tensor& p, int64_t size) {
    return size > 1 ? p * (2.0 / static_cast<double>(size - 1)) - 1 : at::zeros_like(p);
  };
  const at::Tensor grid =
      at::stack({scaled(places.select(1, 0), x.size(3)), scaled(places.select(1, 1), x.size(2))}, 3);
  return at::grid_sampler(x, grid, 0, 1, true);  // bilinear, border
}

at::Tensor pixel_places(int64_t height, int64_t width) {  // [1,2,H,W]
  const at::Tensor y = at::arange(height, at::kFloat).view({-1, 1}).expand({height, width});
  const at::Tensor x = at::arange(width, at::kFloat).expand({height, width});
  return at::stack({x, y}).unsqueeze(0);
}

// Central differences inside, zero at the edge.
at::Tensor slope(const at::Tensor& x, int64_t dim) {
  at::Tensor out = at::zeros_like(x);
  const int64_t size = x.size(dim);
  if (size < 3) return out;
  out.slice(dim, 1, size - 1).copy_((x.slice(dim, 2) - x.slice(dim, 0, size - 2)) / 2);
  return out;
}

// [n,T,H,W] without what moves nothing: mean 0, tails like a logarithm; 0 where not measured.
at::Tensor drawn_in(const at::Tensor& frames, const at::Tensor& weight) {
  const at::Tensor count = weight.sum({1, 2, 3}, true).clamp_min(1);
  const at::Tensor x = (frames - (frames * weight).sum({1, 2, 3}, true) / count) * weight;
  const at::Tensor size = x.abs().sum({1, 2, 3}, true) / count;
  return at::asinh(x / size.clamp_min(1e-12));
}

struct Level {
  at::Tensor frames, weight;  // [n,T,H,W]
};

at::Tensor halved(const at::Tensor& x) { return at::avg_pool2d(x, 2); }

// Fine to coarse.
std::vector<Level> pyramid(const at::Tensor& frames, const at::Tensor& weight) {
  std::vector<Level> levels = {{drawn_in(frames, weight), weight}};
  while (static_cast<int64_t>(levels.size()) < kLevels &&
         std::min(levels.back().frames.size(2), levels.back().frames.size(3)) >= 2 * kSmallest) {
    const Level& last = levels.back();
    const at::Tensor w = halved(last.weight);
    levels.push_back({halved(last.frames * last.weight) / w.clamp_min(1e-6), w});
  }
  for (Level& level : levels) level.frames = weighted_blur(level.frames, level.weight, 1) * (level.weight > 0);
  return levels;
}

// Adds to the sums of the normal equations what is left between two frames [n,1,H,W] after the motion so far.
void add_equations(const at::Tensor& before, const at::Tensor& after, const at::Tensor& seen_before,
                   const at::Tensor& seen_after, const at::Tensor& from, at::Tensor& sums) {
  const at::Tensor warped = sample(before, from);
  const int64_t H = after.size(2), W = after.size(3);
  const at::Tensor x = from.slice(1, 0, 1), y = from.slice(1, 1, 2);
  const at::Tensor inside = (x >= 0).logical_and(x <= W - 1).logical_and(y >= 0).logical_and(y <= H - 1);
  const at::Tensor w = inside * sample(seen_before, from) * seen_after;
  const at::Tensor middle = (warped + after) / 2, gx = slope(middle, 3), gy = slope(middle, 2), d = after - warped;
  const at::Tensor more = at::cat({w * gx * gx, w * gx * gy, w * gy * gy, w * gx * d, w * gy * d}, 1);
  sums = sums.defined() ? sums + more : more;
}

at::Tensor refine(const Level& level, at::Tensor motion) {
  const int64_t T = level.frames.size(1);
  const at::Tensor here = pixel_places(motion.size(2), motion.size(3));
  const auto of = [](const at::Tensor& x, int64_t t) { return x.slice(1, t, t + 1); };
  for (int64_t i = 0; i < kIterations; ++i) {
    at::Tensor sums;
    for (int64_t t = 0; t + 1 < T; ++t) {
      add_equations(of(level.frames, t), of(level.frames, t + 1), of(level.weight, t), of(level.weight, t + 1),
                    here - motion, sums);
    }
    sums = blur(sums, kWindow);
    const at::Tensor xx = of(sums, 0), xy = of(sums, 1), yy = of(sums, 2), xd = of(sums, 3), yd = of(sums, 4);
    const at::Tensor ground = 1e-3 * (xx + yy).mean({2, 3}, true) + 1e-12;  // less texture than this tells nothing
    const at::Tensor a = xx + ground, c = yy + ground, determinant = a * c - xy * xy;
    const at::Tensor step = at::cat({xy * yd - c * xd, xy * xd - a * yd}, 1) / determinant;
    motion = motion + step.clamp(-4, 4);
    const at::Tensor told = ((xx * yy - xy * xy).clamp_min(0) / (xx + yy + ground)) + 1e-6 * ground;
    motion = weighted_blur(motion, told, kSmoothing);
  }
  return motion;
}

class Advection : public Reference {
 public:
  at::Tensor forecast(const Past& past, int64_t frames) const override {
    const int64_t B = past.video.size(0), K = past.video.size(1), C = past.video.size(2), H = past.video.size(3),
                  W = past.video.size(4), first = std::max<int64_t>(0, K - kFrames);
    const auto planes = [&](const at::Tensor& x) {
      return x.slice(1, first).transpose(1, 2).reshape({B * C, K - first, H, W});
    };
    const at::Tensor video = planes(past.video).to(at::kFloat);
    const at::Tensor valid = past.valid.defined() ? planes(past.valid) : at::Tensor();
    const at::Tensor motion = K > 1 ? motion_of(video, valid) : at::zeros({B * C, 2, H, W});
    at::Tensor last = metrics::last_measured(past.video, past.valid).view({B * C, H, W}).to(at::kFloat);
    if (past.valid.defined()) last = filled(last, past.valid.any(1).view({B * C, H, W}));
    return carry_on(last, motion, frames).view({B, C, frames, H, W}).transpose(1, 2).contiguous();
  }

  std::string about() const override {
    return fmt::format(
        "the motion of the last {} frames, or of fewer where a context has fewer, of each channel its own; what comes "
        "from outside is the nearest pixel of the edge, around the globe too",
        kFrames);
  }

 private:
  // [n,H,W]: pixels that were never measured from what is around them.
  static at::Tensor filled(const at::Tensor& frame, const at::Tensor& known) {
    const at::Tensor x = frame.unsqueeze(1), w = known.unsqueeze(1).to(at::kFloat);
    const at::Tensor mean = (x * w).sum({2, 3}, true) / w.sum({2, 3}, true).clamp_min(1);
    const at::Tensor near = (blur(x * w, 3) + 1e-6 * mean) / (blur(w, 3) + 1e-6);
    return at::where(known, frame, near.squeeze(1));
  }
};

}  // namespace

at::Tensor motion_of(const at::Tensor& frames, const at::Tensor& valid) {
  const at::Tensor weight = valid.defined() ? valid.to(at::kFloat) : at::ones_like(frames);
  const std::vector<Level> levels = pyramid(frames.to(at::kFloat), weight);
  at::Tensor motion;
  for (size_t i = levels.size(); i-- > 0;) {
    const int64_t H = levels[i].frames.size(2), W = levels[i].frames.size(3);
    if (motion.defined()) {
      motion = 2 * at::upsample_bilinear2d(motion, {H, W}, false);
    } else {
      motion = at::zeros({frames.size(0), 2, H, W});
    }
    motion = refine(levels[i], motion);
  }
  return motion;
}

at::Tensor carry_on(const at::Tensor& frame, const at::Tensor& motion, int64_t steps) {
  const at::Tensor x = frame.unsqueeze(1);
  at::Tensor places = pixel_places(frame.size(1), frame.size(2)).expand_as(motion);
  std::vector<at::Tensor> out;
  for (int64_t k = 0; k < steps; ++k) {
    at::Tensor back = sample(motion, places);
    for (int i = 0; i < 2; ++i) back = sample(motion, places - back / 2);  // that of the middle of the way
    places = places - back;
    out.push_back(sample(x, places));
  }
  return at::cat(out, 1);
}

std::unique_ptr<Reference> make_advection(const data::Dataset& dataset) {
  if (!dataset.codes().none()) fail(ErrorKind::data, "the clips hold codes, not values");
  const data::FrameFormat format = dataset.format();
  if (std::min(format.height, format.width) < kSmallest) {
    fail(ErrorKind::data, "frames of {} x {} are too small to see a motion in, it takes {} x {}", format.height,
         format.width, kSmallest, kSmallest);
  }
  return std::make_unique<Advection>();
}

}  // namespace convssm::evaluate
