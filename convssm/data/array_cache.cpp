#include "convssm/data/array_cache.h"

#include <algorithm>

#include "convssm/io/array_file.h"

namespace convssm::data {
namespace {

io::Array part_of(const io::Array& whole, uint64_t first, uint64_t count) {
  io::Array part(whole.dtype(), {static_cast<int64_t>(count)});
  const size_t size = io::dtype_size(whole.dtype());
  std::ranges::copy(whole.bytes().subspan(first * size, count * size), part.bytes().begin());
  return part;
}

}  // namespace

io::Array ArrayCache::read(const std::string& path, const std::string& key, uint64_t first, uint64_t count) {
  const io::ArrayFile file(path, key);
  if (!file.whole_only()) return file.read(first, count);
  const auto bytes = io::checked_byte_count(file.info().shape, io::dtype_size(file.info().dtype));
  return part_of(whole(path, key, bytes.value_or(0)).get(), first, count);
}

std::shared_future<io::Array> ArrayCache::whole(const std::string& path, const std::string& key, uint64_t bytes) {
  std::promise<io::Array> promise;
  std::shared_future<io::Array> future;
  {
    const std::lock_guard lock(mutex_);
    const auto same = [&](const Entry& entry) { return entry.path == path && entry.key == key; };
    const auto found = std::ranges::find_if(entries_, same);
    if (found != entries_.end()) {
      entries_.splice(entries_.begin(), entries_, found);
      return found->array;
    }
    future = promise.get_future().share();
    entries_.push_front({path, key, bytes, future});
    uint64_t sum = bytes;
    const auto too_much = [&](const Entry& entry) { return (sum += entry.bytes) > limit_; };
    entries_.erase(std::find_if(std::next(entries_.begin()), entries_.end(), too_much), entries_.end());
  }
  try {
    promise.set_value(io::ArrayFile(path, key).read());
  } catch (...) {
    promise.set_exception(std::current_exception());
  }
  return future;
}

uint64_t ArrayCache::bytes() const {
  const std::lock_guard lock(mutex_);
  uint64_t sum = 0;
  for (const Entry& entry : entries_) sum += entry.bytes;
  return sum;
}

}  // namespace convssm::data
