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
inline std::string tiny_tokenizer(const std::string& quantizer = "{name: ema, size: 16, features: 4}") {
  return "model:\n"
         "  {name: vqgan, features: 4, multipliers: [1, 2], blocks: 1, attention: [], latent: 4, groups: 2, "
         "perceptual: none,\n"
         "   quantizer: " +
         quantizer +
         ", discriminator: {start: 5, features: 2, layers: 1}}\n"
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

// Windows and dropout that are drawn in every step, on the 36 codes a frame of tiny_tokenizer().
inline std::string tiny_perceiver_ar(const std::string& tokenizer) {
  return "model:\n"
         "  {name: perceiver_ar, features: 8, layers: 1, heads: 2, latents: 40, context: 100, dropout: 0.2,\n"
         "   tokenizer: " +
         tokenizer +
         "}\n"
         "data: {name: moving-mnist, digits: 1, image_size: 12, digit_size: 8, clips: 50, test_clips: 6}\n"
         "train:\n"
         "  {steps: 12, batch: 2, frames: 6, warmup: 2, log_interval: 3, save_interval: 4, sample_interval: 6,\n"
         "   sample_clips: 2, sample_context: 2, sample_frames: 2}\n"
         "evaluate: {context: 3, horizons: [4, 8], samples: 5, chunk: 2, batch: 2}\n";
}

// Noise in every step, averages that are drawn from, buffers that the first step sets.
inline std::string tiny_latent_fdm() {
  return "model:\n"
         "  {name: latent_fdm, frames: 4, channels: 4, multipliers: [1, 2], attention: [6], heads: 2, groups: 2,\n"
         "   sampling: {steps: 3, scheme: hierarchy-2}}\n"
         "data: {name: moving-mnist, digits: 1, image_size: 12, digit_size: 8, clips: 50, test_clips: 6}\n"
         "train:\n"
         "  {steps: 12, batch: 2, frames: 6, warmup: 2, ema: 0.9, log_interval: 3, save_interval: 4, sample_interval: "
         "6}\n"
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
