// libnetcdf takes a path with :// for an address, so it is given absolute paths of files that are there. A NetCDF-4 file is an HDF5
// file, of which it would follow links; only variables that io/hdf5 finds are taken.
#include "convssm/io/netcdf.h"

#include <netcdf.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>

#include "convssm/base/error.h"
#include "convssm/base/file_memory.h"
#include "convssm/io/hdf5.h"
#include "convssm/io/hdf5_lock.h"
#include "convssm/io/netcdf_classic.h"
#include "convssm/io/source.h"
#include "convssm/io/text.h"

namespace convssm::io {
namespace {

constexpr std::string_view phony = "phony_dim_";  // how libnetcdf calls dimensions of HDF5 files that have no names
constexpr int kMostDepth = 32, kMostObjects = 1 << 20;
constexpr size_t kMostAttribute = 1 << 20;  // elements
constexpr uint64_t kSmall = uint64_t{32} << 20;
constexpr size_t kLeastCache = 1 << 20;

std::optional<DType> dtype_of_type(nc_type type) {
  switch (type) {
    case NC_BYTE:
      return DType::i8;
    case NC_UBYTE:
      return DType::u8;
    case NC_SHORT:
      return DType::i16;
    case NC_USHORT:
      return DType::u16;
    case NC_INT:
      return DType::i32;
    case NC_UINT:
      return DType::u32;
    case NC_INT64:
      return DType::i64;
    case NC_UINT64:
      return DType::u64;
    case NC_FLOAT:
      return DType::f32;
    case NC_DOUBLE:
      return DType::f64;
    default:
      return std::nullopt;
  }
}

// What all open files together may keep of unpacked chunks: those of many frames would be unpacked once more for each of them.
class ChunkBudget {
 public:
  bool take(uint64_t bytes) {  // under hdf5_lock, as the rest
    if (bytes > most - taken_) return false;
    taken_ += bytes;
    return true;
  }
  void give_back(uint64_t bytes) { taken_ -= bytes; }
  uint64_t taken() const { return taken_; }

 private:
  static constexpr uint64_t most = uint64_t{256} << 20;
  uint64_t taken_ = 0;
};

ChunkBudget& chunk_budget() {
  static ChunkBudget budget;
  return budget;
}

class OpenFile {
 public:
  explicit OpenFile(int id) : id_(id) {}
  OpenFile(OpenFile&& other) noexcept : id_(std::exchange(other.id_, -1)) {}
  ~OpenFile() {
    if (id_ < 0) return;
    const std::lock_guard lock(hdf5_lock());
    nc_close(id_);
  }
  int id() const { return id_; }

 private:
  int id_;
};

class Netcdf4File : public GridFile {
 public:
  Netcdf4File(const std::string& path, OpenFile file) : GridFile(path, "NetCDF-4"), file_(std::move(file)) {
    std::vector<GridVariable> variables;
    inside_ = hdf5_names(path);
    std::ranges::sort(inside_);
    list(file_.id(), "", 0, variables);
    GridAttributes attributes = attributes_of(file_.id(), NC_GLOBAL);
    set_content(std::move(variables), std::move(attributes));
  }
  ~Netcdf4File() override {
    const std::lock_guard lock(hdf5_lock());
    chunk_budget().give_back(kept_);
  }

 protected:
  void fetch(const GridVariable& variable, std::span<const int64_t> first, Array& out) const override {
    Place& place = places_.at(variable.name);
    const std::vector<size_t> from(first.begin(), first.end()), count(out.shape().begin(), out.shape().end());
    const std::lock_guard lock(hdf5_lock());
    keep_chunks(place, variable);
    if (const int code = nc_get_vara(place.group, place.id, from.data(), count.data(), out.bytes().data());
        code != NC_NOERR) {
      damaged("{} cannot be read: {}", in_quotes(variable.name), nc_strerror(code));
    }
  }

 private:
  struct Place {
    int group, id;
    bool was_read = false;
  };

