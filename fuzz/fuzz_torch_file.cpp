// Feeds arbitrary bytes to the reader of PyTorch files and reads every tensor of what it accepts: as a file, and as the
// pickle in a valid archive, because a changed byte seldom passes a checksum. Nothing but an Error may come of damaged
// bytes: anything else stops the fuzzer.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "../tests/io/pickle_parts.h"
#include "convssm/base/error.h"
#include "convssm/io/torch_file.h"

namespace {

using namespace convssm::io;

void read_everything(const std::string& bytes) {
  const TorchFile file(memory_source("fuzz", std::as_bytes(std::span(bytes))));
  for (const std::string& name : file.names()) {
    try {
      file.read(name);
    } catch (const convssm::Error&) {  // the next tensor may be read all the same
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  for (const std::string& file : {bytes, torch_zip(bytes)}) {
    try {
      read_everything(file);
    } catch (const convssm::Error&) {
    }
  }
  return 0;
}
