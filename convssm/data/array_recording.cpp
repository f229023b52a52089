// Random access opens the file for each read: a folder has more files than a process may have open. In order, one stream
// reads a compressed array from its first element to its last, so that it never stands in memory whole; others are read
// at random all the same, because what is left out costs nothing there.
#include "convssm/data/array_recording.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

#include "convssm/base/error.h"
#include "convssm/data/actions.h"
#include "convssm/io/array_file.h"
#include "convssm/io/array_stream.h"
#include "convssm/io/text.h"

namespace convssm::data {
namespace {

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::ranges::find(names, name) != names.end();
}

std::string find_key(const std::string& path, const std::vector<std::string>& names, const std::string& wanted,
                     const std::string& actions_key) {
  if (names == std::vector<std::string>{""}) return "";  // a .npy file has no keys
  if (!wanted.empty()) {
    if (!contains(names, wanted)) io::fail_missing(path, wanted, names);
    return wanted;
  }
  for (const char* usual : {"data", "video"}) {
    if (contains(names, usual)) return usual;
  }
  std::vector<std::string> candidates, shown;
  for (const std::string& name : names) {
    if (name != actions_key && io::ArrayFile(path, name).info().shape.size() >= 3) candidates.push_back(name);
    if (shown.size() < 10) shown.push_back(io::in_quotes(name));
  }
  if (candidates.size() == 1) return candidates[0];
  fail(ErrorKind::data,
       "[folder] '{}': {} of its arrays could be the clips ({}); name one with data.key, "
       "or --truth-key and --forecast-key of compare",
       path, candidates.size(), fmt::join(shown, ", "));
}

std::vector<int64_t> frames_shape(const RecordingInfo& info) {
  return info.layout.letters[0] == 'N' ? std::vector{info.clips, info.frames} : std::vector{info.frames};
}

void describe_actions(RecordingInfo& info) {
  const io::ArrayInfo found = io::ArrayFile(info.path, info.actions_key).info();
  const std::vector<int64_t> frames = frames_shape(info);
  const auto values = action_values(found, frames);
  if (!values) {
    fail(ErrorKind::data, "[folder] '{}': actions must be {}, found {} {}", info.path, expected_actions(frames),
         io::dtype_name(found.dtype), io::shape_text(found.shape));
  }
  info.has_actions = true;
  info.action_values = *values;
}

void find_like_actions(RecordingInfo& info, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    if (name != info.key && action_values(io::ArrayFile(info.path, name).info(), frames_shape(info))) {
      info.like_actions.push_back(name);
    }
  }
}

RecordingInfo describe(const std::string& path, const RecordingOptions& o) {
  const auto names = io::array_names(path);
  if (names.empty()) fail(ErrorKind::data, "[folder] '{}' holds no arrays", path);
  RecordingInfo info{.path = path, .name = o.name.empty() ? path : o.name, .kind = "array"};
  const std::string actions_key = o.actions_key.empty() ? "actions" : o.actions_key;
  info.key = find_key(path, names, o.key, actions_key);
  const io::ArrayInfo array = io::ArrayFile(path, info.key).info();
  info.dtype = array.dtype, info.shape = array.shape;
  if (info.dtype == io::DType::c64 || info.dtype == io::DType::c128) {
    fail(ErrorKind::data, "[folder] '{}': pixels must be real numbers, found {}", path, io::dtype_name(info.dtype));
  }
  info.layout = choose_layout(path, info.shape, o.layout);
  const auto size = [&info](char letter) { return extent(info.layout, info.shape, letter); };
  info.clips = size('N'), info.frames = size('T'), info.channels = size('C');
  info.height = size('H'), info.width = size('W');
  info.actions_key = actions_key;
  if (!o.actions || info.key == actions_key) return info;
  contains(names, actions_key) ? describe_actions(info) : find_like_actions(info, names);
  return info;
}

class ArrayRecording : public Recording {
 public:
  ArrayRecording(RecordingInfo about, std::shared_ptr<ArrayCache> cache)
      : Recording(std::move(about)), cache_(std::move(cache)) {}

 protected:
  io::Array frames(int64_t first, int64_t count) override { return read_chunk(info().key, first, count, frame()); }

  io::Array actions(int64_t first, int64_t count) override {
    return read_chunk(info().actions_key, first, count,
                      static_cast<uint64_t>(std::max<int64_t>(1, info().action_values)));
  }

  uint64_t frame() const { return info().frame_elements(); }

 private:
  io::Array read_chunk(const std::string& key, int64_t first, int64_t count, uint64_t each) {
    return cache_->read(info().path, key, static_cast<uint64_t>(first) * each, static_cast<uint64_t>(count) * each);
  }

  std::shared_ptr<ArrayCache> cache_;
};

class ArrayInOrder : public ArrayRecording {
 public:
  using ArrayRecording::ArrayRecording;

 protected:
  io::Array frames(int64_t first, int64_t count) override {
    if (!stream_) stream_.emplace(info().path, info().key);
    if (first < next_) {
      fail(ErrorKind::usage, "[recording] '{}' is read in order: frame {} after frame {}", info().path, first, next_);
    }
    for (; next_ < first; ++next_) stream_->next(frame());
    next_ = first + count;
    return stream_->next(static_cast<uint64_t>(count) * frame());
  }

 private:
  std::optional<io::ArrayStream> stream_;
  int64_t next_ = 0;
};

}  // namespace

std::unique_ptr<Recording> open_array_recording(const std::string& path, const RecordingOptions& options) {
  RecordingInfo info = describe(path, options);
  auto cache = options.cache ? options.cache : std::make_shared<ArrayCache>(0);
  if (options.access == Access::in_order && io::ArrayFile(path, info.key).whole_only()) {
    return std::make_unique<ArrayInOrder>(std::move(info), std::move(cache));
  }
  return std::make_unique<ArrayRecording>(std::move(info), std::move(cache));
}

}  // namespace convssm::data
