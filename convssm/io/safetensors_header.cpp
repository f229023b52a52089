// Parsed from SAX events and not into a JSON tree: a tree would let a duplicate key pass silently and grow with any
// nesting. The writer pads the header with blanks to 8 bytes, so that the data is aligned.
#include "convssm/io/safetensors_header.h"

#include <fmt/ranges.h>

#include <array>
#include <nlohmann/json.hpp>

#include "convssm/base/error.h"
#include "convssm/io/text.h"

namespace convssm::io {
namespace {

using Json = nlohmann::json;

constexpr uint64_t header_offset = 8;  // SAX events carry no position: errors point at the header and name the tensor
constexpr std::string_view metadata_key = "__metadata__";

constexpr std::array<std::string_view, all_dtypes.size()> codes = {
    "BOOL", "U8", "I8", "U16", "I16", "U32", "I32", "U64", "I64", "F16", "BF16", "F32", "F64", "C64", ""};

std::optional<DType> dtype_from_code(std::string_view code) {
  for (const DType dtype : all_dtypes) {
    if (!code.empty() && safetensors_code(dtype) == code) return dtype;
  }
  return std::nullopt;
}

// Follows the events of nlohmann's parser, which keeps its own stack and so survives any nesting. The states allow
// nothing deeper than {"tensor": {"shape": [1]}}.
class HeaderEvents : public Json::json_sax_t {
 public:
  explicit HeaderEvents(const std::string& file) : file_(file) {}
  SafetensorsHeader take() { return std::move(header_); }

  bool null() override { unexpected("null"); }
  bool boolean(bool) override { unexpected("true or false"); }
  bool number_float(double, const std::string& text) override { unexpected(text); }
  bool number_integer(int64_t value) override { unexpected(fmt::format("the negative number {}", value)); }
  bool binary(binary_t&) override { unexpected("binary data"); }

  bool number_unsigned(uint64_t value) override {
    if (state_ == State::offsets)
      offsets_.push_back(value);
    else if (state_ != State::shape)
      unexpected(fmt::format("the number {}", value));
    else if (value > INT64_MAX)
      refuse("a length of {} is not below 2^63", value);
    else
      tensor_.shape.push_back(static_cast<int64_t>(value));
    return true;
  }

  bool string(std::string& value) override {
    if (state_ == State::metadata) {
      header_.metadata.emplace(field_, value);
    } else if (state_ == State::tensor && field_ == "dtype") {
      const auto dtype = dtype_from_code(value);
      if (!dtype)
        refuse("unknown dtype {}; known are {}", in_quotes(value), fmt::join(codes.begin(), codes.end() - 1, " "));
      tensor_.dtype = *dtype;
    } else {
      unexpected(in_quotes(value));
    }
    return true;
  }

  bool key(std::string& key) override {
    if (state_ == State::top)
      begin_entry(key);
    else if (state_ == State::metadata)
      begin_metadata(key);
    else
      begin_field(key);
    return true;
  }

  bool start_object(size_t) override {
    if (state_ == State::start)
      state_ = State::top;
    else if (state_ == State::top)
      state_ = entry_ == metadata_key ? State::metadata : State::tensor;
    else
      unexpected("an object");
    return true;
  }

  bool end_object() override {
    if (state_ == State::tensor) end_tensor();
    state_ = State::top;
    return true;
  }

  bool start_array(size_t) override {
    if (state_ == State::tensor && field_ == "shape")
      state_ = State::shape;
    else if (state_ == State::tensor && field_ == "data_offsets")
      state_ = State::offsets;
    else
      unexpected("an array");
    return true;
  }

  bool end_array() override {
    if (state_ == State::offsets && offsets_.size() != 2) {
      refuse("data_offsets must be [begin, end], got {} numbers", offsets_.size());
    }
    state_ = State::tensor;
    return true;
  }

  bool parse_error(size_t position, const std::string& last_token, const Json::exception& error) override {
    // The library's text repeats the last token, which may be the whole file.
    const std::string_view what = error.what();
    const auto reason = what.substr(0, what.find("; last read")).substr(0, 200);
    const uint64_t offset = header_offset + (position > 0 ? position - 1 : 0);
    throw FormatError(file_, offset,
                      fmt::format("the header is not valid JSON, near {}: {}", in_quotes(last_token), reason));
  }

