// Frames become [-1,1] as the model learned them: by the ranges of its own data, not by what the file happens to hold.
// Only what is always bytes, such as an animation, is 0 to 255 whatever the units of the data.
#include "convssm/generate/context.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <filesystem>
#include <optional>

#include "convssm/base/error.h"
#include "convssm/base/file_memory.h"
#include "convssm/data/pixels.h"
#include "convssm/data/recording.h"
#include "convssm/data/recording_files.h"

namespace convssm::generate {
namespace {

// Most videos have three channels even of a grey model, a .gif one if all of it is grey.
bool changes_colours(const data::RecordingInfo& info, int64_t channels) {
  return info.always_bytes && info.channels + channels == 4 && info.channels != channels;  // 1 and 3
}

// [K,1,H,W] from [K,3,H,W] or the other way. Error(data) if colours would be lost.
at::Tensor changed_colours(const at::Tensor& video, const std::string& path) {
  if (video.size(1) == 1) return video.expand({-1, 3, -1, -1});
  constexpr double rounding = 8 / 127.5;  // what a lossy format may make of grey
  if ((video.amax(1) - video.amin(1)).max().item<double>() > rounding) {
    fail(ErrorKind::data, "{} is in colour; the model was trained on frames of 1 channel", path);
  }
  return video.mean(1, true);
}

// Channels of other names or units are other quantities, whatever their number.
void check_names(const data::RecordingInfo& info, const data::FrameFormat& format,
                 const std::vector<std::string>& names) {
  if (info.named_channels.size() != format.channels.size()) return;
  for (size_t c = 0; c < format.channels.size(); ++c) {
    data::Channel found = info.named_channels[c];
    if (names.size() == format.channels.size()) found.name = names[c];
    const data::Channel& wanted = format.channels[c];
    if (wanted.name.empty() || (found.name == wanted.name && found.units == wanted.units)) continue;
    fail(ErrorKind::data, "{}: channel {} is {} [{}], the model takes {} [{}]", info.path, c, found.name, found.units,
         wanted.name, wanted.units);
  }
}

void check_frames(const data::RecordingInfo& info, const data::FrameFormat& format,
                  const std::vector<std::string>& names) {
  const bool changes = changes_colours(info, format.depth());
  check_names(info, format, names);
  const data::FrameFormat found(changes ? format.depth() : info.channels, info.height, info.width);
  if (found.same_size(format)) return;
  const bool other_size = found.depth() == format.depth();
  fail(ErrorKind::data, "{} holds frames of {} ({}); the model takes {}{}", info.path, found.size_text(),
       info.layout.reason, format.size_text(),
       other_size ? fmt::format(" (--size {}x{} asks for such frames, where a model can)", found.height, found.width)
                  : "");
}

struct Window {
  int64_t first, count;
};

// Of a clip of T frames.
Window window_of(const std::string& path, int64_t T, const ContextOptions& o) {
  if (o.frames < 0 && o.first != 0) {
    fail(ErrorKind::usage, "take either the last {} frames of the context or a first one, got both", -o.frames);
  }
  const int64_t first = o.frames < 0 ? T + o.frames : o.first < 0 ? T + o.first : o.first;
  const int64_t count = o.frames < 0 ? -o.frames : o.frames > 0 ? o.frames : T - first;
  if (first >= 0 && count > 0 && count <= T - first) return {first, count};
  fail(ErrorKind::data, "{} has {} frames, a context of {} from number {} on is asked for (they count from 0)", path, T,
       o.frames == 0 ? std::string("those") : std::to_string(count), first);
}

data::PixelRanges ranges_of(const data::RecordingInfo& info, const data::FrameFormat& format, bool clamp) {
  data::PixelRanges ranges{format.channels, format.clamp || clamp, format.open};
  if (info.always_bytes) ranges.channels.assign(static_cast<size_t>(info.channels), data::Channel{});
  return ranges;
}

data::RecordingOptions reading(const ContextOptions& o) {
  return {.key = o.key,
          .layout = o.layout,
          .access = data::Access::in_order,
          .actions_key = o.actions_key,
          .action_reading = o.action_reading,
          .view = o.view,
          .fields = o.fields,
          .forcings = o.forcings,
          .missing = o.missing,
          .missing_value = o.missing_value};
}

class ContextReader {
 public:
  ContextReader(const std::string& path, const data::FrameFormat& format, const ContextOptions& o)
      : path_(path), format_(format), o_(o) {}

