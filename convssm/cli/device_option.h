// What --device says in the help of the commands that have it.
#pragma once

namespace convssm::cli {

inline constexpr const char* kDeviceHelp = "cpu, cuda or cuda:N; convssm doctor names those that are there";

}  // namespace convssm::cli
