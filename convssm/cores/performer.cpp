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
