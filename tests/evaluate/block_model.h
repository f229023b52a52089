// A model that is forecaster and tokenizer, on clips with actions, of pixels or of codes, where every number can be followed:
// codes are the means of 2x2 blocks in 16 steps; a future is the last frame, a little noise and what the action adds.
#pragma once

#include <torch/torch.h>

#include <string>
#include <vector>

#include "convssm/models/clip_random.h"
#include "convssm/models/forecaster.h"
#include "convssm/models/model.h"
#include "convssm/models/tokenizer.h"

namespace convssm::evaluate {

inline constexpr int64_t kBlockSide = 12, kBlockGrid = kBlockSide / 2;

inline at::Tensor block_codes(const at::Tensor& video) {  // [B,T,1,H,W] -> [B,T,h,w]
  return ((at::avg_pool2d(video.squeeze(2), 2) + 1) * 8).floor().clamp(0, 15).to(at::kLong);
}

inline at::Tensor block_video(const at::Tensor& codes) {
  return ((codes.to(at::kFloat) + 0.5) / 8 - 1).unsqueeze(2).repeat_interleave(2, 3).repeat_interleave(2, 4);
}

class BlockModel : public models::Model, public models::Forecaster, public models::Tokenizer {
 public:
  explicit BlockModel(bool tokenizes = true, bool draws = true) : tokenizes_(tokenizes), draws_(draws) {
    register_parameter("nothing", at::zeros({1}));
  }
  models::LossOutput loss(const models::Clips&, const models::LossContext&, const models::State& = {}) override {
    return {};
  }
  models::Forecaster* as_forecaster() override { return this; }
  models::Tokenizer* as_tokenizer() override { return tokenizes_ ? this : nullptr; }
  std::string description() const override { return "block model"; }

  at::Tensor encode(const at::Tensor& video) override { return block_codes(video); }
  at::Tensor decode(const at::Tensor& codes) override { return block_video(codes); }
  models::CodeFormat codes() const override { return {16, kBlockGrid, kBlockGrid}; }
  at::Tensor embed(const at::Tensor& codes) override { return codes.unsqueeze(1).to(at::kFloat); }
  int64_t features() const override { return 1; }

  models::State start(const models::Clips& context, const models::Seeds& seeds) override {
    told.push_back(context.actions);
    const at::Tensor video = context.codes.defined() ? block_video(context.codes) : context.video;
    models::State state;
    state.set("frame", video.select(1, context.frames() - 1).clone());
    state.set("random", models::first_position(seeds, context.batch()));
    return state;
  }
  models::Forecast next(const models::State& state, const at::Tensor& action) override {
    told.push_back(action);
    at::Tensor random = state.get("random"), frame = state.get("frame");
    const at::Tensor noise = models::draw_normal(random, {1, kBlockSide, kBlockSide}).to(at::kFloat);
    frame = (0.9 * frame + (draws_ ? 0.1 : 0) * noise).clamp(-1, 1);
    if (action.defined()) frame = (frame + 0.05 * action.to(at::kFloat).view({-1, 1, 1, 1})).clamp(-1, 1);
    models::State after;
    after.set("frame", frame), after.set("random", random);
    return {frame, after};
  }
  models::State observe(const models::State& state, const at::Tensor& frame, const at::Tensor&) override {
    models::State after = state;
    after.set("frame", frame.clone());
    return after;
  }
  bool draws() const override { return draws_; }
  int64_t clips_in(const models::State& state) const override { return state.get("frame").size(0); }

  std::vector<at::Tensor> told;  // actions of contexts and of frames

 private:
  bool tokenizes_, draws_;
};

// 6 test clips of 20 frames with 3 actions and known revisits.
class BlockClips : public data::Dataset {
 public:
  explicit BlockClips(bool as_codes = false) : as_codes_(as_codes) {}
  data::Clips clip(data::Split, uint64_t index, int64_t frames) const override {
    Stream stream(5, "blocks", index);
    at::Tensor noise = at::empty({1, 20, 1, kBlockSide, kBlockSide}), actions = at::empty({1, 20}, at::kLong);
    for (int64_t i = 0; i < noise.numel(); ++i) noise.data_ptr<float>()[i] = static_cast<float>(stream.uniform(-1, 1));
    for (int64_t t = 0; t < 20; ++t) actions[0][t] = static_cast<int64_t>(stream.uniform(0, 3));
    const at::Tensor video = (0.3 * noise + 0.6 * stream.uniform(-1, 1)).slice(1, 0, frames).contiguous();
    data::Clips clip{.video = video, .actions = actions.slice(1, 0, frames)};
    clip.revisit = at::full({1, frames}, -1, at::kLong);
    if (frames > 5) clip.revisit[0][5] = 3;  // in a context of 4, but not of 3
    if (!as_codes_) return clip;
    clip.codes = block_codes(video), clip.video = at::Tensor();
    return clip;
  }
  uint64_t size(data::Split) const override { return 6; }
  int64_t longest(data::Split) const override { return 20; }
  data::FrameFormat format() const override {
    return as_codes_ ? data::FrameFormat(1, kBlockGrid, kBlockGrid) : data::FrameFormat(1, kBlockSide, kBlockSide);
  }
  data::ActionFormat actions() const override { return {3, 0}; }
  data::CodeFormat codes() const override {
    return as_codes_ ? data::CodeFormat{16, kBlockGrid, kBlockGrid} : data::CodeFormat{};
  }
  std::vector<std::string> summary() const override { return {}; }

 private:
  bool as_codes_;
};

}  // namespace convssm::evaluate
