// Read until the end and not by the file's size, so that files of /proc and pipes, which report a size of 0, work too.
#include "convssm/base/read_file.h"

#include <fstream>
#include <vector>

namespace convssm {

std::optional<std::string> read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::string bytes;
  std::vector<char> block(1 << 16);
  while (in) {
    in.read(block.data(), static_cast<std::streamsize>(block.size()));
    bytes.append(block.data(), static_cast<size_t>(in.gcount()));
  }
  if (!in.eof() || in.bad()) return std::nullopt;  // not opened, or an error on the way
  return bytes;
}

}  // namespace convssm
