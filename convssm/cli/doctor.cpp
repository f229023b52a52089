#include "convssm/cli/doctor.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/version.h>

#include <memory>
#include <string>

#include "convssm/base/atomic_file.h"
#include "convssm/base/version.h"
#include "convssm/ops/device.h"
#include "convssm/ops/packed_conv.h"

namespace convssm::cli {
namespace {

std::string compiler_text() {
#if defined(__clang__)
  return fmt::format("Clang {}.{}.{}", __clang_major__, __clang_minor__, __clang_patchlevel__);
#else
  return fmt::format("GCC {}.{}.{}", __GNUC__, __GNUC_MINOR__, __GNUC_PATCHLEVEL__);
#endif
}

std::vector<Finding> examine_all() {
  std::vector<Finding> all;
  for (const auto examine : {examine_software, examine_blas, examine_processor, examine_memory, examine_disk}) {
    const auto found = examine();
    all.insert(all.end(), found.begin(), found.end());
  }
  return all;
}

void run_doctor(const std::string& json_path) {
  const auto findings = examine_all();
  print_findings(findings, stdout);
  if (json_path.empty()) return;
  const nlohmann::json report = {{"version", kVersion}, {"findings", findings_json(findings)}};
  replace_file(json_path, report.dump(2) + "\n");
}

}  // namespace

std::vector<Finding> examine_software() {
  return {{"Software", "convssm", kVersion, "", {}},
          {"Software", "compiler", compiler_text(), "", {}},
          {"Software", "libtorch", TORCH_VERSION, "", {}},
          {"Software", "convolutions", "Winograd in kernels of its own, else " + ops::convolution_library(), "", {}},
          {"Software", "devices", fmt::format("{}", fmt::join(ops::device_names(), ", ")), "", {}}};
}

void add_doctor(CLI::App& app) {
  auto* command = app.add_subcommand("doctor", "What this machine has, and what to do about each bad finding");
  const auto json_path = std::make_shared<std::string>();
  command->add_option("--json", *json_path, "Write the findings to this file too")->type_name("FILE");
  command->footer("Example:\n  convssm doctor --json machine.json");
  command->callback([json_path] { run_doctor(*json_path); });
}

}  // namespace convssm::cli
