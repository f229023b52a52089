// libtorch and OpenMP each keep a number of threads, so both are set. Flush-to-zero comes after them: it is a register
// of each thread, and the pool must have its size by then.
#include "convssm/ops/runtime.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>

#include <cstdlib>

#include "convssm/base/short_waits.h"
#include "convssm/base/threads.h"
#include "convssm/ops/one_libtorch.h"

namespace convssm::ops {
namespace {

int choose_threads(int asked) {
  if (asked > 0) return asked;
  const char* variable = std::getenv("OMP_NUM_THREADS");
  const int from_environment = variable == nullptr ? 0 : std::atoi(variable);
  return from_environment > 0 ? from_environment : hardware_threads();
}

}  // namespace

void start_runtime(const RuntimeOptions& options) {
  require_one_libtorch();
  set_threads(choose_threads(options.threads));
  at::set_num_threads(threads());  // libtorch keeps a number of its own and would start with 1 on small machines
  flush_denormals_on_all_threads();
  watch_for_company();
  if (options.keep_memory) install_caching_allocator();
  set_conv_algorithm(options.convolution);
}

}  // namespace convssm::ops
