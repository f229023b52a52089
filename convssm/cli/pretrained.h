// Where the trained models that come with the program are.
#pragma once

#include <string>

namespace convssm::cli {

// The folder of that name in pretrained/ of the source tree the program was built in, in share/convssm/pretrained of
// where it is installed, or in pretrained/ of the current folder. "" if there is none.
std::string find_pretrained(const std::string& name);

}  // namespace convssm::cli
