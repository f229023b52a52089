// A user's program with the component core alone: a layer and a kernel of the installed library, and an error that names its operation.
#include <torch/torch.h>

#include <cstdio>

#include "convssm/base/error.h"
#include "convssm/base/version.h"
#include "convssm/cores/convs5.h"
#include "convssm/cores/s5.h"
#include "convssm/ops/scan.h"
#include "convssm/ssm/conv_ssm.h"

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

bool s5_works() {
  convssm::cores::S5 core(convssm::cores::S5Options{.features = 8, .state_size = 16});
  return core->forward(torch::rand({5, 2, 8})).y.isfinite().all().item<bool>();
}

bool conv_ssm_works() {
  convssm::Stream stream(1);
  convssm::ssm::ConvSSMOptions options;
  options.features = 3;
  options.state_size = 4;
  convssm::ssm::ConvSSM layer(options, stream);
  return layer->forward(torch::rand({5, 1, 3, 8, 8})).first.isfinite().all().item<bool>();
}

}  // namespace

int main() {
  if (!s5_works()) return std::puts("S5: wrong result"), 1;
  if (!conv_ssm_works()) return std::puts("ConvSSM: wrong result"), 1;
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