  Context read() {
    if (!std::filesystem::is_directory(path_)) {
      add_clips(path_);
    } else {
      read_folder();
    }
    if (o_.clip >= seen_ || videos_.empty()) {
      fail(ErrorKind::data, "{} holds {} clips, number {} is asked for (they count from 0)", path_, seen_, o_.clip);
    }
    context_.clips.video = at::stack(videos_);
    if (misses_) {
      add_masks();
    }
    if (o_.intervals && uneven_) context_.clips.timing.dt = at::stack(intervals_);
    if (!actions_.empty()) {
      const int64_t K = context_.clips.frames();
      int64_t known = actions_[0].size(0);
      for (const at::Tensor& own : actions_) known = std::min(known, own.size(0));
      for (at::Tensor& own : actions_) own = own.slice(0, 0, known);
      const at::Tensor all = at::stack(actions_);
      context_.clips.actions = all.slice(1, 0, K);
      if (known > K) context_.coming = all.slice(1, K);
    }
    context_.description =
        fmt::format("{} {} of {} frames, {} ({})", videos_.size(), videos_.size() == 1 ? "clip" : "clips",
                    context_.clips.frames(), format_.size_text(), letters_);
    return std::move(context_);
  }

 private:
  void read_folder() {
    const data::FoundFiles found = data::find_recordings(path_, data::Kinds::one);
    if (found.names.empty()) data::fail_no_recordings(path_, found);
    for (const std::string& name : found.names) add_clips(data::recording_path(path_, name));
  }

  void add_video(const at::Tensor& video) {
    if (!videos_.empty() && videos_[0].size(0) != video.size(0)) {
      fail(ErrorKind::data, "the clips of {} have {} and {} frames; take as many of each by --context-frames", path_,
           videos_[0].size(0), video.size(0));
    }
    videos_.push_back(video);
  }

  void add_intervals(const data::Recording& recording, int64_t clip, const Window& window) {
    const std::vector<double> found = recording.read_intervals(clip, window.first, window.count);
    intervals_.push_back(found.empty() ? at::ones({window.count}) : at::tensor(found, at::kFloat));
    uneven_ = uneven_ || !found.empty();
  }

  // Frames of a clip with the channels of the model, [K,C,H,W].
  at::Tensor frames_of(data::Recording& recording, int64_t clip, const Window& window) {
    const data::RecordingInfo& info = recording.info();
    bytes_ += static_cast<uint64_t>(window.count) * info.frame_elements() * sizeof(float);
    require_file_memory(path_, "its frames as a context (--context-frames takes fewer)", bytes_);
    const at::Tensor video = at::empty({window.count, info.channels, info.height, info.width}, at::kFloat);
    const at::Tensor valid = at::ones(video.sizes(), at::kBool);
    recording.read_pixels(clip, window.first, window.count, ranges_of(info, given_, o_.clamp), video.data_ptr<float>(),
                          info.may_miss ? valid.data_ptr<bool>() : nullptr);
    misses_ = misses_ || info.may_miss || partial();
    valid_.push_back(whole(valid));
    return changes_colours(info, format_.depth()) ? changed_colours(video, info.path) : whole(video);
  }

