// Keys are turned when they are used, counted from the oldest that is kept: only differences of positions matter, so a
// call needs no number of the frames before it, and what is kept is the same wherever a sequence was cut.
#include "convssm/cores/hybrid.h"

#include <ATen/ATen.h>
#include <torch/nn/modules/container/modulelist.h>

#include <algorithm>

#include "convssm/cores/layer_stack.h"
#include "convssm/nn/rotary.h"
#include "convssm/ops/check.h"

namespace convssm::cores {
namespace {

using ops::require;

void check_options(const HybridOptions& o) {
  const ConvS5Options& c = o.convs5;
  cores::check_options(c);
  require("Hybrid", o.window >= 1, "window must be at least 1 frame, the own one included, got {}", o.window);
  require_between("Hybrid", "window", o.window, 1, 1'000'000);
  require("Hybrid", o.attention_every >= 1 && o.attention_every <= c.layers,
          "attention_every must be 1 to {}, the number of layers, got {}", c.layers, o.attention_every);
  require_between("Hybrid", "patch", o.patch, 1, most_kernel);
  require("Hybrid", o.mlp >= 0, "mlp must be positive, or 0 for 4 * features, got {}", o.mlp);
  require("Hybrid", o.heads > 0 && c.features % o.heads == 0,
          "heads must divide the {} features, got {}; set heads to a divisor", c.features, o.heads);
  const int64_t size = c.features / o.heads;
  require("Hybrid", size % 2 == 0 && size >= 6,
          "features / heads must be even and at least 6, for positions in time, rows and columns, got {} / {}; set "
          "fewer heads",
          c.features, o.heads);
}

}  // namespace

HybridOptions HybridOptions::from_json(const nlohmann::json& json) {
  HybridOptions o;
  OptionReader read("Hybrid", json);
  o.convs5.read_from(read);
  read("attention_every", o.attention_every);
  read("window", o.window);
  read("heads", o.heads);
  read("mlp", o.mlp);
  read("patch", o.patch);
  read.finish();
  return o;
}

WindowAttentionImpl::WindowAttentionImpl(const HybridOptions& options, const Stream& stream) : options_(options) {
  const int64_t D = options.convs5.features, row = options.patch * options.patch * D;
  if (options.patch > 1) compress_ = register_module("compress", nn::Dense(row, D, stream.split("compress")));
  const nn::TransformerStackOptions block{D, D, 1, options.heads, options.mlp > 0 ? options.mlp : 4 * D};
  block_ = register_module("block", nn::TransformerBlock(block, nn::MakeAttention(), stream.split("block")));
  if (options.patch > 1) expand_ = register_module("expand", nn::Dense(D, row, stream.split("expand")));
  const WrapperOptions& wrapper = options.convs5.wrapper;
  if (wrapper.use_norm && !wrapper.prenorm) norm_ = register_module("norm", nn::Norm(D));
}

at::Tensor WindowAttentionImpl::tokens_of(const at::Tensor& u, int64_t L) const {
  const int64_t p = options_.patch, C = u.size(1), h = u.size(2) / p, w = u.size(3) / p;
  const at::Tensor patches = u.permute({0, 2, 3, 1}).reshape({L, u.size(0) / L, h, p, w, p, C});
  return patches.permute({1, 0, 2, 4, 3, 5, 6}).reshape({-1, p * p * C});
}

at::Tensor WindowAttentionImpl::frames_of(const at::Tensor& tokens, const at::Tensor& u, int64_t L) const {
  const int64_t p = options_.patch, C = u.size(1), h = u.size(2) / p, w = u.size(3) / p;
  const at::Tensor patches = tokens.view({u.size(0) / L, L, h, w, p, p, C}).permute({1, 0, 2, 4, 3, 5, 6});
  return patches.reshape({u.size(0), u.size(2), u.size(3), C}).permute({0, 3, 1, 2});
}

std::vector<at::Tensor> WindowAttentionImpl::forward(const at::Tensor& u, int64_t L, const at::Tensor& k,
                                                     const at::Tensor& v) {
  const int64_t h = u.size(2) / options_.patch, w = u.size(3) / options_.patch, n = h * w;
  std::vector<at::Tensor> out(1);
  const auto mix = [&](const at::Tensor& q, const at::Tensor& new_k, const at::Tensor& new_v) {
    const at::Tensor keys = k.defined() ? at::cat({k, new_k}, 2) : new_k;
    const at::Tensor values = v.defined() ? at::cat({v, new_v}, 2) : new_v;
    const int64_t S = keys.size(2), kept = std::min(S, (options_.window - 1) * n);
    // A copy, so that a short memory does not hold on to the storage of a long sequence.
    for (const at::Tensor& all : {keys, values}) out.push_back(all.narrow(2, S - kept, kept).clone());
    const at::Tensor angles = nn::grid_angles(S / n, h, w, q.size(3), q.options().requires_grad(false));
    return nn::attend_frames(nn::rotate(q, angles.slice(0, S - q.size(2))), nn::rotate(keys, angles), values, n,
                             options_.window);
  };
  const at::Tensor tokens = tokens_of(u, L);
  const at::Tensor mixed = block_->forward(compress_ ? compress_(tokens) : tokens, u.size(0) / L, mix);
  out[0] = expand_ ? u + frames_of(expand_(mixed), u, L) : frames_of(mixed, u, L);
  if (norm_) out[0] = norm_->layer_norm(out[0]);
  return out;
}

HybridImpl::HybridImpl(const HybridOptions& options) : options_(options) {
  check_options(options);
  auto list = register_module("layers", torch::nn::ModuleList());
  const Stream stream(options.convs5.seed, "Hybrid");
  for (int64_t i = 0; i < options.convs5.layers; ++i) {
    spaces_.emplace_back(nullptr);
    attentions_.emplace_back(nullptr);
    if (options.is_attention(i)) {
      list->push_back(attentions_.back() = WindowAttention(options, stream.split("layer", i)));
    } else {
      list->push_back(spaces_.back() = ConvS5Layer(options.convs5, stream.split("layer", i)));
    }
  }
}

void HybridImpl::train(bool on) {
  finite_.forget();
  Module::train(on);
}

// A frame adds as much as any other once the frames before it fill the window.
int64_t HybridImpl::telling_frames() const { return std::max(Core::telling_frames(), 2 * options_.window); }

std::string HybridImpl::obstacle_to_frames(int64_t height, int64_t width) const {
  const int64_t p = options_.patch;
  if (height % p == 0 && width % p == 0) return "";
  return fmt::format("frames must be whole patches of {}x{}, got {}x{}; set patch to a divisor of both", p, p, height,
                     width);
}

void HybridImpl::check(const at::Tensor& x, const Timing& timing) {
  const int64_t U = options_.convs5.features;
  ops::require_dims("Hybrid", "x", x, 5, "[L,B,C,H,W]");
  require("Hybrid", x.size(2) == U, "x must be [L,B,{},H,W], got {}", U, ops::shape_text(x.sizes()));
  const std::string obstacle = obstacle_to_frames(x.size(3), x.size(4));
  require("Hybrid", obstacle.empty(), "{}", obstacle);
  if (options_.attention_every == 1) {
    require_no_intervals("Hybrid", timing,
                         "all layers are attention, which counts frames; set attention_every above 1");
  } else if (options_.convs5.init == StateInit::lru) {
    require_no_intervals("Hybrid", timing,
                         "states of init lru are in discrete time; use init hippo, which knows intervals");
  }
  require("Hybrid", !timing.resets.defined(),
          "resets are not supported: what was seen cannot be forgotten for one sample; start from an empty state");
  finite_("Hybrid", *this);
}

// Of the frames before x, the same in all layers of attention.
int64_t HybridImpl::tokens_kept(const at::Tensor& x, const State& state) const {
  if (state.empty()) return 0;
  const int64_t n = x.size(3) * x.size(4) / (options_.patch * options_.patch), most = options_.window - 1;
  const std::string key = state_key(static_cast<size_t>(options_.attention_every - 1), "k");
  const at::Tensor k = state.get(key);
  require("Hybrid", k.dim() == 4 && k.size(2) % n == 0 && k.size(2) <= most * n,
          "{} must hold at most {} frames (window - 1) of {} tokens each, got {}", key, most, n,
          ops::shape_text(k.sizes()));
  return k.size(2);
}

std::vector<StackLayer> HybridImpl::stack(const at::Tensor& x, const State& state) const {
  const std::vector<int64_t> sizes{x.size(1), options_.heads, tokens_kept(x, state), x.size(2) / options_.heads};
  std::vector<StackLayer> layers;
  for (size_t i = 0; i < spaces_.size(); ++i) {
    if (spaces_[i]) {
      layers.push_back(ssm_layer(spaces_[i], x));
      continue;
    }
    const auto run = [layer = attentions_[i]](const nn::Tensors& in, int64_t L, const Timing&) mutable {
      return layer->forward(in[0], L, in[1], in[2]);
    };
    layers.push_back({attentions_[i].get(), {{"k", sizes}, {"v", sizes}}, run});
  }
  return layers;
}

CoreOutput HybridImpl::forward(const at::Tensor& x, const State& state, const Timing& timing) {
  check(x, timing);
  return run_layers("Hybrid", stack(x, state), x, state, timing, options_.convs5.skip_connections);
}

}  // namespace convssm::cores
