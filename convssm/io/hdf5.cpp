// A chunk of elements is at most a few boxes of the array, from the whole rows in its middle to parts of rows at its ends. A
// file cannot make this open another one: links to files, arrays kept in other files, virtual arrays and filters loaded from
// the disk are refused.
#include "convssm/io/hdf5.h"

#include <hdf5.h>

#include <algorithm>
#include <mutex>
#include <optional>
#include <utility>

#include "convssm/base/error.h"
#include "convssm/base/file_memory.h"
#include "convssm/base/natural_order.h"
#include "convssm/io/array_box.h"
#include "convssm/io/hdf5_lock.h"
#include "convssm/io/source.h"
#include "convssm/io/text.h"

namespace convssm::io {

std::recursive_mutex& hdf5_lock() {
  static std::recursive_mutex mutex;
  static const bool once = [] {
    H5dont_atexit();                              // it would crash there over a file that the disk had no room for
    H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);  // it would print
    H5PLset_loading_state(0);
    return true;
  }();
  static_cast<void>(once);
  return mutex;
}

namespace {

constexpr size_t max_objects = 1 << 20;
constexpr int max_depth = 32;

class Handle {
 public:
  Handle() = default;
  Handle(hid_t id, herr_t (*close)(hid_t)) : id_(id), close_(close) {}
  ~Handle() {
    if (id_ >= 0 && close_ != nullptr) close_(id_);
  }
  Handle(Handle&& other) noexcept : id_(std::exchange(other.id_, H5I_INVALID_HID)), close_(other.close_) {}
  Handle& operator=(Handle&& other) noexcept {
    std::swap(id_, other.id_), std::swap(close_, other.close_);
    return *this;
  }
  operator hid_t() const { return id_; }
  bool valid() const { return id_ >= 0; }

 private:
  hid_t id_ = H5I_INVALID_HID;
  herr_t (*close_)(hid_t) = nullptr;
};

// What libhdf5 says about its last failure, from where it began.
std::string last_reason() {
  std::string reason;
  const auto take = [](unsigned, const H5E_error2_t* error, void* to) -> herr_t {
    auto* text = static_cast<std::string*>(to);
    if (text->empty() && error->desc != nullptr) *text = error->desc;
    return 0;
  };
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, take, &reason);
  return reason.empty() ? "no reason is given" : reason;
}

template <typename... Args>
[[noreturn]] void fail_format(const std::string& path, fmt::format_string<Args...> text, Args&&... args) {
  throw FormatError(path, 0, fmt::format(text, std::forward<Args>(args)...));
}

Handle open_file(const std::string& path) {
  open_source(path);  // whose errors are those of all readers
  Handle file(H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), H5Fclose);
  if (!file.valid()) fail_format(path, "not a valid HDF5 file: {}", in_quotes(last_reason()));
  return file;
}

// Nothing if elements of this type are not numbers. An enumeration of false and true is how bools are written.
std::optional<DType> dtype_of_type(hid_t type) {
  const size_t size = H5Tget_size(type);
  switch (H5Tget_class(type)) {
    case H5T_INTEGER: {
      const bool sign = H5Tget_sign(type) != H5T_SGN_NONE;
      if (size == 1) return sign ? DType::i8 : DType::u8;
      if (size == 2) return sign ? DType::i16 : DType::u16;
      if (size == 4) return sign ? DType::i32 : DType::u32;
      if (size == 8) return sign ? DType::i64 : DType::u64;
      return std::nullopt;
    }
    case H5T_FLOAT:
      if (size == 2 || size == 4) return DType::f32;  // libhdf5 has no half of its own to convert to
      if (size == 8) return DType::f64;
      return std::nullopt;
    case H5T_ENUM:
      return size == 1 && H5Tget_nmembers(type) == 2 ? std::optional(DType::bool8) : std::nullopt;
    default:
      return std::nullopt;
  }
}

hid_t memory_type(DType dtype) {
  switch (dtype) {
    case DType::i8:
      return H5T_NATIVE_INT8;
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
    default:
      return H5T_NATIVE_DOUBLE;
  }
}

// Names of what a group holds, by its own links alone.
struct Links {
  std::vector<std::string> names;
};

herr_t add_link(hid_t, const char* name, const H5L_info_t* info, void* to) {
  auto* links = static_cast<Links*>(to);
  if (info->type == H5L_TYPE_HARD) links->names.emplace_back(name);
  return links->names.size() > max_objects ? -1 : 0;
}

// Whether an array can be read without any other file, and holds numbers.
bool is_readable(hid_t dataset) {
  const Handle type(H5Dget_type(dataset), H5Tclose), plan(H5Dget_create_plist(dataset), H5Pclose);
  const Handle space(H5Dget_space(dataset), H5Sclose);
  return type.valid() && plan.valid() && space.valid() && dtype_of_type(type) && H5Pget_external_count(plan) == 0 &&
         H5Pget_layout(plan) != H5D_VIRTUAL && H5Sget_simple_extent_type(space) != H5S_NULL;
}

