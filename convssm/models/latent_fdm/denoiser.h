// The network of flexible diffusion (Harvey et al. 2022, arXiv 2205.11495): a U-Net over K frames at once, of any numbers in their
// clip and in any order. Convolutions see a frame each; frames meet in attention alone (latent_fdm/frame_attention.h). Given frames
// enter clean, with a plane of ones beside them, the others noisy with a plane of zeros. Out comes the noise of every frame.
#pragma once

#include <vector>

#include "convssm/models/latent_fdm/frame_attention.h"

namespace convssm::models::latent_fdm {

struct DenoiserOptions {
  int64_t frame_channels = 4, height = 16, width = 16;  // of what is diffused
  int64_t channels = 128;                               // c
  std::vector<int64_t> multipliers = {1, 2, 3};         // of c, for each resolution; the next one has half the size
  int64_t blocks = 1;                                   // n, for each resolution down; one more up
  std::vector<int64_t> attention = {16};                // heights at which blocks have attention; the middle always has
  int64_t heads = 4, groups = 32;
  int64_t steps = 1000;  // of the diffusion

  int64_t embedding() const { return 4 * channels; }
  void check() const;  // Error(usage) unless the frames can be halved so often, attention has a place and heads fit
};

// K frames of B clips.
struct NoisyFrames {
  at::Tensor x;        // [B,K,C,H,W], noisy
  at::Tensor clean;    // [B,K,C,H,W], looked at where they are given
  at::Tensor given;    // [B,K] bool
  at::Tensor padding;  // [B,K] bool; undefined: there are none
  at::Tensor numbers;  // [B,K] int64
  at::Tensor steps;    // [B] int64, of the diffusion
  at::Tensor actions;  // [B*K,embedding()], what is added for the action of each frame; undefined: nothing
};

// A block `res` with what follows it, `attention` and a change of size `conv`; any of them may be absent.
struct UnitImpl : torch::nn::Module {
  ResBlock res{nullptr};
  FactorizedAttention attention{nullptr};
  Conv conv{nullptr};
};
TORCH_MODULE(Unit);

class DenoiserImpl : public torch::nn::Module {
 public:
  DenoiserImpl(const DenoiserOptions& options, const Stream& stream);
  at::Tensor forward(const NoisyFrames& frames);  // [B,K,C,H,W]

 private:
  Unit add_block(const char* path, size_t number, int64_t in, int64_t out, int64_t height, const Stream& stream);
  void add_down(const Stream& stream, std::vector<int64_t>& skips);
  void add_up(const Stream& stream, std::vector<int64_t>& skips);
  FrameFacts facts_of(const NoisyFrames& frames);

  DenoiserOptions options_;
  Linear time0_{nullptr}, time1_{nullptr};
  Conv stem_{nullptr}, out_{nullptr};
  std::vector<Unit> down_, up_;
  ResBlock middle0_{nullptr}, middle1_{nullptr};
  FactorizedAttention middle_attention_{nullptr};
  GroupNorm out_norm_{nullptr};
};
TORCH_MODULE(Denoiser);

}  // namespace convssm::models::latent_fdm
