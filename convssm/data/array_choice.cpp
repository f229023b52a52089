// The rules by which arrays are told apart. What cannot be told is asked for, with the names that are there.
#include "convssm/data/array_choice.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "convssm/base/error.h"
#include "convssm/io/array_file.h"
#include "convssm/io/text.h"

namespace convssm::data {
namespace {

// The names that projects give to frames.
constexpr const char* usual_keys[] = {"data", "video", "image", "images", "frames", "observations", "codes"};

std::string count_advice(const io::ArrayInfo& found, std::span<const int64_t> frames, const ActionReading& reading) {
  const size_t dims = frames.size();
  if (found.shape.size() >= dims && found.shape[dims - 1] + 1 == frames.back() &&
      reading.align == ActionsAlign::leads_to) {
    return "; one less than there are frames is for actions_align: taken_at";
  }
  if (found.shape.size() == dims && io::is_float(found.dtype)) return "; actions_kind: values takes floats without A";
  if (found.shape.size() == dims + 1 && !io::is_float(found.dtype)) {
    return "; actions_kind: values takes rows of whole numbers";
  }
  return "";
}

}  // namespace

ArrayChoice::ArrayChoice(std::string path, std::vector<std::string> names, std::string prefix)
    : path_(std::move(path)), names_(std::move(names)), prefix_(std::move(prefix)) {}

bool ArrayChoice::contains(const std::string& name) const { return std::ranges::find(names_, name) != names_.end(); }

io::ArrayInfo ArrayChoice::info(const std::string& name) const { return io::ArrayFile(path_, prefix_ + name).info(); }

std::optional<io::ArrayInfo> ArrayChoice::info_if_readable(const std::string& name) const {
  try {
    return info(name);
  } catch (const Error&) {
    return std::nullopt;  // nobody asked for it
  }
}

std::vector<std::string> ArrayChoice::like_actions(const std::string& clips, std::span<const int64_t> frames,
                                                   const ActionReading& reading) const {
  std::vector<std::string> found;
  for (const std::string& name : names_) {
    const auto array = name == clips ? std::nullopt : info_if_readable(name);
    if (array && recognize_actions(*array, frames, reading)) found.push_back(name);
  }
  return found;
}

std::string ArrayChoice::clips(const std::string& wanted, const std::string& actions_key) const {
  if (names_ == std::vector<std::string>{""}) return "";  // a .npy file has no keys
  if (!wanted.empty()) {
    const std::string where = prefix_.empty() ? path_ : fmt::format("{}, {}", path_, io::in_quotes(prefix_));
    if (!contains(wanted)) io::fail_missing(where, wanted, names_);
    return wanted;
  }
  for (const char* usual : usual_keys) {
    if (contains(usual)) return usual;
  }
  std::vector<std::string> candidates, shown;
  for (const std::string& name : names_) {
    const auto array = name == actions_key ? std::nullopt : info_if_readable(name);
    if (array && array->shape.size() >= 3) candidates.push_back(name);
    if (shown.size() < 10) shown.push_back(io::in_quotes(name));
  }
  if (candidates.size() == 1) return candidates[0];
  fail(ErrorKind::data,
       "[folder] '{}': {} of its arrays could be the clips ({}); name one with data.key, "
       "or --truth-key and --forecast-key of compare",
       path_, candidates.size(), fmt::join(shown, ", "));
}

std::string actions_key(const RecordingOptions& options) {
  return options.actions_key.empty() ? "actions" : options.actions_key;
}

bool reads_codes(const std::string& key, Content content) {
  return content == Content::codes || (content == Content::found && key == "codes");
}

void describe_frames(RecordingInfo& info, const io::ArrayInfo& array) {
  info.dtype = array.dtype, info.shape = array.shape;
  if (info.dtype == io::DType::c64 || info.dtype == io::DType::c128) {
    fail(ErrorKind::data, "[folder] '{}': pixels must be real numbers, found {}", info.path,
         io::dtype_name(info.dtype));
  }
  std::string layout = info.reading.layout;
  if (layout.empty() && reads_codes(info.key, info.reading.content)) layout = info.shape.size() == 4 ? "NTHW" : "THW";
  info.layout = choose_layout(info.path, info.shape, layout);
  const auto size = [&info](char letter) { return extent(info.layout, info.shape, letter); };
  info.clips = size('N'), info.frames = size('T'), info.channels = size('C');
  info.height = size('H'), info.width = size('W');
}

std::vector<int64_t> frames_shape(const RecordingInfo& info) {
  return info.layout.letters.find('N') != std::string::npos ? std::vector{info.clips, info.frames}
                                                            : std::vector{info.frames};
}

void describe_actions(RecordingInfo& info, const ActionPlace& place, const io::ArrayInfo& array,
                      std::span<const int64_t> frames) {
  auto found = recognize_actions(array, frames, info.reading.action_reading);
  if (!found) {
    fail(ErrorKind::data, "[folder] '{}': actions must be {}, found {} {}{}", place.path, expected_actions(frames),
         io::dtype_name(array.dtype), io::shape_text(array.shape),
         count_advice(array, frames, info.reading.action_reading));
  }
  const bool may_be = info.reading.action_reading.kind == ActionsKind::found && found->values > 1;
  if (found->one_hot || may_be) {
    ArrayCache nothing(0);
    int64_t clips = 1;
    for (const int64_t size : frames.first(frames.size() - 1)) clips *= size;
    bool one_hot = true;
    for (int64_t clip = 0; clip < clips && one_hot; ++clip) {
      const ActionPlace at{place.path, place.key, place.first + clip * found->rows};
      one_hot = is_one_hot(read_action_rows(nothing, at, found->columns, 0, found->rows), found->columns);
    }
    if (found->one_hot && !one_hot) {
      fail(ErrorKind::data,
           "[folder] '{}': actions {} {} are not one-hot: a row must have a single 1 and zeros; actions_kind: values "
           "takes "
           "them as numbers",
           place.path, io::dtype_name(array.dtype), io::shape_text(array.shape));
    }
    if (one_hot) found->one_hot = true, found->values = 0;
  }
  info.has_actions = true;
  info.actions_path = place.path, info.actions_key = place.key;
  info.stored_actions = *found;
  info.action_values = found->values;
}

}  // namespace convssm::data
