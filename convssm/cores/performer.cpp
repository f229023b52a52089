// Only the attention differs from the Transformer; random features come from the core's stream, so a model with the
// same seed has the same ones, and a checkpoint carries them as buffers.
#include "convssm/cores/performer.h"

#include "convssm/nn/favor.h"

namespace convssm::cores {

PerformerOptions PerformerOptions::from_json(const nlohmann::json& json) {
  PerformerOptions o;
  OptionReader read("Performer", json);
  o.read_from(read);
  read("random_features", o.random_features);
  read("epsilon", o.epsilon);
  read.finish();
  return o;
}

PerformerImpl::PerformerImpl(const PerformerOptions& options)
    : TokenCoreImpl("Performer", options,
                    [&](const nn::HeadShape& shape, const Stream& stream) {
                      return std::make_shared<nn::FavorAttention>(shape, options.random_features, options.epsilon,
                                                                  stream);
                    }),
      options_(options) {}

}  // namespace convssm::cores
