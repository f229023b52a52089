// Bounds of options that say how often something is built, or how large it is: a wrong number there would be a long wait
// or all of the memory, not an error.
#pragma once

#include <cstdint>

namespace convssm {

inline constexpr int64_t most_layers = 1000;  // of a core; blocks of a coder
inline constexpr int64_t most_kernel = 1023;  // rows of a kernel

// Error(usage) unless least <= value <= most: require_between("ConvS5", "layers", layers, 1, most_layers)
void require_between(const char* owner, const char* name, int64_t value, int64_t least, int64_t most);

}  // namespace convssm
