// The pixel model (the paper's Moving-MNIST models): encoder, any temporal core, decoder, frame by frame.
//   f_t = Encoder(v_t),   deter_t = core([f_t, embedding(a_{t+1})]),   v_{t+1} ~ tanh(Decoder(deter_t))
// Loss: w E2 + (1-w) E1 with E2 = squared and E1 = absolute error, summed over width and channels, averaged over batch,
// time and height. Frames of any size: they are padded inside by repeating their edge, and predictions are cropped.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "convssm/cores/frame_core.h"
#include "convssm/models/model.h"
#include "convssm/nn/frame_coder.h"

namespace convssm::models {

struct PixelOptions {
  int64_t channels = 1, height = 64, width = 64;  // of the frames
  nn::CoderOptions encoder, decoder;
  nlohmann::json core = {{"name", "convs5"}, {"features", 256}, {"state_size", 256}, {"layers", 8}};
  int64_t actions = 1;          // A: the embedding has A+1 rows, the last one for the masked action; 0: no embedding
  int64_t action_features = 1;  // channels of the embedding
  double loss_weight = 0.5;     // w
  uint64_t seed = 0;            // of the initial values

  // From the `model` section of a config, without its `name`; the frames' size is not part of it.
  static PixelOptions from_json(const nlohmann::json& json);
};

class PixelPredictorImpl : public Model {
 public:
  explicit PixelPredictorImpl(const PixelOptions& options);

  LossOutput loss(const at::Tensor& video, const at::Tensor& actions, const State& start = {},
                  const at::Tensor& inputs = {}) override;
  at::Tensor forecasts(const at::Tensor& video, const at::Tensor& actions, const ssm::Timing& timing = {}) override;
  State start(const at::Tensor& context, const at::Tensor& actions, const State& state = {}) override;
  FrameOutput next(const State& state, const at::Tensor& action) override;

  bool has_plan() const override { return core_->has_plan(); }
  void plan(nn::FramePlan& plan) override;

  bool constant_state() const override { return core_->constant_state(); }
  double pair_bytes() const override { return core_->pair_bytes(); }
  std::string description() const override;

 private:
  at::Tensor core_input(const at::Tensor& frames, const at::Tensor& actions);  // [N,C,H,W], [N] -> [N,F,h,w]
  // Frames [B,L,C,H,W] and the actions [B,L] after them through encoder and core: y [L,B,F,h,w].
  cores::CoreOutput run_core(const at::Tensor& frames, const at::Tensor& coming, const State& inner,
                             const ssm::Timing& timing = {});
  at::Tensor decode(const at::Tensor& features);  // [N,F,h,w] -> [N,C,H,W]
  void check_clip(const char* operation, const at::Tensor& video, const at::Tensor& actions) const;

  PixelOptions options_;
  int64_t pad_height_ = 0, pad_width_ = 0;
  nn::Encoder encoder_{nullptr};
  at::Tensor action_table_;
  std::shared_ptr<cores::FrameCore> core_;
  nn::Decoder decoder_{nullptr};
};
TORCH_MODULE(PixelPredictor);

}  // namespace convssm::models
