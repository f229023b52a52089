// Which variables of grid files are fields, and how they are named.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "convssm/data/field_choice.h"
#include "convssm/io/grid_file.h"

namespace convssm::data {

// "u@850": "u", 850. Error(usage) if what follows is no number.
struct WantedField {
  std::string variable;
  std::optional<double> level;
};
WantedField read_wanted(const std::string& text);

// The variable of that name, or null. Names of GRIB have the kind of level behind them in files where several kinds have one name: such
// a name is good for all files.
const io::GridVariable* find_variable(const io::GridFile& file, const std::string& name);

// All fields of files of the same frames with the grid that most of them have, those with times before others. Error(data) that names
// the first file if there are none.
std::vector<std::string> usual_fields(const std::vector<std::unique_ptr<io::GridFile>>& files);

// The fields of a file that are channels unless somebody chooses, or of the chosen variables those that it has.
std::vector<std::string> field_names(const std::string& path, const FieldChoice& choice);

// Whether an HDF5 file holds fields with times as CF has them, and not just arrays.
bool holds_fields_of_cf(const std::string& path);

}  // namespace convssm::data
