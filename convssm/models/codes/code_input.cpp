// The tokenizer is made by the registry, as the file of its own training would be.
#include "convssm/models/codes/code_input.h"

#include <ATen/ATen.h>

#include "convssm/base/bounds.h"
#include "convssm/base/option_reader.h"
#include "convssm/models/registry.h"
#include "convssm/models/waiting_state.h"
#include "convssm/ops/check.h"
#include "convssm/ssm/initializers.h"

namespace convssm::models {

void CodeInputOptions::read_from(OptionReader& read) {
  nlohmann::json codebook = nullptr;
  read("tokenizer", tokenizer);
  read("codebook", codebook);
  if (tokenizer.is_null() == codebook.is_null()) {
    fail(ErrorKind::usage,
         "[model] expected either `tokenizer`, a trained one such as runs/tokenizer, or `codebook: {{count, height, "
         "width, features}}` for encoded clips without one, got {}",
         codebook.is_null() ? "neither" : "both");
  }
  if (codebook.is_null()) return;
  OptionReader inner("model.codebook", codebook);
  inner("count", count);
  inner("height", height);
  inner("width", width);
  inner("features", features);
  inner.finish();
  ops::require("model.codebook", count > 1 && height > 0 && width > 0 && features > 0,
               "count must be at least 2, height, width and features positive, got {}, {}, {} and {}", count, height,
               width, features);
}

TokenizerPart make_tokenizer(const nlohmann::json& section) {
  if (section.is_null()) return {};
  if (!section.is_object() || !section.contains("frames")) {
    fail(ErrorKind::usage, "[model.tokenizer] expected the section of a tokenizer with its `frames`, got {}",
         section.dump());
  }
  nlohmann::json own = section;
  for (const char* key : {"frames", "hash", "weights"}) own.erase(key);
  const std::shared_ptr<Model> model = make_model(own, data::FrameFormat::from_json(section["frames"]));
  const TokenizerPart part = model->tokenizer_part();
  if (!part) fail(ErrorKind::usage, "[model.tokenizer] this model is no tokenizer: {}", model->description());
  return part;
}

CodeInput::CodeInput(torch::nn::Module& owner, const CodeInputOptions& options, const TokenizerPart& tokenizer,
                     const Stream& stream)
    : options_(options), tokenizer_(tokenizer) {
  if (tokenizer_) {
    if (tokenizer_.tokenizer->continuous()) {
      fail(ErrorKind::usage,
           "[model.tokenizer] models of codes need a tokenizer with codes (quantizer ema, gradient, cosine or fsq), "
           "this "
           "one is continuous (kl)");
    }
    frames_ = data::FrameFormat::from_json(options.tokenizer.at("frames"));
    like_ = tokenizer_.module->parameters().at(0);
    return;
  }
  Stream own = stream.split("codebook");
  table_ = owner.register_parameter("codebook", ssm::normal({options.count, options.features}, 1, own));
}

data::CodeFormat CodeInput::format() const {
  if (!tokenizer_) return {options_.count, options_.height, options_.width};
  data::CodeFormat format = tokenizer_.tokenizer->codes();
  format.tokenizer = options_.tokenizer.value("hash", "");
  return format;
}

int64_t CodeInput::features() const { return tokenizer_ ? tokenizer_.tokenizer->features() : options_.features; }

at::Tensor CodeInput::codes_of(const char* operation, const Clips& clips) const {
  data::check_clips(operation, clips);
  if (!clips.codes.defined()) {
    ops::require(operation, clips.video.defined(),
                 "this model needs the codes or the video of the clips, they have neither");
    ops::require(operation, has_frames(),
                 "this model has no tokenizer: it needs the codes of the clips, they have a video");
    return tokenizer_.tokenizer->encode(clips.video);
  }
  const data::CodeFormat grid = format();
  const at::Tensor& codes = clips.codes;
  ops::require(operation, codes.dim() == 4 && codes.size(2) == grid.height && codes.size(3) == grid.width,
               "codes must be [B,T,{},{}], got {}", grid.height, grid.width, ops::shape_text(codes.sizes()));
  const bool inside =
      codes.numel() == 0 || (codes.min().item<int64_t>() >= 0 && codes.max().item<int64_t>() < grid.count);
  ops::require(operation, inside, "codes must be 0 to {}, the codes of this model's table; there are others",
               grid.count - 1);
  return codes;
}

at::Tensor CodeInput::embed(const at::Tensor& codes) const {
  if (tokenizer_) {
    return tokenizer_.tokenizer->embed(codes).to(like_.scalar_type());
  }
  return at::embedding(table_, codes).permute({0, 3, 1, 2});
}

at::Tensor CodeInput::frames_of(const at::Tensor& codes) const {
  ops::require("next", has_frames(), "this model has no tokenizer: it forecasts codes, which no frame can be made of");
  return tokenizer_.tokenizer->decode(codes.unsqueeze(1)).squeeze(1);
}

at::Tensor CodeInput::waiting(const State& state, const char* name) const {
  const data::CodeFormat grid = format();
  const at::Tensor codes = waiting_value(state, name, {grid.height, grid.width}, at::kLong);
  const bool inside = codes.min().item<int64_t>() >= 0 && codes.max().item<int64_t>() < grid.count;
  if (!inside) fail(ErrorKind::data, "the state must hold {} of 0 to {}, there are others", name, grid.count - 1);
  return codes;
}

void CodeInput::check_data(const data::DataFormat& data) const {
  const data::CodeFormat grid = format();
  if (data.codes.none()) {
    if (!has_frames()) {
      fail(ErrorKind::usage,
           "the data has frames, the model takes codes; give it model.tokenizer, or encode the data (convssm data "
           "encode)");
    }
    if (!frames_.same_size(data.frames) || !frames_.same_ranges(data.frames)) {
      fail(ErrorKind::usage, "the tokenizer takes frames of {} with values from {}, the data has {} from {}",
           frames_.size_text(), frames_.range_text(), data.frames.size_text(), data.frames.range_text());
    }
    return;
  }
  if (data.codes.count > grid.count || data.codes.height != grid.height || data.codes.width != grid.width) {
    fail(ErrorKind::usage, "the data has {} x {} of {} codes, the model {} x {} of {}", data.codes.height,
         data.codes.width, data.codes.count, grid.height, grid.width, grid.count);
  }
  if (grid.tokenizer.empty() || data.codes.tokenizer.empty() || grid.tokenizer == data.codes.tokenizer) return;
  fail(ErrorKind::usage,
       "the codes of the data are those of another tokenizer ({}) than the model's ({}): encode the data with the "
       "model's "
       "own, or train with model.tokenizer set to the one that made them",
       data.codes.tokenizer, grid.tokenizer);
}

}  // namespace convssm::models
