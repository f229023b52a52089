// TECO at the size of the paper's DMLab row: a training step on a short clip and frames of codes, against the same network in
// PyTorch (tools/peer_codes.py), both with the same parameters, compared first. And frames/s with the tokenizer's part, by
// length of the future: ConvS5 compiled, and the Transformer, which looks back at all frames and has no plan.
#include <ATen/ATen.h>
#include <unistd.h>

#include <filesystem>

#include "bench/harness.h"
#include "bench/peer_codes.h"
#include "bench/python_peer.h"
#include "convssm/base/log.h"
#include "convssm/base/threads.h"
#include "convssm/generate/predictor.h"
#include "convssm/io/tensor.h"
#include "convssm/models/registry.h"
#include "convssm/models/teco/teco.h"
#include "convssm/run/model_file.h"
#include "convssm/train/gradients.h"
#include "convssm/train/optimizer.h"

namespace convssm::bench {
namespace {

using nlohmann::json;

const json kTokenizer = {{"name", "vqgan"},
                         {"frames", {{"channels", 3}, {"height", 64}, {"width", 64}, {"low", 0}, {"high", 255}}},
                         {"features", 128},
                         {"multipliers", {1, 2, 4}},
                         {"blocks", 2},
                         {"latent", 256},
                         {"quantizer", {{"name", "gradient"}, {"size", 1024}, {"features", 256}}},
                         {"discriminator", {{"weight", 0}}}};
const json kConvS5 = {{"name", "convs5"}, {"features", 512}, {"state_size", 1024},
                      {"layers", 8},      {"blocks", 32},    {"clip_eigs", false}};
const json kTransformer = {{"name", "transformer"}, {"features", 1024}, {"layers", 8},
                           {"heads", 16},           {"mlp", 4096},      {"out_features", 64}};

// The DMLab row without causal masking: every frame depends on the one before.
json teco_of(const json& core) {
  return {{"name", "teco"},
          {"tokenizer", kTokenizer},
          {"encoder", {{"depths", {256, 512}}, {"blocks", 2}}},
          {"decoder", {{"depths", {256, 512}}, {"blocks", 4}}},
          {"features", 64},
          {"quantizer", {{"name", "cosine"}, {"size", 1024}, {"features", 32}}},
          {"core", core},
          {"maskgit", {{"features", 512}, {"layers", 8}, {"heads", 8}, {"draft", 8}, {"revise", 8}, {"rounds", 2}}},
          {"actions", 6},
          {"action_features", 16}};
}

struct Subject {
  json options;
  std::shared_ptr<models::Model> model;

  explicit Subject(const json& core) : options(teco_of(core)), model(models::make_model(options, {3, 64, 64})) {
    const at::NoGradGuard no_grad;  // a table near 0, as it is drawn, has no nearest row to speak of
    for (auto& item : model->named_parameters()) {
      if (item.key() == "tokenizer.quantize.embedding.weight") item.value().mul_(1024);
    }
  }
  models::Teco& teco() const { return static_cast<models::Teco&>(*model); }
};

struct Clip {
  at::Tensor codes, actions;
  models::Choices choices;

