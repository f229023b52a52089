// In lower case, so that CLIP.PNG is read like clip.png. Only ASCII letters are folded (under the "C" locale, which no
// program changes here).
#include "convssm/base/file_ending.h"

#include <algorithm>
#include <cctype>
#include <filesystem>

namespace convssm {

std::string file_ending(const std::string& path) {
  std::string ending = std::filesystem::path(path).extension().string();
  std::ranges::transform(ending, ending.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return ending;
}

}  // namespace convssm
