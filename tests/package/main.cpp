// A user's program: a layer and a kernel of the installed library, and an error that names its operation.
#include <torch/torch.h>

#include <cstdio>

#include "convssm/base/error.h"
#include "convssm/base/version.h"
#include "convssm/cores/convs5.h"
#include "convssm/ops/scan.h"

namespace {

bool scan_works() {
  const auto result = convssm::ops::scan(torch::full({4}, 0.5), torch::ones({3, 2, 4}));
  return torch::allclose(result.last, torch::full({2, 4}, 1.75));  // 1 + 0.5 * (1 + 0.5 * 1)
}

bool convs5_works() {
  convssm::cores::ConvS5Options options;
  options.features = 32;
  options.state_size = 16;
  options.layers = 2;
  convssm::cores::ConvS5 core(options);
  const auto x = torch::rand({5, 1, 32, 8, 8});
  const auto output = core->forward(x);
  return output.y.sizes() == x.sizes() && output.y.isfinite().all().item<bool>() && !output.state.empty();
}

}  // namespace

int main() {
  if (!scan_works()) return std::puts("scan: wrong result"), 1;
  if (!convs5_works()) return std::puts("ConvS5: wrong result"), 1;
  try {
    convssm::ops::scan(torch::ones({4}), torch::ones({3, 2, 5}));
    return std::puts("scan: wrong shapes were accepted"), 1;
  } catch (const convssm::Error& error) {
    std::printf("convssm %s works; a refused call says: %s\n", convssm::kVersion, error.what());
  }
  return 0;
}
