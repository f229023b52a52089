// By blocks of 1 MiB: a dataset may be larger than the memory. XXH64 runs at the speed of memory, so hashing never
// costs more than reading.
#include "convssm/io/checksum.h"

#include <xxhash.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "convssm/base/error.h"
#include "convssm/io/source.h"

namespace convssm::io {
namespace {

struct FreeState {
  void operator()(XXH64_state_t* state) const { XXH64_freeState(state); }
};

}  // namespace

std::string file_checksum(const std::string& path) {
  const auto source = open_source(path);
  const std::unique_ptr<XXH64_state_t, FreeState> state(XXH64_createState());
  if (!state) fail(ErrorKind::io, "no memory for the checksum of '{}'", path);
  XXH64_reset(state.get(), 0);
  std::vector<std::byte> block(1 << 20);
  for (uint64_t position = 0; position < source->size(); position += block.size()) {
    block.resize(std::min<uint64_t>(block.size(), source->size() - position));
    source->read(position, block);
    XXH64_update(state.get(), block.data(), block.size());
  }
  return fmt::format("{:016x}", XXH64_digest(state.get()));
}

}  // namespace convssm::io
