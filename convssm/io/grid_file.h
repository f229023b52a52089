// Files that describe themselves: named arrays of numbers with named dimensions, chunks and attributes, as NetCDF, HDF5 and Zarr hold
// them. A box of an array is read without the rest of it.
//   auto file = open_netcdf("era5.nc");
//   Array day = file->read(file->variable("t2m"), std::array<int64_t, 3>{24, 0, 0}, std::array<int64_t, 3>{24, 33, 49});
// Values are as they are stored: what the attributes say of scale, missing values and times is not applied.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "convssm/io/array.h"

namespace convssm::io {

// Text, or one number or more.
struct GridAttribute {
  std::string text = {};
  std::vector<double> numbers = {};
  DType dtype = DType::f64;  // of the numbers in the file
  bool is_text() const { return numbers.empty(); }
};
using GridAttributes = std::map<std::string, GridAttribute>;

struct GridVariable {
  std::string name = {};  // behind those of its groups: "radar/rain"
  DType dtype = DType::f32;
  std::vector<std::string> dimensions = {};  // names, behind those of the groups that they are of
  std::vector<int64_t> shape = {};
  std::vector<int64_t> chunks = {};  // what is stored together; as `shape` if it is stored as one
  GridAttributes attributes = {};
};

class GridFile {
 public:
  virtual ~GridFile() = default;
  GridFile(const GridFile&) = delete;
  GridFile& operator=(const GridFile&) = delete;

  const std::string& path() const { return path_; }
  const std::string& kind() const { return kind_; }                          // "NetCDF-4", "Zarr v2", for people
  const GridAttributes& attributes() const { return attributes_; }           // of the whole file
  const std::vector<GridVariable>& variables() const { return variables_; }  // of real numbers, sorted by name

  // The variable of that name or null; Error(data) that names the nearest one if there must be one.
  const GridVariable* find(const std::string& name) const;
  const GridVariable& variable(const std::string& name) const;

  // The box from `first` on of `count` elements along each dimension, as it is stored, in the byte order of this machine. From any
  // thread. Error(usage) if it is not inside of the array; Error(data) if it is above the limit of base/file_memory.h; FormatError that
  // names the file for a chunk that is damaged or cut off.
  Array read(const GridVariable& variable, std::span<const int64_t> first, std::span<const int64_t> count) const;
  Array read(const GridVariable& variable) const;  // all of it

 protected:
  GridFile(std::string path, std::string kind) : path_(std::move(path)), kind_(std::move(kind)) {}

  // Fills `out`, of the box's shape, which is not empty and inside of the array.
  virtual void fetch(const GridVariable& variable, std::span<const int64_t> first, Array& out) const = 0;

  // Sets what the file holds, in any order. FormatError for a shape that no array can have.
  void set_content(std::vector<GridVariable> variables, GridAttributes attributes);

 private:
  std::string path_, kind_;
  std::vector<GridVariable> variables_;
  GridAttributes attributes_;
};

}  // namespace convssm::io
