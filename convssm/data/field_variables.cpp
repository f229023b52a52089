#include "convssm/data/field_variables.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>

#include "convssm/base/error.h"
#include "convssm/data/field_axes.h"
#include "convssm/io/grid_open.h"
#include "convssm/io/hdf5.h"

namespace convssm::data {
namespace {

// Bounds of cells and coordinates of two dimensions are no fields.
bool describes_others(const io::GridFile& file, const io::GridVariable& variable) {
  const std::string name = " " + variable.name + " ";
  for (const io::GridVariable& other : file.variables()) {
    for (const char* attribute : {"coordinates", "bounds", "cell_measures"}) {
      if ((" " + attribute_text(other.attributes, attribute) + " ").find(name) != std::string::npos) return true;
    }
  }
  const std::string units = attribute_text(variable.attributes, "units"),
                    own = attribute_text(variable.attributes, "standard_name");
  return own == "latitude" || own == "longitude" || io::CfTime::is_time(units);
}

}  // namespace

WantedField read_wanted(const std::string& text) {
  const size_t at = text.rfind('@');
  if (at == std::string::npos) return {text, std::nullopt};
  char* end = nullptr;
  const std::string number = text.substr(at + 1);
  const double level = std::strtod(number.c_str(), &end);
  if (number.empty() || *end != '\0' || !std::isfinite(level)) {
    fail(ErrorKind::usage, "[fields] expected a variable and a level such as u@850, got '{}'", text);
  }
  return {text.substr(0, at), level};
}

const io::GridVariable* find_variable(const io::GridFile& file, const std::string& name) {
  if (const io::GridVariable* variable = file.find(name)) return variable;
  const auto found = std::ranges::find_if(file.variables(), [&](const io::GridVariable& variable) {
    const std::string kind = attribute_text(variable.attributes, "GRIB_typeOfLevel");
    return !kind.empty() && name == variable.name + "_" + kind;
  });
  return found == file.variables().end() ? nullptr : &*found;
}

std::vector<std::string> usual_fields(const std::vector<std::unique_ptr<io::GridFile>>& files) {
  std::map<std::vector<int64_t>, std::vector<std::string>> with_times, without;
  std::vector<std::string> all;
  for (const auto& file : files) {
    for (const io::GridVariable& variable : file->variables()) {
      all.push_back(fmt::format("{} {}", variable.name, io::shape_text(variable.shape)));
      const FieldDimensions dims = find_dimensions(*file, variable);
      if (variable.shape.size() < 2 || !dims.are_field() || describes_others(*file, variable)) continue;
      const auto size = [&](int d) { return variable.shape[static_cast<size_t>(d)]; };
      if (size(dims.rows) < 2 || size(dims.columns) < 2) continue;
      (dims.time >= 0 ? with_times : without)[{size(dims.rows), size(dims.columns)}].push_back(variable.name);
    }
  }
  const auto& fields = with_times.empty() ? without : with_times;
  const auto most = std::ranges::max_element(fields, {}, [](const auto& entry) { return entry.second.size(); });
  if (most != fields.end()) return most->second;
  fail(ErrorKind::data, "[fields] '{}' has no fields, variables with rows and columns; it has {}", files[0]->path(),
       all.empty() ? "nothing" : fmt::format("{}", fmt::join(all, ", ")));
}

std::vector<std::string> field_names(const std::string& path, const FieldChoice& choice) {
  std::vector<std::unique_ptr<io::GridFile>> file;
  file.push_back(io::open_grid(path));
  if (choice.variables.empty()) return usual_fields(file);
  std::vector<std::string> names;
  for (const std::string& name : choice.variables) {
    if (find_variable(*file[0], name) || find_variable(*file[0], read_wanted(name).variable)) names.push_back(name);
  }
  return names;
}

bool holds_fields_of_cf(const std::string& path) {
  try {
    const auto may_be_time = [](const std::string& name) { return name.find("ime") != std::string::npos; };
    if (std::ranges::none_of(io::hdf5_names(path), may_be_time)) return false;
    const auto file = io::open_grid(path);
    return std::ranges::any_of(file->variables(), [&](const io::GridVariable& variable) {
      const FieldDimensions dims = find_dimensions(*file, variable);
      const io::GridVariable* time = dims.time < 0 ? nullptr : coordinate_of(*file, variable, dims.time);
      return time && dims.are_field() && io::CfTime::is_time(attribute_text(time->attributes, "units"));
    });
  } catch (const Error&) {
    return false;  // said by whoever reads its arrays
  }
}

}  // namespace convssm::data
