// A video is indexed by its packets, and windows of it are decoded from the key frame before them; if all videos of a
// folder fit into the cache, they are decoded whole, once. Other files are unpacked to be opened, because nothing less
// tells how many frames they have. For random access the frames go to the cache, and are unpacked again when it had to
// drop them.
#include "convssm/data/animation_recording.h"

#include <optional>

#include "convssm/base/error.h"
#include "convssm/data/companion.h"
#include "convssm/io/animation.h"
#include "convssm/io/file_kind.h"
#include "convssm/io/tiff.h"
#include "convssm/io/video_read.h"

namespace convssm::data {
namespace {

uint64_t bytes_of(const RecordingInfo& info) {
  return static_cast<uint64_t>(info.frames) * info.frame_elements() * io::dtype_size(info.dtype);
}

class Animation : public Recording {
 public:
  // No cache: the frames stay.
  Animation(RecordingInfo about, const io::Array& unpacked, const std::shared_ptr<ArrayCache>& shared)
      : Recording(std::move(about), shared) {
    if (shared) {
      all_frames([&unpacked] { return unpacked; });
    } else {
      kept_ = unpacked;
    }
  }

 protected:
  io::Array frames(int64_t, int64_t first, int64_t count) override {
    const io::Array all = kept_ ? *kept_ : all_frames([this] { return io::read_animation(info().path); });
    const size_t frame = info().frame_elements();
    if (all.element_count() != static_cast<uint64_t>(info().frames) * frame || all.dtype() != info().dtype) {
      fail(ErrorKind::data, "[recording] '{}' has changed since it was opened", info().path);
    }
    return io::chunk_of(all, static_cast<size_t>(first) * frame, static_cast<size_t>(count) * frame, info().path);
  }

 private:
  io::Array all_frames(const std::function<io::Array()>& load) {
    return cache().whole(info().path, "", bytes_of(info()), load);
  }

  std::optional<io::Array> kept_;
};

class VideoRecording : public Recording {
 public:
  VideoRecording(RecordingInfo about, io::VideoIndex index, std::shared_ptr<ArrayCache> shared)
      : Recording(std::move(about), std::move(shared)), index_(std::move(index)) {
    if (info().reading.access == Access::random) cache().plan(bytes_of(info()));
  }

 protected:
  io::Array frames(int64_t, int64_t first, int64_t count) override {
    if (info().reading.access == Access::in_order) {
      if (!in_order_) in_order_.emplace(io::open_source(info().path), index_);
      return in_order_->read(first, count);
    }
    if (!cache().all_fit()) return io::VideoFrames(io::open_source(info().path), index_).read(first, count);
    const io::Array all = cache().whole(info().path, "", bytes_of(info()), [this] {
      return io::VideoFrames(io::open_source(info().path), index_).read(0, index_.frames());
    });
    const size_t frame = info().frame_elements();
    return io::chunk_of(all, static_cast<size_t>(first) * frame, static_cast<size_t>(count) * frame, info().path);
  }

 private:
  io::VideoIndex index_;
  std::optional<io::VideoFrames> in_order_;
};

// A page is found without those before it.
class TiffRecording : public Recording {
 public:
  TiffRecording(RecordingInfo about, io::TiffIndex index)
      : Recording(std::move(about), nullptr), index_(std::move(index)) {}

 protected:
  io::Array frames(int64_t, int64_t first, int64_t count) override {
    return io::read_tiff(io::open_source(info().path), index_, first, count);
  }

 private:
  io::TiffIndex index_;
};

void set_shape(RecordingInfo& info, io::DType dtype, std::vector<int64_t> shape) {
  info.dtype = dtype;
  info.always_bytes = dtype == io::DType::u8;
  info.layout = {"THWC", "rows of pixels, as all animations and pictures"};
  info.frames = shape[0], info.height = shape[1], info.width = shape[2], info.channels = shape[3];
  info.shape = std::move(shape);
}

std::unique_ptr<Recording> open_whole(RecordingInfo info, const RecordingOptions& o) {
  const io::Array frames = io::read_animation(info.path);
  set_shape(info, frames.dtype(), frames.shape());
  info.sequential = true;
  if (info.frames > 1) add_companion(info);
  return std::make_unique<Animation>(std::move(info), frames, o.access == Access::random ? o.cache : nullptr);
}

}  // namespace

std::unique_ptr<Recording> open_animation(const std::string& path, const RecordingOptions& options) {
  RecordingInfo info = begin_info(path, "animation", options);
  auto index = io::is_video_ending(io::reading_ending(path)) ? io::index_video(io::open_source(path)) : std::nullopt;
  if (!index) return open_whole(std::move(info), options);
  set_shape(info, io::DType::u8, {index->frames(), index->height, index->width, index->channels});
  info.sequential = true;
  add_companion(info);
  return std::make_unique<VideoRecording>(std::move(info), std::move(*index), options.cache);
}

std::unique_ptr<Recording> open_picture(const std::string& path, const RecordingOptions& options) {
  RecordingInfo info = begin_info(path, "picture", options);
  const std::string ending = io::reading_ending(path);
  if (ending != ".tif" && ending != ".tiff") return open_whole(std::move(info), options);
  io::TiffIndex index = io::index_tiff(io::open_source(path));
  set_shape(info, index.info.dtype, index.info.shape);
  if (info.frames > 1) add_companion(info);
  return std::make_unique<TiffRecording>(std::move(info), std::move(index));
}

}  // namespace convssm::data
