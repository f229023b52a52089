// Diffusion as a table of numbers: how much of a frame is left after each step, and the step back, of DDPM (Ho et al. 2020) or DDIM
// (Song et al. 2021), on all steps or on some of them (Nichol and Dhariwal 2021).
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

namespace convssm::models::latent_fdm {

struct DiffusionOptions {
  int64_t steps = 1000;
  bool cosine = false;  // alpha_bar = cos^2; else betas are linear, 1e-4 to 0.02 of 1000 steps
};

// alpha_bar after each step: x_t = sqrt(alpha_bar_t) x_0 + sqrt(1 - alpha_bar_t) noise.
std::vector<double> alpha_bars(const DiffusionOptions& options);

struct SamplerOptions {
  int64_t steps = 50;  // of the diffusion's, evenly; 0: all
  bool ddim = true;
  double eta = 0;     // of DDIM: 0 draws nothing after the first noise, 1 about as DDPM
  double clamp = -1;  // x_0 is kept in [-clamp, clamp]; 0: as it is; below 0: 4 for latents, 1 for pixels
};

class Sampler {
 public:
  Sampler(const DiffusionOptions& diffusion, const SamplerOptions& options);

  int64_t count() const { return static_cast<int64_t>(steps_.size()); }
  int64_t step(int64_t i) const { return steps_[static_cast<size_t>(i)]; }  // of the diffusion, the last one first
  bool draws(int64_t i) const;                                              // whether step i takes noise

  // x after step i, from x and the noise that the denoiser sees in it; `noise` is looked at if draws(i).
  at::Tensor back(int64_t i, const at::Tensor& x, const at::Tensor& eps, const at::Tensor& noise) const;

 private:
  SamplerOptions options_;
  std::vector<int64_t> steps_;         // descending
  std::vector<double> bars_, before_;  // alpha_bar at a step and after going back
};

}  // namespace convssm::models::latent_fdm
