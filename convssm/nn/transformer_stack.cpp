// Tokens of all samples are rows of one matrix, so each dense layer is one product; only attention looks at samples and
// heads. The memory of a layer goes through recompute() as extra inputs and outputs, so its gradients flow across
// calls.
#include "convssm/nn/transformer_stack.h"

#include <ATen/ATen.h>
#include <torch/nn/modules/container/modulelist.h>

#include "convssm/nn/frame_plan.h"
#include "convssm/nn/recompute.h"
#include "convssm/ops/check.h"

namespace convssm::nn {
namespace {

void check(const TransformerStackOptions& o) {
  ops::require("TransformerStack", o.in > 0 && o.features > 0, "features must be positive, got {}", o.features);
  ops::require("TransformerStack", o.heads > 0 && o.features % o.heads == 0,
               "heads must divide the {} features, got {}; set heads to a divisor", o.features, o.heads);
  ops::require("TransformerStack", o.layers > 0, "layers must be positive, got {}", o.layers);
  ops::require("TransformerStack", o.mlp > 0, "mlp must be positive, got {}", o.mlp);
}

Dense projection(int64_t in, int64_t out, const Stream& stream) { return Dense(in, out, stream, 1, false); }

}  // namespace

TransformerBlockImpl::TransformerBlockImpl(const TransformerStackOptions& options, const MakeAttention& attention,
                                           const Stream& stream)
    : heads_(options.heads),
      norm1_(options.features),
      norm2_(options.features),
      qkv_(projection(options.features, 3 * options.features, stream.split("qkv"))),
      out_(projection(options.features, options.features, stream.split("out"))),
      mlp1_(options.features, options.mlp, stream.split("mlp1")),
      mlp2_(options.mlp, options.features, stream.split("mlp2")),
      attention_(attention ? attention(stream.split("attention")) : nullptr) {
  register_module("norm1", norm1_);
  register_module("qkv", qkv_);
  if (attention_) register_module("attention", attention_);
  register_module("out", out_);
  register_module("norm2", norm2_);
  register_module("mlp1", mlp1_);
  register_module("mlp2", mlp2_);
}

at::Tensor TransformerBlockImpl::attend(const at::Tensor& x, int64_t B, const Mix& mix) {
  const int64_t T = x.size(0) / B, D = x.size(1);
  const auto qkv = qkv_(x).view({B, T, 3, heads_, D / heads_}).permute({2, 0, 3, 1, 4}).unbind(0);
  // Each in memory of its own: keys and values may outlive the queries.
  const at::Tensor q = qkv[0].contiguous(), k = qkv[1].contiguous(), v = qkv[2].contiguous();
  return out_(mix(q, k, v).transpose(1, 2).reshape({B * T, D}));
}

at::Tensor TransformerBlockImpl::forward(const at::Tensor& x, int64_t B, Memory& memory, int64_t seen) {
  return forward(x, B, [&](const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
    Attended attended = attention_->forward(q, k, v, memory, seen);
    memory = std::move(attended.memory);
    return attended.out;
  });
}

at::Tensor TransformerBlockImpl::forward(const at::Tensor& x, int64_t B, const Mix& mix) {
  const at::Tensor mixed = x + attend(norm1_->layer_norm(x), B, mix);
  const at::Tensor hidden = ops::activate(mlp1_(norm2_->layer_norm(mixed)), ops::Activation::quick_gelu);
  return mixed + mlp2_(hidden);
}

Buffer TransformerBlockImpl::plan(FramePlan& plan, Buffer x, const at::Tensor& places) {
  const int64_t D = x.channels;
  const Buffer seen = plan.layer_norm(x, norm1_->weight, norm1_->bias);
  const Buffer asking = places.defined() ? plan.pick(seen, places) : seen;
  const auto part = [&](Buffer of, int64_t i) {
    return plan.conv(of, qkv_->weight.narrow(0, i * D, D), qkv_->bias.narrow(0, i * D, D));
  };
  const Buffer mixed = plan.attention(part(asking, 0), part(seen, 1), part(seen, 2), heads_);
  const Buffer own = places.defined() ? plan.pick(x, places) : x;
  const Buffer y = plan.conv(mixed, out_->weight, out_->bias, {.add = own});
  const Buffer hidden = plan.conv(plan.layer_norm(y, norm2_->weight, norm2_->bias), mlp1_->weight, mlp1_->bias,
                                  {.activation = ops::Activation::quick_gelu});
  return plan.conv(hidden, mlp2_->weight, mlp2_->bias, {.add = y});
}

TransformerStackImpl::TransformerStackImpl(const TransformerStackOptions& options, const MakeAttention& attention,
                                           const Stream& stream)
    : options_((check(options), options)),
      input_(options.in, options.features, stream.split("input")),
      output_(options.features, options.features, stream.split("output")),
      norm_(options.features) {
  register_module("input", input_);
  auto list = register_module("layers", torch::nn::ModuleList());
  for (int64_t i = 0; i < options.layers; ++i) {
    layers_.emplace_back(options, attention, stream.split("layer", i));
    list->push_back(layers_.back());
  }
  register_module("output", output_);
  register_module("norm", norm_);
}

at::Tensor TransformerStackImpl::forward(const at::Tensor& tokens, const at::Tensor& positions,
                                         std::vector<Memory>& memories, int64_t seen) {
  const int64_t B = tokens.size(0), T = tokens.size(1), D = options_.features;
  ops::require_shape("TransformerStack", "positions", positions, {T, D});
  memories.resize(layers_.size());
  at::Tensor x = (input_(tokens.flatten(0, 1)).view({B, T, D}) + positions).view({B * T, D});
  for (size_t i = 0; i < layers_.size(); ++i) {
    const auto run = [block = layers_[i], B, seen](const Tensors& in) mutable {
      Memory memory(in.begin() + 1, in.end());
      Tensors out{block->forward(in[0], B, memory, seen)};
      out.insert(out.end(), memory.begin(), memory.end());
      return out;
    };
    Tensors inputs{x};
    inputs.insert(inputs.end(), memories[i].begin(), memories[i].end());
    const Tensors done = recompute({layers_[i].get()}, inputs, run);
    x = done[0];
    memories[i].assign(done.begin() + 1, done.end());
  }
  return norm_->layer_norm(ops::activate(output_(x), ops::Activation::gelu)).view({B, T, D});
}

Buffer TransformerStackImpl::plan(FramePlan& plan, Buffer x, const at::Tensor& places) {
  Buffer h = x;
  for (size_t i = 0; i < layers_.size(); ++i) {
    h = layers_[i]->plan(plan, h, i + 1 == layers_.size() ? places : at::Tensor());
  }
  const Buffer y = plan.conv(h, output_->weight, output_->bias, {.activation = ops::Activation::gelu});
  return plan.layer_norm(y, norm_->weight, norm_->bias);
}

at::Tensor sinusoids(int64_t first, int64_t count, int64_t features, const at::TensorOptions& options) {
  ops::require("sinusoids", features % 2 == 0, "features must be even, got {}", features);
  const auto exact = options.dtype(at::kDouble);
  const at::Tensor i = at::arange(features / 2, exact), p = at::arange(first, first + count, exact);
  const at::Tensor angles = p.unsqueeze(1) * at::pow(10000.0, -2 * i / static_cast<double>(features));
  return at::cat({angles.sin(), angles.cos()}, 1).to(options);
}

}  // namespace convssm::nn
