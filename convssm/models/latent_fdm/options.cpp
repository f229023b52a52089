// The `model` section of Latent FDM.
#include <algorithm>
#include <cmath>

#include "convssm/base/bounds.h"
#include "convssm/base/option_reader.h"
#include "convssm/models/latent_fdm/latent_fdm.h"
#include "convssm/ops/check.h"

namespace convssm::models {
namespace latent_fdm {

void DenoiserOptions::check() const {
  const int64_t halvings = static_cast<int64_t>(multipliers.size()) - 1, factor = int64_t{1} << halvings;
  ops::require("model", height % factor == 0 && width % factor == 0,
               "{} multipliers halve the {} x {} frames {} times, which they cannot; give fewer", halvings + 1, height,
               width, halvings);
  std::vector<int64_t> attended = {multipliers.back()};
  for (const int64_t wanted : attention) {
    int64_t size = height, level = 0;
    while (size != wanted && level < halvings) size /= 2, ++level;
    ops::require("model", size == wanted, "attention must name heights that occur, {} down to {}, got {}", height,
                 height >> halvings, wanted);
    attended.push_back(multipliers[static_cast<size_t>(level)]);
  }
  for (const int64_t m : attended) {
    ops::require("model", m * channels % heads == 0, "heads must divide the {} channels that attention has, got {}",
                 m * channels, heads);
  }
}

}  // namespace latent_fdm

namespace {

constexpr int64_t kMostFrames = 1000, kMostChannels = 100000, kMostTimes = 100, kMostMultipliers = 10,
                  kMostSteps = 100000, kMostHorizon = 1000000;

void read_diffusion(LatentFdmOptions& o, const nlohmann::json& json) {
  OptionReader read("model.diffusion", json);
  read("steps", o.diffusion.steps);
  read("schedule", [&](const std::string& text) {
    ops::require("model.diffusion", text == "linear" || text == "cosine", "schedule must be linear or cosine, got '{}'",
                 text);
    o.diffusion.cosine = text == "cosine";
  });
  read.finish();
  require_between("model.diffusion", "steps", o.diffusion.steps, 2, kMostSteps);
}

void read_sampling(LatentFdmOptions& o, const nlohmann::json& json) {
  OptionReader read("model.sampling", json);
  o.scheme.drawn = o.scheme.frames / 2;
  o.sampler.steps = std::min(o.sampler.steps, o.diffusion.steps);
  read("scheme", [&](const std::string& text) { o.scheme.scheme = latent_fdm::parse_scheme(text); });
  read("frames", o.scheme.drawn);
  read("horizon", o.horizon);
  read("steps", o.sampler.steps);
  read("sampler", [&](const std::string& text) {
    ops::require("model.sampling", text == "ddpm" || text == "ddim", "sampler must be ddpm or ddim, got '{}'", text);
    o.sampler.ddim = text == "ddim";
  });
  read("eta", o.sampler.eta);
  read("clamp", o.sampler.clamp);
  read.finish();
  require_between("model.sampling", "frames", o.scheme.drawn, 1, o.scheme.frames - 1);
  require_between("model.sampling", "steps", o.sampler.steps, 0, o.diffusion.steps);
  require_between("model.sampling", "horizon", o.horizon, 0, kMostHorizon);
  ops::require("model.sampling", o.horizon != 1, "horizon must be at least 2 frames, or 0 for that of the training");
  ops::require("model.sampling", o.sampler.ddim || o.sampler.eta == 0,
               "eta is the noise of ddim, ddpm has its own: leave it out, got {}", o.sampler.eta);
  ops::require("model.sampling", o.sampler.eta >= 0 && o.sampler.eta <= 1, "eta must be in [0,1], got {}",
               o.sampler.eta);
  ops::require("model.sampling", std::isfinite(o.sampler.clamp), "clamp must be a number, 0 for none, got {}",
               o.sampler.clamp);
}

}  // namespace

LatentFdmOptions LatentFdmOptions::from_json(const nlohmann::json& json) {
  LatentFdmOptions o;
  nlohmann::json diffusion = nlohmann::json::object(), sampling = nlohmann::json::object();
  OptionReader read("model", json);
  read("tokenizer", o.tokenizer);
  read("frames", o.scheme.frames);
  read("channels", o.denoiser.channels);
  read("multipliers", o.denoiser.multipliers);
  read("blocks", o.denoiser.blocks);
  read("attention", o.denoiser.attention);
  read("heads", o.denoiser.heads);
  read("groups", o.denoiser.groups);
  read("diffusion", diffusion);
  read("sampling", sampling);
  read("actions", o.actions.actions);
  read("action_values", o.actions.action_values);
  read("seed", o.seed);
  read.finish();
  require_between("model", "frames", o.scheme.frames, 2, kMostFrames);
  require_between("model", "channels", o.denoiser.channels, 2, kMostChannels);
  require_between("model", "blocks", o.denoiser.blocks, 1, most_layers);
  require_between("model", "heads", o.denoiser.heads, 1, kMostChannels);
  require_between("model", "groups", o.denoiser.groups, 1, kMostChannels);
  require_between("model", "the number of multipliers", static_cast<int64_t>(o.denoiser.multipliers.size()), 1,
                  kMostMultipliers);
  for (const int64_t m : o.denoiser.multipliers) require_between("model", "each of multipliers", m, 1, kMostTimes);
  ops::require("model", o.denoiser.channels % 2 == 0, "channels must be even, got {}", o.denoiser.channels);
  read_diffusion(o, diffusion);
  read_sampling(o, sampling);
  return o;
}

}  // namespace convssm::models
