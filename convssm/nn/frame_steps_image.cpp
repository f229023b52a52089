// Steps of a plan between frames of pixels and feature maps, and between resolutions. Frames at the doors are [B,C,H,W]
// as users have them, buffers are [B,H,W,C]; the turn is made here, with the edge repeated where the model needs a
// larger size.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>

#include "convssm/nn/frame_plan.h"
#include "convssm/nn/frame_steps.h"
#include "convssm/ops/check.h"
#include "convssm/ops/frame_kernels.h"

namespace convssm::nn {

Buffer FramePlan::pool2(Buffer x) {
  ops::require("FramePlan", x.height % 2 == 0 && x.width % 2 == 0, "pool2 takes an even size, got {} x {}", x.height,
               x.width);
  const Buffer y = make(x.channels, x.height / 2, x.width / 2);
  step({x, y}, [this, x, y] {
    // Lines of all frames of the batch follow each other, as their pairs of lines do.
    at::parallel_for(0, batch() * y.height, grain(x.width * x.channels), [&](int64_t begin, int64_t end) {
      ops::pool2_rows({begin, end, y.width, y.channels, at(x), at(y)});
    });
  });
  return y;
}

Buffer FramePlan::double_size(Buffer x) {
  const Buffer y = make(x.channels, 2 * x.height, 2 * x.width);
  step({x, y}, [this, x, y] {
    const int64_t C = x.channels, line = x.width * C;
    at::parallel_for(0, batch() * x.height, grain(4 * line), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const float* from = at(x) + i * line;
        float* to = at(y) + 4 * i * line;
        for (int64_t j = 0; j < x.width; ++j, from += C) {
          to = std::copy_n(from, C, to);
          to = std::copy_n(from, C, to);
        }
        std::copy_n(to - 2 * line, 2 * line, to);
      }
    });
  });
  return y;
}

Buffer FramePlan::from_frame(const at::Tensor& frame, int64_t height, int64_t width) {
  const int64_t C = frame.size(1), H = frame.size(2), W = frame.size(3);
  const Buffer y = make(C, height, width);
  step({y}, [this, y, frame, C, H, W] {
    for (int64_t i = 0; i < batch() * y.height; ++i) {
      const int64_t row = std::min(i % y.height, H - 1);
      float* to = at(y) + i * y.width * C;
      for (int64_t c = 0; c < C; ++c) {
        const float* from = frame.data_ptr<float>() + ((i / y.height * C + c) * H + row) * W;
        for (int64_t j = 0; j < y.width; ++j) to[j * C + c] = from[std::min(j, W - 1)];
      }
    }
  });
  return y;
}

Buffer FramePlan::fold2(Buffer x) {
  ops::require("FramePlan", x.height % 2 == 0 && x.width % 2 == 0, "fold2 takes an even size, got {} x {}", x.height,
               x.width);
  const Buffer y = make(4 * x.channels, x.height / 2, x.width / 2);
  step({x, y}, [this, x, y] {
    const int64_t pair = 2 * x.channels, line = x.width * x.channels;
    at::parallel_for(0, batch() * y.height, grain(2 * line), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const float* from = at(x) + 2 * i * line;
        float* to = at(y) + 2 * i * line;
        for (int64_t j = 0; j < y.width; ++j, from += pair) {
          to = std::copy_n(from, pair, to);
          to = std::copy_n(from + line, pair, to);
        }
      }
    });
  });
  return y;
}

namespace {

void check_crop(Buffer x, const at::Tensor& frame) {
  const int64_t C = frame.size(1), H = frame.size(2), W = frame.size(3);
  ops::require("FramePlan", x.channels == C && x.height >= H && x.width >= W,
               "a frame of {} channels, {} x {}, is not a part of one of {} channels, {} x {}", C, H, W, x.channels,
               x.height, x.width);
}

// [B,H,W,C] of the shape of `x` to the upper left of frames [B,C,H,W].
template <typename F>
void turn_out(const float* values, Buffer x, const at::Tensor& frame, const F& f) {
  const int64_t C = frame.size(1), H = frame.size(2), W = frame.size(3);
  for (int64_t i = 0; i < frame.size(0) * C * H; ++i) {
    const int64_t row = i % H, c = i / H % C, b = i / H / C;
    const float* from = values + (b * x.height + row) * x.width * C + c;
    float* to = frame.data_ptr<float>() + i * W;
    for (int64_t j = 0; j < W; ++j) to[j] = f(from[j * C]);
  }
}

}  // namespace

void FramePlan::to_frame(Buffer x, const at::Tensor& frame) {
  check_crop(x, frame);
  const Buffer y = make(x.channels, x.height, x.width);
  step({x, y}, [this, x, y, frame] {
    at::parallel_for(0, size(x), grain(1),
                     [&](int64_t begin, int64_t end) { ops::tanh_loop(at(x) + begin, at(y) + begin, end - begin); });
    turn_out(at(y), y, frame, [](float v) { return v; });
  });
}

void FramePlan::to_frame_clipped(Buffer x, const at::Tensor& frame) {
  check_crop(x, frame);
  step({x}, [this, x, frame] { turn_out(at(x), x, frame, [](float v) { return std::clamp(v, -1.0f, 1.0f); }); });
}

}  // namespace convssm::nn
