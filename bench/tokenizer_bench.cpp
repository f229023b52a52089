// The VQ-GAN's autoencoder against the same network in PyTorch (tools/peer_tokenizer.py): encoding and decoding of 64 x 64
// frames, and a training step without perceptual network and discriminator. Both have the same parameters; what they make of
// the frames is compared first.
#include <ATen/ATen.h>
#include <unistd.h>

#include <filesystem>

#include "bench/harness.h"
#include "bench/peer_tokenizer.h"
#include "bench/python_peer.h"
#include "convssm/base/log.h"
#include "convssm/base/threads.h"
#include "convssm/io/tensor.h"
#include "convssm/models/registry.h"
#include "convssm/models/tokenizer.h"
#include "convssm/train/gradients.h"
#include "convssm/train/optimizer.h"

namespace convssm::bench {
namespace {

struct TokenizerCase {
  const char* size;
  int64_t features;
  std::vector<int64_t> multipliers;
  int64_t blocks, latent, frames;
};

std::shared_ptr<models::Model> make_tokenizer(const TokenizerCase& c) {
  return models::make_model({{"name", "vqgan"},
                             {"features", c.features},
                             {"multipliers", c.multipliers},
                             {"blocks", c.blocks},
                             {"latent", c.latent},
                             {"perceptual", "none"},
                             {"quantizer", {{"name", "gradient"}, {"size", 1024}, {"features", c.latent}}},
                             {"discriminator", {{"weight", 0}}}},
                            {3, 64, 64});
}

void bench_tokenizer_size(const TokenizerCase& c, const Settings& settings, const Report& report) {
  log_info("tokenizer: of the size '{}'", c.size);
  const auto model = make_tokenizer(c);
  models::Tokenizer& tokenizer = *model->as_tokenizer();
  {
    const at::NoGradGuard no_grad;  // a table near 0, as it is drawn, has no nearest row to speak of
    for (auto& item : model->named_parameters()) {
      if (item.key().ends_with("embedding.weight")) item.value().mul_(1024);
    }
  }
  at::manual_seed(1);
  const at::Tensor video = at::rand({1, c.frames, 3, 64, 64}) * 2 - 1;
  const at::Tensor codes = tokenizer.encode(video), decoded = tokenizer.decode(codes);
  const std::string path =
      std::filesystem::temp_directory_path() / fmt::format("convssm-bench-tokenizer-{}.safetensors", ::getpid());
  io::NamedTensors tensors = {{"bench.frames", video[0]}, {"bench.codes", codes[0]}, {"bench.decoded", decoded[0]}};
  for (const auto& item : model->named_parameters()) tensors.emplace_back("model." + item.key(), item.value().detach());
  io::save_tensors(path, tensors);
  const auto peer = PythonPeer::start(kPeerTokenizer, {path, std::to_string(threads()), "16"});
  if (peer) {
    const std::vector<double> found = peer->run("check");
    report(single(fmt::format("difference.tokenizer.{}.codes", c.size), found.at(0), "codes", "that differ"));
    report(single(fmt::format("difference.tokenizer.{}.frames", c.size), found.at(1), "of [-1,1]", "largest"));
  }
  std::error_code ignored;
  std::filesystem::remove(path, ignored);

  const auto measure = [&](const char* work, int rounds, const std::function<void()>& ours) {
    const std::string name = fmt::format("tokenizer.{}.{}", work, c.size);
    Row row = compare(name, peer ? peer->version() : "python3-torch is not installed", rounds, ours, [&] {
      if (peer) peer->run(work);
    });
    if (!peer) row.reference = row.ratio = row.spread = 0;
    report(per_second(row, static_cast<double>(c.frames), "frames/s"));
  };
  measure("encode", settings.rounds, [&] { tokenizer.encode(video); });
  measure("decode", settings.rounds, [&] { tokenizer.decode(codes); });
  model->train();
  train::Optimizer optimizer(model->players().at(0), {});
  measure("train", std::max(3, settings.rounds / 3), [&] {
    optimizer.clear_gradients();
    train::add_gradients(*model, {video}, {.player = "autoencoder"}, 0);
  });
}

}  // namespace

void bench_tokenizer(const Settings& settings, const Report& report) {
  bench_tokenizer_size({"small", 32, {1, 2, 2}, 1, 64, 16}, settings, report);
  bench_tokenizer_size({"paper", 128, {1, 2, 4}, 2, 256, 4}, settings, report);
}

}  // namespace convssm::bench
