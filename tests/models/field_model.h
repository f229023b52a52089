// A small pixel model of everything that fields have: maps that are known in advance, pixels that were not measured, and a channel
// that is forecast and not seen; and clips for it.
#pragma once

#include <torch/torch.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "convssm/models/registry.h"
#include "tests/support.h"

namespace convssm::testing {

inline constexpr int64_t kFieldChannels = 3, kFieldHeight = 7, kFieldWidth = 9, kFieldMaps = 2;

inline data::FrameFormat field_format() {
  data::FrameFormat format(kFieldChannels, kFieldHeight, kFieldWidth);
  format.channels[1].diagnostic = true;
  return format;
}

inline const nlohmann::json kFieldCore = {{"name", "convs5"}, {"features", 8}, {"state_size", 8}, {"layers", 2}};

inline std::shared_ptr<models::Model> field_model(const nlohmann::json& core = kFieldCore, bool mask = true) {
  const nlohmann::json coder = {{"depths", {4, 8}}};
  return models::make_model(
      {{"encoder", coder}, {"decoder", coder}, {"core", core}, {"action_maps", kFieldMaps}, {"mask_input", mask}},
      field_format());
}

// Some pixels were not measured now and then, a corner never ("land"), and one frame not at all; some maps are masked.
inline data::Clips field_clips(int64_t B, int64_t T, uint64_t seed = 1, at::ScalarType type = at::kDouble) {
  data::Clips clips;
  clips.video = randn({B, T, kFieldChannels, kFieldHeight, kFieldWidth}, seed).tanh().to(type);
  clips.actions = randn({B, T, kFieldMaps, kFieldHeight, kFieldWidth}, seed + 1).tanh().to(type);
  clips.actions.masked_fill_(randn(clips.actions.sizes(), seed + 2) > 1.8, std::numeric_limits<double>::quiet_NaN());
  clips.valid = randn(clips.video.sizes(), seed + 3) > -0.5;
  clips.valid.slice(3, 0, 2).slice(4, 0, 3).fill_(false);
  if (T > 2) clips.valid.select(1, 2).fill_(false);
  clips.video.masked_fill_(clips.valid.logical_not(), 0);
  return clips;
}

}  // namespace convssm::testing
