// libhdf5 opens files by name, so the file grows in a folder beside its final place (base/staged_folder.h). A chunk is a row: frames of a
// clip are then read one by one. What it is packed with, every libhdf5 can unpack.
#include "convssm/io/hdf5_write.h"

#include <hdf5.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include "convssm/base/error.h"
#include "convssm/base/staged_folder.h"
#include "convssm/io/hdf5_lock.h"

namespace convssm::io {
namespace {

constexpr const char* file_name = "arrays.h5";
constexpr unsigned pack_level = 1;

hid_t type_of(DType dtype) {
  switch (dtype) {
    case DType::i8:
      return H5T_NATIVE_INT8;
    case DType::bool8:
    case DType::u8:
      return H5T_NATIVE_UINT8;
    case DType::i16:
      return H5T_NATIVE_INT16;
    case DType::u16:
      return H5T_NATIVE_UINT16;
    case DType::i32:
      return H5T_NATIVE_INT32;
    case DType::u32:
      return H5T_NATIVE_UINT32;
    case DType::i64:
      return H5T_NATIVE_INT64;
    case DType::u64:
      return H5T_NATIVE_UINT64;
    case DType::f32:
      return H5T_NATIVE_FLOAT;
    case DType::f64:
      return H5T_NATIVE_DOUBLE;
    default:
      fail(ErrorKind::usage, "[Hdf5Writer] numbers of 8 to 64 bits, f32 or f64 expected, got {}", dtype_name(dtype));
  }
}

}  // namespace

struct Hdf5Writer::File {
  explicit File(const std::string& where) : path(where), staged(where) {
    const std::lock_guard lock(hdf5_lock());
    errno = 0;
    file = check(H5Fcreate(staged->path(file_name).c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT));
  }
  ~File() {
    const std::lock_guard lock(hdf5_lock());
    if (array >= 0) H5Dclose(array);
    if (file >= 0) H5Fclose(file);
  }

  template <typename Result>
  Result check(Result result) const {
    const int reason = errno;
    if (result < 0)
      fail(ErrorKind::io, "cannot write '{}': {}", path,
           reason != 0 ? std::strerror(reason) : "libhdf5 gives no reason");
    return result;
  }

  void begin(const std::string& name, DType type, std::vector<int64_t> sizes) {
    end();
    const hid_t element = type_of(type);
    dtype = type, shape.assign(sizes.begin(), sizes.end()), rows = 0;
    std::vector<hsize_t> chunk = shape;
    chunk[0] = shape.size() == 1 ? std::min<hsize_t>(shape[0], 4096) : 1;
    const hid_t space = check(H5Screate_simple(static_cast<int>(shape.size()), shape.data(), nullptr));
    const hid_t how = check(H5Pcreate(H5P_DATASET_CREATE));
    const bool packs = H5Zfilter_avail(H5Z_FILTER_DEFLATE) > 0;
    if (H5Pset_chunk(how, static_cast<int>(chunk.size()), chunk.data()) >= 0 && packs) H5Pset_deflate(how, pack_level);
    array = H5Dcreate2(file, name.c_str(), element, space, H5P_DEFAULT, how, H5P_DEFAULT);
    H5Pclose(how);
    H5Sclose(space);
    check(array);
  }

  void write(const Array& some) {
    std::vector<hsize_t> count(some.shape().begin(), some.shape().end()), first(shape.size(), 0);
    if (array < 0 || some.dtype() != dtype || count.size() != shape.size() ||
        !std::equal(count.begin() + 1, count.end(), shape.begin() + 1) || count[0] > shape[0] - rows) {
      fail(ErrorKind::usage, "[Hdf5Writer] {} {} does not fit behind row {} of the array", dtype_name(some.dtype()),
           shape_text(some.shape()), rows);
    }
    first[0] = rows;
    const hid_t memory = check(H5Screate_simple(static_cast<int>(count.size()), count.data(), nullptr));
    const hid_t place = H5Dget_space(array);
    H5Sselect_hyperslab(place, H5S_SELECT_SET, first.data(), nullptr, count.data(), nullptr);
    const herr_t written = H5Dwrite(array, type_of(dtype), memory, place, H5P_DEFAULT, some.bytes().data());
    H5Sclose(place);
    H5Sclose(memory);
    check(written);
    rows += count[0];
  }

  // A chunked array can be cut where it stands.
  void end() {
    if (array < 0) return;
    if (rows < shape[0]) {
      shape[0] = rows;
      check(H5Dset_extent(array, shape.data()));
    }
    check(H5Dclose(std::exchange(array, hid_t{-1})));
  }

  void close() {
    end();
    check(H5Fclose(std::exchange(file, hid_t{-1})));
    staged->commit_file(file_name);
    staged.reset();
  }

  std::string path;
  std::optional<StagedFolder> staged;  // until the file is complete
  hid_t file = -1, array = -1;
  DType dtype = DType::u8;
  std::vector<hsize_t> shape;
  hsize_t rows = 0;  // written
};

Hdf5Writer::Hdf5Writer(const std::string& path) : file_(std::make_unique<File>(path)) {}
Hdf5Writer::~Hdf5Writer() = default;

void Hdf5Writer::begin(const std::string& name, DType dtype, std::vector<int64_t> shape) {
  if (shape.empty() || std::ranges::any_of(shape, [](int64_t size) { return size < 1; }))
    fail(ErrorKind::usage, "[Hdf5Writer] '{}' must have dimensions and not be empty, got {}", name, shape_text(shape));
  const std::lock_guard lock(hdf5_lock());
  errno = 0;
  file_->begin(name, dtype, std::move(shape));
}

void Hdf5Writer::write(const Array& rows) {
  const std::lock_guard lock(hdf5_lock());
  errno = 0;
  file_->write(rows);
}

void Hdf5Writer::close() {
  const std::lock_guard lock(hdf5_lock());
  errno = 0;
  file_->close();
}

}  // namespace convssm::io
