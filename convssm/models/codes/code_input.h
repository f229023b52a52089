// How codes enter and leave a model of codes: by a frozen tokenizer, which is stored with the model, so that one file runs, or,
// without one, by a table of its own that learns. Then the model trains on encoded clips alone and forecasts no frames.
// The section `tokenizer` is that of the tokenizer's own model, with two keys besides: `frames`, the format of its frames, and
// `hash`, which one it is. (A path to a trained one becomes such a section in run/tokenizer_section.h.)
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "convssm/base/option_reader.h"
#include "convssm/data/clips.h"
#include "convssm/models/model.h"
#include "convssm/models/tokenizer.h"

namespace convssm::models {

struct CodeInputOptions {
  nlohmann::json tokenizer = nullptr;  // null: a table of the model's own for
  int64_t count = 1024, height = 16, width = 16, features = 256;
  bool embeds = true;  // false: the model embeds codes itself, and there is no such table

  void read_from(OptionReader& read);  // `tokenizer`, or `codebook` {count, height, width, features}
};

class CodeInput {
 public:
  CodeInput() = default;

  // `tokenizer` is what make_tokenizer gave, and is frozen in the model; without one a table `codebook` is registered.
  CodeInput(torch::nn::Module& owner, const CodeInputOptions& options, const TokenizerPart& tokenizer,
            const Stream& stream);

  data::CodeFormat format() const;  // with the hash of the tokenizer, if the options tell it
  int64_t features() const;
  bool has_frames() const { return static_cast<bool>(tokenizer_); }
  const TokenizerPart& tokenizer() const { return tokenizer_; }

  // The codes [B,T,h,w] of clips: their own, or those of their video. Error(usage) if they have neither, or other ones.
  at::Tensor codes_of(const char* operation, const Clips& clips) const;
  at::Tensor embed(const at::Tensor& codes) const;  // [N,h,w] -> [N,features,h,w]; of a table of its own with gradients
  at::Tensor frames_of(const at::Tensor& codes) const;  // [B,h,w] -> [B,C,H,W] in [-1,1]

  // Codes [B,h,w] that wait in a state under `name`. Error(data) unless they are codes of this model.
  at::Tensor waiting(const State& state, const char* name) const;

  // Error(usage) if clips of such data have neither frames nor codes of this model.
  void check_data(const data::DataFormat& data) const;

 private:
  CodeInputOptions options_;
  TokenizerPart tokenizer_;
  data::FrameFormat frames_;  // of the tokenizer
  at::Tensor like_;           // a parameter of the tokenizer: of what type features are
  at::Tensor table_;          // [count,features]
};

// The tokenizer of a section, with random weights; nothing for null. Error(usage) if its model is no tokenizer.
TokenizerPart make_tokenizer(const nlohmann::json& section);

}  // namespace convssm::models
