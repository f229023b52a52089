// The header is a list of dimensions, one of attributes and one of variables, each with its type and the place of its values. All numbers
// are big-endian; names and values are padded to 4 bytes. Variables along the record dimension, which has no length of its own, are
// stored record by record: of all of them the first, of all the second, ...
#include "convssm/io/netcdf_classic.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <utility>

#include "convssm/base/error.h"
#include "convssm/io/layout.h"
#include "convssm/io/text.h"

namespace convssm::io {
namespace {

constexpr uint64_t kMost = uint64_t{1} << 62;
constexpr uint64_t kTextType = 2;

// Saturates: what is above `kMost` is longer than any file.
uint64_t product(uint64_t a, uint64_t b) { return a != 0 && b > kMost / a ? kMost : a * b; }
uint64_t sum(uint64_t a, uint64_t b) { return std::min(kMost, std::min(kMost, a) + std::min(kMost, b)); }
uint64_t padded(uint64_t bytes) { return sum(bytes, 3) / 4 * 4; }

// By the numbers of the format; text has the place of bytes.
constexpr std::array<DType, 12> kTypes = {DType::u8,  DType::i8, DType::u8,  DType::i16, DType::i32, DType::f32,
                                          DType::f64, DType::u8, DType::u16, DType::u32, DType::i64, DType::u64};

double to_double(std::span<const std::byte> bytes, DType dtype) {
  const std::byte* at = bytes.data();
  switch (dtype) {
    case DType::i8:
      return load<int8_t>(at);
    case DType::u8:
      return load<uint8_t>(at);
    case DType::i16:
      return load<int16_t>(at);
    case DType::u16:
      return load<uint16_t>(at);
    case DType::i32:
      return load<int32_t>(at);
    case DType::u32:
      return load<uint32_t>(at);
    case DType::i64:
      return static_cast<double>(load<int64_t>(at));
    case DType::u64:
      return static_cast<double>(load<uint64_t>(at));
    case DType::f32:
      return load<float>(at);
    default:
      return load<double>(at);
  }
}

struct Place {
  uint64_t begin = 0;
  bool along_records = false;
};

struct Content {
  std::vector<GridVariable> variables;
  GridAttributes attributes;
  std::map<std::string, Place> places;
  uint64_t record_bytes = 0;  // of all variables together
};

class HeaderReader {
 public:
  explicit HeaderReader(const Source& source) : source_(source) {}

  Content read() {
    position_ = 3;
    version_ = number(1);
    uint64_t records = count();
    const bool counted = records != (version_ == 5 ? UINT64_MAX : UINT32_MAX);  // otherwise as many as there are
    read_dimensions();
    content_.attributes = attributes();
    read_variables();
    if (record_variables_.size() == 1) content_.record_bytes = record_variables_[0].bytes;  // then they are not padded
    if (!counted) records = whole_records();
    for (const Values& values : record_variables_) {
      if (records == 0) continue;
      require_inside(values.name, sum(sum(values.begin, product(records - 1, content_.record_bytes)), values.bytes));
    }
    for (GridVariable& variable : content_.variables) {
      if (content_.places.at(variable.name).along_records) variable.shape[0] = static_cast<int64_t>(records);
      variable.chunks = variable.shape;
      if (content_.places.at(variable.name).along_records) variable.chunks[0] = 1;
    }
    return std::move(content_);
  }

 private:
  struct Dimension {
    std::string name;
    uint64_t length;  // 0: along records
  };
  struct Values {
    std::string name;
    uint64_t begin, bytes;  // of one record
  };

  void need(uint64_t bytes) const {
    if (bytes > source_.size() || position_ > source_.size() - bytes) {
      source_.fail(source_.size(), "the header is cut off: {} bytes more were expected at {}", bytes, position_);
    }
  }

  uint64_t number(size_t bytes) {
    std::array<std::byte, 8> raw{};
    need(bytes);
    source_.read(position_, std::span(raw).first(bytes));
    position_ += bytes;
    uint64_t value = 0;
    for (size_t i = 0; i < bytes; ++i) value = value << 8 | std::to_integer<uint64_t>(raw[i]);
    return value;
  }

  uint64_t count() { return number(version_ == 5 ? 8 : 4); }

  std::string text(uint64_t length) {
    need(padded(length));
    std::string text(length, '\0');
    source_.read(position_, std::as_writable_bytes(std::span(text)));
    position_ += padded(length);
    return text;
  }

  uint64_t type() {
    const uint64_t type = number(4);
    if (type == 0 || type >= kTypes.size()) source_.fail(position_ - 4, "type {} is not known", type);
    return type;
  }

  // How many things follow; the tag says of which kind, or that there are none.
  uint64_t list(uint64_t kind) {
    const uint64_t at = position_, tag = number(4), length = count();
    if (tag != kind && !(tag == 0 && length == 0)) {
      source_.fail(at, "a list of kind {} stands where one of kind {} was expected", tag, kind);
    }
    if (length > source_.size()) source_.fail(at, "a list of {} in a file of {} bytes", length, source_.size());
    return length;
  }

  void read_dimensions() {
    for (uint64_t left = list(10); left > 0; --left) {
      std::string name = text(count());
      const uint64_t at = position_, length = count();
      if (length > kMost) source_.fail(at, "the dimension {} has the length {}", in_quotes(name), length);
      dimensions_.push_back({std::move(name), length});
    }
  }

