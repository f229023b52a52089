// Which array of a file holds the frames, and what it and the actions beside it say about a recording. For recordings that
// are made of arrays.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "convssm/data/recording.h"

namespace convssm::data {

class ArrayChoice {
 public:
  // `names` of arrays in the file, each of which stands for `prefix` + name in it.
  ArrayChoice(std::string path, std::vector<std::string> names, std::string prefix = "");

  bool contains(const std::string& name) const;
  io::ArrayInfo info(const std::string& name) const;

  // Those that could be the actions of frames, but for `clips`.
  std::vector<std::string> like_actions(const std::string& clips, std::span<const int64_t> frames,
                                        const ActionReading& reading) const;

  // `wanted`, or one of the usual names, or the only array that could be clips and is not the actions. Error(data) that
  // tells what there is.
  std::string clips(const std::string& wanted, const std::string& actions_key) const;

 private:
  std::optional<io::ArrayInfo> info_if_readable(const std::string& name) const;

  std::string path_;
  std::vector<std::string> names_;
  std::string prefix_;
};

// "actions" unless the options say otherwise.
std::string actions_key(const RecordingOptions& options);

// Whether an array of this key holds codes.
bool reads_codes(const std::string& key, Content content);

// Type, shape, layout and sizes of the frames in the array of info.key. Error(data) that names the file if they are not
// frames.
void describe_frames(RecordingInfo& info, const io::ArrayInfo& array);

// The shape of actions, but for their numbers: [T] or [N,T].
std::vector<int64_t> frames_shape(const RecordingInfo& info);

// Where the actions are and what they are, found in the array at `place`; its rows are read if only they tell. Error(data)
// that tells what is expected, as info.reading says, if it does not hold one for each of `frames`.
void describe_actions(RecordingInfo& info, const ActionPlace& place, const io::ArrayInfo& array,
                      std::span<const int64_t> frames);

}  // namespace convssm::data
