// A tokenizer turns frames into small grids of codes and back, frame by frame: the codes of a clip are those of its chunks.
// A continuous one has no table: its codes are numbers, `features` of them where others have one of `count`.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>

#include "convssm/data/dataset.h"

namespace torch::nn {
class Module;
}

namespace convssm::models {

using data::CodeFormat;

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;
  virtual at::Tensor encode(const at::Tensor& video) = 0;  // [B,T,C,H,W] in [-1,1] -> [B,T,h,w] int64
  virtual at::Tensor decode(const at::Tensor& codes) = 0;  // [B,T,h,w] -> [B,T,C,H,W] in [-1,1]
  virtual CodeFormat codes() const = 0;

  // Whether encode() gives, and decode() takes, floats [B,T,features(),h,w] instead; the count of codes() is then 0.
  virtual bool continuous() const { return false; }

  // What the codes stand for, as the decoder reads them: [N,h,w] -> [N,features(),h,w]. Models of codes see them so.
  virtual at::Tensor embed(const at::Tensor& codes) = 0;
  virtual int64_t features() const = 0;
};

// A tokenizer and the module that holds its parameters: what a model of codes freezes and stores with its own.
struct TokenizerPart {
  std::shared_ptr<torch::nn::Module> module;  // null: there is none
  Tokenizer* tokenizer = nullptr;             // part of the module

  explicit operator bool() const { return tokenizer != nullptr; }
};

// The video [B,T,C,H,W] of clips: their own, or what the tokenizer of the model makes of their codes. Error(usage) if there is
// neither.
class Model;
at::Tensor video_of(Model& model, const data::Clips& clips);

// Which tokenizer this is: a hash of all its parameters and buffers, 16 hexadecimal digits.
std::string hash_of(const TokenizerPart& part);

}  // namespace convssm::models
