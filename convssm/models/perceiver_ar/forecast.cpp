// How Perceiver AR forecasts: code after code, each an input and a latent of its own, with the keys and values of all others kept.
// What a code sees is a function of its number (perceiver_ar/past.h), so a context in pieces is the same context. Position p holds
// code p-1 and the action of the frame of code p: the last code of a frame goes in with the first step of the next.
//   codes    [B,F,h,w]  of the last frames, from which latents are rebuilt     actions  [B,F,D]  embedded, if there are any
//   random   [B,2]      seeds, and the number of frames so far
//   inputs.k inputs.v   [B,heads,S,size]  of the cross attention: grows with the frames, up to the context
//   layer<l>.k .v       [B,heads,m,size]  of the latents, at most `latents`
//   forecast_waits      there if the last frame is a forecast, which a true one replaces
#include <ATen/ATen.h>

#include <algorithm>
#include <limits>

#include "convssm/models/clip_random.h"
#include "convssm/models/perceiver_ar/perceiver_ar.h"
#include "convssm/models/waiting_state.h"
#include "convssm/nn/attention.h"
#include "convssm/ops/check.h"

namespace convssm::models {

using perceiver_ar::KeyCache;
using perceiver_ar::KeysValues;
using perceiver_ar::Turn;

namespace {

constexpr const char *kCodes = "codes", *kActions = "actions", *kRandom = "random", *kInputs = "inputs";

std::string layer_name(size_t layer) { return "layer" + std::to_string(layer); }

void set_cache(State& state, const std::string& name, const KeyCache& cache) {
  const KeysValues all = cache.from(cache.first());
  state.set(name + ".k", all.keys);
  state.set(name + ".v", all.values);
}

}  // namespace

struct PerceiverAr::Past {
  at::Tensor codes, actions;  // of the last frames
  at::Tensor random;
  int64_t frames = 0;  // so far
  bool forecast = false;
  KeyCache inputs;
  std::vector<KeyCache> layers;

