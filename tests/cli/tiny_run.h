// A model and data so small that training takes a second or two.
#pragma once

#include <fstream>
#include <string>

namespace convssm {

inline std::string tiny_config() {
  return "model:\n"
         "  encoder: {depths: [4, 8]}\n"
         "  decoder: {depths: [4, 8]}\n"
         "  core: {name: convs5, features: 8, state_size: 8}\n"
         "data: {name: moving-mnist, digits: 1, image_size: 12, digit_size: 8, clips: 50, test_clips: 6}\n"
         "train:\n"
         "  {steps: 12, batch: 2, frames: 6, warmup: 2, log_interval: 3, save_interval: 4, sample_interval: 6}\n"
         "evaluate: {context: 3, horizons: [4, 8], samples: 5, chunk: 2, batch: 2}\n";
}

// Two players, a table that moves without gradients, batch norm: everything that a run has to carry over.
inline std::string tiny_tokenizer() {
  return "model:\n"
         "  {name: vqgan, features: 4, multipliers: [1, 2], blocks: 1, attention: [], latent: 4, groups: 2, "
         "perceptual: none,\n"
         "   quantizer: {name: ema, size: 16, features: 4}, discriminator: {start: 5, features: 2, layers: 1}}\n"
         "data: {name: moving-mnist, digits: 1, image_size: 12, digit_size: 8, clips: 50, test_clips: 6}\n"
         "train:\n"
         "  {steps: 12, batch: 4, frames: 2, warmup: 2, log_interval: 3, save_interval: 4, sample_interval: 6,\n"
         "   players: {discriminator: {lr: 2e-4, beta1: 0.5}}}\n"
         "evaluate: {frames: 3, samples: 5, chunk: 2, batch: 2, strips: 2}\n";
}

// Noise in every step, levels whose windows do not divide the clips.
inline std::string tiny_cwvae() {
  return "model:\n"
         "  {name: cwvae, levels: 3, factor: 2, stochastic: 3, deterministic: 8, embedding: 8, filters: 2, "
         "dense_features: 8}\n"
         "data: {name: moving-mnist, digits: 1, image_size: 12, digit_size: 8, clips: 50, test_clips: 6}\n"
         "train:\n"
         "  {steps: 12, batch: 2, frames: 6, warmup: 2, log_interval: 3, save_interval: 4, sample_interval: 6}\n"
         "evaluate: {context: 3, horizons: [4, 8], samples: 5, chunk: 2, batch: 2}\n";
}

// Draws in every step, and batch norm whose running values the checkpoints carry.
inline std::string tiny_fitvid() {
  return "model:\n"
         "  {name: fitvid, stages: 2, blocks: 1, filters: 2, expansion: 2, hidden: 8, memory: 8, latent: 3}\n"
         "data: {name: moving-mnist, digits: 1, image_size: 12, digit_size: 8, clips: 50, test_clips: 6}\n"
         "train:\n"
         "  {steps: 12, batch: 2, frames: 6, warmup: 2, log_interval: 3, save_interval: 4, sample_interval: 6}\n"
         "evaluate: {context: 3, horizons: [4, 8], samples: 5, chunk: 2, batch: 2}\n";
}

inline void write_text(const std::string& path, const std::string& text) { std::ofstream(path) << text; }

}  // namespace convssm
