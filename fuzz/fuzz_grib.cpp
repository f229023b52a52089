// Feeds arbitrary bytes to what finds the fields of GRIB files and looks at how they are packed, and shows nothing of them to eccodes, which
// is not made for damaged files. Nothing but an Error may come of damaged bytes: anything else stops the fuzzer.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "convssm/base/error.h"
#include "convssm/io/grib_messages.h"
#include "convssm/io/grib_packing.h"

namespace {

void read_everything(const convssm::io::Source& source) {
  using namespace convssm::io;
  for_each_grib_field(source, [&](const GribField& field, const GribHeader& header) {
    if (!header.message.starts_with("GRIB") || !header.message.ends_with("7777")) std::abort();
    check_grib_packing(source.name(), field.offset, grib_message(source, field));
  });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    read_everything(*convssm::io::memory_source("fuzz", std::as_bytes(std::span(data, size))));
  } catch (const convssm::Error&) {
  }
  return 0;
}
