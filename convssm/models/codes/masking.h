// What the training of models of codes hides and leaves out.
//   causal masking    clips that have actions (train.action_dropout takes them from some) lose what is seen from frame `context`
//                     on: the model has to find the rest from the context and the actions. Generation then sees no forecast
//                     of its own either: it is open loop
//   DropLoss          (Yan et al. 2023, arXiv 2210.02396) only some frames of a clip are decoded and count
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "convssm/base/option_reader.h"
#include "convssm/base/random.h"

namespace convssm::models {

struct MaskingOptions {
  int64_t context = 0;   // causal_masking.context: frames that are seen; 0: no causal masking
  double value = -2;     // causal_masking.value: every feature of a frame that is not seen
  double drop_loss = 0;  // share of the frames that do not count
  // Three habits of the paper's public code: generation with actions does not see the last frame of the context; the prior
  // of TECO learns from frames of the context too; losses hold a constant for clips of the other kind.
  bool like_reference = false;

  void read_from(OptionReader& read);
  bool causal() const { return context > 0; }
  int64_t first_hidden() const { return like_reference ? context - 1 : context; }  // in generation

  int64_t telling_frames() const;  // of which two predictions count, and one of half of them (Model::telling_frames)

  // Error(usage) if clips of this many frames leave nothing to predict after the context.
  void check_length(int64_t frames) const;
};

// What a training step leaves to chance.
struct Choices {
  std::vector<int64_t> frames;  // the predictions that count: number s is that of frame s + 1
  at::Tensor hidden = {};     // [S*B,h,w] bool, frames of one time together: tokens that the prior of TECO does not see
  bool restart = true;        // dead codes of its quantizer may begin again
  Stream random = Stream(0);  // of its quantizer
};
Choices draw_choices(const MaskingOptions& options, int64_t predictions, const Stream& random);

// Clips [B] bool whose actions [B,T] or [B,T,A] are all masked; all of them if there are no actions.
at::Tensor blind_rows(const at::Tensor& actions, int64_t B);

// Rows [B] of actions [B] or [B,A] that are masked; all of them if there are no actions.
at::Tensor masked_rows(const at::Tensor& actions, int64_t B, const at::TensorOptions& like);

// Features [T*B,...], frames of one time together: those of frames from `context` on become `value` in the rows that are
// not blind.
at::Tensor hide_frames(const at::Tensor& features, int64_t B, const MaskingOptions& options, const at::Tensor& blind);

// Of predictions [L*B,...] those of the chosen frames, [S*B,...].
at::Tensor chosen_frames(const at::Tensor& predictions, int64_t B, const std::vector<int64_t>& frames);

// Weights [S,B] of the predictions `frames` (number s is of frame s + 1) in a mean over groups: rows with actions are
// averaged over the frames s >= context - 1, rows without over all, each over the rows of both kinds; one mean of all
// without causal masking. They sum to 1 where every row is of one kind.
at::Tensor frame_weights(const std::vector<int64_t>& frames, int64_t context, const at::Tensor& blind);

}  // namespace convssm::models
