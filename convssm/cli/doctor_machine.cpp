// The processor, the memory and the disk of this machine.
#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "convssm/base/memory.h"
#include "convssm/base/threads.h"
#include "convssm/cli/doctor.h"
#include "convssm/ops/isa.h"
#include "convssm/ops/runtime.h"

namespace convssm::cli {
namespace {

constexpr uint64_t kLittleMemory = uint64_t{2} << 30;
constexpr uint64_t kLittleDisk = uint64_t{2} << 30;

std::string processor_name() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);) {
    const size_t colon = line.find(": ");
    if (line.compare(0, 10, "model name") == 0 && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown";
}

Finding threads_finding() {
  const int used = threads(), hardware = hardware_threads(), libtorch = at::get_num_threads();
  Finding finding{"Processor", "threads", fmt::format("{} in use, {} available", used, hardware), "", double(used)};
  if (used > hardware) {
    finding.advice = fmt::format("more threads than cores slow each other down: --threads {}", hardware);
  } else if (used < hardware) {
    finding.advice = fmt::format("all cores: --threads {}, or unset OMP_NUM_THREADS", hardware);
  } else if (libtorch != used) {
    finding.advice = fmt::format("libtorch uses {}: call convssm::ops::start_runtime() first in main", libtorch);
  }
  return finding;
}

Finding denormals_finding() {
  if (denormals_flushed()) return {"Processor", "denormals", "flushed to zero", "", {}};
  return {"Processor", "denormals", "kept (slow)", "call convssm::ops::start_runtime() first in main", {}};
}

Finding bytes_finding(const char* group, const char* name, uint64_t bytes) {
  return {group, name, format_bytes(bytes), "", static_cast<double>(bytes)};
}

}  // namespace

std::vector<Finding> examine_processor() {
  return {{"Processor", "model", processor_name(), "", {}},
          {"Processor", "instructions", ops::isa_name(), "", {}},
          threads_finding(),
          denormals_finding()};
}

std::vector<Finding> examine_memory() {
  Finding available = bytes_finding("Memory", "available", available_memory());
  if (available_memory() < kLittleMemory) {
    available.advice = "close other programs, or use shorter clips, smaller batches and smaller models";
  }
  Finding huge{"Memory", "huge pages", huge_page_mode(), "", {}};
  if (huge.value == "never") {
    huge.advice = "as root: echo madvise > /sys/kernel/mm/transparent_hugepage/enabled";
  }
  return {bytes_finding("Memory", "total", total_memory()),
          available,
          bytes_finding("Memory", "page size", page_size()),
          huge,
          {"Memory", "allocator", ops::allocator_text(), "", {}}};
}

std::vector<Finding> examine_disk() {
  std::error_code error;
  const auto space = std::filesystem::space(".", error);
  if (error) return {{"Disk", "current folder", "unknown: " + error.message(), "", {}}};
  Finding finding = bytes_finding("Disk", "current folder", space.available);
  finding.value += " free";
  if (space.available < kLittleDisk) finding.advice = "runs, checkpoints and samples need room: free some";
  return {finding};
}

}  // namespace convssm::cli
