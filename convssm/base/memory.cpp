// From /proc where Linux has it, else from sysconf. In a container the smaller of machine and control
// group counts: by the machine's number alone a run would plan for memory that the kernel does not grant it.
#include "convssm/base/memory.h"

#include <fmt/format.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <utility>

#include "convssm/base/cgroup.h"

namespace convssm {
namespace {

// The value of a line like "VmRSS:     1234 kB" in bytes; 0 if there is none.
uint64_t read_kilobytes(const char* path, const std::string& name) {
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) {
    if (line.compare(0, name.size() + 1, name + ":") == 0) return std::stoull(line.substr(name.size() + 1)) * 1024;
  }
  return 0;
}

uint64_t pages(int name) {
  const long count = sysconf(name);
  return count > 0 ? static_cast<uint64_t>(count) * page_size() : 0;
}

}  // namespace

uint64_t current_rss() { return read_kilobytes("/proc/self/status", "VmRSS"); }

void return_free_memory() {
#ifdef __GLIBC__
  malloc_trim(0);
#endif
}

uint64_t minor_faults() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<uint64_t>(usage.ru_minflt);
}

uint64_t total_memory() {
  const uint64_t machine = pages(_SC_PHYS_PAGES);
  const auto group = cgroup_memory();
  return group ? std::min(machine, group->limit) : machine;
}

uint64_t available_memory() {
  const uint64_t estimate = read_kilobytes("/proc/meminfo", "MemAvailable");
  const uint64_t machine = estimate != 0 ? estimate : pages(_SC_AVPHYS_PAGES);
  const auto group = cgroup_memory();
  return group ? std::min(machine, group->room) : machine;
}

uint64_t page_size() { return static_cast<uint64_t>(sysconf(_SC_PAGESIZE)); }

std::string bracketed_word(const std::string& text) {
  const size_t begin = text.find('['), end = text.find(']', begin);
  if (begin == std::string::npos || end == std::string::npos) return "unknown";
  return text.substr(begin + 1, end - begin - 1);
}

std::string huge_page_mode() {
  std::ifstream in("/sys/kernel/mm/transparent_hugepage/enabled");
  std::string line;
  std::getline(in, line);
  return bracketed_word(line);
}

std::optional<uint64_t> parse_bytes(const std::string& text) {
  constexpr std::pair<const char*, double> units[] = {
      {"KiB", 0x1p10}, {"MiB", 0x1p20}, {"GiB", 0x1p30}, {"TiB", 0x1p40}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12}};
  char* rest = nullptr;
  const double number = std::strtod(text.c_str(), &rest);
  while (*rest == ' ') ++rest;
  for (const auto& [unit, size] : units) {
    if (std::string(rest) == unit && number > 0 && number * size < 0x1p62) return static_cast<uint64_t>(number * size);
  }
  return std::nullopt;
}

std::string format_bytes(uint64_t bytes) {
  constexpr const char* units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  double value = static_cast<double>(bytes);
  size_t unit = 0;
  // 1023.95 would print as 1024.0, so the next unit begins just before.
  while (value >= 1023.95 && unit + 1 < std::size(units)) value /= 1024, ++unit;
  return unit == 0 ? fmt::format("{} B", bytes) : fmt::format("{:.1f} {}", value, units[unit]);
}

}  // namespace convssm
