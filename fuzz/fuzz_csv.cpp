// Feeds arbitrary bytes to the reader of tables. What it accepts has as many numbers as it says, and nothing but an Error
// may come of the rest: anything else stops the fuzzer.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "convssm/base/error.h"
#include "convssm/io/csv.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const convssm::io::CsvTable table =
        convssm::io::parse_csv(std::string_view(reinterpret_cast<const char*>(data), size), "fuzz");
    if (table.rows < 1 || table.width < 1) std::abort();
    if (table.values.size() != static_cast<size_t>(table.rows * table.width)) std::abort();
    if (!table.names.empty() && table.names.size() != static_cast<size_t>(table.width)) std::abort();
  } catch (const convssm::Error& error) {
    if (error.kind() != convssm::ErrorKind::data) std::abort();
  }
  return 0;
}
