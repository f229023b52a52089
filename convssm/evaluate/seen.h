// Scores of a memory: apart for frames whose place the context showed, and for the others. Only of clips that know which
// earlier frame showed the same place (data::Clips::revisit).
#pragma once

#include <ATen/core/Tensor.h>

#include <nlohmann/json.hpp>
#include <vector>

#include "convssm/evaluate/scores.h"

namespace convssm::evaluate {

// revisit [B,K+N] -> [B,N] bool: whether the revisits, followed from frame to frame, lead into the first K.
at::Tensor seen_in_context(const at::Tensor& revisit, int64_t K);

// Adds "seen_before" and "never_seen", each {"share": of the frames, "rows": as those of the horizon, or []}.
void add_seen_rows(nlohmann::json& horizon, const std::vector<Scores>& scores, const at::Tensor& seen, int64_t frames);

}  // namespace convssm::evaluate
