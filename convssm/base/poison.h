// Marks for AddressSanitizer: memory that nobody may touch although it was not freed, as parts of an arena that are not in
// use. Touching it then ends the program with a report; touch() does so for code that the sanitizer does not see, as that of
// oneDNN. In builds without the sanitizer these functions are nothing.
#pragma once

#include <cstddef>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define CONVSSM_POISONS_MEMORY 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define CONVSSM_POISONS_MEMORY 1
#endif

#ifdef CONVSSM_POISONS_MEMORY
#include <sanitizer/asan_interface.h>
#endif

namespace convssm {

#ifdef CONVSSM_POISONS_MEMORY
constexpr bool poisons_memory = true;
inline void poison(const void* begin, size_t bytes) { __asan_poison_memory_region(begin, bytes); }
inline void unpoison(const void* begin, size_t bytes) { __asan_unpoison_memory_region(begin, bytes); }
inline void touch(const void* begin, size_t bytes) {
  const void* first = __asan_region_is_poisoned(const_cast<void*>(begin), bytes);
  if (first != nullptr) static_cast<void>(*static_cast<const volatile char*>(first));
}
#else
constexpr bool poisons_memory = false;
inline void poison(const void*, size_t) {}
inline void unpoison(const void*, size_t) {}
inline void touch(const void*, size_t) {}
#endif

}  // namespace convssm
