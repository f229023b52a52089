// "measured" times both engines once per shape, with a warm-up and the best of three rounds taken in turns, so that a
// neighbour's load hits both alike. Zeros will do: neither engine's speed depends on the values.
#include "convssm/ops/conv_algorithm.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <mutex>

#include "convssm/base/nearest.h"
#include "convssm/ops/winograd.h"
#include "convssm/ops/winograd_conv2d.h"

namespace convssm::ops {
namespace {

constexpr int kRounds = 3;
std::atomic<ConvAlgorithm> chosen{ConvAlgorithm::automatic};

struct Trials {
  std::mutex mutex;
  std::map<ConvKey, ConvTrial> known;
};

Trials& trials() {
  static Trials all;
  return all;
}

double milliseconds(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

// Forward only: where that is faster, the gradients are as well.
ConvTrial measure(const ConvKey& k) {
  at::NoGradGuard no_grad;
  const auto nhwc = at::MemoryFormat::ChannelsLast;
  const at::Tensor x = at::zeros({k.frames, k.in, k.height, k.width}).contiguous(nhwc);
  const at::Tensor weight = at::zeros({k.out, k.in, 3, 3}).contiguous(nhwc);
  ConvTrial trial{k, 1e300, 1e300};
  for (int i = 0; i <= kRounds; ++i) {
    const double direct = milliseconds([&] { at::conv2d(x, weight, {}, 1, 1); });
    const double winograd = milliseconds([&] { winograd_conv2d(x, weight, {}); });
    if (i == 0) continue;  // warm-up
    trial.direct_ms = std::min(trial.direct_ms, direct);
    trial.winograd_ms = std::min(trial.winograd_ms, winograd);
  }
  return trial;
}

bool wins_trial(const ConvKey& key) {
  const std::lock_guard lock(trials().mutex);
  auto found = trials().known.find(key);
  if (found == trials().known.end()) found = trials().known.emplace(key, measure(key)).first;
  return found->second.winograd_ms < found->second.direct_ms;
}

}  // namespace

const char* name(ConvAlgorithm algorithm) {
  switch (algorithm) {
    case ConvAlgorithm::measured:
      return "measured";
    case ConvAlgorithm::direct:
      return "direct";
    case ConvAlgorithm::automatic:
      break;
  }
  return "auto";
}

ConvAlgorithm parse_conv_algorithm(const std::string& text) {
  for (const auto one : {ConvAlgorithm::automatic, ConvAlgorithm::measured, ConvAlgorithm::direct}) {
    if (text == name(one)) return one;
  }
  fail_unknown("unknown convolution algorithm", text, {"auto", "measured", "direct"});
}

void set_conv_algorithm(ConvAlgorithm algorithm) { chosen = algorithm; }

bool chooses_winograd(const ConvKey& k) {
  if (chosen == ConvAlgorithm::direct || k.frames * k.height * k.width == 0 || !winograd_takes(k.in, k.out))
    return false;
  return chosen != ConvAlgorithm::measured || wins_trial(k);
}

std::vector<ConvTrial> conv_trials() {
  const std::lock_guard lock(trials().mutex);
  std::vector<ConvTrial> all;
  for (const auto& [key, trial] : trials().known) all.push_back(trial);
  return all;
}

}  // namespace convssm::ops
