// The limits that a container puts on this process: CPU quota and memory, from cgroup version 1 or 2.
// Every group from the process's own up to the root counts; the tightest one wins.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace convssm {

// Where the kernel shows its control groups; tests point these at made-up files.
struct CgroupFiles {
  std::string membership = "/proc/self/cgroup";
  std::string mount = "/sys/fs/cgroup";
};

// CPUs that the quota allows, e.g. 1.5; nothing if there is no quota.
std::optional<double> cgroup_cpus(const CgroupFiles& files = {});

struct CgroupMemory {
  uint64_t limit;  // bytes that the group may use
  uint64_t room;   // bytes of it not yet in use; file cache that the kernel can drop counts as free
};

// Nothing if no group limits the memory.
std::optional<CgroupMemory> cgroup_memory(const CgroupFiles& files = {});

}  // namespace convssm
