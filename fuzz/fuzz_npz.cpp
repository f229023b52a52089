// Feeds arbitrary bytes to the npz reader and reads every array of what it accepts. Nothing but an Error may come of
// damaged bytes: anything else stops the fuzzer.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "convssm/base/error.h"
#include "convssm/io/npz.h"

namespace {

void read_everything(std::shared_ptr<const convssm::io::Source> source) {
  using namespace convssm::io;
  const NpzFile file(std::move(source));
  for (const std::string& name : file.names()) {
    try {
      file.read(name);
    } catch (const convssm::Error&) {  // the next member may be read all the same
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    read_everything(convssm::io::memory_source("fuzz", std::as_bytes(std::span(data, size))));
  } catch (const convssm::Error&) {
  }
  return 0;
}
