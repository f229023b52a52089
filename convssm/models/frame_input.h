// What models take of clips that look at whole frames of pixels, and at no time between them.
#pragma once

#include "convssm/data/clips.h"
#include "convssm/data/dataset.h"

namespace convssm::models {

// Error(usage) unless clips have a frame, and no intervals, resets or rescaled steps.
void check_untimed(const char* operation, const data::Clips& clips);

// Frames of one size.
struct PixelInput {
  int64_t channels = 1, height = 64, width = 64;

  // What goes in of clips, [B,T,C,H,W]. Error(usage) unless their video has frames of this size.
  at::Tensor inputs_of(const char* operation, const data::Clips& clips) const;

  void check_data(const data::DataFormat& data) const;  // Error(usage) if it holds codes
};

}  // namespace convssm::models
