// The law of futures as checks of any forecaster that a `model` section describes, of small frames with three actions: futures
// alone and in batches, on two threads, stopped and resumed, contexts in pieces, and that seeds, actions and contexts matter.
#pragma once

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "tests/models/code_golden.h"

namespace convssm::testing {

constexpr int64_t kLawSide = 8, kLawShades = 6;  // of frames, which a tokenizer of shades can show

// A section with and without that tokenizer.
inline nlohmann::json law_section(nlohmann::json section, bool codes) {
  section.update({{"actions", 3}, {"action_features", 2}});
  if (codes) section["tokenizer"] = shades(kLawShades, kLawSide, kLawSide, 3);
  return section;
}

// In float64 and eval mode, with parameters and buffers that are not those of the beginning.
inline std::shared_ptr<models::Model> law_model(const nlohmann::json& section) {
  const auto model = models::make_model(section, {1, kLawSide, kLawSide});
  torch::NoGradGuard no_grad;
  uint64_t seed = 0;
  for (auto& item : model->named_parameters()) {
    if (item.key().find("tokenizer") != std::string::npos) continue;
    item.value().add_(0.3 * randn(item.value().sizes(), ++seed).to(at::kFloat));
  }
  for (auto& item : model->named_buffers()) {
    item.value().add_(0.3 * randn(item.value().sizes(), ++seed).abs().to(at::kFloat));
  }
  model->to(at::kDouble);
  model->eval();
  return model;
}

struct LawOptions {
  int64_t seen = 6, coming = 7;  // frames
  std::function<std::shared_ptr<models::Model>(const nlohmann::json&)> make = law_model;
};

class FuturesLaws {
 public:
  explicit FuturesLaws(const nlohmann::json& section, const LawOptions& options = {})
      : section_(section), o_(options), model_(options.make(section)) {
    const std::vector<int64_t> sizes{3, o_.seen + o_.coming, kLawSide, kLawSide};
    video_ = (some_codes(sizes, kLawShades, 1).to(at::kDouble) / 2.5 - 1).unsqueeze(2);
    actions_ = some_codes({3, o_.seen + o_.coming}, 3, 2);
  }

  models::Model& model() const { return *model_; }
  models::Forecaster& forecaster() const { return models::forecaster_of(*model_); }
  at::Tensor frame(int64_t k, int64_t clips) const { return video_.slice(0, 0, clips).select(1, k); }
  at::Tensor action(int64_t k, int64_t clips) const { return actions_.slice(0, 0, clips).select(1, k); }
  models::Clips context(int64_t first, int64_t clips, int64_t frames) const {
    return {video_.slice(0, first, first + clips).slice(1, 0, frames),
            actions_.slice(0, first, first + clips).slice(1, 0, frames)};
  }
  at::Tensor coming(int64_t first, int64_t clips) const {
    return actions_.slice(0, first, first + clips).slice(1, o_.seen);
  }

  // Frames [first,first+frames) of the future from a state, which is moved on.
  static at::Tensor run(models::Forecaster& forecaster, models::State& state, const at::Tensor& coming, int64_t first,
                        int64_t frames) {
    std::vector<at::Tensor> all;
    for (int64_t k = first; k < first + frames; ++k) {
      models::Forecast out = forecaster.next(state, coming.select(1, k));
      all.push_back(out.frame);
      state = out.state;
    }
    return at::stack(all, 1);
  }

  at::Tensor future(int64_t first, int64_t clips, const models::Seeds& seeds) const {
    return future_from(forecaster().start(context(first, clips, o_.seen), seeds), coming(first, clips));
  }
  at::Tensor future_from(models::State state, const at::Tensor& coming) const {
    return run(forecaster(), state, coming, 0, o_.coming);
  }

