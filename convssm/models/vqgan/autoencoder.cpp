// Encoding and decoding never keep a graph. Plans read the weights when they are made: they are dropped when a parameter has
// another version, and by train() and eval().
#include "convssm/models/vqgan/autoencoder.h"

#include <ATen/ATen.h>

#include "convssm/nn/frame_plan.h"
#include "convssm/ops/check.h"
#include "convssm/ops/device.h"

namespace convssm::models {
namespace {

int64_t padding_to(int64_t size, int64_t multiple) { return (multiple - size % multiple) % multiple; }

std::vector<nn::ParameterVersion> versions(const torch::nn::Module& module) {
  std::vector<nn::ParameterVersion> all;
  for (const at::Tensor& p : module.parameters()) all.push_back(nn::version_of(p));
  return all;
}

}  // namespace

// Both directions for one frame. Doors: `frame` in and `z` out; `q` in and `decoded` out.
struct VqAutoencoder::Plans {
  nn::FramePlan encode{{.batch = 1}}, decode{{.batch = 1}};
  at::Tensor frame, z, q, decoded;
  std::vector<nn::ParameterVersion> made_for;
};

VqAutoencoder::VqAutoencoder(const VqAutoencoderOptions& options, const Stream& stream) : options_(options) {
  const nn::VqCoderOptions& coder = options.coder;
  nn::check_vq_coder("model", coder);
  ops::require("model", options.images_at_once > 0, "images_at_once must be positive, got {}", options.images_at_once);
  pad_height_ = padding_to(coder.height, coder.scale());
  pad_width_ = padding_to(options.width, coder.scale());
  nn::VqCoderOptions padded = coder;
  padded.height += pad_height_;
  nn::VqCoderOptions encoder = padded;
  const int64_t features = options.quantizer.features, in = options.quantizer.in_features();
  encoder.latent *= in / features;  // mean and log variance
  encoder_ = register_module("encoder", nn::make_frame_encoder(encoder, stream.split("encoder")));
  decoder_ = register_module("decoder", nn::VqDecoder(padded, stream.split("decoder")));
  quantize_ = register_module("quantize", nn::make_quantizer(options.quantizer, stream.split("quantize")));
  quant_conv_ = register_module("quant_conv", nn::Conv(encoder.latent, in, 1, stream.split("quant_conv")));
  post_quant_conv_ =
      register_module("post_quant_conv", nn::Conv(features, coder.latent, 1, stream.split("post_quant_conv")));
}

VqAutoencoder::~VqAutoencoder() = default;

void VqAutoencoder::train(bool on) {
  torch::nn::Module::train(on);
  plans_.reset();
}

at::Tensor VqAutoencoder::features_of(const at::Tensor& frames) {
  const bool whole = pad_height_ == 0 && pad_width_ == 0;
  const at::Tensor x = whole ? frames : at::replication_pad2d(frames, {0, pad_width_, 0, pad_height_});
  return quant_conv_(encoder_->forward(x.contiguous(at::MemoryFormat::ChannelsLast)));
}

at::Tensor VqAutoencoder::frames_of(const at::Tensor& q) {
  const at::Tensor frames = decoder_(post_quant_conv_(q.to(post_quant_conv_->weight.scalar_type())));
  return frames.narrow(2, 0, options_.coder.height).narrow(3, 0, options_.width);
}

VqAutoencoder::Output VqAutoencoder::forward(const at::Tensor& frames, const nn::QuantizerUse& use) {
  const nn::Quantized quantized = quantize_->forward(features_of(frames), use);
  return {frames_of(quantized.out), quantized};
}

CodeFormat VqAutoencoder::codes() const {
  const int64_t scale = options_.coder.scale();
  return {quantize_->size(), (options_.coder.height + pad_height_) / scale, (options_.width + pad_width_) / scale};
}

std::vector<int64_t> VqAutoencoder::code_sizes() const {
  const CodeFormat grid = codes();
  if (continuous()) return {features(), grid.height, grid.width};
  return {grid.height, grid.width};
}

void VqAutoencoder::check_video(const char* operation, const at::Tensor& video) const {
  ops::require_dims(operation, "video", video, 5, "[B,T,C,H,W]");
  const nn::VqCoderOptions& o = options_.coder;
  ops::require(operation, video.size(2) == o.channels && video.size(3) == o.height && video.size(4) == options_.width,
               "video must be [B,T,{},{},{}], the frames of this tokenizer, got {}", o.channels, o.height,
               options_.width, ops::shape_text(video.sizes()));
}

bool VqAutoencoder::takes_plans(const at::Tensor& x) const {
  return ops::takes_kernels(x) && quant_conv_->weight.scalar_type() == at::kFloat &&
         quant_conv_->weight.device().is_cpu();
}

VqAutoencoder::Plans& VqAutoencoder::plans() {
  const std::vector<nn::ParameterVersion> now = versions(*this);
  if (plans_ && plans_->made_for == now) return *plans_;
  const nn::VqCoderOptions& o = options_.coder;
  const CodeFormat grid = codes();
  auto made = std::make_unique<Plans>();
  made->made_for = now;
  nn::FramePlan& e = made->encode;
  made->frame = e.door("frame", {1, o.channels, o.height, options_.width});
  const nn::Buffer x = e.from_frame(made->frame, o.height + pad_height_, options_.width + pad_width_);
  const nn::Buffer features = e.conv(encoder_->plan(e, x), quant_conv_->weight, quant_conv_->bias);
  const nn::Buffer z = e.state("z", quantize_->in_features(), grid.height, grid.width);
  e.copy(features, z);
  e.finish();
  made->z = e.doors().at("z");
  nn::FramePlan& d = made->decode;
  const nn::Buffer q = d.state("q", quantize_->features(), grid.height, grid.width);
  made->decoded = d.door("decoded", {1, o.channels, o.height, options_.width});
  d.to_frame_clipped(decoder_->plan(d, d.conv(q, post_quant_conv_->weight, post_quant_conv_->bias)), made->decoded);
  d.finish();
  made->q = d.doors().at("q");
  plans_ = std::move(made);
  return *plans_;
}

at::Tensor VqAutoencoder::encode(const at::Tensor& video) {
  check_video("encode", video);
  const at::NoGradGuard no_grad;
  const at::Tensor frames = video.flatten(0, 1);
  Plans* planned = takes_plans(frames) ? &plans() : nullptr;
  const int64_t at_once = planned ? 1 : options_.images_at_once;
  std::vector<int64_t> sizes = code_sizes();
  sizes.insert(sizes.begin(), frames.size(0));
  const at::ScalarType type = continuous() ? quant_conv_->weight.scalar_type() : at::kLong;
  at::Tensor all = at::empty(sizes, frames.options().dtype(type));
  for (int64_t i = 0; i < frames.size(0); i += at_once) {
    const int64_t count = std::min(at_once, frames.size(0) - i);
    const at::Tensor some = frames.narrow(0, i, count);
    if (planned) {
      planned->frame.copy_(some);
      planned->encode.run();
      all.narrow(0, i, 1).copy_(quantize_->codes_of(planned->z));
    } else {
      all.narrow(0, i, count).copy_(quantize_->codes_of(features_of(some)));
    }
  }
  return all.unflatten(0, {video.size(0), video.size(1)});
}

void VqAutoencoder::check_codes(const at::Tensor& codes) const {
  const std::vector<int64_t> sizes = code_sizes();
  const bool typed = codes.defined() && (continuous() ? codes.is_floating_point() : codes.scalar_type() == at::kLong);
  ops::require("decode", typed && codes.dim() > 2 && codes.sizes().slice(2) == at::IntArrayRef(sizes),
               "codes must be [B,T,{} {}, got {}", ops::shape_text(sizes).substr(1), continuous() ? "floats" : "int64",
               codes.defined() ? ops::dtype_text(codes) + " " + ops::shape_text(codes.sizes()) : "nothing");
  if (continuous() || codes.numel() == 0) return;
  const int64_t count = quantize_->size();
  const bool inside = codes.min().item<int64_t>() >= 0 && codes.max().item<int64_t>() < count;
  ops::require("decode", inside, "codes must be 0 to {}, there are others", count - 1);
}

at::Tensor VqAutoencoder::decode(const at::Tensor& codes) {
  check_codes(codes);
  const at::NoGradGuard no_grad;
  const nn::VqCoderOptions& o = options_.coder;
  const at::Tensor flat = codes.flatten(0, 1);
  Plans* planned = takes_plans(codes) ? &plans() : nullptr;
  const int64_t at_once = planned ? 1 : options_.images_at_once;
  at::Tensor all = at::empty({flat.size(0), o.channels, o.height, options_.width}, quant_conv_->weight.options());
  for (int64_t i = 0; i < flat.size(0); i += at_once) {
    const int64_t count = std::min(at_once, flat.size(0) - i);
    const at::Tensor q = quantize_->embed(flat.narrow(0, i, count));
    if (planned) {
      planned->q.copy_(q);
      planned->decode.run();
      all.narrow(0, i, 1).copy_(planned->decoded);
    } else {
      all.narrow(0, i, count).copy_(frames_of(q).clamp(-1, 1));
    }
  }
  return all.view({codes.size(0), codes.size(1), o.channels, o.height, options_.width});
}

}  // namespace convssm::models