  explicit Clip(int64_t frames) {
    at::manual_seed(1);
    codes = at::randint(1024, {1, frames, 16, 16}, at::kLong);
    actions = at::randint(6, {1, frames}, at::kLong);
    for (int64_t s = 0; s + 1 < frames; ++s) choices.frames.push_back(s);
    choices.hidden = at::rand({frames - 1, 8, 8}) < 0.6;
  }
  data::Clips clips() const {
    data::Clips all;
    all.codes = codes, all.actions = actions;
    return all;
  }
};

double step(const Subject& subject, const Clip& clip, train::Optimizer& optimizer) {
  optimizer.clear_gradients();
  const models::LossOutput out = subject.teco().loss_of(clip.clips(), clip.choices);
  out.loss.backward();
  return out.loss.item<double>();
}

std::unique_ptr<PythonPeer> start_peer(const Subject& subject, const Clip& clip, train::Optimizer& optimizer) {
  const double loss = step(subject, clip, optimizer), norm = optimizer.gradient_norm();
  const std::string path =
      std::filesystem::temp_directory_path() / fmt::format("convssm-bench-codes-{}.safetensors", ::getpid());
  std::vector<io::LazyArray> arrays = run::model_arrays(*subject.model);
  const auto add = [&](const char* name, const at::Tensor& value) { arrays.push_back(io::lazy_array(name, value)); };
  add("bench.codes", clip.codes);
  add("bench.actions", clip.actions);
  add("bench.hidden", clip.choices.hidden);
  add("bench.loss", at::full({1}, loss));
  add("bench.gradient_norm", at::full({1}, norm));
  for (const auto& item : subject.model->named_parameters()) {
    if (item.key() == "tokenizer.quantize.embedding.weight") add("bench.table", item.value().detach());
  }
  io::stream_safetensors(path, arrays, run::recipe_metadata({subject.options, {3, 64, 64}, {}}));
  auto peer = PythonPeer::start(kPeerCodes, {path, std::to_string(threads())});
  std::error_code ignored;
  std::filesystem::remove(path, ignored);
  return peer;
}

// Frames after a context of this length, of ConvS5 against the Transformer, which looks back at all of them.
void bench_length(const Subject& convs5, const Subject& transformer, int64_t length, int rounds, const Report& report) {
  const Clip context(length);
  generate::Predictor ours(*convs5.model), theirs(*transformer.model);
  ours.start(context.clips(), {1});
  theirs.start(context.clips(), {1});
  report(per_second(compare(
                        fmt::format("codes.teco.after_{}", length), "TECO-Transformer", rounds, [&] { ours.next(); },
                        [&] { theirs.next(); }),
                    1, "frames/s"));
}

// What a frame takes but for the tokenizer, which the peer has not: both are measured in each round.
Row codes_of_a_frame(const char* name, models::FrameEngine& engine, models::Tokenizer& tokenizer,
                     const at::Tensor& codes, PythonPeer* peer, int rounds) {
  std::vector<double> ours, theirs, ratios;
  for (int round = -1; round < rounds; ++round) {  // the first warms up
    const double frame = milliseconds([&] { engine.next({}); });
    const double decoding = milliseconds([&] { tokenizer.decode(codes); });
    const double other = peer == nullptr ? 0 : milliseconds([&] { peer->run("generate"); });
    if (round < 0) continue;
    ours.push_back(frame - decoding), theirs.push_back(other), ratios.push_back(other / (frame - decoding));
  }
  Row row = single(name, quantile(ours, 0.5), "ms", peer ? peer->version() : "python3-torch is not installed");
  if (peer != nullptr) {
    row.reference = quantile(theirs, 0.5), row.ratio = quantile(ratios, 0.5);
    row.spread = (quantile(ratios, 0.75) - quantile(ratios, 0.25)) / 2;
  }
  return per_second(row, 1, "frames/s");
}

}  // namespace

void bench_codes(const Settings& settings, const Report& report) {
  log_info("codes: TECO-ConvS5 of the DMLab size");
  const Subject subject(kConvS5);
  const Clip clip(32);
  subject.model->train();
  train::Optimizer optimizer(subject.model->players().at(0), {});
  const auto peer = start_peer(subject, clip, optimizer);
  if (peer) {
    const std::vector<double> found = peer->run("check");
    report(single("difference.codes.teco.loss", found.at(0), "of the loss", "relative"));
    report(single("difference.codes.teco.gradient", found.at(1), "of the norm of the gradients", "relative"));
  }
  const auto against = [&](const char* name, const char* task, int rounds, const std::function<void()>& ours) {
    Row row = compare(name, peer ? peer->version() : "python3-torch is not installed", rounds, ours, [&] {
      if (peer) peer->run(task);
    });
    if (!peer) row.reference = row.ratio = row.spread = 0;
    return row;
  };
  report(
      against("codes.teco.train", "train", std::max(3, settings.rounds / 5), [&] { step(subject, clip, optimizer); }));

  subject.model->eval();
  optimizer.clear_gradients();
  models::Forecaster& forecaster = *subject.model->as_forecaster();
  const auto engine = forecaster.compile({.batch = 1}), bytes = forecaster.compile({.batch = 1, .int8 = true});
  engine->start(clip.clips(), {1});
  bytes->start(clip.clips(), {1});
  models::Tokenizer& tokenizer = *subject.model->as_tokenizer();
  const at::Tensor codes = clip.codes.slice(1, 0, 1);
  report(per_second(compare(
                        "codes.teco.frame", "the tokenizer's part of it", settings.rounds, [&] { engine->next({}); },
                        [&] { tokenizer.decode(codes); }),
                    1, "frames/s"));
  report(codes_of_a_frame("codes.teco.generate", *engine, tokenizer, codes, peer.get(), settings.rounds));
  report(codes_of_a_frame("codes.teco.generate.int8", *bytes, tokenizer, codes, peer.get(), settings.rounds));
  const Subject transformer(kTransformer);
  transformer.model->eval();
  for (const int64_t length : {100, 300, 900}) {
    bench_length(subject, transformer, length, std::max(3, settings.rounds / 3), report);
  }
}

}  // namespace convssm::bench
