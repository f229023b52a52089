// Clips: what data gives and models take, one struct. Any member may be undefined; a model says what it needs, by refusing
// what it cannot do without. Values on the same clock share the index t.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace convssm::data {

// When the frames were taken. All optional.
struct ClipTiming {
  at::Tensor dt = {};       // [B,T]: the interval before each frame, in units of the training interval; all > 0
  at::Tensor resets = {};   // [B,T] bool: what was seen before this frame does not belong to it
  double step_rescale = 1;  // all intervals times this: 0.5 is twice the frame rate
  at::Tensor times = {};    // [B,T] float64: when, in seconds since 1970-01-01 of the data's calendar
};

struct Clips {
  at::Tensor video = {};  // [B,T,C,H,W] float32 in [-1,1]
  // [B,T] int64, or [B,T,A] float32, or maps [B,T,M,H,W] float32 in [-1,1]: action t led to frame t, and what is known of a
  // frame in advance is one too; negative, or NaN: masked.
  at::Tensor actions = {};
  at::Tensor inputs = {};   // like the video, or without one like the codes: goes in instead of what is to be predicted
  at::Tensor codes = {};    // [B,T,h,w] int64, of a tokenizer
  at::Tensor valid = {};    // [B,T,C,H,W] bool: pixels that were measured; the others hold a filler
  at::Tensor revisit = {};  // [B,T] int64: the last earlier frame of the clip that showed the same place; -1: none did
  ClipTiming timing = {};
  at::Tensor inputs_valid = {};  // like `valid`, of the inputs; undefined: as the video

  int64_t batch() const;   // B, of the video or the codes; 0 if there is neither
  int64_t frames() const;  // T
};

// [begin,end) in time, views; but `revisit` counts from the first frame of the piece, and what was before it is -1.
Clips frames_of(const Clips& clips, int64_t begin, int64_t end);
Clips rows_of(const Clips& clips, int64_t begin, int64_t end);  // [begin,end) of the batch, views

Clips rows_at(const Clips& clips, const std::vector<int64_t>& rows);  // copies

// One batch of several, all with the same members and step_rescale.
Clips stack_rows(const std::vector<Clips>& batches);

// Copies a batch of one to row `at` of a batch of `rows`, which the first call (at = 0) makes; the others must have its
// members, their sizes and its step_rescale. With plain copies: this runs in threads of the loader, where a tensor
// operation would start a team of OpenMP threads for each of them.
void put_row(const Clips& row, int64_t at, int64_t rows, Clips& batch);

// The same on a device; nothing is copied if it is there.
Clips to_device(const Clips& clips, at::Device device);

// Each row `times` times: row b becomes rows b * times .. (b + 1) * times - 1.
Clips repeat_rows(const Clips& clips, int64_t times);

// Actions of the same kind and shape, all masked.
at::Tensor masked_like(const at::Tensor& actions);

// The video, NaN where it was not measured: as Forecaster::observe takes it.
at::Tensor with_missing(const Clips& clips);

// Throws unless dt, resets and revisit are [B,T], intervals positive, revisits of earlier frames, valid like the video,
// actions [B,T] int64, or [B,T,A] or [B,T,M,H,W] floats.
void check_clips(const char* operation, const Clips& clips);

}  // namespace convssm::data
