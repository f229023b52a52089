// Draws are those of the training's stream, one after the other on the CPU: few numbers, the same on every device.
#include "convssm/models/codes/masking.h"

#include <ATen/ATen.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "convssm/ops/check.h"

namespace convssm::models {
namespace {

// max(1, floor((1 - rate) count)) numbers in [0,count), drawn with replacement; all in order if the rate is 0.
std::vector<int64_t> counted_frames(int64_t count, double rate, Stream random) {
  std::vector<int64_t> frames;
  if (rate == 0) {
    for (int64_t s = 0; s < count; ++s) frames.push_back(s);
    return frames;
  }
  // Of 0.9 the share that is left is 0.0999...: the product is brought back to what was meant.
  const auto drawn = static_cast<int64_t>((1 - rate) * static_cast<double>(count) + 1e-9);
  for (int64_t i = 0; i < std::max<int64_t>(drawn, 1); ++i) {
    frames.push_back(static_cast<int64_t>(random.below(static_cast<uint64_t>(count))));
  }
  return frames;
}

at::Tensor masked(const at::Tensor& actions) { return actions.is_floating_point() ? at::isnan(actions) : actions < 0; }

}  // namespace

void MaskingOptions::read_from(OptionReader& read) {
  nlohmann::json causal = nullptr;
  read("causal_masking", causal);
  read("drop_loss", drop_loss);
  read("like_reference", like_reference);
  ops::require("model", drop_loss >= 0 && drop_loss < 1, "drop_loss must be in [0,1), got {}", drop_loss);
  if (causal.is_null()) return;
  OptionReader inner("model.causal_masking", causal);
  inner("context", context);
  inner("value", value);
  inner.finish();
  ops::require("model.causal_masking", context > 0, "context must be at least 1 frame, got {}", context);
}

int64_t MaskingOptions::telling_frames() const {
  return 1 + static_cast<int64_t>(std::ceil(2 / (1 - drop_loss) - 1e-9));
}

void MaskingOptions::check_length(int64_t frames) const {
  ops::require("model", context < frames,
               "causal_masking.context = {} leaves nothing to predict of clips of {} frames (train.frames); take a "
               "smaller context or longer clips",
               context, frames);
}

at::Tensor masked_rows(const at::Tensor& actions, int64_t B, const at::TensorOptions& like) {
  if (!actions.defined()) return at::ones({B}, like.dtype(at::kBool));
  return masked(actions).reshape({B, -1}).any(1);
}

Choices draw_choices(const MaskingOptions& options, int64_t predictions, const Stream& random) {
  return {.frames = counted_frames(predictions, options.drop_loss, random.split("drop loss")),
          .random = random.split("quantizer")};
}

at::Tensor chosen_frames(const at::Tensor& predictions, int64_t B, const std::vector<int64_t>& frames) {
  const int64_t L = predictions.size(0) / B;
  bool all = static_cast<int64_t>(frames.size()) == L;
  for (int64_t s = 0; s < L && all; ++s) all = frames[static_cast<size_t>(s)] == s;
  if (all) return predictions;
  const at::Tensor chosen = at::tensor(frames, predictions.options().dtype(at::kLong));
  return predictions.unflatten(0, {L, B}).index_select(0, chosen).flatten(0, 1);
}

at::Tensor blind_rows(const at::Tensor& actions, int64_t B) {
  return actions.defined() ? masked(actions).flatten(1).all(1) : at::ones({B}, at::kBool);
}

at::Tensor hide_frames(const at::Tensor& features, int64_t B, const MaskingOptions& options, const at::Tensor& blind) {
  const int64_t T = features.size(0) / B;
  if (!options.causal() || T <= options.context) return features;
  const at::Tensor late = at::arange(T, features.options().dtype(at::kLong)) >= options.context;
  const at::Tensor hidden =
      late.unsqueeze(1).logical_and(blind.to(features.device()).logical_not()).view({T * B, 1, 1, 1});
  return features.masked_fill(hidden, options.value);
}

at::Tensor frame_weights(const std::vector<int64_t>& frames, int64_t context, const at::Tensor& blind) {
  const int64_t B = blind.size(0);
  const auto S = static_cast<int64_t>(frames.size());
  const auto exact = blind.options().dtype(at::kDouble);
  if (context == 0) return at::full({S, B}, 1.0 / static_cast<double>(S * B), exact);
  const at::Tensor numbers = at::tensor(frames, blind.options().dtype(at::kLong));
  const at::Tensor late = (numbers >= context - 1).to(at::kDouble);
  const at::Tensor sighted = late / late.sum().clamp_min(1);  // none is late: they do not count
  const at::Tensor each =
      at::where(blind.unsqueeze(0), at::full({S, 1}, 1.0 / static_cast<double>(S), exact), sighted.unsqueeze(1));
  return each / static_cast<double>(B);
}

}  // namespace convssm::models
