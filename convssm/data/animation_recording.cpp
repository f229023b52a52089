// These files are unpacked to be opened, because nothing less tells how many frames they have. For random access the
// frames go to the cache, and are unpacked again when it had to drop them.
#include "convssm/data/animation_recording.h"

#include "convssm/base/error.h"
#include "convssm/io/animation.h"

namespace convssm::data {
namespace {

class Animation : public Recording {
 public:
  // No cache: the frames stay.
  Animation(RecordingInfo about, const io::Array& unpacked, std::shared_ptr<ArrayCache> cache)
      : Recording(std::move(about)), cache_(std::move(cache)) {
    if (cache_) {
      all_frames([&unpacked] { return unpacked; });
    } else {
      kept_ = unpacked;
    }
  }

 protected:
  io::Array frames(int64_t first, int64_t count) override {
    const io::Array all = cache_ ? all_frames([this] { return io::read_animation(info().path); }) : kept_;
    const size_t frame = info().frame_elements();
    if (all.byte_count() != static_cast<uint64_t>(info().frames) * frame) {
      fail(ErrorKind::data, "[recording] '{}' has changed since it was opened", info().path);
    }
    return io::chunk_of(all, static_cast<size_t>(first) * frame, static_cast<size_t>(count) * frame, info().path);
  }

 private:
  io::Array all_frames(const std::function<io::Array()>& load) {
    return cache_->whole(info().path, "", static_cast<uint64_t>(info().frames) * info().frame_elements(), load);
  }

  std::shared_ptr<ArrayCache> cache_;
  io::Array kept_;
};

std::unique_ptr<Recording> open(const std::string& path, const RecordingOptions& o, const char* kind) {
  const io::Array frames = io::read_animation(path);
  const std::vector<int64_t>& shape = frames.shape();
  RecordingInfo info{.path = path, .name = o.name.empty() ? path : o.name, .kind = kind, .always_bytes = true};
  info.shape = shape, info.layout = {"THWC", "rows of pixels, as all animations and pictures"};
  info.frames = shape[0], info.height = shape[1], info.width = shape[2], info.channels = shape[3];
  return std::make_unique<Animation>(std::move(info), frames, o.access == Access::random ? o.cache : nullptr);
}

}  // namespace

std::unique_ptr<Recording> open_animation(const std::string& path, const RecordingOptions& options) {
  return open(path, options, "animation");
}

std::unique_ptr<Recording> open_picture(const std::string& path, const RecordingOptions& options) {
  return open(path, options, "picture");
}

}  // namespace convssm::data
