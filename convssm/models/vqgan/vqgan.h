// The VQ-GAN (Esser et al. 2021, arXiv 2012.09841): a tokenizer of frames that learns by reconstruction and, from a later step
// on, against a discriminator. Two players:
//   autoencoder    nll + lambda g + codebook loss,  nll = mean |x - x'| + LPIPS(x, x'),  g = -mean D(x')
//                  lambda = weight min(|d nll / d w| / (|d g / d w| + 1e-4), 1e4),  w the weight of the last convolution
//   discriminator  (mean relu(1 - D(x)) + mean relu(1 + D(x'))) / 2
// With the quantizer `kl` it is the autoencoder of latent diffusion: in place of the codebook loss stands beta KL / (C H W) of a
// frame, which is the published sum over a frame divided by its values, and x' is decoded from a latent that is drawn.
// Before the step `start` of the discriminator there is neither g nor its turn. All frames of a batch count alike: batches
// of few frames of many clips (train.frames 1 to 4) show the table more than long clips, whose frames resemble each other.
// The network behind LPIPS is handed in before a training (run/perceptual.h); it is no part of the model and of no file of
// it. Without it the loss is absolute + squared error, which is said.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "convssm/metrics/lpips.h"
#include "convssm/models/model.h"
#include "convssm/models/vqgan/autoencoder.h"
#include "convssm/nn/patch_discriminator.h"

namespace convssm::models {

struct VqGanOptions {
  VqAutoencoderOptions autoencoder;
  nn::PatchDiscriminatorOptions discriminator;
  int64_t disc_start = 10000;      // the first step of the discriminator
  double disc_weight = 0.8;        // 0: there is no discriminator
  std::string perceptual = "vgg";  // alex, squeeze or none
  double perceptual_weight = 1, codebook_weight = 1;
  uint64_t seed = 0;  // of the initial values

  // From the `model` section of a config, without its `name`; the frames' size and channels are not part of it.
  static VqGanOptions from_json(const nlohmann::json& json);
};

class VqGan : public Model {
 public:
  explicit VqGan(const VqGanOptions& options);

  std::vector<Player> players() const override;
  LossOutput loss(const Clips& clips, const LossContext& context, const State& start = {}) override;
  std::string obstacle_to_chunks() const override { return "its frames are one batch, of which the codes are counted"; }
  std::string obstacle_to_other_sizes() const override { return "a tokenizer makes a fixed number of codes of them"; }
  Tokenizer* as_tokenizer() override { return autoencoder_.get(); }
  TokenizerPart tokenizer_part() override { return {autoencoder_, autoencoder_.get()}; }  // without its discriminator
  std::string description() const override;
  std::string label() const override { return "vqgan"; }

  const std::shared_ptr<VqAutoencoder>& autoencoder() const { return autoencoder_; }

  const VqGanOptions& options() const { return options_; }

  // The network of the perceptual loss, of the type and on the device of the frames. Null: there is none, and `missing`
  // tells people why. A training goes on only with what it began with.
  void set_perceptual(std::shared_ptr<const metrics::Lpips> lpips, const std::string& missing = "");

 private:
  struct Reconstruction {
    at::Tensor loss, l1, perceptual;
  };
  Reconstruction reconstruction(const at::Tensor& x, const at::Tensor& y);
  LossOutput autoencoder_loss(const at::Tensor& x, const at::Tensor& valid, const LossContext& context);
  LossOutput discriminator_loss(const at::Tensor& x, const LossContext& context);
  void keep_to_its_loss(bool by_lpips);

  VqGanOptions options_;
  std::shared_ptr<VqAutoencoder> autoencoder_;
  nn::PatchDiscriminator discriminator_{nullptr};
  std::shared_ptr<const metrics::Lpips> lpips_;
  std::string lpips_missing_;  // why there is none though the options name one, for people
  at::Tensor began_with_;      // buffer [1]: 1 if the training began with LPIPS, 2 without, 0 if there was none
};

// weight min(|nll| / (|g| + 1e-4), 1e4) of two gradients at the same tensor, by their norms; no gradient.
at::Tensor adaptive_weight(const at::Tensor& nll_gradient, const at::Tensor& g_gradient, double weight);

}  // namespace convssm::models
