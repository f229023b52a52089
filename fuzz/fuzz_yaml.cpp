// Feeds arbitrary bytes to the YAML reader; what it accepts must survive being written and read again. Nothing but an
// Error may come of damaged bytes: anything else stops the fuzzer.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "convssm/base/error.h"
#include "convssm/io/yaml.h"

namespace {

void read_twice(const std::string& text) {
  using namespace convssm::io;
  const nlohmann::json value = parse_yaml(text, "fuzz");
  std::string written;
  try {
    written = to_yaml(value);
  } catch (const convssm::Error&) {
    return;  // a key that is too long
  }
  const nlohmann::json again = parse_yaml(written, "written");
  if (again.dump() != value.dump()) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    read_twice(std::string(reinterpret_cast<const char*>(data), size));
  } catch (const convssm::Error& error) {
    if (std::string(error.what()).find("written: ") == 0) std::abort();
  }
  return 0;
}
