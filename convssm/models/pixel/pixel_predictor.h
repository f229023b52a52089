// The pixel model (the paper's Moving-MNIST models): encoder, any temporal core, decoder, frame by frame.
//   f_t = Encoder(v_t),   deter_t = core([f_t, embedding(a_{t+1})]),   v_{t+1} ~ tanh(Decoder(deter_t))
// Loss: w E2 + (1-w) E1 with E2 = squared and E1 = absolute error, averaged over the pixels that were measured, times width
// and channels: where all were, the sum over these, averaged over batch, time and height. Frames of any size: they are
// padded inside by repeating their edge, and predictions are cropped. Actions are rows of a table, or numbers through a
// dense layer, or maps beside the pixels; diagnostic channels are predicted and not seen; with mask_input the model sees
// which pixels were measured (models/pixel/encoder_input.h). In a future these are the ones that were in any frame so far.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "convssm/models/dynamics.h"
#include "convssm/models/forecaster.h"
#include "convssm/models/model.h"
#include "convssm/models/pixel/encoder_input.h"
#include "convssm/models/sequence_options.h"

namespace convssm::models {

namespace pixel {
struct WaitingFrame;
}

struct PixelOptions : SequenceOptions {
  int64_t channels = 1, height = 64, width = 64;  // of the frames
  std::vector<int64_t> seen = {};                 // channels that go in; empty: all
  double loss_weight = 0.5;                       // w
  bool mask_input = false;                        // which pixels were measured goes in too

  PixelOptions();

  // From the `model` section of a config, without its `name`; the frames' size is not part of it.
  static PixelOptions from_json(const nlohmann::json& json);
};

// Throws for keys that nobody knows, those of the core included.
void check_pixel_options(const nlohmann::json& json);

class PixelPredictorImpl : public Model, public Forecaster {
 public:
  explicit PixelPredictorImpl(const PixelOptions& options);

  LossOutput loss(const Clips& clips, const LossContext& context, const State& start = {}) override;
  std::string obstacle_to_chunks() const override { return dynamics_.obstacle_to_chunks(); }
  std::string obstacle_to_other_sizes() const override { return dynamics_.core().obstacle_to_other_sizes(); }
  double loss_terms(const Clips& clips) const override;
  void check_data(const data::DataFormat& data) const override;
  std::string obstacle_to_carrying() const override { return dynamics_.obstacle_to_carrying(); }
  int64_t telling_frames() const override { return dynamics_.core().telling_frames(); }
  double pair_bytes() const override { return dynamics_.core().pair_bytes(); }
  Forecaster* as_forecaster() override { return this; }
  std::string description() const override;
  std::string label() const override { return options_.core.value("name", "?"); }

  State start(const Clips& context, const Seeds& seeds) override;
  Forecast next(const State& state, const at::Tensor& action) override;
  State observe(const State& state, const at::Tensor& frame, const at::Tensor& action) override;
  at::Tensor forecasts(const Clips& clips, const at::Tensor& coming, const State& start = {}) override;
  bool knows_missing() const override { return true; }
  data::ActionFormat actions() const override;
  int64_t clips_in(const State& state) const override;
  bool compiles() const override { return dynamics_.compiles(); }
  std::unique_ptr<FrameEngine> compile(const EngineOptions& options) override;

  // Describes next() to a plan (nn/frame_plan.h). Its doors: `input` [B,E,H,W], what the encoder sees, `next` [B,C,H,W],
  // which comes out, `action` int64 [B] if the model has a table of actions, and the states by their names in the State.
  // The states are marked.
  void plan(nn::FramePlan& plan);
  const ActionInput& action_input() const { return dynamics_.actions(); }
  const pixel::EncoderInput& encoder_input() const { return input_; }
  bool takes_maps() const { return options_.actions.action_maps > 0; }
  const PixelOptions& options() const { return options_; }

  // Error(usage) unless these are clips of this model's frames and actions.
  void check(const char* operation, const Clips& clips) const;

 private:
  // [N,C,H,W], which seen pixels were measured [N,..] (undefined: all) and what comes [N,..] -> [N,F,h,w]
  at::Tensor features_of(const at::Tensor& frames, const at::Tensor& measured, const at::Tensor& coming);
  // Frames [B,L,C,H,W], their valid pixels, and the actions [B,L] after them through encoder and core: y [L,B,F,h,w].
  cores::CoreOutput run_core(const at::Tensor& frames, const at::Tensor& valid, const at::Tensor& coming,
                             const State& inner, const data::ClipTiming& timing);
  cores::CoreOutput step(const pixel::WaitingFrame& waiting, const at::Tensor& action, const State& state);
  State take_in(const Clips& context);
  at::Tensor decode(const at::Tensor& features);  // [N,F,h,w] -> [N,C,H,W]
  pixel::WaitingFrame waiting_in(const State& state) const;

  PixelOptions options_;
  int64_t pad_height_ = 0, pad_width_ = 0;
  pixel::EncoderInput input_;
  nn::Encoder encoder_{nullptr};
  Dynamics dynamics_;
  nn::Decoder decoder_{nullptr};
};
TORCH_MODULE(PixelPredictor);

}  // namespace convssm::models
