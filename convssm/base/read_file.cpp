#include "convssm/base/read_file.h"

#include <fstream>
#include <iterator>

namespace convssm {

std::optional<std::string> read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return std::nullopt;
  return std::string(std::istreambuf_iterator<char>(in), {});
}

}  // namespace convssm
