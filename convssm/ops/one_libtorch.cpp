// The dynamic linker tells what it has loaded; libtorch_cpu is the part that every libtorch has.
#include "convssm/ops/one_libtorch.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <link.h>
#include <torch/version.h>

#include <filesystem>

#include "convssm/base/error.h"

namespace convssm::ops {

std::vector<std::string> loaded_libtorch() {
  std::vector<std::string> paths;
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* found) {
        const std::string path = info->dlpi_name == nullptr ? "" : info->dlpi_name;
        const std::string name = std::filesystem::path(path).filename();
        if (name.starts_with("libtorch_cpu.so")) static_cast<std::vector<std::string>*>(found)->push_back(path);
        return 0;
      },
      &paths);
  return paths;
}

void require_one_libtorch() {
  const auto paths = loaded_libtorch();
  if (paths.size() < 2) return;
  fail(ErrorKind::usage,
       "[runtime] this process has loaded {} libtorch: {}. Tensors of one are none of the other. convssm was built "
       "with {}: build "
       "it with the libtorch that the rest of the program uses (cmake --preset release for Debian's, --preset wheel "
       "for that "
       "of a torch wheel), or keep the other one out (LD_PRELOAD, LD_LIBRARY_PATH)",
       paths.size(), fmt::join(paths, " and "), TORCH_VERSION);
}

}  // namespace convssm::ops
