// A tokenizer turns frames into small grids of codes and back, frame by frame: the codes of a clip are those of its chunks.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace convssm::models {

struct CodeFormat {
  int64_t size = 0;               // codes are 0 .. size-1
  int64_t height = 0, width = 0;  // of the grid of a frame
};

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;
  virtual at::Tensor encode(const at::Tensor& video) = 0;  // [B,T,C,H,W] in [-1,1] -> [B,T,h,w] int64
  virtual at::Tensor decode(const at::Tensor& codes) = 0;  // [B,T,h,w] -> [B,T,C,H,W] in [-1,1]
  virtual CodeFormat codes() const = 0;
};

}  // namespace convssm::models
