// Episodes are told by a part of their paths that ends in a number and has something below it. The first one decides which
// arrays are read; the others must have them, of the same kind.
#include "convssm/data/episodes_recording.h"

#include <algorithm>
#include <cctype>
#include <map>

#include "convssm/base/error.h"
#include "convssm/base/natural_order.h"
#include "convssm/data/array_choice.h"
#include "convssm/data/gathered_frames.h"

namespace convssm::data {
namespace {

// "data/demo_3/" of "data/demo_3/obs/image"; "" if no group is numbered.
std::string episode_of(const std::string& name) {
  for (size_t slash = name.find('/'); slash != name.npos; slash = name.find('/', slash + 1)) {
    if (slash > 0 && std::isdigit(static_cast<unsigned char>(name[slash - 1]))) return name.substr(0, slash + 1);
  }
  return "";
}

struct ByNumbers {
  bool operator()(const std::string& a, const std::string& b) const { return by_numbers(a, b); }
};
using Groups = std::map<std::string, std::vector<std::string>, ByNumbers>;  // names inside of each episode

Groups groups_of(const std::vector<std::string>& names) {
  Groups groups;
  for (const std::string& name : names) {
    const std::string group = episode_of(name);
    if (!group.empty()) groups[group].push_back(name.substr(group.size()));
  }
  return groups;
}

class Episodes : public Recording {
 public:
  Episodes(RecordingInfo info, std::vector<std::string> groups, std::shared_ptr<ArrayCache> cache)
      : Recording(std::move(info), std::move(cache)), groups_(std::move(groups)) {}

 protected:
  io::Array frames(int64_t clip, int64_t first, int64_t count) override {
    const std::string key = groups_[static_cast<size_t>(clip)] + info().key;
    if (!frames_lie_whole(info().layout)) return gathered_frames(cache(), info(), key, 0, first, count);
    const uint64_t each = info().frame_elements();
    return cache().read(info().path, key, static_cast<uint64_t>(first) * each, static_cast<uint64_t>(count) * each);
  }

  ActionPlace action_place(int64_t clip) const override {
    return {info().actions_path, groups_[static_cast<size_t>(clip)] + info().actions_key};
  }

 private:
  std::vector<std::string> groups_;  // with the slash behind them
};

// What one episode is, as if it were a recording of its own.
RecordingInfo describe_episode(const RecordingInfo& start, const std::string& group,
                               const std::vector<std::string>& names) {
  const RecordingOptions& o = start.reading;
  RecordingInfo info = start;
  const ArrayChoice choice(info.path, names, group);
  info.key = choice.clips(o.key, actions_key(o));
  describe_frames(info, choice.info(info.key));
  if (info.clips != 1 || info.layout.letters.find('N') != std::string::npos) {
    fail(ErrorKind::data, "[folder] '{}': '{}{}' is an episode, one clip, but {} are several; set layout", info.path,
         group, info.key, io::shape_text(info.shape));
  }
  if (!o.actions || info.key == actions_key(o)) return info;
  if (choice.contains(actions_key(o))) {
    describe_actions(info, {info.path, group + actions_key(o)}, choice.info(actions_key(o)), frames_shape(info));
    info.actions_key = actions_key(o);
  } else {
    info.like_actions = choice.like_actions(info.key, frames_shape(info), o.action_reading);
  }
  return info;
}

// Numbers that happen to be one-hot in some of the episodes are numbers in all of them.
void agree_on_actions(std::vector<RecordingInfo>& episodes, ActionsKind kind) {
  const auto numbers =
      std::ranges::find_if(episodes, [](const RecordingInfo& e) { return e.stored_actions.values > 0; });
  if (numbers == episodes.end() || kind != ActionsKind::found) return;
  for (RecordingInfo& episode : episodes) {
    if (!episode.stored_actions.one_hot || episode.stored_actions.columns != numbers->stored_actions.columns) continue;
    episode.stored_actions.one_hot = false;
    episode.stored_actions.values = episode.action_values = episode.stored_actions.columns;
  }
}

void check_same(const RecordingInfo& first, const std::string& group, const RecordingInfo& other) {
  const auto same_actions = [&] {
    const StoredActions &a = first.stored_actions, &b = other.stored_actions;
    return first.has_actions == other.has_actions && a.columns == b.columns && a.values == b.values &&
           a.one_hot == b.one_hot && a.taken_at == b.taken_at;
  };
  if (first.dtype == other.dtype && first.channels == other.channels && first.height == other.height &&
      first.width == other.width && first.layout.letters == other.layout.letters && same_actions()) {
    return;
  }
  fail(ErrorKind::data, "[folder] '{}': all episodes must be of one kind: the first has {} {}, {}, '{}' has {} {}, {}",
       first.path, io::dtype_name(first.dtype), frame_text(first), actions_text(first), group,
       io::dtype_name(other.dtype), frame_text(other), actions_text(other));
}

}  // namespace

bool holds_episodes(const std::vector<std::string>& names) {
  if (std::ranges::find(names, "actions") != names.end()) return false;  // one episode, whatever its groups are called
  return std::ranges::any_of(names, [](const std::string& name) { return !episode_of(name).empty(); });
}

std::unique_ptr<Recording> open_episodes(const std::string& path, const std::vector<std::string>& names,
                                         const RecordingOptions& options) {
  RecordingInfo start = begin_info(path, "episodes", options);
  std::vector<RecordingInfo> episodes;
  std::vector<std::string> groups;
  for (const auto& [group, inside] : groups_of(names)) {
    episodes.push_back(describe_episode(start, group, inside));
    start.reading.key = episodes[0].key;  // of all, whatever else there is
    groups.push_back(group);
  }
  agree_on_actions(episodes, options.action_reading.kind);
  RecordingInfo info = episodes[0];
  info.clips = std::ssize(episodes);
  for (size_t i = 0; i < episodes.size(); ++i) {
    check_same(episodes[0], groups[i], episodes[i]);
    info.lengths.push_back(episodes[i].frames);
    info.frames = std::min(info.frames, episodes[i].frames);
  }
  return std::make_unique<Episodes>(std::move(info), std::move(groups), options.cache);
}

}  // namespace convssm::data
