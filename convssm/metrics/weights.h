// The pretrained weights that some metrics need: which there are, where they are looked for, and how to get them.
//   WeightFolder weights;   I3d i3d(weights.existing("i3d"));
// One folder holds them all: the one that is given, else $CONVSSM_WEIGHTS, else $XDG_DATA_HOME/convssm/weights, which
// by default is ~/.local/share/convssm/weights.
#pragma once

#include <string>
#include <vector>

namespace convssm::metrics {

struct WeightInfo {
  std::string name;                // in commands and messages
  std::string file;                // in the folder
  std::string what;                // one line
  std::vector<std::string> steps;  // how to get it, one command each
};

const std::vector<WeightInfo>& all_weights();

// Error(usage) that names the nearest if there is none of this name.
const WeightInfo& find_weights(const std::string& name);

class WeightFolder {
 public:
  explicit WeightFolder(const std::string& folder = "");

  const std::string& folder() const { return folder_; }
  std::string path(const std::string& name) const;  // of the file, whether it is there or not
  bool has(const std::string& name) const;

  // The path of a file that is there; Error(data) with the steps to get it if it is not.
  std::string existing(const std::string& name) const;

  // 16 hexadecimal digits (XXH64), as it stands beside scores.
  std::string checksum(const std::string& name) const;

  // "squeezenet is missing in FOLDER; to get it:\n  ..."
  std::string missing_text(const std::string& name) const;

 private:
  std::string folder_;
};

}  // namespace convssm::metrics
