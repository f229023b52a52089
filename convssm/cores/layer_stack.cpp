// A state is checked against the input before a layer runs, since one of another size could broadcast silently. The
// loop over the layers depends on their type and is a template in the header.
#include "convssm/cores/layer_stack.h"

namespace convssm::cores {

at::Tensor layer_state(const char* operation, const State& state, const std::string& key, const at::Tensor& x,
                       int64_t states) {
  const at::Tensor x0 = state.get(key);
  if (!x0.defined()) return x0;
  std::vector<int64_t> expected = x.sizes().slice(1).vec();  // [B,U,...]
  expected[1] = 2 * states;
  ops::require_shape(operation, key.c_str(), x0, expected);
  ops::require_like(operation, key.c_str(), x0, x);
  return x0;
}

int64_t skip_source(bool skip_connections, size_t layer) {
  if (!skip_connections) return -1;
  return layer == 8 ? 3 : layer == 11 ? 6 : -1;
}

}  // namespace convssm::cores
