// Folders, with errors that say what the system refused.
#pragma once

#include <string>

namespace convssm {

// Makes the folder and those above it where they are missing. Error(io) if that fails.
void make_folder(const std::string& path);

}  // namespace convssm
