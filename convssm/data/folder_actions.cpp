// Actions are few numbers: those of all files are read when a folder is opened, so that a training of days does not end at a
// bad one.
#include "convssm/data/folder_actions.h"

#include <ATen/ATen.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "convssm/base/error.h"

namespace convssm::data {
namespace {

// One clip. A first action that nobody can know is not counted as masked.
class ClipActions {
 public:
  ClipActions(const RecordingInfo& info, int64_t clip, at::Tensor actions)
      : info_(info), clip_(clip), actions_(std::move(actions)) {}

  int64_t size() const { return actions_.size(0); }
  int64_t whole(int64_t t) const { return actions_.data_ptr<int64_t>()[t]; }

  bool is_masked(int64_t t) const {
    if (info_.action_values == 0) return whole(t) < 0;
    const float* row = actions_.data_ptr<float>() + t * info_.action_values;
    return std::any_of(row, row + info_.action_values, [](float x) { return std::isnan(x); });
  }
  bool is_unknown(int64_t t) const { return t == 0 && info_.stored_actions.taken_at; }

  [[noreturn]] void fail_masked(int64_t t) const {
    fail(
        ErrorKind::data,
        "[folder] '{}' clip {}: the action of frame {} is {}; masked_actions: allow takes it for one that is not known",
        info_.actions_path, clip_, t, info_.action_values == 0 ? fmt::format("{}", whole(t)) : "NaN");
  }
  [[noreturn]] void fail_range(int64_t t, int64_t count) const {
    fail(
        ErrorKind::data,
        "[folder] '{}' clip {}: the action of frame {} is {}; data.action_count={} allows 0 to {}, and numbers below 0 "
        "for one that is not known",
        info_.actions_path, clip_, t, whole(t), count, count - 1);
  }

 private:
  const RecordingInfo& info_;
  int64_t clip_;
  at::Tensor actions_;
};

std::string stride_text(const FrameView& view) {
  return fmt::format("of {} frames one is taken, with {}", view.stride,
                     view.stride_actions == StrideActions::sum ? "the sum of the actions on the way to it"
                                                               : "the last of the actions on the way to it");
}

}  // namespace

void look_at_actions(Recording& file, const FolderOptions& o, ActionsSeen& seen) {
  const RecordingInfo& info = file.info();
  if (!info.has_actions || info.action_maps > 0) return;  // maps are made, not read
  for (int64_t clip = 0; clip < info.clips; ++clip) {
    const ClipActions actions(info, clip, file.read_actions(clip, 0, info.length(clip)).contiguous());
    for (int64_t t = 0; t < actions.size(); ++t) {
      if (actions.is_masked(t)) {
        const bool allowed = o.masked_actions.value_or(info.action_values == 0);
        if (!allowed && !actions.is_unknown(t)) actions.fail_masked(t);
        seen.masked += !actions.is_unknown(t);
      } else if (info.action_values == 0) {
        if (o.action_count > 0 && actions.whole(t) >= o.action_count) actions.fail_range(t, o.action_count);
        seen.count = std::max(seen.count, actions.whole(t) + 1);
      }
    }
    seen.actions += actions.size();
  }
}

ActionFormat describe_actions(const std::vector<RecordingInfo>& files, const FolderOptions& o, const ActionsSeen& seen,
                              std::vector<std::string>& notes) {
  const RecordingInfo& first = files[0];
  const StoredActions& stored = first.stored_actions;
  ActionFormat format;
  if (!first.has_actions) {
    if (!first.like_actions.empty()) {
      notes.push_back(
          fmt::format("no actions: there is no array 'actions'; if '{}' holds them, set data.actions_key={}",
                      first.like_actions[0], first.like_actions[0]));
    }
    return format;
  }
  format.values = first.action_values, format.maps = first.action_maps;
  if (format.maps > 0) {
    notes.push_back(fmt::format("known in advance of each frame: {}, {} map{}", fmt::join(o.reading.forcings, ", "),
                                format.maps, format.maps == 1 ? "" : "s"));
    return format;
  }
  if (format.values > 0) {
    notes.push_back(fmt::format("actions of {} number{} each, action k leads to frame k", format.values,
                                format.values == 1 ? "" : "s"));
  } else {
    format.count = std::max({o.action_count, seen.count, stored.one_hot ? stored.columns : 0});
    notes.push_back(fmt::format("{} different actions, action k leads to frame k", format.count));
  }
  if (stored.one_hot) {
    notes.push_back(fmt::format("actions are one-hot rows of {}: the place of the 1 is read", stored.columns));
  }
  if (std::ranges::any_of(files, [](const RecordingInfo& file) { return file.stored_actions.taken_at; })) {
    const bool by_count = o.reading.action_reading.align == ActionsAlign::by_count;
    notes.push_back(
        fmt::format("{} was taken at frame k and led to frame k+1: actions are moved by one, that of "
                    "frame 0 is masked",
                    by_count ? "there is one action less than frames, so action k" : "action k of the files"));
  }
  if (o.reading.view.stride > 1) notes.push_back(stride_text(o.reading.view));
  if (seen.masked > 0) notes.push_back(fmt::format("{} of {} actions are masked", seen.masked, seen.actions));
  return format;
}

}  // namespace convssm::data
