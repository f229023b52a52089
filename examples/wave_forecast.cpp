// Learns to forecast a travelling wave with a two-layer ConvS5, in under a minute on two cores: wave_forecast [OUT.png]
// Every clip is a plane wave with its own direction, length, speed and phase. The network sees 20 frames and rolls the
// next 20 forward from its own forecasts. The picture shows the truth above the forecast.
#include <torch/torch.h>

#include <filesystem>

#include "convssm/base/progress.h"
#include "convssm/base/random.h"
#include "convssm/cores/convs5.h"
#include "convssm/io/png.h"
#include "convssm/ops/runtime.h"

using namespace convssm;
constexpr int64_t kFrames = 40, kContext = 20, kSize = 16, kBatch = 2, kWidth = 32, kSteps = 360;
constexpr double kRate = 5e-3, kNoise = 0.2;  // noise on the inputs teaches to go on from imperfect forecasts

// [T,B,1,H,W] in [-1,1], a function of the index alone.
torch::Tensor make_clips(uint64_t index) {
  Stream random(1, "waves", index);
  const auto x = torch::arange(kSize), y = x.view({-1, 1}), t = torch::arange(kFrames).view({-1, 1, 1, 1});
  std::vector<torch::Tensor> clips;
  for (int64_t b = 0; b < kBatch; ++b) {
    const double angle = random.uniform(0, 2 * M_PI), phase = random.uniform(0, 2 * M_PI);
    const double k = random.uniform(0.5, 0.9), omega = random.uniform(0.3, 0.6);
    clips.push_back(0.9 * torch::sin(k * (std::cos(angle) * x + std::sin(angle) * y) - omega * t + phase));
  }
  return torch::stack(clips, 1);
}

struct Forecaster : torch::nn::Module {
  torch::nn::Conv2d encode{nullptr}, decode{nullptr};
  cores::ConvS5 core{nullptr};
  Forecaster() {
    const auto conv = [](int64_t in, int64_t out) { return torch::nn::Conv2dOptions(in, out, 3).padding(1); };
    encode = register_module("encode", torch::nn::Conv2d(conv(1, kWidth)));
    core =
        register_module("core", cores::ConvS5(cores::ConvS5Options{.features = kWidth, .state_size = 32, .layers = 2}));
    decode = register_module("decode", torch::nn::Conv2d(conv(kWidth, 1)));
  }
  // Frame k+1 from frames up to k, for all k at once.
  std::pair<torch::Tensor, cores::State> predict(const torch::Tensor& frames, const cores::State& state = {}) {
    const auto features = encode(frames.flatten(0, 1)).view({frames.size(0), frames.size(1), kWidth, kSize, kSize});
    auto [y, next] = core->forward(features, state);
    return {frames + decode(y.flatten(0, 1)).view(frames.sizes()), next};
  }
  torch::Tensor roll(const torch::Tensor& context, int64_t frames) {
    torch::NoGradGuard no_grad;
    auto [seen, state] = predict(context);
    std::vector<torch::Tensor> future{seen.slice(0, -1)};
    for (int64_t k = 1; k < frames; ++k) {
      future.emplace_back();
      std::tie(future[k], state) = predict(future[k - 1], state);
    }
    return torch::cat(future);
  }
};

// Every second frame of the first clip, side by side: [H,W] in [-1,1].
torch::Tensor strip(const torch::Tensor& clips) {
  const auto tiles = clips.slice(0, 0, {}, 2).select(1, 0).squeeze(1);
  return torch::constant_pad_nd(tiles, {1, 1, 1, 1}, 1).permute({1, 0, 2}).flatten(1);
}

int main(int argc, char** argv) try {
  const std::filesystem::path path = argc > 1 ? argv[1] : "wave.png";
  ops::start_runtime();
  torch::manual_seed(1);
  Forecaster model;
  torch::optim::AdamW optimizer(model.parameters());
  auto& settings = static_cast<torch::optim::AdamWOptions&>(optimizer.param_groups()[0].options());
  Progress progress("train", kSteps);
  for (int64_t step = 0; step < kSteps; ++step) {
    const auto clips = make_clips(step), inputs = clips.slice(0, 0, -1);
    const auto forecast = model.predict(inputs + kNoise * torch::randn_like(inputs)).first;
    const auto loss = torch::mse_loss(forecast, clips.slice(0, 1));
    settings.lr(kRate * (kSteps - step) / kSteps);
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
    progress.update(step + 1, fmt::format("loss {:.4f}", loss.item<double>()));
  }
  progress.finish();
  const auto clips = make_clips(1'000'000), truth = clips.slice(0, kContext);
  const auto forecast = model.roll(clips.slice(0, 0, kContext), kFrames - kContext);
  const auto error_of = [&](const torch::Tensor& guess) { return (guess - truth).square().mean().item<double>(); };
  const double error = error_of(forecast), copy = error_of(clips.slice(0, kContext - 1, kContext));
  auto pixels = ((torch::cat({strip(truth), strip(forecast)}).clamp(-1, 1) + 1) * 127.5).to(torch::kByte);
  pixels = pixels.repeat_interleave(4, 0).repeat_interleave(4, 1).contiguous();
  const auto* bytes = pixels.data_ptr<uint8_t>();
  if (path.has_parent_path()) std::filesystem::create_directories(path.parent_path());
  io::write_png(path.string(), {pixels.size(1), pixels.size(0), 1, {bytes, bytes + pixels.numel()}});
  fmt::print("squared error of {} frames: {:.3f}; of copying the last one: {:.3f}\n", truth.size(0), error, copy);
  fmt::print("truth above, forecast below, every second frame: {}\n", path.string());
  return error < copy ? 0 : 1;
} catch (const std::exception& error) {
  fmt::print(stderr, "error: {}\n", error.what());
  return 1;
}
