#include "convssm/run/data_memory.h"

#include "convssm/base/memory.h"
#include "convssm/data/file_check.h"

namespace convssm::run {
namespace {

// What was freed is not counted, or the next to open files would seem to need nothing.
uint64_t resident() {
  return_free_memory();
  return current_rss();
}

}  // namespace

DataMemory::DataMemory() : before_(resident()) {}

uint64_t DataMemory::held() const {
  const uint64_t now = resident();
  const uint64_t opening = now > before_ ? now - before_ : 0;
  return now + 2 * opening + data::FileCheck::buffers;
}

}  // namespace convssm::run
