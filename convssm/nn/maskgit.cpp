// One frame of tokens is one sequence: attention sees all of it.
#include "convssm/nn/maskgit.h"

#include <ATen/ATen.h>

#include "convssm/nn/frame_plan.h"
#include "convssm/ops/activation.h"
#include "convssm/ops/check.h"
#include "convssm/ops/dense.h"
#include "convssm/ssm/initializers.h"

namespace convssm::nn {
namespace {

constexpr double kSmall = 0.02;  // deviation of tables and of the head

at::Tensor table_of(at::IntArrayRef shape, const Stream& stream, const char* name) {
  Stream own = stream.split(name);
  return ssm::normal(shape, kSmall, own);
}

}  // namespace

MaskGitImpl::MaskGitImpl(const MaskGitOptions& o, const Stream& stream) : options_(o) {
  ops::require("MaskGit",
               o.codes > 1 && o.vocabulary > 0 && o.cond >= 0 && o.height > 0 && o.width > 0 && o.features > 1,
               "codes, vocabulary, height, width and features must be positive, got {}, {}, {}, {} and {}", o.codes,
               o.vocabulary, o.height, o.width, o.features);
  const int64_t half = (o.features + 1) / 2;  // an odd feature goes to the rows
  table_ = register_parameter("tokens", table_of({o.codes + 1, o.vocabulary}, stream, "tokens"));
  rows_ = register_parameter("rows", table_of({o.height, half}, stream, "rows"));
  columns_ = register_parameter("columns", table_of({o.width, o.features - half}, stream, "columns"));
  const HeadShape shape{o.heads, o.heads > 0 ? o.features / o.heads : 0, o.height * o.width};
  const TransformerStackOptions inner{o.vocabulary + o.cond, o.features, o.layers, o.heads, o.mlp};
  const auto attention = [&](const Stream&) { return std::make_shared<SoftmaxAttention>(shape, 0); };
  transformer_ = register_module("transformer", TransformerStack(inner, attention, stream.split("transformer")));
  head_ = register_module("head", Dense(o.features, o.vocabulary, stream.split("head")));
  {
    at::NoGradGuard no_grad;
    head_->weight.copy_(table_of(head_->weight.sizes(), stream, "head"));
  }
  norm_ = register_module("norm", Norm(o.vocabulary));
  bias_ = register_parameter("bias", at::zeros({o.codes}));
}

at::Tensor MaskGitImpl::positions() const {
  const int64_t h = options_.height, w = options_.width;
  return at::cat({rows_.unsqueeze(1).expand({h, w, -1}), columns_.unsqueeze(0).expand({h, w, -1})}, 2).flatten(0, 1);
}

// The dense layer in is one of the token's features and one of cond's: the rows of the table go through the first when the
// plan is made, cond through the second once for a frame.
at::Tensor MaskGitImpl::condition(const at::Tensor& cond) const {
  const Dense& in = transformer_->input();
  const at::Tensor place = positions().t().view({1, options_.features, options_.height, options_.width});
  return ops::dense(cond, in->weight.slice(1, options_.vocabulary), in->bias) + place;
}

void MaskGitImpl::plan(FramePlan& plan, int64_t count) {
  const int64_t B = plan.batch(), h = options_.height, w = options_.width;
  const at::Tensor tokens = plan.door("tokens", {B, h * w}, at::kLong),
                   places = plan.door("places", {B, count}, at::kLong);
  const Buffer known = plan.state("known", options_.features, h, w);
  const at::Tensor rows =
      ops::dense(table_, transformer_->input()->weight.slice(1, 0, options_.vocabulary).contiguous());
  const Buffer y = transformer_->plan(plan, plan.look_up(rows, tokens, known), places);
  const Buffer said = plan.conv(y, head_->weight, head_->bias, {.activation = ops::Activation::gelu});
  const Buffer logits =
      plan.conv(plan.layer_norm(said, norm_->weight, norm_->bias), table_.slice(0, 0, options_.codes), bias_);
  plan.copy(logits, plan.state("logits", options_.codes, 1, count));
}

at::Tensor MaskGitImpl::forward(const at::Tensor& tokens, const at::Tensor& cond) {
  const int64_t N = tokens.size(0), h = options_.height, w = options_.width, n = h * w;
  ops::require_shape("MaskGit", "tokens", tokens, {N, h, w});
  ops::require_shape("MaskGit", "cond", cond, {N, options_.cond, h, w});
  const at::Tensor known = cond.permute({0, 2, 3, 1}).reshape({N, n, options_.cond});
  const at::Tensor x = at::cat({at::embedding(table_, tokens.flatten(1)), known}, 2);
  std::vector<Memory> none;
  const at::Tensor y = transformer_->forward(x, positions(), none).view({N * n, options_.features});
  const at::Tensor said = norm_->layer_norm(ops::activate(head_(y), ops::Activation::gelu));
  const at::Tensor logits = ops::dense(said, table_.slice(0, 0, options_.codes), bias_);
  return logits.view({N, h, w, options_.codes}).permute({0, 3, 1, 2});
}

}  // namespace convssm::nn
