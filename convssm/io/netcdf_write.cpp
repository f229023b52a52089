// libnetcdf opens files by name, so the file grows in a folder beside its final place (base/staged_folder.h). The record dimension is
// unlimited: a file that ends early is not written again. Where writing fails libnetcdf knows no reason, but the system's is kept in
// errno.
#include "convssm/io/netcdf_write.h"

#include <netcdf.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>
#include <optional>
#include <utility>

#include "convssm/base/error.h"
#include "convssm/base/staged_folder.h"
#include "convssm/io/grid_layout.h"
#include "convssm/io/hdf5_lock.h"

namespace convssm::io {
namespace {

constexpr const char* file_name = "grid.nc";
constexpr int pack_level = 1;                            // higher ones take several times as long for a few per cent
constexpr uint64_t most_contiguous = uint64_t{1} << 16;  // bytes of a variable that is not worth chunks

std::optional<nc_type> type_of_dtype(DType dtype) {
  switch (dtype) {
    case DType::bool8:
    case DType::i8:
      return NC_BYTE;
    case DType::u8:
      return NC_UBYTE;
    case DType::i16:
      return NC_SHORT;
    case DType::u16:
      return NC_USHORT;
    case DType::i32:
      return NC_INT;
    case DType::u32:
      return NC_UINT;
    case DType::i64:
      return NC_INT64;
    case DType::u64:
      return NC_UINT64;
    case DType::f32:
      return NC_FLOAT;
    case DType::f64:
      return NC_DOUBLE;
    default:
      return std::nullopt;
  }
}

class NetcdfWriter : public GridWriter {
 public:
  NetcdfWriter(const std::string& path, const GridLayout& layout) : GridWriter(path, layout), staged_(path) {
    const std::lock_guard lock(hdf5_lock());
    errno = 0;
    const std::string name = std::filesystem::absolute(staged_->path(file_name)).string();
    check(nc_create(name.c_str(), NC_NETCDF4 | NC_CLOBBER, &id_));
    try {
      define();
    } catch (...) {
      abandon();
      throw;
    }
  }
  ~NetcdfWriter() override {
    const std::lock_guard lock(hdf5_lock());
    abandon();
  }

 private:
  void abandon() {
    if (id_ >= 0) nc_abort(id_);
    id_ = -1;
  }

  // The system's reason is that of the last call that it refused.
  void check(int code) const {
    if (code == NC_NOERR) return;
    const int reason = errno;
    fail(ErrorKind::io, "cannot write '{}': {}", path(),
         reason != 0 ? std::string(std::strerror(reason)) : nc_strerror(code));
  }

  void define() {
    std::map<std::string, int> dimensions;
    for (const auto& [name, size] : layout().dimensions) {
      const size_t length = name == layout().records ? NC_UNLIMITED : static_cast<size_t>(size);
      check(nc_def_dim(id_, name.c_str(), length, &dimensions[name]));
    }
    for (const GridVariable& variable : layout().variables) {
      std::vector<int> ids;
      for (const std::string& name : variable.dimensions) ids.push_back(dimensions.at(name));
      int id = 0;
      check(nc_def_var(id_, variable.name.c_str(), *type_of_dtype(variable.dtype), static_cast<int>(ids.size()),
                       ids.data(), &id));
      ids_.push_back(id);
      define_storage(variable, id);
      if (const auto fill = fill_element(variable)) check(nc_def_var_fill(id_, id, NC_FILL, fill->data()));
      for (const auto& [name, attribute] : variable.attributes) {
        if (name != "_FillValue") put_attribute(id, name, attribute);
      }
      const bool marked = variable.attributes.contains("dtype");
      if (variable.dtype == DType::bool8 && !marked) put_attribute(id, "dtype", {.text = "bool"});
    }
    for (const auto& [name, attribute] : layout().attributes) put_attribute(NC_GLOBAL, name, attribute);
    check(nc_enddef(id_));
  }

  void define_storage(const GridVariable& variable, int id) {
    if (variable.shape.empty()) return;
    const bool grows = variable.dimensions[axis_of(variable)] == layout().records;
    const uint64_t bytes = *checked_byte_count(variable.shape, dtype_size(variable.dtype));
    if (!grows && bytes <= most_contiguous && variable.chunks == variable.shape) return;
    const std::vector<size_t> chunks(variable.chunks.begin(), variable.chunks.end());
    check(nc_def_var_chunking(id_, id, NC_CHUNKED, chunks.data()));
    if (layout().compressed) check(nc_def_var_deflate(id_, id, dtype_size(variable.dtype) > 1, 1, pack_level));
  }

  void put_attribute(int id, const std::string& name, const GridAttribute& attribute) {
    if (attribute.is_text()) {
      check(nc_put_att_text(id_, id, name.c_str(), attribute.text.size(), attribute.text.data()));
    } else {
      check(nc_put_att_double(id_, id, name.c_str(), *type_of_dtype(attribute.dtype), attribute.numbers.size(),
                              attribute.numbers.data()));
    }
  }

  void put(size_t variable, int64_t first, const Array& rows) override {
    const std::vector<size_t> count(rows.shape().begin(), rows.shape().end());
    std::vector<size_t> start(count.size(), 0);
    if (!start.empty()) start[axis_of(layout().variables[variable])] = static_cast<size_t>(first);
    const std::lock_guard lock(hdf5_lock());
    errno = 0;
    check(nc_put_vara(id_, ids_[variable], start.data(), count.data(), rows.bytes().data()));
  }

  void finish() override {
    {
      const std::lock_guard lock(hdf5_lock());
      errno = 0;
      check(nc_close(std::exchange(id_, -1)));
    }
    staged_->commit_file(file_name);
    staged_.reset();
  }

  std::optional<StagedFolder> staged_;  // until the file is complete
  int id_ = -1;
  std::vector<int> ids_;  // of the variables
};

void check_type(const std::string& what, DType dtype) {
  if (type_of_dtype(dtype)) return;
  fail(ErrorKind::usage, "[open_grid_writer] {} is of {}, which NetCDF has not: write f32, or a .zarr store", what,
       dtype_name(dtype));
}

}  // namespace

std::unique_ptr<GridWriter> open_netcdf_writer(const std::string& path, const GridLayout& layout) {
  for (const auto& [name, attribute] : layout.attributes) check_type("the attribute '" + name + "'", attribute.dtype);
  for (const GridVariable& variable : layout.variables) {
    check_type("'" + variable.name + "'", variable.dtype);
    for (const auto& [name, attribute] : variable.attributes) {
      check_type("the attribute '" + name + "'", attribute.dtype);
    }
  }
  if (std::filesystem::is_directory(path)) fail(ErrorKind::io, "cannot write '{}': it is a folder", path);
  return std::make_unique<NetcdfWriter>(path, layout);
}

}  // namespace convssm::io
