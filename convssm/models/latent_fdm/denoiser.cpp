// Skips are what the stem, every block and every convolution of stride 2 gave, taken back in reverse.
#include "convssm/models/latent_fdm/denoiser.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "convssm/ops/activation.h"

namespace convssm::models::latent_fdm {
namespace {

using ops::Activation;

constexpr double kSlowest = 10000, kStepRange = 1000;  // of the sinusoids

// [cos | sin] of step * kSlowest^(-i / (c/2)): [B] -> [B,c].
at::Tensor sinusoids(const at::Tensor& steps, int64_t total, int64_t c, const at::TensorOptions& like) {
  const int64_t half = c / 2;
  const at::Tensor powers = at::arange(half, at::kDouble) * (-std::log(kSlowest) / static_cast<double>(half));
  const at::Tensor angles =
      (steps.cpu().to(at::kDouble) * (kStepRange / static_cast<double>(total))).unsqueeze(1) * powers.exp();
  return at::cat({angles.cos(), angles.sin()}, 1).to(like);
}

std::string unit_name(const char* what, size_t i) { return what + std::to_string(i); }

}  // namespace

DenoiserImpl::DenoiserImpl(const DenoiserOptions& options, const Stream& stream) : options_(options) {
  const DenoiserOptions& o = options_;
  time0_ = register_module("time0", Linear(o.channels, o.embedding(), stream.split("time", 0)));
  time1_ = register_module("time1", Linear(o.embedding(), o.embedding(), stream.split("time", 1)));
  stem_ = register_module("stem", Conv(o.frame_channels + 1, o.channels, 3, stream.split("stem")));
  std::vector<int64_t> skips = {o.channels};
  add_down(stream, skips);
  const int64_t last = skips.back();
  middle0_ = register_module("middle0", ResBlock(last, last, o.embedding(), o.groups, stream.split("middle", 0)));
  middle_attention_ = register_module(
      "middle_attention", FactorizedAttention(last, o.heads, o.embedding(), o.groups, stream.split("middle", 1)));
  middle1_ = register_module("middle1", ResBlock(last, last, o.embedding(), o.groups, stream.split("middle", 2)));
  add_up(stream, skips);
  out_norm_ = register_module("out_norm", GroupNorm(o.multipliers[0] * o.channels, o.groups));
  out_ = register_module("out", Conv(o.multipliers[0] * o.channels, o.frame_channels, 3, stream.split("out"), true));
}

Unit DenoiserImpl::add_block(const char* path, size_t number, int64_t in, int64_t out, int64_t height,
                             const Stream& stream) {
  const DenoiserOptions& o = options_;
  const Stream own = stream.split(path, number);
  Unit unit = register_module(unit_name(path, number), Unit());
  unit->res = unit->register_module("res", ResBlock(in, out, o.embedding(), o.groups, own));
  if (std::ranges::find(o.attention, height) == o.attention.end()) return unit;
  unit->attention = unit->register_module(
      "attention", FactorizedAttention(out, o.heads, o.embedding(), o.groups, own.split("attention")));
  return unit;
}

void DenoiserImpl::add_down(const Stream& stream, std::vector<int64_t>& skips) {
  const DenoiserOptions& o = options_;
  int64_t height = o.height;
  for (size_t level = 0; level < o.multipliers.size(); ++level) {
    const int64_t channels = o.multipliers[level] * o.channels;
    for (int64_t i = 0; i < o.blocks; ++i) {
      down_.push_back(add_block("down", down_.size(), skips.back(), channels, height, stream));
      skips.push_back(channels);
    }
    if (level + 1 == o.multipliers.size()) break;
    Unit unit = register_module(unit_name("down", down_.size()), Unit());
    unit->conv = unit->register_module(
        "conv", Conv(channels, channels, 3, stream.split("down", down_.size()), /*zero=*/false, /*stride=*/2));
    down_.push_back(unit);
    skips.push_back(channels);
    height /= 2;
  }
}

void DenoiserImpl::add_up(const Stream& stream, std::vector<int64_t>& skips) {
  const DenoiserOptions& o = options_;
  int64_t in = skips.back(), height = o.height >> (o.multipliers.size() - 1);
  for (size_t level = o.multipliers.size(); level-- > 0;) {
    const int64_t channels = o.multipliers[level] * o.channels;
    for (int64_t i = 0; i <= o.blocks; ++i) {
      const size_t number = up_.size();
      up_.push_back(add_block("up", number, in + skips.back(), channels, height, stream));
      skips.pop_back();
      in = channels;
      if (level == 0 || i < o.blocks) continue;
      up_.back()->conv =
          up_.back()->register_module("conv", Conv(channels, channels, 3, stream.split("up", number).split("resize")));
      height *= 2;
    }
  }
}

FrameFacts DenoiserImpl::facts_of(const NoisyFrames& frames) {
  FrameFacts facts;
  const at::TensorOptions like = frames.x.options();
  set_pairs(facts, frames.numbers, frames.padding, like);
  const at::Tensor of_step = sinusoids(frames.steps, options_.steps, options_.channels, like);
  const at::Tensor embedded = time1_(ops::activate(time0_(of_step), Activation::swish));  // [B,E]
  facts.embedding = embedded.repeat_interleave(facts.K, 0);
  if (frames.actions.defined()) facts.embedding = facts.embedding + frames.actions;
  facts.known = ops::activate(facts.embedding, Activation::swish);
  return facts;
}

at::Tensor DenoiserImpl::forward(const NoisyFrames& frames) {
  const FrameFacts facts = facts_of(frames);
  const at::Tensor given = frames.given.view({facts.B, facts.K, 1, 1, 1});
  const at::Tensor mark = given.to(frames.x.scalar_type()).expand_as(frames.x.slice(2, 0, 1));
  at::Tensor h = at::cat({at::where(given, frames.clean, frames.x), mark}, 2).flatten(0, 1);
  h = stem_(h.contiguous(at::MemoryFormat::ChannelsLast));
  std::vector<at::Tensor> skips = {h};
  for (Unit& unit : down_) {
    h = unit->res ? unit->res(h, facts.known) : unit->conv(h);
    if (unit->attention) h = unit->attention(h, facts);
    skips.push_back(h);
  }
  h = middle1_(middle_attention_(middle0_(h, facts.known), facts), facts.known);
  for (Unit& unit : up_) {
    h = unit->res(at::cat({h, skips.back()}, 1), facts.known);
    skips.pop_back();
    if (unit->attention) h = unit->attention(h, facts);
    if (unit->conv) h = unit->conv(at::upsample_nearest2d(h, {2 * h.size(2), 2 * h.size(3)}));
  }
  return out_(out_norm_(h, Activation::swish)).unflatten(0, {facts.B, facts.K});
}

}  // namespace convssm::models::latent_fdm
