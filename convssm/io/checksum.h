// Fast checksums (XXH64) that tell whether a file changed: checkpoints, datasets. Not against forgery.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace convssm::io {

// Of bytes that come one part after the other.
class Checksum {
 public:
  Checksum();
  ~Checksum();
  Checksum(const Checksum&) = delete;
  Checksum& operator=(const Checksum&) = delete;

  void add(std::span<const std::byte> bytes);
  std::string text() const;  // 16 hexadecimal digits

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// The file is read block by block; Error(io) if it cannot be read.
std::string file_checksum(const std::string& path);

}  // namespace convssm::io
