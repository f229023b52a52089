// Files of episodes, each in a group of its own, as Minari and robot datasets have them: episode_0/observations,
// episode_0/actions, episode_1/... An episode is a clip; they may differ in length. `key` and `actions_key` name the arrays
// inside of a group ("observations/image").
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "convssm/data/recording.h"

namespace convssm::data {

// Whether these arrays of a file lie in groups that are numbered.
bool holds_episodes(const std::vector<std::string>& names);

std::unique_ptr<Recording> open_episodes(const std::string& path, const std::vector<std::string>& names,
                                         const RecordingOptions& options);

}  // namespace convssm::data
