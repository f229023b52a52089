// How FitVid takes a frame in and gives one out. Both go through `stages` of residual blocks, of twice the channels and half the
// size each. The encoder ends in a vector, the hidden h, and keeps what every block gave. The decoder begins with a vector and is
// shown, after each of its blocks, what the block of the same place gave of *one* frame, the last of the context: what stands
// still is copied from there, the vector has to tell only what changed.
#pragma once

#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include <vector>

#include "convssm/models/fitvid/blocks.h"

namespace convssm::models::fitvid {

struct CoderOptions {
  int64_t stages = 4, blocks = 2;  // blocks of each stage
  int64_t filters = 64;            // of the first stage
  int64_t expansion = 4;           // of decoder blocks
  int64_t hidden = 128;            // g, of the vector
  bool concat = false;             // what is shown stands beside the decoder's channels instead of being added

  int64_t channels(int64_t stage) const { return filters << stage; }
  int64_t scale() const { return int64_t{1} << (stages - 1); }
};

// Of the frames that go in; how many channels come out.
struct CoderFrames {
  int64_t in = 3, out = 3, height = 64, width = 64;
};

// Error(usage) unless the stages halve such frames evenly.
void check_frames(const CoderOptions& options, const CoderFrames& frames);

using Skips = std::vector<at::Tensor>;  // of each block of the encoder, [N,C,H,W]

struct Encoded {
  at::Tensor hidden;  // [N,g]
  Skips skips;
};

class EncoderImpl : public torch::nn::Module {
 public:
  EncoderImpl(const CoderOptions& options, int64_t in, const Stream& stream);
  Encoded forward(const at::Tensor& x, Statistics statistics);  // [N,C,H,W]

 private:
  std::vector<EncoderBlock> blocks_;
  nn::Dense head_{nullptr};
};
TORCH_MODULE(Encoder);

class DecoderImpl : public torch::nn::Module {
 public:
  DecoderImpl(const CoderOptions& options, const CoderFrames& frames, const Stream& stream);

  // hidden [N,g] -> [N,C,H,W], linear. Frame n is shown row rows[n] of `skips`; without `rows`, row n.
  at::Tensor forward(const at::Tensor& hidden, const Skips& skips, const at::Tensor& rows, Statistics statistics);

 private:
  bool concat_;
  std::vector<int64_t> begin_;
  nn::Dense first_{nullptr};
  std::vector<DecoderBlock> blocks_;
  nn::Conv last_{nullptr};
};
TORCH_MODULE(Decoder);

// The shape [C,H,W] of each of the skips.
std::vector<std::vector<int64_t>> skip_shapes(const CoderOptions& options, const CoderFrames& frames);

}  // namespace convssm::models::fitvid
