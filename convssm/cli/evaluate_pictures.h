// What `convssm evaluate` leaves in the folder `samples` of a run, for its report.
#pragma once

#include <string>
#include <vector>

#include "convssm/evaluate/evaluate.h"

namespace convssm::cli {

// Strips and an animation of the clips that are shown, of each setting.
void save_pictures(const std::vector<data::Comparison>& settings, const std::string& out);

// Maps of the error of each variable, of each setting; those of an earlier evaluation go.
void save_error_maps(const std::vector<std::vector<evaluate::VariableMaps>>& settings, const std::string& out);

}  // namespace convssm::cli
