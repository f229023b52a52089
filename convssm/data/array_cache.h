// Chunks of arrays in files, checked: before the first chunk of an array its checksum is compared, where it has one.
// Arrays that can only be read whole (compressed ones) are kept for a while, the most recently used ones up to a limit of
// memory, so that the many clips of one file do not each unpack it again.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <future>
#include <list>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <utility>

#include "convssm/io/array_file.h"

namespace convssm::data {

class ArrayCache {
 public:
  explicit ArrayCache(uint64_t limit_bytes) : limit_(limit_bytes) {}

  // Elements first .. first+count-1 of an array, as [count]. FormatError if the array does not have its checksum, Error(data) if it
  // is not what it was when it was `opened` (nullptr: whatever it is). Called from several threads at once; an array that two of them
  // want is unpacked once.
  io::Array read(const std::string& path, const std::string& key, uint64_t first, uint64_t count,
                 const io::ArrayInfo* opened = nullptr);

  // A box of an array (io/array_file.h), the same way. Of one whose boxes are scattered over the file, the whole is kept if it fits.
  io::Array read_box(const std::string& path, const std::string& key, std::span<const int64_t> first,
                     std::span<const int64_t> count, const io::ArrayInfo* opened = nullptr);

  // A whole array of `bytes` bytes, which `load` reads unless it is kept.
  io::Array whole(const std::string& path, const std::string& key, uint64_t bytes,
                  const std::function<io::Array()>& load);

  // Whoever will ask for whole arrays says so; all_fit() is whether those that were announced fit at once. Where they do not,
  // reading less than the whole again and again may be better.
  void plan(uint64_t bytes) { planned_ += bytes; }
  bool all_fit() const { return planned_ <= limit_; }

  uint64_t bytes() const;  // kept now; more than the limit only by the newest array

 private:
  void verify_once(const io::ArrayFile& file, const std::string& path, const std::string& key);

  using Name = std::pair<std::string, std::string>;  // path and key
  struct Entry {
    Name name;
    uint64_t bytes;
    std::shared_future<io::Array> array;
  };
  void drop(std::list<Entry>::iterator entry);

  uint64_t limit_;
  std::atomic<uint64_t> planned_ = 0;
  mutable std::mutex mutex_;
  std::list<Entry> entries_;  // the most recently used first
  std::map<Name, std::list<Entry>::iterator> places_;
  uint64_t bytes_ = 0;  // of all entries
  std::map<Name, std::shared_future<void>> verified_;
};

// Error(data) that names the file unless the array still has this type and shape.
void require_unchanged(const std::string& path, const io::ArrayInfo& opened, const io::ArrayInfo& now);

}  // namespace convssm::data
