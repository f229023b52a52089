// The first thread that wants an array leaves a future in the list and loads it; the others wait for the future, outside
// of the lock.
#include "convssm/data/array_cache.h"

#include <iterator>

#include "convssm/base/error.h"
#include "convssm/io/array_box.h"

namespace convssm::data {

void require_unchanged(const std::string& path, const io::ArrayInfo& opened, const io::ArrayInfo& now) {
  if (now.dtype == opened.dtype && now.shape == opened.shape) return;
  fail(ErrorKind::data,
       "'{}' has changed since it was opened: it held {} {}, now {} {}; write to another file, and open this one again",
       path, io::dtype_name(opened.dtype), io::shape_text(opened.shape), io::dtype_name(now.dtype),
       io::shape_text(now.shape));
}

io::Array ArrayCache::read(const std::string& path, const std::string& key, uint64_t first, uint64_t count,
                           const io::ArrayInfo* opened) {
  const io::ArrayFile file(path, key);
  if (opened) require_unchanged(path, *opened, file.info());
  if (!file.whole_only()) {
    verify_once(file, path, key);
    return file.read(first, count);
  }
  const auto bytes = io::checked_byte_count(file.info().shape, io::dtype_size(file.info().dtype));
  return io::chunk_of(whole(path, key, bytes.value_or(0), [&file] { return file.read(); }), first, count, path);
}

io::Array ArrayCache::read_box(const std::string& path, const std::string& key, std::span<const int64_t> first,
                               std::span<const int64_t> count, const io::ArrayInfo* opened) {
  constexpr uint64_t scattered = 8;  // times the cost of what lies together
  const io::ArrayFile file(path, key);
  if (opened) require_unchanged(path, *opened, file.info());
  const size_t item = io::dtype_size(file.info().dtype);
  const uint64_t bytes = io::checked_byte_count(file.info().shape, item).value_or(UINT64_MAX);
  const uint64_t wanted = io::checked_byte_count(count, item).value_or(0);
  const bool keep = bytes <= limit_ && file.box_cost(count) / scattered > wanted;
  if (!file.whole_only() && !keep) {
    verify_once(file, path, key);
    return file.read_box(first, count);
  }
  return io::box_of(whole(path, key, bytes, [&file] { return file.read(); }), first, count, path);
}

void ArrayCache::verify_once(const io::ArrayFile& file, const std::string& path, const std::string& key) {
  std::packaged_task<void()> task([&file] { file.verify(); });
  std::shared_future<void> future;
  bool mine = false;
  {
    const std::lock_guard lock(mutex_);
    const auto [place, is_new] = verified_.try_emplace({path, key});
    if ((mine = is_new)) place->second = task.get_future().share();
    future = place->second;
  }
  if (mine) task();
  try {
    future.get();
  } catch (...) {
    const std::lock_guard lock(mutex_);  // whoever asks later tries again
    verified_.erase({path, key});
    throw;
  }
}

void ArrayCache::drop(std::list<Entry>::iterator entry) {
  bytes_ -= entry->bytes;
  places_.erase(entry->name);
  entries_.erase(entry);
}

io::Array ArrayCache::whole(const std::string& path, const std::string& key, uint64_t bytes,
                            const std::function<io::Array()>& load) {
  const Name name(path, key);
  std::promise<io::Array> promise;
  std::shared_future<io::Array> future;
  bool found = true;
  {
    const std::lock_guard lock(mutex_);
    if (const auto place = places_.find(name); place != places_.end()) {
      entries_.splice(entries_.begin(), entries_, place->second);
      future = place->second->array;
    } else {
      found = false;
      future = promise.get_future().share();
      entries_.push_front({name, bytes, future});
      places_.emplace(name, entries_.begin());
      bytes_ += bytes;
      while (bytes_ > limit_ && entries_.size() > 1) drop(std::prev(entries_.end()));
    }
  }
  if (found) return future.get();
  try {
    promise.set_value(load());
  } catch (...) {
    {
      const std::lock_guard lock(mutex_);  // whoever asks later tries again
      if (const auto place = places_.find(name); place != places_.end()) drop(place->second);
    }
    promise.set_exception(std::current_exception());
  }
  return future.get();
}

uint64_t ArrayCache::bytes() const {
  const std::lock_guard lock(mutex_);
  return bytes_;
}

}  // namespace convssm::data
