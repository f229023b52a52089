// Blocks are numbered as frames pass them; block k of the decoder is shown what block n-1-k of the encoder gave.
#include "convssm/models/fitvid/coder.h"

#include <ATen/ATen.h>

#include <string>

#include "convssm/ops/check.h"

namespace convssm::models::fitvid {
namespace {

std::string block_name(int64_t number) { return "block" + std::to_string(number); }

}  // namespace

void check_frames(const CoderOptions& o, const CoderFrames& frames) {
  const int64_t scale = o.scale();
  ops::require("model", frames.height % scale == 0 && frames.width % scale == 0,
               "fitvid halves frames {} times, so they must be multiples of {}, got {} x {}; take fewer stages",
               o.stages - 1, scale, frames.height, frames.width);
}

std::vector<std::vector<int64_t>> skip_shapes(const CoderOptions& o, const CoderFrames& frames) {
  std::vector<std::vector<int64_t>> shapes;
  for (int64_t k = 0; k < o.stages * o.blocks; ++k) {
    const int64_t stage = k / o.blocks;
    shapes.push_back({o.channels(stage), frames.height >> stage, frames.width >> stage});
  }
  return shapes;
}

EncoderImpl::EncoderImpl(const CoderOptions& o, int64_t in, const Stream& stream) {
  int64_t channels = in;
  for (int64_t k = 0; k < o.stages * o.blocks; ++k) {
    const int64_t stage = k / o.blocks, stride = stage > 0 && k % o.blocks == 0 ? 2 : 1;
    const Stream own = stream.split("block", static_cast<uint64_t>(k));
    blocks_.push_back(register_module(block_name(k), EncoderBlock(channels, o.channels(stage), stride, own)));
    channels = o.channels(stage);
  }
  head_ = register_module("head", nn::Dense(channels, o.hidden, stream.split("head")));
}

Encoded EncoderImpl::forward(const at::Tensor& x, Statistics statistics) {
  Encoded out;
  at::Tensor h = x.contiguous(at::MemoryFormat::ChannelsLast);
  for (EncoderBlock& block : blocks_) {
    h = block(h, statistics);
    out.skips.push_back(h);
  }
  out.hidden = head_(h.mean({2, 3}));
  return out;
}

DecoderImpl::DecoderImpl(const CoderOptions& o, const CoderFrames& frames, const Stream& stream) : concat_(o.concat) {
  check_frames(o, frames);
  int64_t channels = o.channels(o.stages - 1);
  begin_ = {-1, channels, frames.height / o.scale(), frames.width / o.scale()};
  first_ = register_module("first", nn::Dense(o.hidden, begin_[1] * begin_[2] * begin_[3], stream.split("first")));
  for (int64_t k = 0; k < o.stages * o.blocks; ++k) {
    const int64_t stage = o.stages - 1 - k / o.blocks, out = o.channels(stage);
    const Stream own = stream.split("block", static_cast<uint64_t>(k));
    const bool doubles = k > 0 && k % o.blocks == 0;
    blocks_.push_back(register_module(block_name(k), DecoderBlock(channels, out, o.expansion, doubles, own)));
    channels = concat_ ? 2 * out : out;
  }
  last_ = register_module("last", nn::Conv(channels, frames.out, 3, stream.split("last"), false));
}

at::Tensor DecoderImpl::forward(const at::Tensor& hidden, const Skips& skips, const at::Tensor& rows,
                                Statistics statistics) {
  at::Tensor x = first_(hidden).view(begin_).contiguous(at::MemoryFormat::ChannelsLast);
  for (size_t k = 0; k < blocks_.size(); ++k) {
    x = blocks_[k](x, statistics);
    at::Tensor shown = skips[skips.size() - 1 - k];
    if (rows.defined()) shown = shown.index_select(0, rows);
    x = concat_ ? at::cat({x, shown}, 1) : x + shown;
  }
  return last_(x);
}

}  // namespace convssm::models::fitvid
