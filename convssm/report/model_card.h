// The page that goes with an exported model (see train/export.h): what it is, what it scores, how it is used.
#pragma once

#include <string>

namespace convssm::report {

// Markdown from the files of the folder; what is missing there is left out. `folder` is also how the commands on the page
// call it; of an absolute path only the name. `licence` is that of the weights; empty: not stated.
std::string model_card(const std::string& folder, const std::string& licence);

}  // namespace convssm::report
