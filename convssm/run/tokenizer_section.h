// Models of codes name a trained tokenizer by its path: model.tokenizer=runs/tokenizer. When a training begins the path becomes
// the section of that tokenizer's own model, with `frames`, `hash` and, as `weights`, the path; its weights are copied into the
// model, whose file then needs no other.
#pragma once

#include "convssm/run/config.h"

namespace convssm::run {

// With the section in place of a path; as it is if there is none. Error if there is no tokenizer at the path. A run that goes
// on (`before` is its config) has the tokenizer of the same path in its own checkpoints: the path is not looked at.
Config with_tokenizer(const Config& config, const Config& before = {});

// What the frames of the model are: those of its tokenizer, or of the dataset.
data::FrameFormat frames_of(const Config& config, const data::Dataset& dataset);
data::FrameFormat frames_of(const Config& config);  // those of its tokenizer, which must be there

// Copies the weights of the tokenizer into a new model. Error(usage) if the section tells no weights.
void load_tokenizer(models::Model& model, const Config& config);

}  // namespace convssm::run
