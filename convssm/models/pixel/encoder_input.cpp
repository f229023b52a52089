// A frame without anything beside it, of which all is seen, goes in as it is.
#include "convssm/models/pixel/encoder_input.h"

#include <ATen/ATen.h>

#include "convssm/data/pixels.h"
#include "convssm/ops/check.h"

namespace convssm::models::pixel {

EncoderInput::EncoderInput(const EncoderInputOptions& options) : options_(options) {
  for (const int64_t channel : options.seen) {
    ops::require("model", channel >= 0 && channel < options.channels, "there is no channel {} of {}", channel,
                 options.channels);
  }
}

int64_t EncoderInput::seen() const {
  return options_.seen.empty() ? options_.channels : static_cast<int64_t>(options_.seen.size());
}

int64_t EncoderInput::channels() const {
  return (options_.mask ? 2 : 1) * seen() + (options_.maps > 0 ? options_.maps + 1 : 0);
}

at::Tensor EncoderInput::seen_of(const at::Tensor& frames) const {
  if (options_.seen.empty()) return frames;
  return frames.index_select(1, at::tensor(options_.seen).to(frames.device()));
}

at::Tensor EncoderInput::join(const at::Tensor& frames, const at::Tensor& measured, const at::Tensor& maps) const {
  const at::Tensor seen = seen_of(frames);
  if (!beside()) return seen;
  std::vector<at::Tensor> parts{seen};
  const std::vector<int64_t> sizes = seen.sizes().vec();
  if (options_.mask && measured.defined()) {
    parts[0] = at::where(measured.to(at::kBool), seen, at::full({}, data::kFiller, seen.options()));
    parts.push_back(measured.to(seen.options()));
  } else if (options_.mask) {
    parts.push_back(at::ones_like(seen));
  }
  if (options_.maps > 0 && maps.defined()) {
    const at::Tensor masked = at::isnan(maps).any(1, true);
    parts.push_back(at::where(masked, at::zeros({}, seen.options()), maps.to(seen.options())));
    parts.push_back(masked.to(seen.options()));
  } else if (options_.maps > 0) {
    parts.push_back(at::zeros({sizes[0], options_.maps + 1, sizes[2], sizes[3]}, seen.options()));
  }
  return at::cat(parts, 1);
}

}  // namespace convssm::models::pixel
