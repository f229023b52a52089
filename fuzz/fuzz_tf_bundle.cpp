// Feeds arbitrary bytes to the reader of TensorFlow bundles and reads every tensor of what it accepts: as an index file,
// and as the content of a block in a valid table, because a changed byte seldom passes a checksum. Nothing but an Error
// may come of damaged bytes: anything else stops the fuzzer.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "../tests/io/table_parts.h"
#include "convssm/base/error.h"
#include "convssm/io/tf_bundle.h"

namespace {

using namespace convssm::io;

void read_everything(const std::string& index) {
  static const std::string data(64, '\0');
  const TfBundle bundle(memory_source("fuzz", std::as_bytes(std::span(index))),
                        memory_source("data", std::as_bytes(std::span(data))));
  for (const std::string& name : bundle.names()) {
    try {
      bundle.read(name);
    } catch (const convssm::Error&) {  // the next tensor may be read all the same
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  for (const std::string& index : {bytes, join_table({with_trailer(bytes)}, {"z"})}) {
    try {
      read_everything(index);
    } catch (const convssm::Error&) {
    }
  }
  return 0;
}