void list(const std::string& path, hid_t group, const std::string& prefix, int depth, std::vector<std::string>& names) {
  if (depth > max_depth) fail_format(path, "its groups are nested too deeply");
  Links links;
  if (H5Literate(group, H5_INDEX_NAME, H5_ITER_NATIVE, nullptr, add_link, &links) < 0) {
    fail_format(path, "a group of it cannot be read: {}", in_quotes(last_reason()));
  }
  for (const std::string& name : links.names) {
    const Handle object(H5Oopen(group, name.c_str(), H5P_DEFAULT), H5Oclose);
    if (!object.valid()) fail_format(path, "{} cannot be read: {}", in_quotes(prefix + name), in_quotes(last_reason()));
    const H5I_type_t kind = H5Iget_type(object);
    if (kind == H5I_GROUP) list(path, object, prefix + name + "/", depth + 1, names);
    if (kind == H5I_DATASET && is_readable(object)) names.push_back(prefix + name);
    if (names.size() > max_objects) fail_format(path, "it holds more than {} arrays", max_objects);
  }
}

std::vector<int64_t> shape_of(const std::string& path, hid_t dataset) {
  const Handle space(H5Dget_space(dataset), H5Sclose);
  const int rank = space.valid() ? H5Sget_simple_extent_ndims(space) : -1;
  if (rank < 0) fail_format(path, "the shape of an array cannot be read");
  std::vector<hsize_t> sizes(static_cast<size_t>(rank));
  if (rank > 0) H5Sget_simple_extent_dims(space, sizes.data(), nullptr);
  std::vector<int64_t> shape;
  for (const hsize_t size : sizes) {
    if (size > static_cast<hsize_t>(INT64_MAX)) fail_format(path, "an array of {} elements", size);
    shape.push_back(static_cast<int64_t>(size));
  }
  return shape;
}

// A chunk is unpacked whole, however little of it is asked for; what unpacks it must be part of libhdf5.
void check_chunks(const std::string& path, const std::string& name, hid_t dataset, size_t item) {
  const Handle plan(H5Dget_create_plist(dataset), H5Pclose);
  if (H5Pget_layout(plan) != H5D_CHUNKED) return;
  hsize_t sizes[H5S_MAX_RANK] = {};
  const int rank = H5Pget_chunk(plan, H5S_MAX_RANK, sizes);
  std::vector<int64_t> shape;
  for (int i = 0; i < rank; ++i) shape.push_back(static_cast<int64_t>(std::min<hsize_t>(sizes[i], INT64_MAX)));
  require_file_memory(path, "a chunk of an array", checked_byte_count(shape, item).value_or(UINT64_MAX));
  for (int i = 0; i < H5Pget_nfilters(plan); ++i) {
    unsigned flags = 0, config = 0;
    size_t values = 0;
    char text[64] = "";
    const H5Z_filter_t filter =
        H5Pget_filter2(plan, static_cast<unsigned>(i), &flags, &values, nullptr, sizeof text, text, &config);
    if (H5Zfilter_avail(filter) > 0) continue;
    fail(ErrorKind::data,
         "'{}': {} is packed with the filter {} ({}), which is not part of libhdf5; write it with gzip", path,
         in_quotes(name), static_cast<int>(filter), in_quotes(text));
  }
}

}  // namespace

struct Hdf5Array::Open {
  Handle file, dataset;
};

std::vector<std::string> hdf5_names(const std::string& path) {
  const std::lock_guard lock(hdf5_lock());
  const Handle file = open_file(path);
  std::vector<std::string> names;
  const Handle root(H5Gopen2(file, "/", H5P_DEFAULT), H5Gclose);
  if (!root.valid()) fail_format(path, "its first group cannot be read: {}", in_quotes(last_reason()));
  list(path, root, "", 0, names);
  std::ranges::sort(names, by_numbers);
  return names;
}