  int64_t clips() const { return codes.size(0); }
  int64_t first_frame() const { return frames - codes.size(1); }
};

// A rebuild needs the codes of one set of latents beside the frame that is under way.
int64_t PerceiverAr::frames_kept() const {
  const int64_t each = options_.network.tokens_per_frame();
  return (options_.latents + each - 1) / each + 1;
}

// E of positions begin..end-1 of all clips, [B*(end-begin),D].
at::Tensor PerceiverAr::embedded_range(const Past& past, int64_t begin, int64_t end) const {
  const int64_t B = past.clips(), each = options_.network.tokens_per_frame(), offset = past.first_frame() * each;
  const at::Tensor known = past.codes.flatten(1);
  at::Tensor written = known.slice(1, std::max<int64_t>(begin - 1 - offset, 0), end - 1 - offset);
  if (begin == 0) written = at::cat({at::full({B, 1}, network_->start_token(), known.options()), written}, 1);
  const at::Tensor positions = at::arange(begin, end, known.options());
  at::Tensor rows = past.actions;
  if (rows.defined()) {
    const at::Tensor frames = positions.div(each, "floor") - past.first_frame();
    rows = rows.index_select(1, frames).flatten(0, 1);
  }
  return network_->embed(written.flatten(), positions.repeat({B}), rows);
}

// Logits of the latents at E, which are the next of the layers and the last of the inputs; the layers keep them.
at::Tensor PerceiverAr::latents(Past& past, const at::Tensor& embedded, const Turn& turn) {
  const int64_t first = past.layers[0].first();
  const auto look_back = [&](const at::Tensor& queries) {
    const KeysValues seen = past.inputs.from(sight_.first_input(first));
    return nn::attend_frames(queries, seen.keys, seen.values, 1, 0);
  };
  const auto each_other = [&](int64_t layer, const at::Tensor& queries, const KeysValues& own) {
    KeyCache& cache = past.layers[static_cast<size_t>(layer)];
    cache.append(own);
    const KeysValues seen = cache.from(first);
    return nn::attend_frames(queries, seen.keys, seen.values, 1, 0);
  };
  return network_->forward(embedded, past.clips(), turn, look_back, each_other);
}

// The latents that position `end` sees, before it; inputs end there too. With room for a frame.
void PerceiverAr::rebuild(Past& past, int64_t end) {
  const int64_t first = sight_.first_latent(end), count = end - first;
  const at::Tensor embedded = embedded_range(past, first, end);
  const at::Tensor none =
      at::empty({past.clips(), options_.network.heads, 0, options_.network.head_size()}, embedded.options());
  past.layers.assign(static_cast<size_t>(options_.network.layers), KeyCache({none, none}, first));
  for (KeyCache& layer : past.layers) layer.reserve(first, first, count + options_.network.tokens_per_frame());
  latents(past, embedded, network_->turn(first, count));
}

// Positions from `begin` to the end of the frames, whose codes are known; what is there from `begin` on is left behind.
void PerceiverAr::take_in(Past& past, int64_t begin) {
  const int64_t end = past.frames * options_.network.tokens_per_frame(), first = sight_.first_latent(end),
                seen = sight_.first_input(first);
  begin = std::max(begin, seen);
  const at::Tensor embedded = embedded_range(past, begin, end);
  const Turn turn = network_->turn(begin, end - begin);
  const KeysValues own = network_->cross()->keys_values(embedded, past.clips(), turn);
  if (past.layers.empty()) {
    past.inputs = KeyCache(own, begin);
  } else {
    past.inputs.reserve(seen, begin, end - begin);
    past.inputs.append(own);
  }
  const bool on = !past.layers.empty() && past.layers[0].first() == first && first <= begin;
  if (!on) return rebuild(past, end);
  for (KeyCache& layer : past.layers) layer.reserve(first, begin, end - begin);
  latents(past, embedded, turn);
}

void PerceiverAr::add_frame(Past& past, const at::Tensor& codes, const at::Tensor& action) const {
  const auto longer = [&](const at::Tensor& before, const at::Tensor& last) {
    const int64_t kept = std::min(before.size(1), frames_kept() - 1);
    return at::cat({before.slice(1, before.size(1) - kept), last.unsqueeze(1)}, 1);
  };
  past.codes = longer(past.codes, codes);
  if (past.actions.defined()) past.actions = longer(past.actions, embedded(action, past.clips()));
  ++past.frames;
}

at::Tensor PerceiverAr::draw_code(const at::Tensor& random, int64_t number, const at::Tensor& logits) const {
  at::Tensor position = random.clone();
  position.select(1, 1).fill_(number);
  return choose_category(draw_uniform(position, {}), code_probabilities(logits, options_.sampling));
}

// The codes of the next frame, one after the other. Whether what the model said of each clip were numbers, [B].
at::Tensor PerceiverAr::draw_frame(Past& past, const at::Tensor& action) {
  const int64_t each = options_.network.tokens_per_frame(), begin = past.frames * each;
  add_frame(past, at::zeros_like(past.codes.select(1, 0)), action);
  const at::Tensor codes = past.codes.view({past.clips(), -1});
  const Turn turn = network_->turn(begin, each);
  past.inputs.reserve(sight_.first_input(sight_.first_latent(begin)), begin, each);
  for (KeyCache& layer : past.layers) layer.reserve(layer.first(), begin, each);
  at::Tensor sound;
  for (int64_t p = begin; p < begin + each; ++p) {
    if (past.layers[0].first() != sight_.first_latent(p)) rebuild(past, p);
    const Turn own = turn.slice(p - begin, p - begin + 1);
    const at::Tensor embedded = embedded_range(past, p, p + 1);
    past.inputs.append(network_->cross()->keys_values(embedded, past.clips(), own));
    const at::Tensor logits = latents(past, embedded, own);
    const at::Tensor finite = at::isfinite(logits).all(1);
    sound = sound.defined() ? sound.logical_and(finite) : finite;
    codes.select(1, p - past.first_frame() * each).copy_(draw_code(past.random, p, logits));
  }
  return sound;
}

State PerceiverAr::start(const Clips& context, const Seeds& seeds) {
  at::NoGradGuard no_grad;
  check("start", context);
  Past past;
  past.codes = codes_.codes_of("start", context);
  const int64_t B = past.codes.size(0), T = past.codes.size(1);
  past.frames = T;
  past.random = first_position(seeds, B).to(past.codes.device());
  const at::Tensor rows = embedded(context.actions.defined() ? context.actions.flatten(0, 1) : context.actions, B * T);
  if (rows.defined()) past.actions = rows.unflatten(0, {B, T});
  take_in(past, 0);
  const auto last = [&](const at::Tensor& x) {
    return x.defined() ? x.slice(1, std::max<int64_t>(T - frames_kept(), 0)).clone() : x;
  };
  past.codes = last(past.codes), past.actions = last(past.actions);
  return state_of(past);
}

Forecast PerceiverAr::next(const State& state, const at::Tensor& action) {
  at::NoGradGuard no_grad;
  ops::require("next", !state.empty(), "the state is empty; start() makes one from a context");
  Past past = past_of(state);
  const at::Tensor sound = draw_frame(past, action);
  past.forecast = true;
  const at::Tensor frames = codes_.frames_of(past.codes.select(1, past.codes.size(1) - 1));
  // By NaN generation knows that the model has diverged.
  return {frames.masked_fill(sound.logical_not().view({-1, 1, 1, 1}), std::numeric_limits<double>::quiet_NaN()),
          state_of(past)};
}

State PerceiverAr::observe(const State& state, const at::Tensor& frame, const at::Tensor& action) {
  at::NoGradGuard no_grad;
  ops::require("observe", !state.empty(), "the state is empty; start() makes one from a context");
  Past past = past_of(state);
  ops::require_dims("observe", "frame", frame, 4, "[B,C,H,W]");
  ops::require("observe", frame.size(0) == past.clips(), "expected a frame for each of {} clips, got {}", past.clips(),
               frame.size(0));
  const at::Tensor codes = codes_.codes_of("observe", {frame.unsqueeze(1)}).select(1, 0);
  if (past.forecast) {
    past.codes = past.codes.clone();
    past.codes.select(1, past.codes.size(1) - 1).copy_(codes);
  } else {
    add_frame(past, codes, action);
  }
  past.forecast = false;
  take_in(past, (past.frames - 1) * options_.network.tokens_per_frame());
  return state_of(past);
}

State PerceiverAr::state_of(const Past& past) const {
  State state;
  state.set(kCodes, past.codes);
  if (past.actions.defined()) state.set(kActions, past.actions);
  at::Tensor random = past.random.clone();
  random.select(1, 1).fill_(past.frames);
  state.set(kRandom, random);
  set_cache(state, kInputs, past.inputs);
  for (size_t l = 0; l < past.layers.size(); ++l) set_cache(state, layer_name(l), past.layers[l]);
  if (past.forecast) state.set(kForecastWaits, at::ones({1}));
  return state;
}

PerceiverAr::Past PerceiverAr::past_of(const State& state) const {
  const perceiver_ar::NetworkOptions& o = options_.network;
  Past past;
  past.random = waiting_value(state, kRandom, {2}, at::kLong);
  const int64_t B = past.random.size(0);
  const at::Tensor numbers = past.random.select(1, 1).cpu();
  past.frames = numbers[0].item<int64_t>();
  if (past.frames < 1 || past.frames > std::numeric_limits<int64_t>::max() / o.tokens_per_frame() - 1 ||
      !(numbers == past.frames).all().item<bool>()) {
    fail(ErrorKind::data, "the clips of the state must have the same number of frames before them, at least 1");
  }
  const auto value = [&](const std::string& name, at::IntArrayRef sizes, at::ScalarType type) {
    const at::Tensor x = waiting_value(state, name.c_str(), sizes, type);
    if (x.size(0) != B) fail(ErrorKind::data, "the state must hold {} for its {} clips, got {}", name, B, x.size(0));
    return x;
  };
  const int64_t kept = std::min(past.frames, frames_kept());
  past.codes = value(kCodes, {kept, o.rows, o.columns}, at::kLong);
  if (past.codes.min().item<int64_t>() < 0 || past.codes.max().item<int64_t>() >= o.codes)
    fail(ErrorKind::data, "the state must hold codes of 0 to {}, there are others", o.codes - 1);
  if (action_input_.features() > 0) past.actions = value(kActions, {kept, o.features}, at::kFloat);
  past.forecast = forecast_waits(state);

  // As many positions as end where the frames do, and begin where one of these sees them from.
  const int64_t end = past.frames * o.tokens_per_frame();
  const auto cache = [&](const std::string& name, int64_t least, int64_t most) {
    if (!has(state, (name + ".k").c_str()))
      fail(ErrorKind::data, "the state holds no {}.k; start from a context", name);
    const at::Tensor& found = state.get(name + ".k");
    const int64_t count = found.dim() == 4 ? std::clamp(found.size(2), least, most) : least;
    const std::vector<int64_t> sizes{o.heads, count, o.head_size()};
    return KeyCache({value(name + ".k", sizes, at::kFloat), value(name + ".v", sizes, at::kFloat)}, end - count);
  };
  const int64_t now = sight_.first_latent(end), before = sight_.first_latent(end - 1);
  past.inputs = cache(kInputs, end - sight_.first_input(now), end);
  for (size_t l = 0; l < static_cast<size_t>(o.layers); ++l) {
    past.layers.push_back(cache(layer_name(l), end - now, end - before));
    const int64_t first = past.layers[l].first();
    if (first != past.layers[0].first() || (first != now && first != before))
      fail(ErrorKind::data, "the latents of the state must begin at {} or {}, got {}", before, now, first);
  }
  return past;
}

int64_t PerceiverAr::clips_in(const State& state) const { return past_of(state).clips(); }

}  // namespace convssm::models
