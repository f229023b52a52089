// Chunks hold about a MiB: a frame is read without many others, and what a disk or a network gives at once is not much less. A record
// that is larger is divided, along its longest dimensions.
#include "convssm/io/grid_layout.h"

#include <algorithm>
#include <set>

#include "convssm/base/error.h"
#include "convssm/io/text.h"
#include "convssm/io/zarr_number.h"
#include "convssm/io/zarr_store.h"

namespace convssm::io {
namespace {

constexpr uint64_t wanted_chunk = uint64_t{1} << 20, most_of_record = uint64_t{4} << 20, most_chunk = uint64_t{1} << 30;

template <typename... Args>
[[noreturn]] void refuse_layout(fmt::format_string<Args...> text, Args&&... args) {
  fail(ErrorKind::usage, "[open_grid_writer] {}", fmt::format(text, std::forward<Args>(args)...));
}

// NetCDF has no other names, and in Zarr they are those of files.
void check_grid_name(const char* what, const std::string& name) {
  const bool valid = is_zarr_key(name) && is_utf8(name) && name.find('/') == name.npos && name[0] != '.' &&
                     name[0] != ' ' && name.back() != ' ';
  if (!valid) refuse_layout("{} is not a name of {}", in_quotes(name), what);
}

void check_attribute(const std::string& of, const std::string& name, const GridAttribute& attribute, DType dtype) {
  check_grid_name("an attribute", name);
  if (attribute.is_text()) {
    if (!is_utf8(attribute.text)) refuse_layout("the attribute '{}' of {} is not UTF-8", name, of);
    return;
  }
  std::byte element[sizeof(double)];
  for (const double number : attribute.numbers) {
    if (dtype == DType::f16 || !store_number(dtype, number, std::span(element).first(dtype_size(dtype)))) {
      refuse_layout("the attribute '{}' of {} is {}, which {} cannot hold", name, of, number, dtype_name(dtype));
    }
  }
}

void check_dimensions(const GridLayout& layout) {
  std::vector<std::string> names;
  for (const auto& [name, size] : layout.dimensions) {
    check_grid_name("a dimension", name);
    if (std::ranges::count(names, name) > 0) refuse_layout("two dimensions are named '{}'", name);
    if (size < (name == layout.records ? 0 : 1)) refuse_layout("the dimension '{}' has the size {}", name, size);
    names.push_back(name);
  }
  if (!layout.records.empty() && std::ranges::count(names, layout.records) == 0) {
    refuse_layout("records come along '{}', which is none of the dimensions", layout.records);
  }
}

void set_shape(const GridLayout& layout, GridVariable& variable) {
  std::vector<int64_t> shape;
  for (const std::string& name : variable.dimensions) {
    const auto at = std::ranges::find(layout.dimensions, name, &GridDimension::name);
    if (at == layout.dimensions.end()) refuse_layout("'{}' has the unknown dimension '{}'", variable.name, name);
    if (std::ranges::count(variable.dimensions, name) > 1) {
      refuse_layout("'{}' has the dimension '{}' twice", variable.name, name);
    }
    shape.push_back(at->size);
  }
  if (!variable.shape.empty() && variable.shape != shape) {
    refuse_layout("'{}' is {}, but its dimensions are {}", variable.name, shape_text(variable.shape),
                  shape_text(shape));
  }
  variable.shape = std::move(shape);
  if (!checked_byte_count(variable.shape, dtype_size(variable.dtype))) {
    refuse_layout("'{}' has more than 2^63 bytes: {}", variable.name, shape_text(variable.shape));
  }
}

std::vector<int64_t> choose_chunks(const GridVariable& variable, size_t axis) {
  std::vector<int64_t> chunks = variable.shape;
  if (chunks.empty()) return chunks;
  chunks[axis] = 1;
  const auto bytes = [&] { return *checked_byte_count(chunks, dtype_size(variable.dtype)); };
  while (bytes() > most_of_record) {
    const auto longest = std::ranges::max_element(chunks);
    *longest = (*longest + 1) / 2;
  }
  const auto rows = static_cast<int64_t>(wanted_chunk / bytes());
  chunks[axis] = std::clamp<int64_t>(variable.shape[axis], 1, std::max<int64_t>(rows, 1));
  return chunks;
}

void set_chunks(const GridLayout& layout, GridVariable& variable) {
  const size_t axis = row_axis(layout, variable);
  if (variable.chunks.empty()) variable.chunks = choose_chunks(variable, axis);
  bool fits = variable.chunks.size() == variable.shape.size();
  for (size_t d = 0; fits && d < variable.shape.size(); ++d) {
    fits = variable.chunks[d] > 0;
    variable.chunks[d] = std::min(variable.chunks[d], std::max<int64_t>(variable.shape[d], 1));
  }
  const auto bytes = checked_byte_count(variable.chunks, dtype_size(variable.dtype));
  if (!fits || !bytes || *bytes > most_chunk) {
    refuse_layout("'{}', which is {}, cannot have chunks of {}: they must be of at least 1 and at most {} bytes",
                  variable.name, shape_text(variable.shape), shape_text(variable.chunks), most_chunk);
  }
}

}  // namespace

size_t row_axis(const GridLayout& layout, const GridVariable& variable) {
  const auto at = std::ranges::find(variable.dimensions, layout.records);
  return at == variable.dimensions.end() ? 0 : static_cast<size_t>(at - variable.dimensions.begin());
}

std::optional<std::vector<std::byte>> fill_element(const GridVariable& variable) {
  const auto at = variable.attributes.find("_FillValue");
  if (at == variable.attributes.end()) return std::nullopt;
  std::vector<std::byte> element(dtype_size(variable.dtype));
  if (at->second.numbers.size() != 1 || !store_number(variable.dtype, at->second.numbers[0], element)) {
    refuse_layout("_FillValue of '{}' must be one number that {} can hold", variable.name, dtype_name(variable.dtype));
  }
  return element;
}

GridLayout complete_layout(GridLayout layout) {
  check_dimensions(layout);
  for (const auto& [name, attribute] : layout.attributes) check_attribute("the file", name, attribute, attribute.dtype);
  std::set<std::string> names;
  for (GridVariable& variable : layout.variables) {
    check_grid_name("a variable", variable.name);
    if (!names.insert(variable.name).second) refuse_layout("two variables are named '{}'", variable.name);
    if (variable.dtype == DType::c64 || variable.dtype == DType::c128) {
      refuse_layout("'{}' is of complex numbers; write their parts", variable.name);
    }
    set_shape(layout, variable);
    set_chunks(layout, variable);
    fill_element(variable);
    for (const auto& [name, attribute] : variable.attributes) {
      if (name != "_FillValue") check_attribute("'" + variable.name + "'", name, attribute, attribute.dtype);
    }
  }
  return layout;
}

}  // namespace convssm::io
