// Random access opens the file for each read: a folder has more files than a process may have open. In order, one stream
// reads a compressed array from its first element to its last, so that it never stands in memory whole; others are read
// at random all the same, because what is left out costs nothing there.
#include "convssm/data/array_recording.h"

#include <algorithm>
#include <optional>

#include "convssm/base/error.h"
#include "convssm/base/file_memory.h"
#include "convssm/data/array_choice.h"
#include "convssm/data/episodes_recording.h"
#include "convssm/data/gathered_frames.h"
#include "convssm/io/array_file.h"
#include "convssm/io/array_stream.h"

namespace convssm::data {
namespace {

RecordingInfo describe(const std::string& path, const std::vector<std::string>& names, const RecordingOptions& o) {
  RecordingInfo info = begin_info(path, "array", o);
  const ArrayChoice choice(path, names);
  info.key = choice.clips(o.key, actions_key(o));
  describe_frames(info, choice.info(info.key));
  if (!o.actions || info.key == actions_key(o)) return info;
  if (choice.contains(actions_key(o))) {
    describe_actions(info, {path, actions_key(o)}, choice.info(actions_key(o)), frames_shape(info));
  } else {
    info.actions_key = actions_key(o);
    info.like_actions = choice.like_actions(info.key, frames_shape(info), o.action_reading);
  }
  return info;
}

class ArrayRecording : public Recording {
 public:
  ArrayRecording(RecordingInfo about, std::shared_ptr<ArrayCache> cache)
      : Recording(std::move(about), std::move(cache)) {}

 protected:
  io::Array frames(int64_t clip, int64_t first, int64_t count) override {
    const uint64_t each = info().frame_elements(), from = static_cast<uint64_t>(clip * info().frames + first);
    const io::ArrayInfo opened{info().dtype, info().shape};
    return cache().read(info().path, info().key, from * each, static_cast<uint64_t>(count) * each, &opened);
  }
};

class GatheredRecording : public Recording {
 public:
  GatheredRecording(RecordingInfo about, std::shared_ptr<ArrayCache> cache)
      : Recording(std::move(about), std::move(cache)) {}

 protected:
  io::Array frames(int64_t clip, int64_t first, int64_t count) override {
    const io::ArrayInfo opened{info().dtype, info().shape};
    return gathered_frames(cache(), info(), info().key, clip, first, count, &opened);
  }
};

class ArrayInOrder : public Recording {
 public:
  ArrayInOrder(RecordingInfo about, std::shared_ptr<ArrayCache> cache)
      : Recording(std::move(about), std::move(cache)) {}

 protected:
  io::Array frames(int64_t clip, int64_t first, int64_t count) override {
    if (!stream_) {
      stream_.emplace(info().path, info().key);
      require_unchanged(info().path, {info().dtype, info().shape}, stream_->info());
    }
    const int64_t from = clip * info().frames + first;
    if (from < next_) {
      fail(ErrorKind::usage, "[recording] '{}' is read in order: frame {} after frame {}", info().path, from, next_);
    }
    const uint64_t each = info().frame_elements();
    for (; next_ < from; ++next_) stream_->next(each);
    next_ = from + count;
    return stream_->next(static_cast<uint64_t>(count) * each);
  }

 private:
  std::optional<io::ArrayStream> stream_;
  int64_t next_ = 0;
};

}  // namespace

std::unique_ptr<Recording> open_array_recording(const std::string& path, const RecordingOptions& options) {
  const auto names = io::array_names(path);
  if (names.empty()) fail(ErrorKind::data, "[folder] '{}' holds no arrays", path);
  if (holds_episodes(names)) return open_episodes(path, names, options);
  RecordingInfo info = describe(path, names, options);
  if (!frames_lie_whole(info.layout)) {
    // In order, the whole of an array would be read again and again where its frames are scattered: it is kept.
    auto cache = options.access == Access::in_order ? std::make_shared<ArrayCache>(file_memory_limit()) : options.cache;
    return std::make_unique<GatheredRecording>(std::move(info), std::move(cache));
  }
  if (options.access == Access::in_order && io::ArrayFile(path, info.key).whole_only()) {
    return std::make_unique<ArrayInOrder>(std::move(info), options.cache);
  }
  return std::make_unique<ArrayRecording>(std::move(info), options.cache);
}

}  // namespace convssm::data
