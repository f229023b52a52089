// The instruction set that the kernels run with, chosen at run time by Highway.
#pragma once

#include <string>
#include <vector>

namespace convssm::ops {

// The one in use: "AVX2", "AVX3" (AVX-512), "NEON", ...
const char* isa_name();

// All that are compiled in and supported by this machine, best first.
std::vector<std::string> isa_names();

// Makes every kernel use this one; "" goes back to the best. For tests and for comparing.
void force_isa(const std::string& name);

}  // namespace convssm::ops
