// Reads numbers and runs of bytes one after another from bytes that came from a file. It never leaves the bytes, and
// its errors carry the file's name and the offset in the file. Little-endian numbers, and the varints of protobuf and
// LevelDB.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "convssm/base/error.h"
#include "convssm/io/source.h"

namespace convssm::io {

class ByteCursor {
 public:
  // `bytes` begin at offset `origin` of `file`; both must outlive the cursor.
  ByteCursor(const std::string& file, uint64_t origin, std::span<const std::byte> bytes)
      : file_(file), origin_(origin), bytes_(bytes) {}

  bool at_end() const { return next_ == bytes_.size(); }
  size_t left() const { return bytes_.size() - next_; }
  size_t index() const { return next_; }                 // in the bytes
  uint64_t position() const { return origin_ + next_; }  // in the file
  const std::string& file() const { return file_; }

  // The next `count` bytes; `what` they are, for the error.
  std::span<const std::byte> take(uint64_t count, std::string_view what) {
    if (count > left()) fail("{} needs {} bytes, but only {} are left", what, count, left());
    next_ += count;
    return bytes_.subspan(next_ - count, count);
  }

  template <typename T>
  T number(std::string_view what) {
    return load<T>(take(sizeof(T), what).data());
  }

  // Seven bits per byte, the lowest first.
  uint64_t varint(std::string_view what) {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const auto byte = number<uint8_t>(what);
      const uint64_t bits = byte & 0x7f;
      if (shift == 63 && bits > 1) break;
      value |= bits << shift;
      if (byte < 0x80) return value;
    }
    fail("{} is a varint of more than 64 bits", what);
  }

  template <typename... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> text, Args&&... args) const {
    throw FormatError(file_, position(), fmt::format(text, std::forward<Args>(args)...));
  }

 private:
  const std::string& file_;
  uint64_t origin_;
  std::span<const std::byte> bytes_;
  size_t next_ = 0;
};

// Bytes of a file as text.
inline std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace convssm::io
