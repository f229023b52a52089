// Which BLAS libtorch really calls, whether its kernels fit this CPU, and how fast a matrix product is.
#include <ATen/ATen.h>
#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <limits>
#include <memory>
#include <string>

#include "convssm/base/threads.h"
#include "convssm/cli/doctor.h"

namespace convssm::cli {
namespace {

constexpr const char* kGroup = "Matrix products";

// The library that a call of sgemm from libtorch ends in, with links resolved; "" if it is inside libtorch.
std::string blas_path() {
  void* symbol = dlsym(RTLD_DEFAULT, "sgemm_");
  Dl_info info{};
  if (symbol == nullptr || dladdr(symbol, &info) == 0) return "";
  const std::unique_ptr<char, decltype(&std::free)> resolved(realpath(info.dli_fname, nullptr), &std::free);
  return resolved ? resolved.get() : info.dli_fname;
}

// The text that a function of OpenBLAS gives; "" if there is no such function.
std::string ask_openblas(const char* function) {
  using Getter = char* (*)();
  const auto getter = reinterpret_cast<Getter>(dlsym(RTLD_DEFAULT, function));
  return getter == nullptr ? "" : getter();
}

std::string blas_name(const std::string& path) {
  if (path.empty()) return at::hasMKL() ? "MKL" : "unknown";
  if (path.find("openblas") != std::string::npos) return "OpenBLAS";
  if (path.find("mkl") != std::string::npos) return "MKL";
  if (path.find("blis") != std::string::npos) return "BLIS";
  if (path.find("atlas") != std::string::npos) return "ATLAS";
  return "reference BLAS";
}

// The OpenBLAS kernels that use all of this CPU; "" if nothing better is known than what OpenBLAS chose itself.
std::string better_kernels([[maybe_unused]] const std::string& chosen) {
#if defined(__x86_64__)
  const auto is_one_of = [&](std::initializer_list<const char*> names) {
    return std::any_of(names.begin(), names.end(), [&](const char* name) { return chosen == name; });
  };
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw")) {
    return is_one_of({"SkylakeX", "Cooperlake", "Sapphirerapids"}) ? "" : "SkylakeX";
  }
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    if (is_one_of({"Haswell", "Zen", "Excavator"})) return "";
    return __builtin_cpu_is("amd") ? "Zen" : "Haswell";
  }
#endif
  return "";
}

Finding library_finding(const std::string& name, const std::string& path) {
  Finding finding{kGroup, "library", name, "", {}};
  if (!path.empty()) finding.value += ", " + path;
  if (name == "reference BLAS") {
    finding.value += " (slow)";
    finding.advice = "run tools/setup.sh, or: apt-get install libopenblas0-openmp";
  }
  const std::string config = ask_openblas("openblas_get_config");
  if (name == "OpenBLAS" && !config.empty() && config.find("USE_OPENMP") == std::string::npos) {
    finding.value += " (its own threads beside those of OpenMP)";
    finding.advice = "apt-get install libopenblas0-openmp and choose it: update-alternatives --config libblas.so.3-" +
                     std::string("$(g++ -print-multiarch)");
  }
  return finding;
}

Finding kernels_finding() {
  const std::string chosen = ask_openblas("openblas_get_corename");
  Finding finding{kGroup, "kernels", chosen, "", {}};
  const std::string better = better_kernels(chosen);
  if (better.empty()) return finding;
  finding.value += " (slow: this CPU can run " + better + ")";
  finding.advice = "export OPENBLAS_CORETYPE=" + better;
  return finding;
}

// The best of at least 3 products of 512 x 512 matrices, in about 0.2 s.
double product_gflops() {
  using Clock = std::chrono::steady_clock;
  constexpr int64_t n = 512;
  const at::Tensor a = at::rand({n, n}), b = at::rand({n, n});
  at::Tensor c = at::mm(a, b);
  double best = std::numeric_limits<double>::infinity(), spent = 0;
  for (int i = 0; i < 3 || spent < 0.2; ++i) {
    const auto begin = Clock::now();
    at::mm_out(c, a, b);
    const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    best = std::min(best, seconds), spent += seconds;
  }
  return 2.0 * n * n * n / best * 1e-9;
}

Finding speed_finding(bool explained) {
  const double gflops = product_gflops();
  Finding finding{kGroup, "speed", fmt::format("{:.0f} GFLOP/s (512 x 512 x 512, float32)", gflops), "", gflops};
  if (gflops < 5.0 * threads() && !explained) {
    finding.value += " (slow)";
    finding.advice = "another program may be using the CPU: run this again on an idle machine";
  }
  return finding;
}

}  // namespace

std::vector<Finding> examine_blas() {
  const std::string path = blas_path(), name = blas_name(path);
  std::vector<Finding> findings = {library_finding(name, path)};
  if (name == "OpenBLAS") findings.push_back(kernels_finding());
  const bool explained = std::any_of(findings.begin(), findings.end(), [](const auto& f) { return !f.advice.empty(); });
  findings.push_back(speed_finding(explained));
  return findings;
}

}  // namespace convssm::cli
