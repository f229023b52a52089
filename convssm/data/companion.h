// Files of actions that stand beside recordings which cannot hold any: clip.npz, clip.npy or clip.csv beside clip.mp4, clip.tif or
// beside a folder `clip` of frames, or `actions` with one of these endings inside of that folder.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "convssm/data/recording.h"

namespace convssm::data {

struct Companion {
  Companion(ActionPlace where, io::ArrayInfo what) : place(std::move(where)), array(std::move(what)) {}
  ActionPlace place;
  io::ArrayInfo array;
};

// The first that is there; of an .npz file the array of the options' key must be in it.
std::optional<Companion> find_companion(const std::string& recording, const RecordingOptions& options);

// Adds the actions of a companion to the info of one clip. Error(data) if they do not fit, or there are none though the
// options ask for them.
void add_companion(RecordingInfo& info);

// Which of the names of files below a folder are companions: those that belong to an animation or a folder of pictures and
// hold nothing that could be clips themselves. One that cannot be read is taken for what the others of its kind are.
std::set<std::string> companions_of(const std::string& folder, const std::vector<std::string>& names,
                                    const std::set<std::string>& animations,
                                    const std::set<std::string>& picture_folders);

}  // namespace convssm::data
