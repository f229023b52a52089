// The Performer: the Transformer of token_core.h with FAVOR+ attention (nn/favor.h), whose memory of all earlier frames
// is a few sums of fixed size. The random features are drawn once from the seed; they are buffers, not parameters.
// State: `layers.<i>.s`, `.z`, `.v_sum`, `.max`, and `position`.
#pragma once

#include <torch/nn/pimpl.h>

#include "convssm/cores/token_core.h"

namespace convssm::cores {

struct PerformerOptions : TokenOptions {
  int64_t random_features = 256;  // m, per head
  double epsilon = 1e-6;          // added to features and to a vanishing denominator

  static PerformerOptions from_json(const nlohmann::json& json);
};

class PerformerImpl : public TokenCoreImpl {
 public:
  explicit PerformerImpl(const PerformerOptions& options);
  const PerformerOptions& options() const { return options_; }

 private:
  PerformerOptions options_;
};
TORCH_MODULE(Performer);

}  // namespace convssm::cores
