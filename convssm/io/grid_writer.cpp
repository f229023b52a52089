// Rows wait until they fill a row of chunks: a chunk is packed once. A block of rows is, before the dimension along which they come, a
// number of parts, and in each of them the rows lie together.
#include "convssm/io/grid_writer.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "convssm/base/error.h"
#include "convssm/base/file_ending.h"
#include "convssm/io/grid_layout.h"
#include "convssm/io/netcdf_write.h"
#include "convssm/io/zarr_write.h"

namespace convssm::io {
namespace {

struct GridFormat {
  const char* ending;
  std::unique_ptr<GridWriter> (*open)(const std::string&, const GridLayout&);
};

constexpr GridFormat grid_formats[] = {{".nc", open_netcdf_writer}, {".zarr", open_zarr_writer}};

int64_t row_count(const GridVariable& variable, size_t axis) {
  return variable.shape.empty() ? 1 : variable.shape[axis];
}

int64_t chunk_rows(const GridVariable& variable, size_t axis) {
  return variable.chunks.empty() ? 1 : variable.chunks[axis];
}

std::vector<int64_t> shape_of_rows(const GridVariable& variable, size_t axis, int64_t count) {
  std::vector<int64_t> shape = variable.shape;
  if (!shape.empty()) shape[axis] = count;
  return shape;
}

// How many rows an array holds; nothing if it has another shape.
std::optional<int64_t> count_rows(const GridVariable& variable, size_t axis, const std::vector<int64_t>& shape) {
  std::vector<int64_t> row = variable.shape;
  if (!row.empty()) row.erase(row.begin() + static_cast<std::ptrdiff_t>(axis));
  if (shape == row) return 1;
  if (shape.size() != variable.shape.size()) return std::nullopt;
  if (shape != shape_of_rows(variable, axis, shape[axis])) return std::nullopt;
  return shape[axis];
}

// `count` rows from `from` on of a block of `from_rows`, to the rows from `to` on of one of `to_rows`.
void copy_rows(const GridVariable& variable, size_t axis, const Array& block, int64_t from, int64_t from_rows,
               int64_t count, Array& out, int64_t to, int64_t to_rows) {
  size_t parts = 1, row = dtype_size(variable.dtype);
  for (size_t d = 0; d < variable.shape.size(); ++d) {
    if (d < axis) parts *= static_cast<size_t>(variable.shape[d]);
    if (d > axis) row *= static_cast<size_t>(variable.shape[d]);
  }
  const auto bytes = [row](int64_t rows) { return static_cast<size_t>(rows) * row; };
  for (size_t part = 0; part < parts; ++part) {
    std::memcpy(out.bytes().data() + part * bytes(to_rows) + bytes(to),
                block.bytes().data() + part * bytes(from_rows) + bytes(from), bytes(count));
  }
}

}  // namespace

GridWriter::GridWriter(std::string path, GridLayout layout)
    : path_(std::move(path)), layout_(std::move(layout)), progress_(layout_.variables.size()) {}

size_t GridWriter::axis_of(const GridVariable& variable) const { return row_axis(layout_, variable); }

void GridWriter::write(const std::string& name, const Array& rows) {
  if (closed_) fail(ErrorKind::usage, "[GridWriter] write() after close()");
  const auto at = std::ranges::find(layout_.variables, name, &GridVariable::name);
  if (at == layout_.variables.end()) fail(ErrorKind::usage, "[GridWriter] '{}' has no variable '{}'", path_, name);
  const size_t axis = axis_of(*at);
  const auto count = count_rows(*at, axis, rows.shape());
  if (!count || rows.dtype() != at->dtype) {
    fail(ErrorKind::usage, "[GridWriter] rows of '{}' are {} of {} with any length along '{}', got {} of {}", name,
         shape_text(at->shape), dtype_name(at->dtype), at->dimensions.empty() ? "none" : at->dimensions[axis],
         shape_text(rows.shape()), dtype_name(rows.dtype()));
  }
  const auto variable = static_cast<size_t>(at - layout_.variables.begin());
  const int64_t left = row_count(*at, axis) - progress_[variable].written - progress_[variable].held;
  if (*count > left) {
    fail(ErrorKind::usage, "[GridWriter] '{}' has {} rows left of {}, got {}", name, left, row_count(*at, axis),
         *count);
  }
  append(variable, rows, *count);
}

void GridWriter::append(size_t number, const Array& rows, int64_t count) {
  const GridVariable& variable = layout_.variables[number];
  Progress& progress = progress_[number];
  const size_t axis = axis_of(variable);
  const int64_t most = chunk_rows(variable, axis);
  for (int64_t taken = 0; taken < count;) {
    if (progress.rows.shape() != shape_of_rows(variable, axis, most) || progress.rows.dtype() != variable.dtype) {
      progress.rows = Array(variable.dtype, shape_of_rows(variable, axis, most));
    }
    const int64_t part = std::min(count - taken, most - progress.held);
    copy_rows(variable, axis, rows, taken, count, part, progress.rows, progress.held, most);
    progress.held += part, taken += part;
    if (progress.held == most) flush(number);
  }
}

void GridWriter::flush(size_t number) {
  const GridVariable& variable = layout_.variables[number];
  Progress& progress = progress_[number];
  const size_t axis = axis_of(variable);
  const int64_t held = progress.held, most = chunk_rows(variable, axis);
  if (held == 0) return;
  if (held == most) {
    put(number, progress.written, progress.rows);
  } else {
    Array rows(variable.dtype, shape_of_rows(variable, axis, held));
    copy_rows(variable, axis, progress.rows, 0, most, held, rows, 0, held);
    put(number, progress.written, rows);
  }
  progress.written += held, progress.held = 0;
  if (progress.written == row_count(variable, axis)) progress.rows = Array();
}

void GridWriter::complete() {
  for (size_t i = 0; i < layout_.variables.size(); ++i) {
    const GridVariable& variable = layout_.variables[i];
    const int64_t rows = row_count(variable, axis_of(variable)), came = progress_[i].written + progress_[i].held;
    if (came != rows) {
      fail(ErrorKind::usage, "[GridWriter] '{}' of '{}': expected {} rows, got {}", variable.name, path_, rows, came);
    }
  }
  for (size_t i = 0; i < layout_.variables.size(); ++i) flush(i);
  finish();
  closed_ = true;
}

void GridWriter::close() {
  if (closed_) fail(ErrorKind::usage, "[GridWriter] close() after close()");
  complete();
}

void GridWriter::close_early() {
  if (closed_) fail(ErrorKind::usage, "[GridWriter] close() after close()");
  int64_t records = -1;
  for (size_t i = 0; i < layout_.variables.size(); ++i) {
    const GridVariable& variable = layout_.variables[i];
    if (std::ranges::count(variable.dimensions, layout_.records) == 0) continue;
    const int64_t came = progress_[i].written + progress_[i].held;
    if (records >= 0 && came != records) {
      fail(ErrorKind::usage, "[GridWriter] '{}': {} records came of '{}', {} of others", path_, came, variable.name,
           records);
    }
    records = came;
  }
  for (GridDimension& dimension : layout_.dimensions) {
    if (records >= 0 && dimension.name == layout_.records) dimension.size = records;
  }
  for (GridVariable& variable : layout_.variables) {
    const auto at = std::ranges::find(variable.dimensions, layout_.records);
    if (at != variable.dimensions.end()) variable.shape[axis_of(variable)] = records;
  }
  complete();
}

std::vector<std::string> grid_endings() {
  std::vector<std::string> all;
  for (const GridFormat& format : grid_formats) all.emplace_back(format.ending);
  return all;
}

std::unique_ptr<GridWriter> open_grid_writer(const std::string& path, const GridLayout& layout) {
  const std::string ending = file_ending(path.ends_with('/') ? path.substr(0, path.size() - 1) : path);
  for (const GridFormat& format : grid_formats) {
    if (ending == format.ending) return format.open(path, complete_layout(layout));
  }
  fail(ErrorKind::usage, "[open_grid_writer] the name of such a file ends with {}; got '{}'",
       fmt::join(grid_endings(), ", "), path);
}

}  // namespace convssm::io