  void alone_in_a_batch_on_two_threads_and_resumed() const {
    const models::Seeds seeds = {5, 1, 5};
    const int before = at::get_num_threads();
    at::set_num_threads(1);
    const at::Tensor together = future(0, 3, seeds);
    at::set_num_threads(2);
    EXPECT_LT(distance(future(0, 3, seeds), together), 1e-9);
    at::set_num_threads(before);
    for (int64_t i = 0; i < 3; ++i) {
      EXPECT_LT(distance(future(i, 1, {seeds[static_cast<size_t>(i)]})[0], together[i]), 1e-9) << i;
    }
    const models::State state = forecaster().start(context(0, 3, o_.seen), seeds);
    EXPECT_EQ(forecaster().clips_in(state), 3);
    for (int64_t cut = 1; cut < o_.coming; ++cut) {
      models::State now = state;
      const at::Tensor first = run(forecaster(), now, coming(0, 3), 0, cut);
      EXPECT_LE(now.items().size(), state.items().size() + 1) << "of one size, and a mark";
      for (const auto& [name, value] : state.items()) EXPECT_EQ(now.get(name).sizes(), value.sizes()) << name;
      models::State saved = now.clone();
      run(forecaster(), now, coming(0, 3), cut, 1);  // what goes on from a state does not change it
      const auto other = o_.make(section_);
      const at::Tensor rest = run(models::forecaster_of(*other), saved, coming(0, 3), cut, o_.coming - cut);
      EXPECT_TRUE(at::cat({first, rest}, 1).equal(together)) << cut;
    }
  }

  void a_context_in_pieces_is_the_same() const {
    const at::Tensor whole = future(0, 2, {3, 4});
    for (int64_t cut = 1; cut < o_.seen; ++cut) {
      models::State state = forecaster().start(context(0, 2, cut), {3, 4});
      for (int64_t k = cut; k < o_.seen; ++k) state = forecaster().observe(state, frame(k, 2), action(k, 2));
      EXPECT_LT(distance(future_from(state, coming(0, 2)), whole), 1e-9) << cut;
    }
  }

  void a_true_frame_takes_the_place_of_its_forecast() const {
    models::State state = forecaster().start(context(0, 2, 1), {3, 4});
    for (int64_t k = 1; k < o_.seen; ++k) {
      state = forecaster().next(state, action(k, 2)).state;
      state = forecaster().observe(state, frame(k, 2), data::masked_like(action(k, 2)));
    }
    EXPECT_LT(distance(future_from(state, coming(0, 2)), future(0, 2, {3, 4})), 1e-9);
  }

  // From anywhere in a future: its own seed changes nothing, another one only what comes.
  void another_seed_is_another_branch() const {
    models::State state = forecaster().start(context(0, 2, o_.seen), {1, 4});
    const int64_t cut = o_.coming / 2, rest = o_.coming - cut;
    run(forecaster(), state, coming(0, 2), 0, cut);
    const auto branch = [&](const models::Seeds& seeds) {
      models::State now = forecaster().reseeded(state, seeds);
      return run(forecaster(), now, coming(0, 2), cut, rest);
    };
    const at::Tensor same = branch({1, 4}), other = branch({9, 4});
    EXPECT_TRUE(same.equal(run(forecaster(), state, coming(0, 2), cut, rest)));
    EXPECT_EQ(other[0].equal(same[0]), !forecaster().draws());
    EXPECT_TRUE(other[1].equal(same[1])) << "the other clip goes on";
  }

  void seeds_actions_and_contexts_matter() const {
    const at::Tensor first = future(0, 1, {1}), told = coming(0, 1);
    const models::State state = forecaster().start(context(0, 1, o_.seen), {1});
    EXPECT_EQ(future(0, 1, {2}).equal(first), !forecaster().draws());
    EXPECT_TRUE(future_from(state, told).equal(first));
    EXPECT_FALSE(future_from(state, 2 - told).equal(first));
    EXPECT_FALSE(future_from(state, data::masked_like(told)).equal(first));
    models::Clips other = context(0, 1, o_.seen);
    other.video = -other.video;
    EXPECT_FALSE(future_from(forecaster().start(other, {1}), told).equal(first));
  }

  // With `value` under `name` in a state of two clips.
  void refuses(const char* name, const at::Tensor& value, const std::vector<std::string>& parts) const {
    models::State bad = forecaster().start(context(0, 2, o_.seen), {});
    bad.set(name, value);
    expect_error([&] { forecaster().next(bad, {}); }, parts);
    expect_error([&] { forecaster().clips_in(bad); }, parts);
  }

  void refuses_no_state_and_too_few_frames() const {
    expect_error([&] { forecaster().next({}, {}); }, {"empty"});
    const models::State good = forecaster().start(context(0, 2, o_.seen), {});
    expect_error([&] { forecaster().observe(good, frame(0, 1), {}); }, {"each of 2 clips"});
  }

 private:
  nlohmann::json section_;
  LawOptions o_;
  std::shared_ptr<models::Model> model_;
  at::Tensor video_, actions_;  // of context and future
};

}  // namespace convssm::testing
