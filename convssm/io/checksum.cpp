// By blocks of 1 MiB: a dataset may be larger than the memory. XXH64 runs at the speed of memory, so hashing never
// costs more than reading.
#include "convssm/io/checksum.h"

#include <xxhash.h>

#include <algorithm>
#include <vector>

#include "convssm/base/error.h"
#include "convssm/io/source.h"

namespace convssm::io {

struct Checksum::State {
  XXH64_state_t* hash = XXH64_createState();
  ~State() { XXH64_freeState(hash); }
};

Checksum::Checksum() : state_(std::make_unique<State>()) {
  if (state_->hash == nullptr) fail(ErrorKind::io, "no memory for a checksum");
  XXH64_reset(state_->hash, 0);
}

Checksum::~Checksum() = default;

void Checksum::add(std::span<const std::byte> bytes) { XXH64_update(state_->hash, bytes.data(), bytes.size()); }

std::string Checksum::text() const { return fmt::format("{:016x}", XXH64_digest(state_->hash)); }

std::string file_checksum(const std::string& path) {
  const auto source = open_source(path);
  Checksum sum;
  for_each_block(*source, 0, [&](std::span<const std::byte> block) { sum.add(block); });
  return sum.text();
}

}  // namespace convssm::io
