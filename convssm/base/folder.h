// Folders, with errors that say what the system refused.
#pragma once

#include <string>

namespace convssm {

// Makes the folder and those above it where they are missing. Error(io) if that fails.
void make_folder(const std::string& path);

// Flushes the names in a folder to the disk: without it a crash of the machine may lose one that is new. Error(io).
void sync_folder(const std::string& folder);

}  // namespace convssm
