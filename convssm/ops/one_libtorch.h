// Two libtorch in one process (Debian's and a wheel's, say) share names of symbols but no tensors: what follows is a crash
// far from its cause.
#pragma once

#include <string>
#include <vector>

namespace convssm::ops {

// The files of libtorch that this process has loaded.
std::vector<std::string> loaded_libtorch();

// Error(usage) that names them if there are several.
void require_one_libtorch();

}  // namespace convssm::ops
