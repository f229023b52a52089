// Checks alone: what goes in is handed on as it is.
#include "convssm/models/frame_input.h"

#include <ATen/core/Tensor.h>

#include "convssm/ops/check.h"

namespace convssm::models {

void check_untimed(const char* operation, const data::Clips& clips) {
  ops::require(operation, clips.frames() > 0, "a clip needs at least 1 frame, got {}", clips.frames());
  const data::ClipTiming& timing = clips.timing;
  ops::require(operation, !timing.dt.defined() && !timing.resets.defined() && timing.step_rescale == 1,
               "this model knows no time between frames: leave dt, resets and step_rescale out");
}

at::Tensor PixelInput::inputs_of(const char* operation, const data::Clips& clips) const {
  const at::Tensor& video = clips.video;
  ops::require(operation, video.defined(), "this model needs the video of the clips, they have none");
  data::check_clips(operation, clips);
  ops::require(operation, video.size(2) == channels && video.size(3) == height && video.size(4) == width,
               "video must be [B,T,{},{},{}], the frames of this model, got {}", channels, height, width,
               ops::shape_text(video.sizes()));
  return clips.inputs.defined() ? clips.inputs : video;
}

void PixelInput::check_data(const data::DataFormat& data) const {
  if (data.codes.none()) return;
  fail(ErrorKind::usage,
       "the data holds codes of a tokenizer, this model takes frames; give it model.tokenizer or model.codebook");
}

}  // namespace convssm::models
