// The chunks that were decoded last, so that reading frame after frame decodes a chunk once. Bounded in bytes; the newest one stays
// whatever its size, or a series in one large chunk would be decoded again for every frame. From any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <utility>

#include "convssm/io/array.h"

namespace convssm::io {

class ZarrCache {
 public:
  // A chunk, or the index of a shard, by its number in an array of the store.
  struct Key {
    size_t array = 0;
    uint64_t number = 0;
    bool index = false;
    bool operator==(const Key&) const = default;
  };

  explicit ZarrCache(uint64_t most_bytes) : most_bytes_(most_bytes) {}

  // What is kept under that key, else what `make` makes, which is called outside of the lock: two threads may make the same at once.
  // Nothing is kept of what does not exist.
  std::optional<Array> get(const Key& key, const std::function<std::optional<Array>()>& make) {
    if (auto kept = find(key)) return kept;
    std::optional<Array> made = make();
    if (made) keep(key, *made);
    return made;
  }

  uint64_t bytes() const {
    const std::lock_guard lock(mutex_);
    return bytes_;
  }

 private:
  struct Hash {
    size_t operator()(const Key& key) const {
      const std::hash<uint64_t> hash;
      return hash((key.number * 2 + key.index) * 0x9e3779b97f4a7c15u ^ key.array);
    }
  };
  using Entries = std::list<std::pair<Key, Array>>;  // the newest first

  std::optional<Array> find(const Key& key) {
    const std::lock_guard lock(mutex_);
    const auto at = places_.find(key);
    if (at == places_.end()) return std::nullopt;
    entries_.splice(entries_.begin(), entries_, at->second);
    return entries_.front().second;
  }

  void keep(const Key& key, const Array& array) {
    const std::lock_guard lock(mutex_);
    if (places_.contains(key)) return;
    entries_.emplace_front(key, array);
    places_.emplace(key, entries_.begin());
    bytes_ += array.byte_count();
    while (bytes_ > most_bytes_ && entries_.size() > 1) {
      bytes_ -= entries_.back().second.byte_count();
      places_.erase(entries_.back().first);
      entries_.pop_back();
    }
  }

  const uint64_t most_bytes_;
  mutable std::mutex mutex_;
  uint64_t bytes_ = 0;
  Entries entries_;
  std::unordered_map<Key, Entries::iterator, Hash> places_;
};

}  // namespace convssm::io
