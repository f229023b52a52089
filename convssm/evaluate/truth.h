// What forecasts of clips are compared with: the clips' own pixels, or what the tokenizer of the model makes of them. Clips of
// codes have no pixels; theirs are what the tokenizer decodes.
#pragma once

#include <ATen/core/Tensor.h>

#include "convssm/data/dataset.h"
#include "convssm/models/model.h"
#include "convssm/models/tokenizer.h"

namespace convssm::evaluate {

enum class Real { originals, reconstructions };
const char* name(Real real);

// Videos in [-1,1] on the CPU.
struct TrueVideos {
  at::Tensor real;  // [B,T,C,H,W]: what forecasts are compared with
  // [B,T-K,C,H,W] after the context: the clips, and what comes back of them through the tokenizer; undefined without both.
  at::Tensor originals = {}, back = {};
};

class Truth {
 public:
  // Error(usage) if a tokenizer is needed and the model has none; Error(data) if the codes are not those of its tokenizer.
  Truth(models::Model& model, const data::Dataset& dataset, Real real);

  // Of clips whose first K frames are the context.
  TrueVideos of(const data::Clips& clips, int64_t K) const;

  // Whether there are originals to compare what the tokenizer gives back with: the best that its forecasts can be.
  bool has_ceiling() const { return tokenizer_ != nullptr && !codes_; }

  bool originals() const { return !codes_ && real_ == Real::originals; }  // are what is real
  const char* name() const;                                               // originals, reconstructions or codes

 private:
  at::Tensor decode(const at::Tensor& codes) const;
  at::Tensor give_back(const at::Tensor& video) const;

  models::Tokenizer* tokenizer_;
  at::Device device_;
  bool codes_;
  Real real_;
};

// The frames that are compared, for the metrics: those of the dataset, or of clips of codes what the model decodes.
data::FrameFormat scored_frames(models::Model& model, const data::Dataset& dataset);

}  // namespace convssm::evaluate
