// The table of models: the one place outside a model's folder that knows it.
#include "convssm/models/registry.h"

#include <c10/util/Exception.h>

#include <nlohmann/json.hpp>

#include "convssm/base/error.h"
#include "convssm/base/memory.h"
#include "convssm/base/registry.h"
#include "convssm/models/codes/code_predictor.h"
#include "convssm/models/cwvae/cwvae.h"
#include "convssm/models/fitvid/fitvid.h"
#include "convssm/models/latent_fdm/latent_fdm.h"
#include "convssm/models/perceiver_ar/perceiver_ar.h"
#include "convssm/models/pixel/pixel_predictor.h"
#include "convssm/models/teco/teco.h"
#include "convssm/models/vqgan/vqgan.h"
#include "convssm/ops/allocator.h"

namespace convssm::models {
namespace {

std::shared_ptr<Model> make_pixel(const nlohmann::json& json, const data::FrameFormat& frames) {
  PixelOptions options = PixelOptions::from_json(json);
  options.channels = frames.depth(), options.height = frames.height, options.width = frames.width;
  if (frames.seen() == 0) fail(ErrorKind::usage, "[model] all channels are diagnostic; one at least must be seen");
  for (int64_t c = 0; c < frames.depth() && frames.seen() < frames.depth(); ++c) {
    if (!frames.channels[static_cast<size_t>(c)].diagnostic) options.seen.push_back(c);
  }
  return std::make_shared<PixelPredictorImpl>(options);
}

std::shared_ptr<Model> make_vqgan(const nlohmann::json& json, const data::FrameFormat& frames) {
  VqGanOptions options = VqGanOptions::from_json(json);
  options.autoencoder.coder.channels = frames.depth();
  options.autoencoder.coder.height = frames.height, options.autoencoder.width = frames.width;
  return std::make_shared<VqGan>(options);
}

std::shared_ptr<Model> make_codes(const nlohmann::json& json, const data::FrameFormat&) {
  return std::make_shared<CodePredictor>(CodeOptions::from_json(json));
}

std::shared_ptr<Model> make_teco(const nlohmann::json& json, const data::FrameFormat&) {
  return std::make_shared<Teco>(TecoOptions::from_json(json));
}

std::shared_ptr<Model> make_cwvae(const nlohmann::json& json, const data::FrameFormat& frames) {
  CwvaeOptions options = CwvaeOptions::from_json(json);
  options.frames.channels = frames.depth(), options.frames.height = frames.height, options.frames.width = frames.width;
  return std::make_shared<Cwvae>(options);
}

std::shared_ptr<Model> make_perceiver_ar(const nlohmann::json& json, const data::FrameFormat&) {
  return std::make_shared<PerceiverAr>(PerceiverArOptions::from_json(json));
}

std::shared_ptr<Model> make_latent_fdm(const nlohmann::json& json, const data::FrameFormat& frames) {
  LatentFdmOptions options = LatentFdmOptions::from_json(json);
  options.frames = frames;
  return std::make_shared<LatentFdm>(options);
}

std::shared_ptr<Model> make_fitvid(const nlohmann::json& json, const data::FrameFormat& frames) {
  FitVidOptions options = FitVidOptions::from_json(json);
  options.frames = {frames.depth(), frames.height, frames.width};
  return std::make_shared<FitVid>(options);
}

// Options that change how futures are drawn, not what was learned.
const std::vector<std::string> kSampling = {"temperature", "top_k",          "top_p",
                                            "core.window", "core.recompute", "like_reference"};
const std::vector<std::string> kTecoSampling = {"temperature",   "top_k",          "top_p",
                                                "core.window",   "core.recompute", "like_reference",
                                                "maskgit.draft", "maskgit.revise", "maskgit.rounds"};

std::vector<ModelInfo> own_models() {
  return {
      {"pixel",
       "encoder, temporal core, decoder on pixels, L1 + L2 loss",
       make_pixel,
       {"core.window", "core.recompute"},
       check_pixel_options,
       true},
      {"vqgan",
       "tokenizer of frames: autoencoder with a table of codes, LPIPS and a discriminator",
       make_vqgan,
       {"images_at_once"},
       [](const nlohmann::json& json) { VqGanOptions::from_json(json); }},
      {"codes", "encoder, temporal core, decoder on the codes of a tokenizer, cross-entropy", make_codes, kSampling,
       [](const nlohmann::json& json) { check_core_options(CodeOptions::from_json(json).core); }},
      {"teco", "latents of pairs of frames of codes, temporal core, MaskGit prior, decoder", make_teco, kTecoSampling,
       [](const nlohmann::json& json) { check_core_options(TecoOptions::from_json(json).core); }},
      {"cwvae",
       "recurrent latents of several clocks on pixels or codes, negative evidence bound",
       make_cwvae,
       {"mean_only"},
       [](const nlohmann::json& json) { CwvaeOptions::from_json(json); }},
      {"perceiver_ar",
       "codes of a tokenizer one after the other, with attention to the whole history, cross-entropy",
       make_perceiver_ar,
       {"temperature", "top_k", "top_p"},
       [](const nlohmann::json& json) { PerceiverArOptions::from_json(json); }},
      {"latent_fdm",
       "diffusion of any frames of a clip, given others, on the latents of a continuous tokenizer or on pixels",
       make_latent_fdm,
       {"sampling.scheme", "sampling.frames", "sampling.horizon", "sampling.steps", "sampling.sampler", "sampling.eta",
        "sampling.clamp"},
       [](const nlohmann::json& json) { LatentFdmOptions::from_json(json); }},
      {"fitvid",
       "recurrent networks on vectors of frames or codes; the decoder is shown the last frame of the context",
       make_fitvid,
       {"temperature", "top_k", "top_p"},
       [](const nlohmann::json& json) { FitVidOptions::from_json(json); }},
  };
}

Registry<ModelInfo>& registry() {
  static Registry<ModelInfo> all("model", own_models());
  return all;
}

}  // namespace

const std::vector<ModelInfo>& all_models() { return registry().all(); }

void register_model(ModelInfo info) { registry().add(std::move(info)); }

const ModelInfo& find_model(const nlohmann::json& options) {
  if (!options.is_object()) fail(ErrorKind::usage, "[model] expected a group of options, got {}", options.dump());
  const nlohmann::json given = options.contains("name") ? options["name"] : "pixel";
  return registry().find(given.is_string() ? given.get<std::string>() : given.dump());
}

void check_model(const nlohmann::json& options) {
  const ModelInfo& model = find_model(options);
  nlohmann::json own = options;
  own.erase("name");
  if (model.check) model.check(own);
}

std::shared_ptr<Model> make_model(const nlohmann::json& options, const data::FrameFormat& frames, uint64_t memory) {
  const ModelInfo& model = find_model(options);
  nlohmann::json own = options;
  own.erase("name");
  if (!model.diagnostics && frames.seen() < frames.depth()) {
    fail(ErrorKind::usage,
         "[model] {} of {} channels are diagnostic, which are forecast and not seen: model.name=pixel "
         "can, {} cannot",
         frames.depth() - frames.seen(), frames.depth(), model.name);
  }
  const uint64_t room = std::max(4 * available_memory(), uint64_t{256} << 20);  // a full page cache counts as no room
  const ops::AllocationLimit limit(memory > 0 ? memory : room);
  try {
    return model.make(own, frames);
  } catch (const ops::AllocationRefused& error) {
    fail(ErrorKind::usage, "[model] larger than {}: {}. Check features, state_size, layers and depths",
         memory > 0 ? "its file" : "this machine's memory", error.what());
  } catch (const c10::Error& error) {
    if (std::string(error.what_without_backtrace()).find("overflow") == std::string::npos) throw;
    fail(ErrorKind::usage,
         "[model] a tensor of it would be larger than any memory; check features, state_size and depths");
  }
}

}  // namespace convssm::models
