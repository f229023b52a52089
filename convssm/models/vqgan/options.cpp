// The `model` section of a VQ-GAN.
#include <cmath>
#include <nlohmann/json.hpp>

#include "convssm/base/nearest.h"
#include "convssm/base/option_reader.h"
#include "convssm/models/vqgan/vqgan.h"
#include "convssm/ops/check.h"

namespace convssm::models {
namespace {

bool is_of_patches(const std::string& encoder) {
  const std::vector<std::string> known = {"convolutions", "patches"};
  if (std::ranges::find(known, encoder) == known.end()) fail_unknown("[model] encoder: unknown kind", encoder, known);
  return encoder == "patches";
}

void check_vqgan(const VqGanOptions& o) {
  const auto weight = [](const char* name, double value) {
    ops::require("model", std::isfinite(value) && value >= 0, "{} must be 0 or positive, got {}", name, value);
  };
  nn::check_vq_coder("model", o.autoencoder.coder);
  weight("discriminator.weight", o.disc_weight);
  weight("perceptual_weight", o.perceptual_weight);
  weight("codebook_weight", o.codebook_weight);
  ops::require("model", o.disc_start >= 0, "discriminator.start must be 0 or positive, got {}; weight: 0 leaves it out",
               o.disc_start);
  ops::require("model", o.autoencoder.images_at_once > 0, "images_at_once must be positive, got {}",
               o.autoencoder.images_at_once);
  const std::vector<std::string> known = {"vgg", "alex", "squeeze", "none"};
  if (std::ranges::find(known, o.perceptual) == known.end())
    fail_unknown("[model] perceptual: unknown network", o.perceptual, known);
}

}  // namespace

VqGanOptions VqGanOptions::from_json(const nlohmann::json& json) {
  VqGanOptions o;
  nn::VqCoderOptions& coder = o.autoencoder.coder;
  nlohmann::json quantizer = nlohmann::json::object(), discriminator = nlohmann::json::object();
  std::string encoder = "convolutions";
  OptionReader read("model", json);
  read("encoder", encoder);
  read("features", coder.features);
  read("multipliers", coder.multipliers);
  read("blocks", coder.blocks);
  read("attention", coder.attention);
  read("latent", coder.latent);
  read("groups", coder.groups);
  read("quantizer", quantizer);
  read("discriminator", discriminator);
  read("perceptual", o.perceptual);
  read("perceptual_weight", o.perceptual_weight);
  read("codebook_weight", o.codebook_weight);
  read("images_at_once", o.autoencoder.images_at_once);
  read("seed", o.seed);
  read.finish();
  coder.patches = is_of_patches(encoder);
  o.autoencoder.quantizer = nn::QuantizerOptions::from_json("model.quantizer", quantizer);
  OptionReader read_discriminator("model.discriminator", discriminator);
  read_discriminator("start", o.disc_start);
  read_discriminator("weight", o.disc_weight);
  read_discriminator("features", o.discriminator.features);
  read_discriminator("layers", o.discriminator.layers);
  read_discriminator.finish();
  check_vqgan(o);
  return o;
}

}  // namespace convssm::models
