// Learns to forecast a travelling wave field with a two-layer ConvS5, in under a minute on two cores.
//   wave_forecast [OUT.png]
// Every clip is a sum of plane waves with their own directions, speeds and phases. The network sees 24 frames and rolls
// the next 24 forward from its own forecasts. The picture shows the truth above the forecast.
#include <torch/torch.h>

#include <filesystem>
#include <numbers>

#include "convssm/base/progress.h"
#include "convssm/base/random.h"
#include "convssm/cores/convs5.h"
#include "convssm/io/png.h"
#include "convssm/ops/runtime.h"

namespace {

using namespace convssm;
constexpr int64_t kFrames = 48, kContext = 24, kSize = 16, kBatch = 8, kWidth = 32, kSteps = 160;

// [T,B,1,H,W] in [-1,1], a function of the index alone.
torch::Tensor make_clips(uint64_t index) {
  Stream random(1, "waves", index);
  const auto t = torch::arange(kFrames).view({-1, 1, 1, 1, 1});
  const auto y = torch::arange(kSize).view({1, 1, 1, -1, 1}), x = torch::arange(kSize).view({1, 1, 1, 1, -1});
  auto field = torch::zeros({kFrames, kBatch, 1, kSize, kSize});
  for (int64_t b = 0; b < kBatch; ++b) {
    for (int wave = 0; wave < 2; ++wave) {
      const double angle = random.uniform(0, 2 * std::numbers::pi), phase = random.uniform(0, 2 * std::numbers::pi);
      const double k = random.uniform(0.5, 0.9), omega = random.uniform(0.3, 0.6);
      const auto position = k * (std::cos(angle) * x + std::sin(angle) * y) - omega * t + phase;
      field.select(1, b) += 0.5 * torch::sin(position).squeeze(1);
    }
  }
  return field;
}

struct Forecaster : torch::nn::Module {
  torch::nn::Conv2d encode{nullptr}, decode{nullptr};
  cores::ConvS5 core{nullptr};

  Forecaster() {
    encode = register_module("encode", torch::nn::Conv2d(torch::nn::Conv2dOptions(1, kWidth, 3).padding(1)));
    core =
        register_module("core", cores::ConvS5(cores::ConvS5Options{.features = kWidth, .state_size = 64, .layers = 2}));
    decode = register_module("decode", torch::nn::Conv2d(torch::nn::Conv2dOptions(kWidth, 1, 3).padding(1)));
  }

  // Frame k+1 from frames up to k, for all k at once.
  std::pair<torch::Tensor, cores::State> predict(const torch::Tensor& frames, const cores::State& state = {}) {
    const int64_t L = frames.size(0), B = frames.size(1);
    const auto features = encode(frames.flatten(0, 1)).view({L, B, kWidth, kSize, kSize});
    auto [y, next] = core->forward(features, state);
    return {frames + decode(y.flatten(0, 1)).view(frames.sizes()), next};
  }

  torch::Tensor roll(const torch::Tensor& context, int64_t frames) {
    torch::NoGradGuard no_grad;
    auto [seen, state] = predict(context);
    std::vector<torch::Tensor> future{seen.slice(0, -1)};
    for (int64_t k = 1; k < frames; ++k) {
      auto [frame, next] = predict(future.back(), state);
      future.push_back(frame);
      state = next;
    }
    return torch::cat(future);
  }
};

io::Image picture(const torch::Tensor& truth, const torch::Tensor& forecast) {
  const auto row = [](const torch::Tensor& clip) {  // every third frame, side by side
    const auto tiles =
        torch::constant_pad_nd(clip.slice(0, 0, c10::nullopt, 3).select(1, 0).squeeze(1), {1, 1, 1, 1}, 1);
    return tiles.permute({1, 0, 2}).flatten(1);
  };
  auto pixels = ((torch::cat({row(truth), row(forecast)}).clamp(-1, 1) + 1) * 127.5).to(torch::kByte);
  pixels = pixels.repeat_interleave(4, 0).repeat_interleave(4, 1).contiguous();
  const auto* data = pixels.data_ptr<uint8_t>();
  return {pixels.size(1), pixels.size(0), 1, {data, data + pixels.numel()}};
}

}  // namespace

int main(int argc, char** argv) {
  const std::string path = argc > 1 ? argv[1] : "wave.png";
  ops::start_runtime();
  torch::manual_seed(1);
  Forecaster model;
  torch::optim::AdamW optimizer(model.parameters(), torch::optim::AdamWOptions(3e-3));
  {
    Progress progress("train", kSteps);
    for (int64_t step = 0; step < kSteps; ++step) {
      const auto clips = make_clips(step);
      const auto loss = torch::mse_loss(model.predict(clips.slice(0, 0, -1)).first, clips.slice(0, 1));
      optimizer.zero_grad();
      loss.backward();
      optimizer.step();
      progress.update(step + 1, fmt::format("loss {:.4f}", loss.item<double>()));
    }
  }
  const auto clips = make_clips(1'000'000), truth = clips.slice(0, kContext);
  const auto forecast = model.roll(clips.slice(0, 0, kContext), kFrames - kContext);
  const double error = torch::mse_loss(forecast, truth).item<double>();
  const double copy = torch::mse_loss(clips.slice(0, kContext - 1, kContext).expand_as(truth), truth).item<double>();
  fmt::print("forecast of {} frames: squared error {:.4f}; copying the last frame: {:.4f}\n", truth.size(0), error,
             copy);
  if (const auto folder = std::filesystem::path(path).parent_path(); !folder.empty()) {
    std::filesystem::create_directories(folder);
  }
  io::write_png(path, picture(truth, forecast));
  fmt::print("truth above, forecast below, every third frame: {}\n", path);
  return error < copy ? 0 : 1;
}
