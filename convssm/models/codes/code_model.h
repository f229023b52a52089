// What models of codes have in common: codes in and out, a core, what the causal-masking strategy hides, and forecasts, one
// frame after the other or, open loop, many at once. A model says what waits in a state (models/waiting_state.h), what its
// core is given of it, and what it draws from what the core says. Beside it a state holds
//   codes    [B,h,w] of the frame that waits
//   random   [B,2], the position of each clip's draws (models/clip_random.h)
//   number   [B,1], of the frame that waits, counted from the beginning of the context
#pragma once

#include "convssm/models/codes/code_input.h"
#include "convssm/models/codes/code_loss.h"
#include "convssm/models/codes/masking.h"
#include "convssm/models/dynamics.h"
#include "convssm/models/forecaster.h"
#include "convssm/models/model.h"
#include "convssm/models/sequence_options.h"

namespace convssm::models {

struct CodeModelOptions : SequenceOptions {
  CodeInputOptions codes;
  MaskingOptions masking;
  SamplingOptions sampling;
  double label_smoothing = 0.01;

  void read_from(OptionReader& read);
};

class CodeModel : public Model, public Forecaster {
 public:
  void check_data(const data::DataFormat& data) const override;
  void check_length(int64_t frames) const override { masking_.check_length(frames); }
  std::string obstacle_to_other_sizes() const override {
    return "it sees them as a fixed number of codes of a tokenizer";
  }
  int64_t telling_frames() const override {
    return std::max(masking_.telling_frames(), dynamics_.core().telling_frames());
  }
  int64_t given_frames() override { return 1; }
  double pair_bytes() const override { return dynamics_.core().pair_bytes(); }
  Forecaster* as_forecaster() override { return codes_.has_frames() ? this : nullptr; }
  Tokenizer* as_tokenizer() override { return codes_.tokenizer().tokenizer; }
  TokenizerPart tokenizer_part() override { return codes_.tokenizer(); }

  Forecast next(const State& state, const at::Tensor& action) override;
  Forecast next_frames(const State& state, const at::Tensor& actions, int64_t frames) override;
  int64_t frames_at_once(const State& state, const at::Tensor& actions) const override;
  data::ActionFormat actions() const override { return dynamics_.actions().format(); }
  bool compiles() const override { return dynamics_.compiles(); }

 protected:
  static constexpr int64_t kFramesAtOnce = 16;  // through the core
  static constexpr const char *kCodes = "codes", *kRandom = "random", *kNumber = "number";

  // Registers the tokenizer or a table; the model makes `dynamics_`.
  CodeModel(const CodeModelOptions& options, const Stream& stream);

  // Of the features of a frame. Error(usage) unless the encoder halves the codes evenly.
  static cores::FrameShape latent_shape(const data::CodeFormat& grid, const nn::CoderOptions& encoder);

  // What waits in a state, as the core takes it.
  virtual at::Tensor waiting_input(const State& state) = 0;

  // Of each clip.
  struct Place {
    at::Tensor random, number;
  };
  static Place first_place(const Seeds& seeds, int64_t clips, int64_t number, const at::Device& device);
  Place place_of(const State& state, int64_t clips) const;  // Error(data) unless it is there, for this many clips
  static void set_place(State& state, const Place& place);

  // The next frame, of the core's y [B,D,h,w]. `random` is moved on.
  struct Drawn {
    at::Tensor codes;   // [B,H,W] int64
    at::Tensor sound;   // [B] bool: the model said numbers
    at::Tensor latent;  // if it waits in the state
  };
  virtual Drawn draw(at::Tensor& random, const at::Tensor& y) = 0;
  static at::Tensor sound_rows(const at::Tensor& logits);  // [B,...] -> [B]

  // Its frames; NaN where it is not sound, by which generation knows that the model has diverged.
  at::Tensor frames_of(const Drawn& drawn) const;

  // The state in which a drawn frame waits; `before` are the codes of the frame before it.
  virtual State after_draw(const State& core, const Drawn& drawn, const at::Tensor& before, const Place& place,
                           double step_rescale) const = 0;

  // `input` of a frame that is a forecast: hidden by causal masking after its context, in rows whose action is known.
  at::Tensor hidden(const State& state, const at::Tensor& input, const at::Tensor& action) const;

  // The same state as if its frames had numbers after the context of causal masking.
  State after_context(const State& state) const;

  // The last of [B,T,...], undefined ones too, and of times.
  static at::Tensor last_frame(const at::Tensor& x);
  static ssm::Timing last_time(const data::ClipTiming& timing);

  CodeInput codes_;
  Dynamics dynamics_;

 private:
  friend class CodeModelEngine;
  bool open_loop(const State& state, const at::Tensor& actions) const;

  MaskingOptions masking_;
};

}  // namespace convssm::models
