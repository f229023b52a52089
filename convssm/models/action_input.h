// How actions enter a model, as channels beside the features of a frame: whole numbers by rows of a table, of which the last
// is the masked action, or numbers through a dense layer, a masked one as zeros and a mark. Maps are not features: a model that
// takes them puts them beside the pixels of its frames (models/pixel/encoder_input.h), and here is only what clips must have.
#pragma once

#include <ATen/core/Tensor.h>

#include "convssm/base/option_reader.h"
#include "convssm/base/random.h"
#include "convssm/data/dataset.h"
#include "convssm/nn/modules.h"

namespace convssm::models {

struct ActionOptions {
  int64_t actions = 1;          // A: the embedding has A+1 rows, the last one for the masked action; 0: no embedding
  int64_t action_values = 0;    // numbers of an action instead; a masked one enters as zeros and a mark
  int64_t action_maps = 0;      // maps of numbers instead, as large as the frames
  int64_t action_features = 1;  // channels of the embedding
  bool takes_maps = false;      // of the model, not an option

  // Error(usage) for maps in a model that takes none.
  void read_from(OptionReader& read);
};

class ActionInput {
 public:
  ActionInput() = default;

  // Registers `actions` in the owner: [A+1,features], or a dense layer.
  ActionInput(torch::nn::Module& owner, const ActionOptions& options, const Stream& stream);

  int64_t features() const;  // channels that are added; 0: actions do not matter

  // Actions [N] or [N,A] (undefined: none) -> [N,features()] of a type like `like`; undefined if actions do not matter.
  at::Tensor embed(const at::Tensor& actions, int64_t N, const at::TensorOptions& like) const;

  // [N,F,h,w] and actions [N] or [N,A] (undefined: none) -> [N,F + features(),h,w].
  at::Tensor beside(const at::Tensor& frames, const at::Tensor& actions) const;

  data::ActionFormat format() const;
  const at::Tensor& table() const { return table_; }                         // undefined: there is none
  void check_below(const char* operation, const at::Tensor& actions) const;  // actions are rows of the table

  // Error(usage) unless these are actions of clips [B,T,..] that the model takes; maps are as large as its frames.
  void check(const char* operation, const at::Tensor& actions, int64_t height = 0, int64_t width = 0) const;

  // Error(usage) if clips of such data cannot be trained on; says which option would have to change.
  void check_data(const data::ActionFormat& actions) const;

 private:
  ActionOptions options_;
  at::Tensor table_;
  mutable nn::Dense layer_{nullptr};
};

}  // namespace convssm::models
