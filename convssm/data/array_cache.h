// Chunks of arrays in files. Arrays that can only be read whole (compressed ones) are kept for a while, the most recently
// used ones up to a limit of memory, so that the many clips of one file do not each unpack it again.
#pragma once

#include <cstdint>
#include <functional>
#include <future>
#include <list>
#include <mutex>
#include <string>

#include "convssm/io/array.h"

namespace convssm::data {

class ArrayCache {
 public:
  explicit ArrayCache(uint64_t limit_bytes) : limit_(limit_bytes) {}

  // Elements first .. first+count-1 of an array, as [count]. Called from several threads at once; an array that two of
  // them want is unpacked once.
  io::Array read(const std::string& path, const std::string& key, uint64_t first, uint64_t count);

  // A whole array of `bytes` bytes, which `load` reads unless it is kept.
  io::Array whole(const std::string& path, const std::string& key, uint64_t bytes,
                  const std::function<io::Array()>& load);

  uint64_t bytes() const;  // kept now; more than the limit only by the newest array

 private:
  struct Entry {
    std::string path, key;
    uint64_t bytes;
    std::shared_future<io::Array> array;
  };

  uint64_t limit_;
  mutable std::mutex mutex_;
  std::list<Entry> entries_;  // the most recently used first
};

}  // namespace convssm::data
