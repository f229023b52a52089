// Reads the kernel's files directly. Version 1 has a tree per controller, version 2 a single one, and a mixed system
// both, so /proc/self/cgroup is taken line by line. Every parent counts, since a limit may be set anywhere above the
// process. Page cache that the kernel would drop is charged to the group but counts as free memory here.
#include "convssm/base/cgroup.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <vector>

namespace convssm {
namespace {

namespace fs = std::filesystem;

// Version 1 writes "no limit" as the largest multiple of the page size; no machine has this much.
constexpr uint64_t kNoLimit = uint64_t{1} << 60;

struct Group {
  std::string controller;  // empty: version 2
  fs::path folder;
};

bool lists(const std::string& names, const std::string& name) {
  return ("," + names + ",").find("," + name + ",") != std::string::npos;
}

// A container often sees the path that its group has outside; the walk up then ends at what is mounted for it.
void add_with_parents(const std::string& controller, const fs::path& top, const std::string& path,
                      std::vector<Group>& groups) {
  fs::path relative = fs::path(path).relative_path();
  while (!relative.empty()) {
    groups.push_back({controller, top / relative});
    relative = relative.parent_path();
  }
  groups.push_back({controller, top});
}

// The groups of one controller. Lines are "4:memory:/path" in version 1 and "0::/path" in version 2.
std::vector<Group> groups_of(const std::string& controller, const CgroupFiles& files) {
  std::vector<Group> groups;
  std::ifstream in(files.membership);
  for (std::string line; std::getline(in, line);) {
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string names = line.substr(first + 1, second - first - 1), path = line.substr(second + 1);
    if (names.empty()) {
      add_with_parents("", files.mount, path, groups);
    } else if (lists(names, controller)) {
      add_with_parents(controller, fs::path(files.mount) / controller, path, groups);
    }
  }
  return groups;
}

// A number, or nothing if the file is missing or says "max" or -1.
std::optional<uint64_t> read_number(const fs::path& path) {
  std::ifstream in(path);
  int64_t value = -1;
  if (!(in >> value) || value < 0) return std::nullopt;
  return static_cast<uint64_t>(value);
}

std::optional<double> quota_of(const Group& group) {
  double quota = -1, period = 0;
  if (group.controller.empty()) {
    std::ifstream in(group.folder / "cpu.max");
    if (!(in >> quota >> period)) return std::nullopt;
  } else {
    quota = static_cast<double>(read_number(group.folder / "cpu.cfs_quota_us").value_or(0));
    period = static_cast<double>(read_number(group.folder / "cpu.cfs_period_us").value_or(0));
  }
  if (quota <= 0 || period <= 0) return std::nullopt;
  return quota / period;
}

uint64_t droppable_cache(const Group& group) {
  const std::string wanted = group.controller.empty() ? "inactive_file" : "total_inactive_file";
  std::ifstream in(group.folder / "memory.stat");
  std::string name;
  for (uint64_t value = 0; in >> name >> value;) {
    if (name == wanted) return value;
  }
  return 0;
}

std::optional<CgroupMemory> memory_of(const Group& group) {
  const bool v2 = group.controller.empty();
  const auto limit = read_number(group.folder / (v2 ? "memory.max" : "memory.limit_in_bytes"));
  if (!limit || *limit >= kNoLimit) return std::nullopt;
  const uint64_t charged = read_number(group.folder / (v2 ? "memory.current" : "memory.usage_in_bytes")).value_or(0);
  const uint64_t used = charged - std::min(charged, droppable_cache(group));
  return CgroupMemory{*limit, *limit - std::min(*limit, used)};
}

}  // namespace

std::optional<double> cgroup_cpus(const CgroupFiles& files) {
  std::optional<double> tightest;
  for (const Group& group : groups_of("cpu", files)) {
    const auto quota = quota_of(group);
    if (quota) tightest = std::min(tightest.value_or(*quota), *quota);
  }
  return tightest;
}

std::optional<CgroupMemory> cgroup_memory(const CgroupFiles& files) {
  std::optional<CgroupMemory> tightest;
  for (const Group& group : groups_of("memory", files)) {
    const auto found = memory_of(group);
    if (!found) continue;
    if (!tightest) tightest = found;
    tightest = CgroupMemory{std::min(tightest->limit, found->limit), std::min(tightest->room, found->room)};
  }
  return tightest;
}

}  // namespace convssm
