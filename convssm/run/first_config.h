// A small config for data that nobody has trained on yet: complete, with its reasons, minutes of training.
#pragma once

#include <string>

namespace convssm::run {

// The text of a config whose section `data` is `data_yaml` ("data:\n  name: folder\n ..."). Reads the heads of its files to
// choose sizes and lengths that fit. With `missing` some pixels were not measured. Errors as make_dataset.
std::string first_config(const std::string& data_yaml, bool missing = false);

}  // namespace convssm::run
