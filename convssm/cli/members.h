// Several models that forecast side by side, as members of one ensemble: what `--also` of generate and evaluate names.
#pragma once

#include <string>
#include <vector>

#include "convssm/run/model_file.h"

namespace convssm::cli {

inline constexpr const char* kAlsoHelp =
    "Another model whose futures are members too, such as a run of another seed; RUN@STEP is the checkpoint of a step. "
    "May be "
    "given several times";

// Each of `also`, a path or "RUN@STEP", read as `options` say but for the step. Error(usage) that names the difference
// unless it takes the frames, channels, actions and forcings that the first model does.
std::vector<run::LoadedModel> load_members(const run::LoadedModel& first, const std::vector<std::string>& also,
                                           const run::LoadOptions& options);

}  // namespace convssm::cli