  // What the model never sees need not be in the file.
  std::unique_ptr<data::Recording> open(const std::string& path) {
    data::RecordingOptions options = reading(o_);
    given_ = format_, names_ = o_.channels;
    try {
      return data::open_recording(path, options);
    } catch (const Error& error) {
      const bool by_name = std::ssize(options.fields.variables) == format_.depth();
      if (error.kind() != ErrorKind::data || !by_name || format_.seen() == format_.depth()) throw;
    }
    given_.channels.clear(), names_.clear(), options.fields.variables.clear();
    for (size_t c = 0; c < format_.channels.size(); ++c) {
      if (format_.channels[c].diagnostic) continue;
      given_.channels.push_back(format_.channels[c]);
      options.fields.variables.push_back(o_.fields.variables[c]);
      if (o_.channels.size() == format_.channels.size()) names_.push_back(o_.channels[c]);
    }
    return data::open_recording(path, options);
  }

  bool partial() const { return given_.depth() < format_.depth(); }

  // [K,C,H,W] with zeros for what is not there: fillers that were not measured.
  at::Tensor whole(const at::Tensor& given) const {
    if (!partial()) return given;
    at::Tensor all = at::zeros({given.size(0), format_.depth(), given.size(2), given.size(3)}, given.options());
    int64_t from = 0;
    for (int64_t c = 0; c < format_.depth(); ++c) {
      if (!format_.channels[static_cast<size_t>(c)].diagnostic) all.select(1, c).copy_(given.select(1, from++));
    }
    return all;
  }

  // A channel that is not there is forecast everywhere.
  void add_masks() {
    context_.clips.valid = at::stack(valid_);
    for (size_t i = 0; i < valid_.size(); ++i) {
      at::Tensor& measured = context_.places[i].measured;
      measured = valid_[i].any(0);
      for (int64_t c = 0; c < format_.depth() && partial(); ++c) {
        if (format_.channels[static_cast<size_t>(c)].diagnostic) measured[c].fill_(true);
      }
    }
  }

  void add_clips(const std::string& path) {
    const auto recording = open(path);
    const data::RecordingInfo& info = recording->info();
    check_frames(info, given_, names_);
    if (first_) {
      data::check_fit(*first_, info);
    } else {
      first_ = info;
      letters_ = info.kind == "frames" ? "a picture each" : info.layout.letters;
      context_.layout = data::usual_clip_letters(info.layout);
      context_.like_actions = info.like_actions;
    }
    for (int64_t i = 0; i < info.clips; ++i, ++seen_) {
      if (o_.clip >= 0 ? seen_ != o_.clip : info.in_time_order && i + 1 < info.clips) continue;
      const Window window = window_of(path, info.length(i), o_);
      add_video(frames_of(*recording, i, window));
      context_.places.push_back({info.axes, recording->read_times(i, window.first, window.count + o_.ahead)});
      add_intervals(*recording, i, window);
      if (!info.has_actions) continue;
      const int64_t known = info.foresees_actions ? window.count + o_.ahead : info.length(i) - window.first;
      actions_.push_back(recording->read_actions(i, window.first, known));
    }
  }

  const std::string& path_;
  const data::FrameFormat& format_;
  const ContextOptions& o_;
  Context context_;
  std::optional<data::RecordingInfo> first_;
  std::string letters_;                // for people
  std::vector<at::Tensor> videos_;     // [K,C,H,W] each
  std::vector<at::Tensor> valid_;      // which pixels were measured, as the videos
  bool misses_ = false;                // whether some may not have been
  data::FrameFormat given_;            // of the file that is read: the model's, or of what it sees alone
  std::vector<std::string> names_;     // ContextOptions::channels of these
  std::vector<at::Tensor> actions_;    // [T], [T,A] or [T,M,H,W] each, from the first frame of the context on
  std::vector<at::Tensor> intervals_;  // [K] each, before the frames of the context
  bool uneven_ = false;
  int64_t seen_ = 0;    // clips, taken or not
  uint64_t bytes_ = 0;  // of all frames
};

}  // namespace

Context read_context(const std::string& path, const data::FrameFormat& format, const ContextOptions& options) {
  return ContextReader(path, format, options).read();
}

}  // namespace convssm::generate
