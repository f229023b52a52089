// Forecasts a stream in real time: live_forecast MODEL CLIP.npy [int8]
// Each frame goes in as it comes, and the forecast of the one after it comes out; when the recording ends, the forecasts
// go on from themselves. Prints how far off the forecasts were and how long a frame took.
#include <torch/torch.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

#include "convssm/generate/context.h"
#include "convssm/generate/predictor.h"
#include "convssm/ops/runtime.h"
#include "convssm/run/model_file.h"

using namespace convssm;

double milliseconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

void print_latency(const char* what, std::vector<double> times) {
  if (times.empty()) return;
  std::sort(times.begin(), times.end());
  const auto percentile = [&](double p) { return times[static_cast<size_t>(p * double(times.size() - 1))]; };
  std::printf("%s: %zu frames, p50 %.2f ms, p99 %.2f ms\n", what, times.size(), percentile(0.5), percentile(0.99));
}

int forecast_live(const std::string& path, const std::string& clip, const std::string& precision) {
  ops::start_runtime();
  const run::LoadedModel loaded = run::load_model(path);
  const at::Tensor video =
      generate::read_context(clip, loaded.recipe.frames, {.clip = 0}).clips.video;  // [1,T,C,H,W] in [-1,1]

  generate::Predictor predictor(*loaded.model, {.precision = generate::parse_precision(precision)});
  predictor.start({video.slice(1, 0, 1)});  // int8 is calibrated here
  std::vector<double> live, alone;
  double error = 0;
  for (int64_t k = 1; k + 1 < video.size(1); ++k) {
    const auto start = std::chrono::steady_clock::now();
    const at::Tensor forecast = predictor.next(video.select(1, k));
    live.push_back(milliseconds_since(start));
    error += (forecast - video.select(1, k + 1)).abs().mean().item<double>();
  }
  for (int64_t k = 0; k < 100; ++k) {
    const auto start = std::chrono::steady_clock::now();
    const at::Tensor forecast = predictor.next();
    alone.push_back(milliseconds_since(start));
  }
  if (!live.empty()) std::printf("mean absolute error of one frame ahead: %.4f\n", error / double(live.size()));
  print_latency("live", live);
  print_latency("free-running", alone);
  return 0;
}

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: live_forecast MODEL CLIP.npy [int8]\n");
    return 2;
  }
  try {
    return forecast_live(argv[1], argv[2], argc > 3 ? argv[3] : "float32");
  } catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return exit_code(error.kind());
  }
}
