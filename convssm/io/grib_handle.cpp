// eccodes reads numbers of a message without looking where it ends; bytes behind it that are ours keep a damaged one from more than
// that. Where eccodes gives up a program it calls a function first, from which an Error is thrown through its frames: what it holds is
// lost, the program is not.
#include "convssm/io/grib_handle.h"

#include "convssm/base/error.h"
#include "convssm/io/text.h"

namespace convssm::io {
namespace {

constexpr size_t bytes_behind = 1 << 16;

void say_nothing(const codes_context*, int, const char*) {}

void throw_instead(const char* text) { fail(ErrorKind::data, "eccodes gives up: {}", in_quotes(text)); }

std::mutex& grib_lock() {
  static std::mutex mutex;
  static const bool once = [] {
    codes_context_set_logging_proc(codes_context_get_default(), say_nothing);
    codes_set_codes_assertion_failed_proc(throw_instead);
    return true;
  }();
  static_cast<void>(once);
  return mutex;
}

}  // namespace

GribHandle::GribHandle(const std::string& file, uint64_t offset, std::string message)
    : file_(file), message_(std::move(message)), offset_(offset), lock_(grib_lock()) {
  const size_t size = message_.size();
  message_.resize(size + bytes_behind);
  handle_ = codes_handle_new_from_message(nullptr, message_.data(), size);
  if (handle_ == nullptr) refuse("eccodes takes it for no message, or its definitions are not there");
}

GribHandle::~GribHandle() { codes_handle_delete(handle_); }

void GribHandle::refuse(const std::string& reason) const {
  throw FormatError(file_, offset_, "the message: " + reason);
}

int64_t GribHandle::integer(const char* key) const {
  const auto value = try_integer(key);
  if (!value) refuse(fmt::format("it has no {}", key));
  return *value;
}

double GribHandle::number(const char* key) const {
  const auto value = try_number(key);
  if (!value) refuse(fmt::format("it has no {}", key));
  return *value;
}

std::optional<int64_t> GribHandle::try_integer(const char* key) const {
  long value = 0;
  int code = 0;
  if (codes_is_missing(handle_, key, &code) != 0 || codes_get_long(handle_, key, &value) != 0) return std::nullopt;
  return value;
}

std::optional<double> GribHandle::try_number(const char* key) const {
  double value = 0;
  int code = 0;
  if (codes_is_missing(handle_, key, &code) != 0 || codes_get_double(handle_, key, &value) != 0) return std::nullopt;
  return value;
}

std::string GribHandle::try_text(const char* key) const {
  char text[512] = "";
  size_t size = sizeof text;
  if (codes_get_string(handle_, key, text, &size) != 0) return "";
  std::string value(text, std::min(size, sizeof text));
  value.resize(std::min(value.find('\0'), value.size()));
  return value == "unknown" || value == "~" || !is_utf8(value) ? "" : value;
}

std::optional<std::vector<double>> GribHandle::numbers(const char* key, size_t count) const {
  size_t size = 0;
  if (codes_get_size(handle_, key, &size) != 0 || size != count) return std::nullopt;
  std::vector<double> values(count);
  if (codes_get_double_array(handle_, key, values.data(), &size) != 0 || size != count) return std::nullopt;
  return values;
}

void GribHandle::set(const char* key, double value) {
  if (const int code = codes_set_double(handle_, key, value); code != 0) {
    refuse(fmt::format("its {} cannot be set: {}", key, codes_get_error_message(code)));
  }
}

void GribHandle::set(const char* key, const char* value) {
  size_t size = std::char_traits<char>::length(value);
  codes_set_string(handle_, key, value, &size);
}

}  // namespace convssm::io
