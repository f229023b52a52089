// Frames are laid out as one sequence of tokens per sample. `sos` is put before the first call's tokens only;
// `position` counts what was seen and so decides it, the positions' sinusoids and the shapes that the memory must have.
#include "convssm/cores/token_core.h"

#include <ATen/ATen.h>

#include "convssm/base/bounds.h"
#include "convssm/cores/layer_wrapper.h"
#include "convssm/ops/check.h"
#include "convssm/ssm/initializers.h"

namespace convssm::cores {
namespace {

using ops::require;

void check_options(const char* name, const TokenOptions& o) {
  require(name, o.features > 0 && o.features % 2 == 0, "features must be positive and even, got {}", o.features);
  require_between(name, "layers", o.layers, 1, most_layers);
  require(name, o.heads > 0 && o.features % o.heads == 0,
          "heads must divide the {} features, got {}; set heads to a divisor", o.features, o.heads);
  require(name, o.mlp >= 0, "mlp must be positive, or 0 for 4 * features, got {}", o.mlp);
  require(name, o.tokens.size() == 2 && o.tokens[0] > 0 && o.tokens[1] > 0, "tokens must be [h,w], positive, got {}",
          ops::shape_text(o.tokens));
}

std::string key(size_t layer, const std::string& name) { return fmt::format("layers.{}.{}", layer, name); }

}  // namespace

void TokenOptions::read_from(OptionReader& read) {
  read("features", features);
  read("layers", layers);
  read("heads", heads);
  read("mlp", mlp);
  read("tokens", tokens);
  read("seed", seed);
}

TokenCoreImpl::TokenCoreImpl(const char* name, const TokenOptions& options, const MakeHeads& make)
    : name_(name), options_((check_options(name, options), options)) {
  const Stream stream(options.seed, name);
  const int64_t D = options.features;
  Stream start = stream.split("sos");
  sos_ = register_parameter("sos", ssm::normal({D, options.tokens[0], options.tokens[1]}, 0.02, start));
  const nn::HeadShape shape{options.heads, D / options.heads, options.tokens_per_frame()};
  const nn::TransformerStackOptions inner{D, D, options.layers, options.heads, options.mlp > 0 ? options.mlp : 4 * D};
  const auto attention = [&](const Stream& own) { return make(shape, own); };
  transformer_ = register_module("transformer", nn::TransformerStack(inner, attention, stream.split("transformer")));
}

void TokenCoreImpl::train(bool on) {
  finite_.forget();
  Module::train(on);
}

void TokenCoreImpl::check(const at::Tensor& x, const Timing& timing) {
  const int64_t D = options_.features, h = options_.tokens[0], w = options_.tokens[1];
  const bool vector = x.defined() && x.dim() == 3 && h * w == 1 && x.size(2) == D;
  const bool frame = x.defined() && x.dim() == 5 && x.sizes().slice(2) == at::IntArrayRef{D, h, w};
  require(name_, (vector || frame) && x.numel() > 0, "x must be {}[L,B,{},{},{}] with no size 0, got {}",
          h * w == 1 ? fmt::format("[L,B,{}] or ", D) : "", D, h, w,
          x.defined() ? ops::shape_text(x.sizes()) : "an undefined tensor");
  const bool known = x.scalar_type() == at::kFloat || x.scalar_type() == at::kDouble;
  require(name_, known, "x must be float32 or float64, got {}", ops::dtype_text(x));
  ops::require_like(name_, "x", x, sos_);
  ssm::check_timing(name_, timing, x.size(0), x.size(1));
  require_no_intervals(name_, timing);
  require(name_, !timing.resets.defined(),
          "resets are not supported: what was seen cannot be forgotten for one sample; start from an empty state");
  finite_(name_, *this);
}

at::Tensor TokenCoreImpl::tokens_of(const at::Tensor& x) const {
  const int64_t L = x.size(0), B = x.size(1), D = options_.features, n = options_.tokens_per_frame();
  return x.reshape({L, B, D, n}).permute({1, 0, 3, 2}).reshape({B, L * n, D});
}

at::Tensor TokenCoreImpl::run(const at::Tensor& x, std::vector<nn::Memory>& memories, int64_t seen) {
  const int64_t L = x.size(0), B = x.size(1), D = options_.features, n = options_.tokens_per_frame();
  at::Tensor tokens = tokens_of(x);
  if (seen == 0) tokens = at::cat({sos_.view({D, n}).t().unsqueeze(0).expand({B, n, D}), tokens}, 1);
  const at::Tensor positions = nn::sinusoids(seen, tokens.size(1), D, x.options().requires_grad(false));
  at::Tensor y = transformer_->forward(tokens, positions, memories, seen);
  if (seen == 0) y = y.narrow(1, n, L * n);
  return y.reshape({B, L, n, D}).permute({1, 0, 3, 2}).reshape(x.sizes());
}

// The tokens seen, and the memory of each layer.
int64_t TokenCoreImpl::read_memories(const State& state, const at::Tensor& x, std::vector<nn::Memory>& memories) const {
  if (state.empty()) return 0;
  const nn::Attention& attention = transformer_->attention();
  const auto names = attention.memory_names();
  const size_t tensors = names.size() * options_.layers + 1;
  require(name_, state.items().size() == tensors, "the state must be empty or hold {} tensors ({} per layer), got {}",
          tensors, names.size(), state.items().size());
  const at::Tensor position = state.get("position");
  ops::require_shape(name_, "position", position, {});
  require(name_, position.scalar_type() == at::kLong, "position must be int64, got {}", ops::dtype_text(position));
  const int64_t seen = position.item<int64_t>(), n = options_.tokens_per_frame();
  require(name_, seen > 0 && seen % n == 0, "position must be a positive multiple of the {} tokens of a frame, got {}",
          n, seen);
  const auto shapes = attention.memory_shapes(x.size(1), seen);
  for (int64_t i = 0; i < options_.layers; ++i) {
    nn::Memory& memory = memories.emplace_back();
    for (size_t j = 0; j < names.size(); ++j) {
      memory.push_back(state.get(key(i, names[j])));
      ops::require_shape(name_, key(i, names[j]).c_str(), memory[j], shapes[j]);
      ops::require_like(name_, key(i, names[j]).c_str(), memory[j], x);
    }
  }
  return seen;
}

CoreOutput TokenCoreImpl::forward(const at::Tensor& x, const State& state, const Timing& timing) {
  check(x, timing);
  std::vector<nn::Memory> memories;
  const int64_t seen = read_memories(state, x, memories), n = options_.tokens_per_frame();
  CoreOutput out;
  out.y = run(x, memories, seen);
  const auto names = transformer_->attention().memory_names();
  for (size_t i = 0; i < memories.size(); ++i) {
    for (size_t j = 0; j < names.size(); ++j) out.state.set(key(i, names[j]), memories[i][j]);
  }
  out.state.set("position", at::scalar_tensor((seen == 0 ? n : seen) + x.size(0) * n, at::kLong));
  return out;
}

}  // namespace convssm::cores
