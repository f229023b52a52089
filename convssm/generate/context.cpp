#include "convssm/generate/context.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <optional>

#include "convssm/base/error.h"
#include "convssm/base/file_ending.h"
#include "convssm/data/clip_file.h"
#include "convssm/data/pixels.h"
#include "convssm/io/array_file.h"
#include "convssm/io/tensor.h"
#include "convssm/io/video_writer.h"

namespace convssm::generate {
namespace {

bool is_animation(const std::string& path) {
  const std::string ending = file_ending(path);
  return ending == ".gif" || ending == ".mp4";
}

void check_frames(const data::ClipFile& file, const data::FrameFormat& format) {
  const bool same = file.channels == format.channels && file.height == format.height && file.width == format.width;
  if (same) return;
  fail(ErrorKind::data, "{} holds frames of {} x {} with {} channels ({}); the model was trained on {} x {} with {}",
       file.path, file.height, file.width, file.channels, file.layout.reason, format.height, format.width,
       format.channels);
}

void check_amount(const data::ClipFile& file, const ContextOptions& o) {
  if (o.frames < 0) fail(ErrorKind::usage, "the context must have a positive number of frames, got {}", o.frames);
  if (file.frames < std::max<int64_t>(o.frames, 1)) {
    fail(ErrorKind::data, "{} has {} frames, a context of {} is asked for", file.path, file.frames,
         std::max<int64_t>(o.frames, 1));
  }
  if (o.clip < file.clips) return;
  fail(ErrorKind::data, "{} holds {} clips, number {} is asked for (they count from 0)", file.path, file.clips, o.clip);
}

}  // namespace

Context read_context(const std::string& path, const data::FrameFormat& format, const ContextOptions& o) {
  const bool animated = is_animation(path);
  const io::Array animation = animated ? io::read_video(path) : io::Array();
  const data::ClipFile file =
      animated ? data::describe_animation(path, animation) : data::describe_clip_file(path, path, o.key, o.layout);
  check_frames(file, format);
  check_amount(file, o);

  const int64_t K = o.frames > 0 ? o.frames : file.frames, first = o.clip < 0 ? 0 : o.clip;
  const int64_t N = o.clip < 0 ? file.clips : 1;
  const uint64_t size = static_cast<uint64_t>(K) * file.frame_elements();
  Context context;
  context.video = at::empty({N, K, file.channels, file.height, file.width}, at::kFloat);
  const data::PixelRange range = animated ? data::PixelRange{} : data::PixelRange{format.low, format.high, false};
  std::optional<io::ArrayFile> array;
  if (!animated) array.emplace(path, file.key);
  for (int64_t i = 0; i < N; ++i) {
    const auto begin = static_cast<uint64_t>((first + i) * file.frames) * file.frame_elements();
    io::Array part(io::DType::u8, {static_cast<int64_t>(size)});
    if (animated) {
      std::copy_n(animation.bytes().begin(), size, part.bytes().begin());
    } else {
      part = array->read(begin, size);
    }
    data::to_pixels(file, first + i, 0, part, range, context.video[i].data_ptr<float>());
  }
  if (file.has_actions) {
    const at::Tensor all = io::to_tensor(io::ArrayFile(path, "actions").read()).to(at::kLong).view({file.clips, -1});
    context.actions = all.slice(0, first, first + N);
  }
  context.description = fmt::format("{} {} of {} frames, {} x {} with {} channels ({})", N, N == 1 ? "clip" : "clips",
                                    K, file.height, file.width, file.channels, file.layout.letters);
  return context;
}

}  // namespace convssm::generate
