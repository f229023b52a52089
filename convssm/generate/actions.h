// Which actions lead to the frames of a forecast. A model that learned from actions forecasts nonsense without them, so
// what nobody gives is an error, unless training dropped actions (train.action_dropout): that teaches the masked one.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

#include "convssm/data/dataset.h"

namespace convssm::generate {

struct ActionRules {
  data::ActionFormat format;  // that the model takes
  bool mask_learned = false;
};

// The actions of `frames` frames: the first ones of `known`, [N,T], [N,T,A] or [N,T,M,H,W] (undefined: none are known),
// masked ones after them where the model learned those, which is said. Error(data) if they are of another kind, or if the
// model needs more; `whose` and `hint` are for the text. Undefined if none are known and the model needs none.
at::Tensor complete_actions(const at::Tensor& known, int64_t rows, int64_t frames, const ActionRules& rules,
                            const std::string& whose, const std::string& hint);

// Actions [rows,frames], [rows,frames,A] or maps [rows,frames,M,H,W], all of them masked.
at::Tensor masked_actions(int64_t rows, int64_t frames, const data::ActionFormat& format);

// Actions of one clip for each of `clips`, or those of as many clips as they are. Error(data) otherwise.
at::Tensor for_each_clip(const at::Tensor& actions, int64_t clips, const std::string& whose);

}  // namespace convssm::generate
