// A run as a small folder of its own, to keep or to give away: weights without the state of the optimizer, and what is
// known about them.
//   model.safetensors  config.yaml  export.json  log.jsonl  status.json  metrics.json  context.npy
// Of a model that takes actions the context is context.npz, with those of its frames; actions.npy has those after them.
// It names no place of this machine: absolute paths of the config's data become names of files.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace convssm::run {

struct ExportOptions {
  std::string run, out;
  int64_t step = -1;   // of the checkpoint; -1: the newest
  bool force = false;  // replace an export that is there
};

struct Exported {
  std::vector<std::string> files;  // names in the folder; those that the run does not have are left out
  std::vector<std::string> notes;  // what is missing, and what to do about it
};

// Error(usage) if `out` holds an export already. The new export takes the place of the old one in one step, or the old one
// stays as it was; other files of the folder stay in any case. The context, the first frames of the first test clip, needs
// the data of the run; without it there is a note.
Exported export_run(const ExportOptions& options);

}  // namespace convssm::run
