// check_layout sorts the tensors by offset and walks them once: that they cover the data without gap or overlap follows
// from their ends. Writing makes one tensor at a time, so a checkpoint needs no second copy of all parameters.
#include "convssm/io/safetensors.h"

#include <algorithm>
#include <unordered_set>

#include "convssm/base/atomic_file.h"
#include "convssm/base/error.h"
#include "convssm/io/checksum.h"
#include "convssm/io/safetensors_header.h"
#include "convssm/io/text.h"

namespace convssm::io {
namespace {

std::string read_header_text(const Source& source) {
  if (source.size() < 8) source.fail(0, "a safetensors file has at least 8 bytes, this one has {}", source.size());
  std::array<std::byte, 8> prefix;
  source.read(0, prefix);
  const auto length = load<uint64_t>(prefix.data());
  if (length > max_safetensors_header) {
    source.fail(0, "the header length is {}, above the limit of {}: probably not a safetensors file", length,
                max_safetensors_header);
  }
  if (length > source.size() - 8) {
    source.fail(0, "the header length is {}, but only {} bytes follow: cut short or not a safetensors file", length,
                source.size() - 8);
  }
  std::string text(length, '\0');
  source.read(8, std::as_writable_bytes(std::span(text)));
  return text;
}

void check_tensor(const Source& source, const std::string& name, const TensorInfo& tensor, uint64_t data_size) {
  if (tensor.begin > tensor.end || tensor.end > data_size) {
    source.fail(8, "{}: data_offsets [{}, {}] do not lie within the {} bytes of data", in_quotes(name), tensor.begin,
                tensor.end, data_size);
  }
  const auto expected = checked_byte_count(tensor.shape, dtype_size(tensor.dtype));
  if (!expected) source.fail(8, "{}: the product of its shape leaves 64 bits", in_quotes(name));
  if (*expected != tensor.end - tensor.begin) {
    source.fail(8, "{}: its dtype and shape need {} bytes, data_offsets hold {}", in_quotes(name), *expected,
                tensor.end - tensor.begin);
  }
}

// The tensors must cover the data exactly: no gap can hide bytes, no byte belongs to two tensors.
void check_layout(const Source& source, const SafetensorsHeader& header, uint64_t data_size) {
  std::vector<std::pair<const std::string*, const TensorInfo*>> order;
  for (const auto& [name, tensor] : header.tensors) {
    check_tensor(source, name, tensor, data_size);
    order.emplace_back(&name, &tensor);
  }
  std::ranges::sort(order, {}, [](const auto& entry) { return std::pair(entry.second->begin, entry.second->end); });
  uint64_t covered = 0;
  for (const auto& [name, tensor] : order) {
    if (tensor->begin < covered) source.fail(8, "{}: its data overlaps that of another tensor", in_quotes(*name));
    if (tensor->begin > covered) {
      source.fail(8, "{}: bytes [{}, {}) before it belong to no tensor", in_quotes(*name), covered, tensor->begin);
    }
    covered = tensor->end;
  }
  if (covered != data_size) {
    source.fail(source.size() - (data_size - covered), "the last {} bytes belong to no tensor", data_size - covered);
  }
}

void check_writable(std::span<const LazyArray> tensors, const Metadata& metadata) {
  std::unordered_set<std::string_view> seen;
  for (const auto& [name, info, make] : tensors) {
    if (!is_utf8(name)) fail(ErrorKind::usage, "[write_safetensors] the name {} is not UTF-8", in_quotes(name));
    if (name == "__metadata__") fail(ErrorKind::usage, "[write_safetensors] no tensor can be named '__metadata__'");
    if (!seen.insert(name).second)
      fail(ErrorKind::usage, "[write_safetensors] two tensors are named {}", in_quotes(name));
    if (safetensors_code(info.dtype).empty()) {
      fail(ErrorKind::usage,
           "[write_safetensors] {} is {}, which the format does not have: convert it to c64 or use npz",
           in_quotes(name), dtype_name(info.dtype));
    }
  }
  for (const auto& [key, value] : metadata) {
    if (!is_utf8(key) || !is_utf8(value))
      fail(ErrorKind::usage, "[write_safetensors] metadata {} is not UTF-8", in_quotes(key));
  }
}

// The bytes of a file on their way to the disk, with their checksum.
class SummedFile {
 public:
  explicit SummedFile(const std::string& path) : file_(path) {}

  void write(std::span<const std::byte> bytes) {
    file_.write(bytes.data(), bytes.size());
    sum_.add(bytes);
  }