 private:
  enum class State { start, top, metadata, tensor, shape, offsets };

  template <typename... Args>
  [[noreturn]] void refuse(fmt::format_string<Args...> text, Args&&... args) const {
    const std::string where = entry_.empty() ? "the header" : in_quotes(entry_);
    throw FormatError(file_, header_offset, where + ": " + fmt::format(text, std::forward<Args>(args)...));
  }

  [[noreturn]] void unexpected(std::string_view found) const {
    refuse("expected {}, found {}", expected(), found.substr(0, 80));
  }

  std::string expected() const {
    if (state_ == State::start) return "an object at the top";
    if (state_ == State::top) return "an object for each name";
    if (state_ == State::metadata) return "a string for each key of the metadata";
    if (state_ == State::tensor && field_ == "dtype") return "a string as dtype";
    if (state_ == State::tensor) return "an array as " + field_;
    return "a whole number from 0 to 2^63-1 in " + field_;
  }

  void begin_entry(const std::string& key) {
    entry_ = key;
    const bool metadata = key == metadata_key;
    if (metadata ? seen_metadata_ : header_.tensors.contains(key)) refuse("the name is there twice");
    seen_metadata_ |= metadata;
    tensor_ = {};
    offsets_.clear();
    seen_fields_ = 0;
  }

  void begin_metadata(const std::string& key) {
    if (header_.metadata.contains(key)) refuse("the key {} is there twice", in_quotes(key));
    field_ = key;
  }

  void begin_field(const std::string& key) {
    constexpr std::array<std::string_view, 3> fields = {"dtype", "shape", "data_offsets"};
    const auto field = std::ranges::find(fields, key);
    if (field == fields.end()) refuse("unknown key {}; a tensor has dtype, shape and data_offsets", in_quotes(key));
    const unsigned bit = 1u << (field - fields.begin());
    if (seen_fields_ & bit) refuse("the key {} is there twice", in_quotes(key));
    seen_fields_ |= bit;
    field_ = key;
  }

  void end_tensor() {
    if (seen_fields_ != 7) refuse("a tensor must have dtype, shape and data_offsets, one is missing");
    tensor_.begin = offsets_[0];
    tensor_.end = offsets_[1];
    header_.tensors.emplace(entry_, std::move(tensor_));
    header_.names.push_back(entry_);
  }

  const std::string& file_;
  SafetensorsHeader header_;
  State state_ = State::start;
  std::string entry_;
  std::string field_;
  TensorInfo tensor_;
  std::vector<uint64_t> offsets_;
  unsigned seen_fields_ = 0;
  bool seen_metadata_ = false;
};

}  // namespace

std::string_view safetensors_code(DType dtype) { return codes[static_cast<size_t>(dtype)]; }

SafetensorsHeader parse_safetensors_header(const std::string& name, std::string_view text) {
  if (!text.starts_with('{')) {
    throw FormatError(name, header_offset, fmt::format("the header must begin with '{{', found {}", in_quotes(text)));
  }
  if (const size_t zero = text.find('\0'); zero != text.npos) {  // the JSON library takes it for the end of the text
    throw FormatError(name, header_offset + zero, "the header is not valid JSON: a zero byte in it");
  }
  HeaderEvents events(name);
  Json::sax_parse(text.begin(), text.end(), &events);
  return events.take();
}

std::string format_safetensors_header(std::span<const LazyArray> tensors, const Metadata& metadata) {
  const auto text = [](const std::string& value) { return Json(value).dump(); };
  std::string header = "{";
  if (!metadata.empty()) header += fmt::format("\"{}\":{},", metadata_key, Json(metadata).dump());
  uint64_t offset = 0;
  for (const auto& [name, info, make] : tensors) {
    const uint64_t end = offset + checked_byte_count(info.shape, dtype_size(info.dtype)).value();
    header += fmt::format("{}:{{\"dtype\":\"{}\",\"shape\":[{}],\"data_offsets\":[{},{}]}},", text(name),
                          safetensors_code(info.dtype), fmt::join(info.shape, ","), offset, end);
    offset = end;
  }
  if (header.back() == ',') header.pop_back();
  header += '}';
  header.resize((header.size() + 7) / 8 * 8, ' ');
  return header;
}

}  // namespace convssm::io
