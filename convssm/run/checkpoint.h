// Checkpoints: a folder of pairs `step-000500.safetensors` (tensors; its metadata makes it a model file of its own) and
// `step-000500.json` (the checksum and what a trainer needs besides). The JSON is written last: without a valid one the
// checkpoint does not exist. Both appear whole or not at all.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "convssm/io/safetensors.h"

namespace convssm::run {

struct CheckpointRecord {
  int64_t step = 0;
  std::string tensors;    // path of the safetensors file
  nlohmann::json extras;  // what was given to write_checkpoint
};

// Writes a checkpoint. `tensors` are named as in the file, `metadata` goes into its header.
void write_checkpoint(const std::string& folder, int64_t step, const std::vector<io::LazyArray>& tensors,
                      const io::Metadata& metadata, const nlohmann::json& extras);

// The newest checkpoint whose checksum holds; a damaged one is passed over with a loud warning. Error(data) if there is
// none. `step` >= 0 asks for that one.
CheckpointRecord find_checkpoint(const std::string& folder, int64_t step = -1);

// The steps for which there is a checkpoint, in order; damaged or not.
std::vector<int64_t> checkpoint_steps(const std::string& folder);

// Takes the checkpoints after `step` out of use, because they are damaged or of a run that failed: their JSON files get
// the ending .bad.
void set_aside_checkpoints_after(const std::string& folder, int64_t step);

// Removes the tensors of checkpoints that were never completed, or only half removed: those without a JSON file, in use
// (.json) or not (.json.bad).
void remove_halves(const std::string& folder);

// Removes all but the `keep_last` newest and those whose step is a multiple of `keep_every` (0: none of these).
void prune_checkpoints(const std::string& folder, int64_t keep_last, int64_t keep_every);

}  // namespace convssm::run
