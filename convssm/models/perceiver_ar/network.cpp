// Rows of [B*m,D] everywhere but in the attention itself, so that all products with weights are plain matrix products.
#include "convssm/models/perceiver_ar/network.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>

#include "convssm/nn/recompute.h"
#include "convssm/nn/rotary.h"
#include "convssm/nn/transformer_stack.h"
#include "convssm/ssm/initializers.h"

namespace convssm::models::perceiver_ar {
namespace {

constexpr double kEpsilon = 1e-5;  // of the published norms; ops::layer_norm has 1e-6

at::Tensor layer_norm(const at::Tensor& x, const nn::Norm& norm) {
  return at::layer_norm(x, {x.size(-1)}, norm->weight, norm->bias, kEpsilon);
}

// [B*m,parts*heads*size] -> parts of [B,heads,m,size].
std::vector<at::Tensor> heads_of(const at::Tensor& x, int64_t B, int64_t parts, int64_t heads, int64_t size) {
  return x.view({B, x.size(0) / B, parts, heads, size}).permute({2, 0, 3, 1, 4}).unbind(0);
}

}  // namespace

int64_t NetworkOptions::pairs() const {
  return static_cast<int64_t>(rotary_fraction * static_cast<double>(head_size())) / 2;
}

// A generator of the stream, not libtorch's own: what is dropped does not depend on who drew before.
at::Tensor Dropout::operator()(const at::Tensor& x) const {
  if (rate == 0) return x;
  Stream own = stream;
  at::Generator generator = at::detail::createCPUGenerator(own.next());
  const at::Tensor kept = at::empty(x.sizes(), at::kFloat).bernoulli_(1 - rate, generator).mul_(1 / (1 - rate));
  return x * kept.to(x.options().requires_grad(false));
}

Turn Turn::slice(int64_t begin, int64_t end) const {
  return cosines.defined() ? Turn{cosines.slice(0, begin, end), sines.slice(0, begin, end)} : Turn{};
}

at::Tensor Turn::operator()(const at::Tensor& x) const {
  return cosines.defined() ? nn::rotate_neighbours(x, cosines, sines) : x;
}

AttentionBlock::AttentionBlock(const NetworkOptions& o, const Stream& stream)
    : heads_(o.heads),
      size_(o.head_size()),
      norm1_(register_module("norm1", nn::Norm(o.features))),
      norm2_(register_module("norm2", nn::Norm(o.features))),
      out_(register_module("out", nn::Dense(o.features, o.features, stream.split("out")))),
      mlp1_(register_module("mlp1", nn::Dense(o.features, o.widening * o.features, stream.split("mlp1")))),
      mlp2_(register_module("mlp2", nn::Dense(o.widening * o.features, o.features, stream.split("mlp2")))) {}

at::Tensor AttentionBlock::after(const at::Tensor& z, const at::Tensor& attended, const Dropout& dropout) {
  const at::Tensor rows = attended.transpose(1, 2).reshape(z.sizes());
  const at::Tensor seen = z + dropout.split("attention")(out_(rows));
  const at::Tensor hidden = mlp1_(layer_norm(seen, norm2_)).relu().square();
  return seen + dropout.split("mlp")(mlp2_(hidden));
}

CrossBlockImpl::CrossBlockImpl(const NetworkOptions& o, const Stream& stream)
    : AttentionBlock(o, stream),
      norm_kv_(register_module("norm_kv", nn::Norm(o.features))),
      q_(register_module("q", nn::Dense(o.features, o.features, stream.split("q")))),
      kv_(register_module("kv", nn::Dense(o.features, 2 * o.features, stream.split("kv")))) {}

at::Tensor CrossBlockImpl::queries(const at::Tensor& z, int64_t B, const Turn& turn) {
  return turn(heads_of(q_(layer_norm(z, norm1_)), B, 1, heads_, size_)[0]);
}

KeysValues CrossBlockImpl::keys_values(const at::Tensor& inputs, int64_t B, const Turn& turn) {
  const auto both = heads_of(kv_(layer_norm(inputs, norm_kv_)), B, 2, heads_, size_);
  return {turn(both[0]), both[1]};
}

LayerBlockImpl::LayerBlockImpl(const NetworkOptions& o, const Stream& stream)
    : AttentionBlock(o, stream),
      qkv_(register_module("qkv", nn::Dense(o.features, 3 * o.features, stream.split("qkv")))) {}

at::Tensor LayerBlockImpl::forward(const at::Tensor& z, int64_t B, const Turn& turn, int64_t layer, const LayerMix& mix,
                                   const Dropout& dropout) {
  const auto three = heads_of(qkv_(layer_norm(z, norm1_)), B, 3, heads_, size_);
  return after(z, mix(layer, turn(three[0]), {turn(three[1]), three[2]}), dropout);
}

NetworkImpl::NetworkImpl(const NetworkOptions& o, const Stream& stream)
    : options_(o),
      latent_(register_module("latent", nn::Dense(o.features, o.features, stream.split("latent")))),
      logits_(register_module("logits", nn::Dense(o.features, o.codes, stream.split("logits")))),
      cross_(register_module("cross", CrossBlock(o, stream.split("cross")))),
      norm_(register_module("norm", nn::Norm(o.features))) {
  const auto table = [&](const char* name, int64_t rows) {
    Stream own = stream.split(name);
    return register_parameter(name, ssm::truncated_normal({rows, o.features}, 1, own));
  };
  {
    const at::NoGradGuard no_grad;
    logits_->weight.zero_();
  }
  tokens_ = table("tokens", o.codes + 1);
  if (o.axes) rows_ = table("rows", o.rows), columns_ = table("columns", o.columns);
  for (int64_t i = 0; i < o.layers; ++i) {
    const std::string name = "layer" + std::to_string(i);
    layers_.push_back(register_module(name, LayerBlock(o, stream.split(name))));
  }
}

at::Tensor NetworkImpl::frame_positions(const at::Tensor& positions) const {
  const at::Tensor frames = positions.div(options_.tokens_per_frame(), "floor"),
                   within = positions.remainder(options_.tokens_per_frame());
  const int64_t first = frames.min().item<int64_t>(), last = frames.max().item<int64_t>();
  const at::Tensor times =
      nn::sinusoids(first, last - first + 1, options_.features, tokens_.options().requires_grad(false));
  return at::embedding(times, frames - first) + at::embedding(rows_, within.div(options_.columns, "floor")) +
         at::embedding(columns_, within.remainder(options_.columns));
}

at::Tensor NetworkImpl::embed(const at::Tensor& tokens, const at::Tensor& positions, const at::Tensor& actions) const {
  at::Tensor embedded = at::embedding(tokens_, tokens);
  if (options_.axes) embedded = embedded + frame_positions(positions);
  return actions.defined() ? embedded + actions : embedded;
}

Turn NetworkImpl::turn(int64_t first, int64_t count) const {
  if (options_.pairs() == 0) return {};
  const at::Tensor positions = at::arange(first, first + count, at::kLong).to(tokens_.device());
  const at::Tensor angles = nn::line_angles(positions, options_.pairs(), options_.wavelength);
  return {angles.cos().to(tokens_.scalar_type()), angles.sin().to(tokens_.scalar_type())};
}

at::Tensor NetworkImpl::forward(const at::Tensor& embedded, int64_t B, const Turn& turn, const CrossMix& cross,
                                const LayerMix& mix, const Dropout& dropout) {
  at::Tensor z = latent_(embedded);
  z = cross_->after(z, cross(cross_->queries(z, B, turn)), dropout.split("cross"));
  for (size_t i = 0; i < layers_.size(); ++i) {
    const int64_t l = static_cast<int64_t>(i);
    const std::shared_ptr<LayerBlockImpl> layer = layers_[i].ptr();
    const Dropout own = dropout.split("layer", i);
    const auto run = [layer, B, turn, l, mix, own](const nn::Tensors& in) {
      return nn::Tensors{layer->forward(in[0], B, turn, l, mix, own)};
    };
    z = nn::recompute({layer.get()}, {z}, run)[0];
  }
  return logits_(layer_norm(z, norm_));
}

}  // namespace convssm::models::perceiver_ar