  // Room for the chunks of a frame, if there is some: each is unpacked whole, and without it again for each of its frames. For all of a
  // small variable, of which windows are read again and again.
  void keep_chunks(Place& place, const GridVariable& variable) const {
    if (std::exchange(place.was_read, true)) return;
    int storage = NC_CONTIGUOUS;
    check(nc_inq_var_chunking(place.group, place.id, &storage, nullptr));
    uint64_t bytes = storage == NC_CHUNKED ? across(variable) : 0;
    uint64_t all = dtype_size(variable.dtype);
    for (const int64_t extent : variable.shape) all *= static_cast<uint64_t>(extent);
    const bool keeps_all = bytes > 0 && all <= kSmall && chunk_budget().take(2 * all);
    if (keeps_all) bytes = 2 * all;  // chunks may be larger than what they hold
    const bool fits = keeps_all || chunk_budget().take(bytes);
    if (fits) kept_ += bytes;
    const size_t cache = fits ? std::max<size_t>(bytes, kLeastCache) : kLeastCache;
    if (storage == NC_CHUNKED) check(nc_set_var_chunk_cache(place.group, place.id, cache, 1009, 0.75F));
  }

  template <typename... Args>
  [[noreturn]] void damaged(fmt::format_string<Args...> text, Args&&... args) const {
    throw FormatError(path(), 0, fmt::format(text, std::forward<Args>(args)...));
  }

  void check(int code) const {
    if (code != NC_NOERR) damaged("its header cannot be read: {}", nc_strerror(code));
  }

  void list(int group, const std::string& prefix, int depth, std::vector<GridVariable>& variables) {
    if (depth > kMostDepth) damaged("its groups are nested too deeply");
    int count = 0;
    check(nc_inq_dimids(group, &count, nullptr, 0));
    std::vector<int> dimensions(static_cast<size_t>(std::max(count, 0)));
    if (count > 0) check(nc_inq_dimids(group, &count, dimensions.data(), 0));
    for (const int id : dimensions) groups_of_dimensions_[id] = prefix;
    check(nc_inq_nvars(group, &count));
    if (count < 0 || count > kMostObjects) damaged("it holds {} variables", count);
    for (int id = 0; id < count; ++id) add(group, id, prefix, variables);
    int groups = 0;
    check(nc_inq_grps(group, &groups, nullptr));
    if (groups < 0 || groups > kMostObjects) damaged("it holds {} groups", groups);
    std::vector<int> ids(static_cast<size_t>(groups));
    if (groups > 0) check(nc_inq_grps(group, &groups, ids.data()));
    for (const int id : ids) {
      char name[NC_MAX_NAME + 1] = "";
      check(nc_inq_grpname(id, name));
      list(id, prefix + name + "/", depth + 1, variables);
    }
  }

  void add(int group, int id, const std::string& prefix, std::vector<GridVariable>& variables) {
    char name[NC_MAX_NAME + 1] = "";
    nc_type type = NC_NAT;
    int rank = 0, dimensions[NC_MAX_VAR_DIMS];
    check(nc_inq_var(group, id, name, &type, &rank, dimensions, nullptr));
    const std::optional<DType> dtype = dtype_of_type(type);
    GridVariable variable{.name = prefix + name, .dtype = dtype.value_or(DType::u8)};
    if (!dtype || !std::ranges::binary_search(inside_, variable.name)) return;
    for (int d = 0; d < rank; ++d) {
      char of[NC_MAX_NAME + 1] = "";
      size_t size = 0;
      check(nc_inq_dim(group, dimensions[d], of, &size));
      const bool named = !std::string_view(of).starts_with(phony);
      variable.dimensions.push_back(named ? groups_of_dimensions_[dimensions[d]] + of
                                          : fmt::format("{}_dim_{}", variable.name, d));
      variable.shape.push_back(static_cast<int64_t>(std::min<size_t>(size, INT64_MAX)));
    }
    variable.chunks = chunks_of(group, id, variable);
    variable.attributes = attributes_of(group, id);
    places_.insert_or_assign(variable.name, Place{group, id});
    variables.push_back(std::move(variable));
  }

