// Atomic, because the loader's threads read files while a program may still be setting the limit.
#include "convssm/base/file_memory.h"

#include <atomic>

#include "convssm/base/error.h"
#include "convssm/base/memory.h"

namespace convssm {
namespace {

std::atomic<uint64_t> limit_of_files{default_file_memory};

}  // namespace

uint64_t file_memory_limit() { return limit_of_files; }

void set_file_memory_limit(uint64_t bytes) { limit_of_files = bytes; }

void require_file_memory(const std::string& name, const char* what, uint64_t bytes, uint64_t times) {
  const uint64_t limit = file_memory_limit();
  if (bytes <= limit / times) return;
  const uint64_t needed = bytes > UINT64_MAX / times ? UINT64_MAX : bytes * times;
  fail(ErrorKind::data,
       "{}: {} may take {} of memory, one file may take {}; if you trust the file, raise the limit with --file-memory "
       "(in C++: set_file_memory_limit)",
       name, what, format_bytes(needed), format_bytes(limit));
}

}  // namespace convssm
