#include "convssm/io/grid_file.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "convssm/base/error.h"
#include "convssm/base/nearest.h"

namespace convssm::io {

const GridVariable* GridFile::find(const std::string& name) const {
  const auto at = std::ranges::lower_bound(variables_, name, {}, &GridVariable::name);
  return at != variables_.end() && at->name == name ? &*at : nullptr;
}

const GridVariable& GridFile::variable(const std::string& name) const {
  if (const GridVariable* found = find(name)) return *found;
  std::vector<std::string> names;
  for (const GridVariable& variable : variables_) names.push_back(variable.name);
  const std::string close = nearest(name, names);
  fail(ErrorKind::data, "{}: no variable '{}'; {}", path_, name,
       !close.empty()  ? fmt::format("did you mean '{}'?", close)
       : names.empty() ? "it has none of numbers"
                       : fmt::format("there are {}", fmt::join(names, ", ")));
}

Array GridFile::read(const GridVariable& variable, std::span<const int64_t> first,
                     std::span<const int64_t> count) const {
  const std::vector<int64_t>& shape = variable.shape;
  const GridVariable* own = find(variable.name);
  if (own == nullptr || own->shape != shape || own->dtype != variable.dtype) {
    fail(ErrorKind::usage, "{}: '{}' is not a variable of this file", path_, variable.name);
  }
  bool inside = first.size() == shape.size() && count.size() == shape.size();
  for (size_t d = 0; inside && d < shape.size(); ++d) {
    inside = first[d] >= 0 && count[d] >= 0 && count[d] <= shape[d] && first[d] <= shape[d] - count[d];
  }
  if (!inside) {
    fail(ErrorKind::usage, "{}: a box from [{}] on of [{}] is not inside of '{}', which is {}", path_,
         fmt::join(first, ", "), fmt::join(count, ", "), variable.name, shape_text(shape));
  }
  Array out = array_of_file(path_, variable.dtype, {count.begin(), count.end()});
  if (out.element_count() > 0) fetch(variable, first, out);
  if (out.dtype() == DType::bool8) normalize_bools(out);
  return out;
}

Array GridFile::read(const GridVariable& variable) const {
  return read(variable, std::vector<int64_t>(variable.shape.size(), 0), variable.shape);
}

void GridFile::set_content(std::vector<GridVariable> variables, GridAttributes attributes) {
  std::ranges::sort(variables, {}, &GridVariable::name);
  for (const GridVariable& variable : variables) {
    if (!checked_byte_count(variable.shape, dtype_size(variable.dtype))) {
      throw FormatError(
          path_, 0,
          fmt::format("'{}' has the shape {}, which no array can have", variable.name, shape_text(variable.shape)));
    }
  }
  variables_ = std::move(variables);
  attributes_ = std::move(attributes);
}

}  // namespace convssm::io
