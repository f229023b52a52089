// The ending of a file's name.
#pragma once

#include <string>

namespace convssm {

// ".png" of folder/picture.PNG, "" of a name without one.
std::string file_ending(const std::string& path);

}  // namespace convssm
