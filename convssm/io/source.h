// Where the bytes of a file come from. A Source is read at any offset, a Reader from its first byte to its last; both
// know their size before anything is read, refuse to read beyond it, and carry a name for error messages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "convssm/base/error.h"

namespace convssm::io {

class Source {
 public:
  virtual ~Source() = default;
  const std::string& name() const { return name_; }
  uint64_t size() const { return size_; }

  // Fills `out` from `offset` on. FormatError if the source ends before. Safe to call from several threads.
  void read(uint64_t offset, std::span<std::byte> out) const;

  // Throws FormatError with this source's name.
  template <typename... Args>
  [[noreturn]] void fail(uint64_t offset, fmt::format_string<Args...> text, Args&&... args) const {
    throw FormatError(name_, offset, fmt::format(text, std::forward<Args>(args)...));
  }

 protected:
  Source(std::string name, uint64_t size) : name_(std::move(name)), size_(size) {}
  virtual void fetch(uint64_t offset, std::span<std::byte> out) const = 0;

 private:
  std::string name_;
  uint64_t size_;
};

// The bytes from `offset` to the end, a block of at most 1 MiB after the other.
void for_each_block(const Source& source, uint64_t offset, const std::function<void(std::span<const std::byte>)>& take);

// A regular file. Error(io) if it cannot be opened or is something else.
std::shared_ptr<const Source> open_source(const std::string& path);

// Bytes in memory, which must outlive the source.
std::shared_ptr<const Source> memory_source(std::string name, std::span<const std::byte> bytes);

class Reader {
 public:
  virtual ~Reader() = default;
  const std::string& name() const { return name_; }
  uint64_t size() const { return size_; }
  uint64_t position() const { return position_; }

  // The next out.size() bytes. FormatError if fewer are left.
  void read(std::span<std::byte> out);

  // To be called after the last byte: checks that there is no more, and the checksum where there is one.
  void finish();

  template <typename... Args>
  [[noreturn]] void fail(uint64_t offset, fmt::format_string<Args...> text, Args&&... args) const {
    throw FormatError(name_, offset, fmt::format(text, std::forward<Args>(args)...));
  }

 protected:
  Reader(std::string name, uint64_t size) : name_(std::move(name)), size_(size) {}
  virtual void fetch(std::span<std::byte> out) = 0;
  virtual void check_end() {}

 private:
  std::string name_;
  uint64_t size_;
  uint64_t position_ = 0;
};

// Reads the whole of `source` in order.
std::unique_ptr<Reader> make_reader(std::shared_ptr<const Source> source);

// A little-endian number at `bytes`.
template <typename T>
T load(const std::byte* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

}  // namespace convssm::io