  std::vector<int64_t> chunks_of(int group, int id, const GridVariable& variable) const {
    if (variable.shape.empty()) return {};
    int storage = NC_CONTIGUOUS;
    std::vector<size_t> sizes(variable.shape.size());
    check(nc_inq_var_chunking(group, id, &storage, sizes.data()));
    if (storage != NC_CHUNKED) return variable.shape;
    std::vector<int64_t> chunks(sizes.begin(), sizes.end());
    const uint64_t bytes = checked_byte_count(chunks, dtype_size(variable.dtype)).value_or(UINT64_MAX);
    require_file_memory(path(), "a chunk of a variable", bytes);
    return chunks;
  }

  // Bytes of all chunks of one frame, unpacked.
  static uint64_t across(const GridVariable& variable) {
    std::vector<int64_t> whole = variable.chunks;
    for (size_t d = 1; d < whole.size(); ++d) {
      const int64_t chunk = std::max<int64_t>(whole[d], 1);
      whole[d] = (variable.shape[d] + chunk - 1) / chunk * chunk;
    }
    return checked_byte_count(whole, dtype_size(variable.dtype)).value_or(UINT64_MAX);
  }

  GridAttributes attributes_of(int group, int id) const {
    int count = 0;
    check(id == NC_GLOBAL ? nc_inq_natts(group, &count) : nc_inq_varnatts(group, id, &count));
    GridAttributes attributes;
    for (int i = 0; i < count; ++i) {
      char name[NC_MAX_NAME + 1] = "";
      nc_type type = NC_NAT;
      size_t size = 0;
      check(nc_inq_attname(group, id, i, name));
      check(nc_inq_att(group, id, name, &type, &size));
      if (size == 0 || size > kMostAttribute) continue;
      GridAttribute attribute;
      if (type == NC_CHAR) {
        attribute.text.resize(size);
        check(nc_get_att_text(group, id, name, attribute.text.data()));
        attribute.text.resize(std::min(attribute.text.find('\0'), attribute.text.size()));
      } else if (type == NC_STRING) {
        std::vector<char*> texts(size);
        check(nc_get_att_string(group, id, name, texts.data()));
        for (const char* text : texts)
          attribute.text += (attribute.text.empty() ? "" : " ") + std::string(text ? text : "");
        nc_free_string(size, texts.data());
      } else if (dtype_of_type(type)) {
        attribute.dtype = *dtype_of_type(type);
        attribute.numbers.resize(size);
        check(nc_get_att_double(group, id, name, attribute.numbers.data()));
      } else {
        continue;
      }
      attributes.emplace(name, std::move(attribute));
    }
    return attributes;
  }

  OpenFile file_;
  std::vector<std::string> inside_;  // arrays of this file, by name: it could refer to others
  mutable std::map<std::string, Place> places_;
  mutable uint64_t kept_ = 0;  // of the budget
  std::map<int, std::string> groups_of_dimensions_;
};

}  // namespace

std::unique_ptr<GridFile> open_netcdf(const std::string& path) {
  auto source = open_source(path);  // whose errors are those of all readers
  if (is_classic_netcdf(*source)) return open_classic_netcdf(std::move(source));
  const std::lock_guard lock(hdf5_lock());
  int id = 0, format = 0, mode = 0;
  if (const int code = nc_open(std::filesystem::absolute(path).c_str(), NC_NOWRITE, &id); code != NC_NOERR) {
    throw FormatError(path, 0, fmt::format("not a valid NetCDF file: {}", nc_strerror(code)));
  }
  OpenFile opened(id);
  nc_inq_format_extended(id, &format, &mode);
  if (format != NC_FORMATX_NC_HDF5) throw FormatError(path, 0, "it is neither NetCDF-3 nor NetCDF-4");
  return std::make_unique<Netcdf4File>(path, std::move(opened));
}

uint64_t kept_netcdf_chunks() {
  const std::lock_guard lock(hdf5_lock());
  return chunk_budget().taken();
}

}  // namespace convssm::io