  // The checksum takes the place of the zeros at `offset`.
  void stamp(uint64_t offset) {
    const std::string text = sum_.text();
    file_.seek(offset);
    file_.write(text.data(), text.size());
  }

  void commit() { file_.commit(); }

 private:
  AtomicFile file_;
  Checksum sum_;
};

void write_tensor(SummedFile& file, const LazyArray& tensor) {
  const Array array = tensor.make();
  if (array.dtype() != tensor.info.dtype || array.shape() != tensor.info.shape) {
    fail(ErrorKind::usage, "[stream_safetensors] {} was announced as {} {}, but {} {} was made", in_quotes(tensor.name),
         dtype_name(tensor.info.dtype), shape_text(tensor.info.shape), dtype_name(array.dtype()),
         shape_text(array.shape()));
  }
  file.write(array.bytes());
}

constexpr const char* stamp_key = "xxh64";
constexpr size_t stamp_digits = 16;

// Where the digits of the stamp are in a header. Quotes inside of other values are escaped, so there is no other such place.
size_t find_stamp(const std::string& header, const std::string& digits) {
  const std::string before = fmt::format("\"{}\":\"", stamp_key);
  const size_t found = header.find(before + digits + '"');
  return found == header.npos ? found : found + before.size();
}

}  // namespace

SafetensorsFile::SafetensorsFile(const std::string& path) : SafetensorsFile(open_source(path)) {}

SafetensorsFile::SafetensorsFile(std::shared_ptr<const Source> source) : source_(std::move(source)) {
  const std::string text = read_header_text(*source_);
  header_ = parse_safetensors_header(source_->name(), text);
  data_offset_ = 8 + text.size();
  check_layout(*source_, header_, source_->size() - data_offset_);
}

const TensorInfo& SafetensorsFile::info(const std::string& name) const {
  const auto found = header_.tensors.find(name);
  if (found == header_.tensors.end()) fail_missing(source_->name(), name, header_.names);
  return found->second;
}

Array SafetensorsFile::read(const std::string& name) const {
  const TensorInfo& tensor = info(name);
  Array array = array_of_file(source_->name(), tensor.dtype, tensor.shape);
  source_->read(data_offset_ + tensor.begin, array.bytes());
  normalize_bools(array);
  return array;
}

void SafetensorsFile::verify() const {
  const auto stamp = header_.metadata.find(stamp_key);
  if (stamp == header_.metadata.end()) return;
  std::string head(data_offset_, '\0');
  source_->read(0, std::as_writable_bytes(std::span(head)));
  Checksum sum;
  if (const size_t digits = find_stamp(head, stamp->second);
      digits != head.npos && stamp->second.size() == stamp_digits) {
    head.replace(digits, stamp_digits, stamp_digits, '0');
  }
  sum.add(std::as_bytes(std::span(head)));
  for_each_block(*source_, data_offset_, [&](std::span<const std::byte> block) { sum.add(block); });
  if (sum.text() == stamp->second) return;
  fail(ErrorKind::data, "{}: its checksum is {}, its header says {}: it was damaged or changed after it was written",
       source_->name(), sum.text(), in_quotes(stamp->second));
}

void write_safetensors(const std::string& path, std::span<const NamedArray> tensors, const Metadata& metadata,
                       Stamp stamp) {
  std::vector<LazyArray> made;
  for (const auto& [name, array] : tensors) {
    made.push_back({name, {array.dtype(), array.shape()}, [shared = array] { return shared; }});
  }
  stream_safetensors(path, made, metadata, stamp);
}

void stream_safetensors(const std::string& path, std::span<const LazyArray> tensors, const Metadata& metadata,
                        Stamp stamp) {
  check_writable(tensors, metadata);
  Metadata all = metadata;
  const std::string zeros(stamp_digits, '0');
  if (stamp == Stamp::checksum) all[stamp_key] = zeros;
  const std::string header = format_safetensors_header(tensors, all);
  if (header.size() > max_safetensors_header) {
    fail(ErrorKind::usage, "[write_safetensors] names and metadata need {} bytes, above the format's limit of {}",
         header.size(), max_safetensors_header);
  }
  const uint64_t length = header.size();
  SummedFile file(path);
  file.write(std::as_bytes(std::span(&length, 1)));
  file.write(std::as_bytes(std::span(header)));
  for (const LazyArray& tensor : tensors) write_tensor(file, tensor);
  if (stamp == Stamp::checksum) file.stamp(sizeof length + find_stamp(header, zeros));
  file.commit();
}

}  // namespace convssm::io