  GridAttributes attributes() {
    GridAttributes found;
    for (uint64_t left = list(12); left > 0; --left) {
      const std::string name = text(count());
      const uint64_t kind = type(), length = count(), size = dtype_size(kTypes[kind]);
      std::string bytes = text(product(length, size));
      GridAttribute attribute;
      if (kind == kTextType) {
        bytes.resize(std::min(bytes.find('\0'), bytes.size()));
        attribute.text = std::move(bytes);
      } else {
        attribute.dtype = kTypes[kind];
        const auto raw = std::as_writable_bytes(std::span(bytes));
        reverse_items(raw, size);
        for (uint64_t i = 0; i < length; ++i) {
          attribute.numbers.push_back(to_double(raw.subspan(i * size, size), kTypes[kind]));
        }
      }
      if (length > 0) found.insert_or_assign(name, std::move(attribute));
    }
    return found;
  }

  void read_variables() {
    for (uint64_t left = list(11); left > 0; --left) {
      GridVariable variable{.name = text(count())};
      const uint64_t rank = count();
      need(product(rank, version_ == 5 ? 8 : 4));
      Place place;
      uint64_t elements = 1;
      for (uint64_t d = 0; d < rank; ++d) {
        const uint64_t at = position_, id = count();
        if (id >= dimensions_.size()) source_.fail(at, "dimension {} of {}", id, dimensions_.size());
        variable.dimensions.push_back(dimensions_[id].name);
        variable.shape.push_back(static_cast<int64_t>(dimensions_[id].length));
        if (d == 0 && dimensions_[id].length == 0) {
          place.along_records = true;
        } else {
          elements = product(elements, dimensions_[id].length);
        }
      }
      variable.attributes = attributes();
      const uint64_t kind = type(), bytes = product(elements, dtype_size(kTypes[kind]));
      count();  // the bytes once more, which are capped in large files
      place.begin = number(version_ == 1 ? 4 : 8);
      if (place.along_records) {
        content_.record_bytes = sum(content_.record_bytes, padded(bytes));
        record_variables_.push_back({variable.name, place.begin, bytes});
      } else if (bytes > 0) {
        require_inside(variable.name, sum(place.begin, bytes));
      }
      if (kind == kTextType) continue;
      variable.dtype = kTypes[kind];
      if (!content_.places.emplace(variable.name, place).second) {
        source_.fail(position_, "there are two variables {}", in_quotes(variable.name));
      }
      content_.variables.push_back(std::move(variable));
    }
  }

  void require_inside(const std::string& name, uint64_t end) const {
    if (end <= source_.size()) return;
    source_.fail(source_.size(), "it was cut off: {} ends at byte {}", in_quotes(name), end);
  }

  uint64_t whole_records() const {
    uint64_t begin = kMost;
    for (const Values& values : record_variables_) begin = std::min(begin, values.begin);
    if (content_.record_bytes == 0 || begin >= source_.size()) return 0;
    return (source_.size() - begin) / content_.record_bytes;
  }

  const Source& source_;
  uint64_t position_ = 0, version_ = 1;
  std::vector<Dimension> dimensions_;
  std::vector<Values> record_variables_;
  Content content_;
};

class ClassicFile : public GridFile {
 public:
  explicit ClassicFile(std::shared_ptr<const Source> source) : GridFile(source->name(), "NetCDF-3"), source_(source) {
    Content content = HeaderReader(*source_).read();
    places_ = std::move(content.places);
    record_bytes_ = content.record_bytes;
    set_content(std::move(content.variables), std::move(content.attributes));
  }

 protected:
  // Runs of elements that follow each other in the file: all of the last dimensions that the box has whole, and its part of the one
  // before. Records are apart.
  void fetch(const GridVariable& variable, std::span<const int64_t> first, Array& out) const override {
    const Place& place = places_.at(variable.name);
    const size_t rank = variable.shape.size(), size = dtype_size(variable.dtype), apart = place.along_records ? 1 : 0;
    size_t axis = rank;  // of the runs
    uint64_t run = 1;
    while (axis > apart && (axis == rank || out.shape()[axis] == variable.shape[axis])) {
      --axis;
      run *= static_cast<uint64_t>(out.shape()[axis]);
    }
    std::vector<uint64_t> stride(rank, size);  // bytes
    for (size_t d = rank; d-- > 1;) stride[d - 1] = stride[d] * static_cast<uint64_t>(variable.shape[d]);
    if (place.along_records) stride[0] = record_bytes_;
    std::vector<int64_t> at(axis, 0);
    const std::span<std::byte> bytes = out.bytes();
    for (uint64_t done = 0; done < bytes.size(); done += run * size) {
      uint64_t offset = place.begin;
      for (size_t d = 0; d < rank; ++d) offset += static_cast<uint64_t>(first[d] + (d < axis ? at[d] : 0)) * stride[d];
      source_->read(offset, bytes.subspan(done, run * size));
      for (size_t d = axis; d-- > 0 && ++at[d] == out.shape()[d];) at[d] = 0;
    }
    swap_byte_order(out);
  }

 private:
  std::shared_ptr<const Source> source_;
  std::map<std::string, Place> places_;
  uint64_t record_bytes_ = 0;
};

}  // namespace

bool is_classic_netcdf(const Source& source) {
  std::array<char, 4> magic{};
  if (source.size() < magic.size()) return false;
  source.read(0, std::as_writable_bytes(std::span(magic)));
  return magic[0] == 'C' && magic[1] == 'D' && magic[2] == 'F' && (magic[3] == 1 || magic[3] == 2 || magic[3] == 5);
}

std::unique_ptr<GridFile> open_classic_netcdf(std::shared_ptr<const Source> source) {
  if (!is_classic_netcdf(*source)) source->fail(0, "not a classic NetCDF file");
  return std::make_unique<ClassicFile>(std::move(source));
}

}  // namespace convssm::io
