// A tokenizer turns frames into small grids of codes and back, frame by frame: the codes of a clip are those of its chunks.
#pragma once

#include <ATen/core/Tensor.h>

#include "convssm/data/dataset.h"

namespace convssm::models {

using data::CodeFormat;

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;
  virtual at::Tensor encode(const at::Tensor& video) = 0;  // [B,T,C,H,W] in [-1,1] -> [B,T,h,w] int64
  virtual at::Tensor decode(const at::Tensor& codes) = 0;  // [B,T,h,w] -> [B,T,C,H,W] in [-1,1]
  virtual CodeFormat codes() const = 0;
};

}  // namespace convssm::models
