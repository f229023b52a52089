// A message in the hands of eccodes. The lock is held as long as there is one.
#pragma once

#include <eccodes.h>

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace convssm::io {

class GribHandle {
 public:
  // FormatError with the file and the offset if it is no message to eccodes.
  GribHandle(const std::string& file, uint64_t offset, std::string message);
  ~GribHandle();
  GribHandle(const GribHandle&) = delete;
  GribHandle& operator=(const GribHandle&) = delete;

  // The value of a key; FormatError if there is none.
  int64_t integer(const char* key) const;
  double number(const char* key) const;

  // Nothing if there is none, or if it is "unknown".
  std::optional<int64_t> try_integer(const char* key) const;
  std::optional<double> try_number(const char* key) const;
  std::string try_text(const char* key) const;

  // `count` numbers of a key; nothing if it has another number of them or none.
  std::optional<std::vector<double>> numbers(const char* key, size_t count) const;

  void set(const char* key, double value);
  void set(const char* key, const char* value);  // does nothing if it cannot

  [[noreturn]] void refuse(const std::string& reason) const;

 private:
  std::string file_, message_;
  uint64_t offset_;
  std::unique_lock<std::mutex> lock_;
  codes_handle* handle_ = nullptr;
};

}  // namespace convssm::io