Hdf5Array::Hdf5Array(const std::string& path, const std::string& name) : path_(path), name_(name) {
  const std::lock_guard lock(hdf5_lock());
  auto open = std::unique_ptr<Open, void (*)(Open*)>(new Open{open_file(path), {}}, [](Open* it) {
    const std::lock_guard closing(hdf5_lock());
    delete it;
  });
  const auto is_link = [&](const std::string& part) {
    H5L_info_t info;
    return H5Lget_info(open->file, part.c_str(), &info, H5P_DEFAULT) >= 0 && info.type == H5L_TYPE_HARD;
  };
  for (size_t end = name.find('/'); end != name.npos; end = name.find('/', end + 1)) {
    if (!is_link(name.substr(0, end))) fail_missing(path, name, hdf5_names(path));
  }
  if (name.empty() || !is_link(name)) fail_missing(path, name, hdf5_names(path));
  open->dataset = Handle(H5Dopen2(open->file, name.c_str(), H5P_DEFAULT), H5Dclose);
  if (!open->dataset.valid() || !is_readable(open->dataset)) {
    fail(ErrorKind::data, "'{}': {} is not an array of numbers", path, in_quotes(name));
  }
  const Handle type(H5Dget_type(open->dataset), H5Tclose);
  info_ = {*dtype_of_type(type), shape_of(path, open->dataset)};
  if (!checked_byte_count(info_.shape, dtype_size(info_.dtype))) {
    fail_format(path, "{} is too large: {}", in_quotes(name), shape_text(info_.shape));
  }
  check_chunks(path, name, open->dataset, std::max(H5Tget_size(type), dtype_size(info_.dtype)));
  open_ = std::move(open);
}

struct Hdf5Array::Box {
  std::vector<hsize_t> start, count;
  uint64_t elements;
};

namespace {

// Elements first .. first+count-1 of the sub-array at `start`, whose dimensions are those from `axis` on.
template <typename Box>
void add_boxes(const std::vector<int64_t>& shape, size_t axis, std::vector<hsize_t> start, uint64_t first,
               uint64_t count, std::vector<Box>& boxes) {
  if (count == 0) return;
  if (axis == shape.size()) {
    boxes.push_back({start, std::vector<hsize_t>(shape.size(), 1), 1});
    return;
  }
  uint64_t row = 1;
  for (size_t i = axis + 1; i < shape.size(); ++i) row *= static_cast<uint64_t>(shape[i]);
  const auto into_row = [&](uint64_t index, uint64_t from, uint64_t part) {
    start[axis] = index;
    add_boxes(shape, axis + 1, start, from, part, boxes);
    start[axis] = 0;
  };
  const uint64_t end = first + count;
  if (first % row != 0) {
    const uint64_t part = std::min(count, row - first % row);
    into_row(first / row, first % row, part);
    first += part;
  }
  if (const uint64_t whole = (end - first) / row; whole > 0) {
    Box box{start, std::vector<hsize_t>(shape.size(), 1), whole * row};
    box.start[axis] = first / row, box.count[axis] = whole;
    for (size_t i = axis + 1; i < shape.size(); ++i) box.start[i] = 0, box.count[i] = static_cast<hsize_t>(shape[i]);
    boxes.push_back(std::move(box));
    first += whole * row;
  }
  if (first < end) into_row(first / row, 0, end - first);
}

}  // namespace

Array Hdf5Array::read(uint64_t first, uint64_t count) const {
  const uint64_t all = *checked_byte_count(info_.shape, 1);
  if (first > all || count > all - first) {
    fail(ErrorKind::usage, "[Hdf5Array] '{}' has {} elements, asked for {} from {} on", path_, all, count, first);
  }
  Array array = array_of_file(path_, info_.dtype, {static_cast<int64_t>(count)});
  if (count == 0) return array;
  std::vector<Box> boxes;
  add_boxes(info_.shape, 0, std::vector<hsize_t>(info_.shape.size(), 0), first, count, boxes);
  fill(boxes, array);
  return array;
}

Array Hdf5Array::read_box(std::span<const int64_t> first, std::span<const int64_t> count) const {
  check_box(path_, info_.shape, first, count);
  Array array = array_of_file(path_, info_.dtype, {count.begin(), count.end()});
  fill({Box{{first.begin(), first.end()}, {count.begin(), count.end()}, array.element_count()}}, array);
  return array;
}

// One box after the other.
void Hdf5Array::fill(const std::vector<Box>& boxes, Array& array) const {
  const std::lock_guard lock(hdf5_lock());
  const Handle space(H5Dget_space(open_->dataset), H5Sclose), file_type(H5Dget_type(open_->dataset), H5Tclose);
  const hid_t type = info_.dtype == DType::bool8 ? static_cast<hid_t>(file_type) : memory_type(info_.dtype);
  std::byte* out = array.bytes().data();
  for (const Box& box : boxes) {
    const hsize_t elements = box.elements;
    const Handle memory(H5Screate_simple(1, &elements, nullptr), H5Sclose);
    const bool chosen = info_.shape.empty() || H5Sselect_hyperslab(space, H5S_SELECT_SET, box.start.data(), nullptr,
                                                                   box.count.data(), nullptr) >= 0;
    if (!chosen || H5Dread(open_->dataset, type, memory, space, H5P_DEFAULT, out) < 0) {
      fail_format(path_, "{} cannot be read: {}", in_quotes(name_), in_quotes(last_reason()));
    }
    out += box.elements * dtype_size(info_.dtype);
  }
  normalize_bools(array);
}

}  // namespace convssm::io
