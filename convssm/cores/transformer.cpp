// The cached form is the base class. The recomputed form exists to measure what the cache saves: it runs every window
// from the start, and only the first window of a sequence gives more than one output.
#include "convssm/cores/transformer.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "convssm/ops/check.h"

namespace convssm::cores {
namespace {

using ops::require;

void check_options(const TransformerOptions& o) {
  require("Transformer", o.window >= 0, "window must be positive, or 0 for unlimited, got {}", o.window);
  require("Transformer", !o.recompute || o.window != 1, "window must be 0 or at least 2 with recompute, got 1");
}

}  // namespace

TransformerOptions TransformerOptions::from_json(const nlohmann::json& json) {
  TransformerOptions o;
  OptionReader read("Transformer", json);
  o.read_from(read);
  read("window", o.window);
  read("recompute", o.recompute);
  read.finish();
  return o;
}

// Recomputed windows are cut by hand; within them attention is unlimited.
TransformerImpl::TransformerImpl(const TransformerOptions& options)
    : TokenCoreImpl("Transformer", (check_options(options), options),
                    [&](const nn::HeadShape& shape, const Stream&) {
                      return std::make_shared<nn::SoftmaxAttention>(shape, options.recompute ? 0 : options.window);
                    }),
      options_(options) {}

// The softmax of all heads, kept for the backward.
double TransformerImpl::pair_bytes() const {
  const double n = static_cast<double>(options_.tokens_per_frame());
  return static_cast<double>(options_.layers * options_.heads) * n * n *
         static_cast<double>(parameters()[0].element_size());
}

at::Tensor TransformerImpl::past_frames(const State& state, const at::Tensor& x) const {
  if (state.empty()) return x.narrow(0, 0, 0);
  require("Transformer", state.items().size() == 1, "the state must be empty or hold 1 tensor, got {}",
          state.items().size());
  const at::Tensor past = state.get("tokens");
  const int64_t most = options_.window == 0 ? past.size(0) : options_.window - 2;
  std::vector<int64_t> expected = x.sizes().vec();
  expected[0] = std::min(past.dim() > 0 ? past.size(0) : 0, most);
  ops::require_shape("Transformer", "tokens", past, expected);
  ops::require_like("Transformer", "tokens", past, x);
  return past;
}

// Outputs of frames[past:]. The first W-1 frames of a sequence lie in one window.
at::Tensor TransformerImpl::run_windows(const at::Tensor& frames, int64_t past) {
  const int64_t all = frames.size(0), reach = options_.window == 0 ? all : options_.window - 1;
  const int64_t together = std::min(all, reach);
  const auto outputs = [&](int64_t begin, int64_t count) {
    std::vector<nn::Memory> none;
    return run(frames.narrow(0, begin, count), none, 0);
  };
  std::vector<at::Tensor> windows{outputs(0, together).slice(0, past)};
  for (int64_t end = together + 1; end <= all; ++end) {
    windows.push_back(outputs(end - reach, reach).slice(0, reach - 1));
  }
  return windows.size() == 1 ? windows[0] : at::cat(windows);
}

CoreOutput TransformerImpl::forward(const at::Tensor& x, const State& state, const Timing& timing) {
  if (!options_.recompute) return TokenCoreImpl::forward(x, state, timing);
  check(x, timing);
  const at::Tensor past = past_frames(state, x);
  const at::Tensor frames = state.empty() ? x : at::cat({past, x});
  const int64_t all = frames.size(0), keep = options_.window == 0 ? all : std::min(all, options_.window - 2);
  CoreOutput out;
  out.y = run_windows(frames, past.size(0));
  out.state.set("tokens", frames.slice(0, all - keep).clone());
  return out;
}

}  // namespace convssm::cores
