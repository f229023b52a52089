// The pixel model on fields: maps of what is known in advance, pixels that were not measured, channels that are forecast and not
// seen; under the laws of every forecaster, and its gradients against finite differences.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "convssm/models/pixel/pixel_predictor.h"
#include "tests/models/field_model.h"

namespace convssm::models {
namespace {

using testing::distance;
using testing::expect_error;
using testing::field_clips;
using testing::field_model;
using testing::randn;

constexpr int64_t kSeen = 6, kComing = 5;

std::shared_ptr<Model> double_model(bool mask = true) {
  auto model = field_model(testing::kFieldCore, mask);
  model->to(at::kDouble);
  return model;
}

Clips first(const Clips& clips, int64_t frames) { return data::frames_of(clips, 0, frames); }

// Frames [begin,end) of the future, whose actions are those of the clips after their context.
at::Tensor future(Forecaster& forecaster, State& state, const Clips& clips, int64_t begin, int64_t end) {
  std::vector<at::Tensor> all;
  for (int64_t k = begin; k < end; ++k) {
    Forecast out = forecaster.next(state, clips.actions.select(1, kSeen + k));
    all.push_back(out.frame);
    state = out.state;
  }
  return at::stack(all, 1);
}

at::Tensor whole_future(const Model& model, const Clips& clips) {
  Forecaster& forecaster = *const_cast<Model&>(model).as_forecaster();
  State state = forecaster.start(first(clips, kSeen), {});
  return future(forecaster, state, clips, 0, kComing);
}

double loss_of(Model& model, const Clips& clips) {
  torch::NoGradGuard no_grad;
  return model.loss(clips, {}).loss.item<double>();
}

TEST(PixelField, ForecastsAreThoseOfStartObserveAndNext) {
  for (const bool mask : {true, false}) {
    const auto model = double_model(mask);
    Forecaster& forecaster = *model->as_forecaster();
    const Clips clips = field_clips(2, 20), seen = first(clips, 19);  // more frames than are run at once
    const at::Tensor found = forecaster.forecasts(seen, clips.actions.slice(1, 1)), video = data::with_missing(clips);
    State observed = forecaster.start(first(clips, 1), {}), corrected = observed;
    for (int64_t k = 0; k < 19; ++k) {
      const at::Tensor led = clips.actions.select(1, k), coming = clips.actions.select(1, k + 1);
      if (k > 0) observed = forecaster.observe(observed, video.select(1, k), led);
      if (k > 0) corrected = forecaster.observe(corrected, video.select(1, k), data::masked_like(led));
      const State whole = forecaster.start(first(clips, k + 1), {});
      for (const State& state : {observed, corrected, whole}) {
        EXPECT_LT(distance(forecaster.next(state, coming).frame, found.select(1, k)), 1e-10) << k;
      }
      corrected = forecaster.next(corrected, coming).state;
    }
  }
}

TEST(PixelField, AFutureIsOfItsClipAloneWhereverItWasStopped) {
  const auto model = double_model(), other = double_model();
  Forecaster &forecaster = *model->as_forecaster(), &again = *other->as_forecaster();
  const Clips clips = field_clips(3, kSeen + kComing);
  const at::Tensor together = whole_future(*model, clips);
  for (int64_t i = 0; i < 3; ++i) {
    EXPECT_LT(distance(whole_future(*model, data::rows_of(clips, i, i + 1))[0], together[i]), 1e-9) << i;
  }
  const State begin = forecaster.start(first(clips, kSeen), {});
  for (int64_t cut = 0; cut <= kComing; ++cut) {
    State state = begin;
    const at::Tensor before = cut > 0 ? future(forecaster, state, clips, 0, cut) : at::Tensor();
    State saved = state.clone();
    if (cut < kComing) future(forecaster, state, clips, cut, cut + 1);  // changes nothing of the other
    std::vector<at::Tensor> parts;
    if (before.defined()) parts.push_back(before);
    if (cut < kComing) parts.push_back(future(again, saved, clips, cut, kComing));
    EXPECT_TRUE(at::cat(parts, 1).equal(together)) << cut;
  }
  for (int64_t cut = 1; cut < kSeen; ++cut) {  // a context in pieces
    State state = forecaster.start(first(clips, cut), {});
    for (int64_t k = cut; k < kSeen; ++k) {
      state = forecaster.observe(state, data::with_missing(clips).select(1, k), clips.actions.select(1, k));
    }
    EXPECT_LT(distance(future(forecaster, state, clips, 0, kComing), together), 1e-9) << cut;
  }
}

TEST(PixelField, MapsOfAFrameLeadToIt) {
  const auto model = double_model();
  Clips clips = field_clips(2, kSeen + kComing);
  const at::Tensor plain = whole_future(*model, clips);
  const double loss = loss_of(*model, clips);
  clips.actions.select(1, kSeen + 2).neg_();
  const at::Tensor changed = whole_future(*model, clips);
  EXPECT_TRUE(changed.slice(1, 0, 2).equal(plain.slice(1, 0, 2)));
  for (int64_t k = 2; k < kComing; ++k) EXPECT_GT(distance(changed.select(1, k), plain.select(1, k)), 1e-9) << k;
  EXPECT_GT(std::abs(loss_of(*model, clips) - loss), 1e-9);
  clips.actions.select(1, 0).fill_(5);  // what led to the first frame went in with one before it
  EXPECT_TRUE(whole_future(*model, clips).equal(changed));
  const auto with = [&](const at::Tensor& maps) {
    Clips other = clips;
    other.actions = maps;
    return loss_of(*model, other);
  };
  const at::Tensor zeros = at::zeros_like(clips.actions);
  EXPECT_NE(with(data::masked_like(clips.actions)), with(zeros)) << "the mark is seen";
  EXPECT_EQ(with({}), with(zeros));
  at::Tensor one = zeros.clone();
  one.select(1, 1).select(1, 0).select(1, 0).fill_(std::numeric_limits<double>::quiet_NaN());
  EXPECT_TRUE(std::isfinite(with(one)));
  EXPECT_NE(with(one), with(zeros)) << "masked in a row of pixels";
}

TEST(PixelField, DiagnosticChannelsAreForecastAndNotSeen) {
  const auto model = double_model();
  Clips clips = field_clips(2, kSeen + kComing), other = clips;
  other.video = clips.video.clone();
  other.video.select(2, 1).neg_();
  other.valid = clips.valid.clone();
  other.valid.select(2, 1).fill_(true);
  const at::Tensor plain = whole_future(*model, clips);
  EXPECT_EQ(plain.size(2), testing::kFieldChannels);
  EXPECT_TRUE(whole_future(*model, other).equal(plain));
  Forecaster& forecaster = *model->as_forecaster();
  const at::Tensor coming = clips.actions.slice(1, 1);
  const Clips all = first(clips, kSeen + kComing - 1), changed = first(other, kSeen + kComing - 1);
  EXPECT_TRUE(forecaster.forecasts(changed, coming).equal(forecaster.forecasts(all, coming)));
  EXPECT_GT(std::abs(loss_of(*model, clips) - loss_of(*model, other)), 1e-3) << "but it is learned";
  other.video = clips.video.clone();
  other.video.select(2, 2).neg_();
  EXPECT_GT(distance(whole_future(*model, other), plain), 1e-6) << "as others are seen";
}

TEST(PixelField, WhatWasNotMeasuredDoesNotMatter) {
  for (const bool mask : {true, false}) {
    const auto model = double_model(mask);
    const Clips clips = field_clips(2, kSeen + kComing);
    Clips other = clips;
    other.video = at::where(clips.valid, clips.video, at::full({}, 0.7, at::kDouble));
    if (mask) {
      EXPECT_EQ(loss_of(*model, other), loss_of(*model, clips));
      EXPECT_TRUE(whole_future(*model, other).equal(whole_future(*model, clips)));
    }
    Clips told = clips;
    told.valid = at::ones_like(clips.valid);
    EXPECT_GT(std::abs(loss_of(*model, told) - loss_of(*model, clips)), 1e-6);
    EXPECT_EQ(whole_future(*model, told).equal(whole_future(*model, clips)), !mask) << "the mask is seen";
  }
}

// Land is not measured in any frame and stays so; what was measured once is there in forecasts, and observed frames add to it.
TEST(PixelField, TheMaskOfForecastsIsWhatWasEverMeasured) {
  const auto model = double_model();
  Forecaster& forecaster = *model->as_forecaster();
  const Clips clips = field_clips(2, kSeen + kComing);
  const at::Tensor chosen = at::tensor({0, 2}), ever = first(clips, kSeen).valid.any(1).index_select(1, chosen);
  EXPECT_FALSE(ever.all().item<bool>());
  State state = forecaster.start(first(clips, kSeen), {});
  EXPECT_TRUE(state.get("mask").to(at::kBool).equal(clips.valid.select(1, kSeen - 1).index_select(1, chosen)));
  for (int k = 0; k < 2; ++k) {
    state = forecaster.next(state, clips.actions.select(1, kSeen + k)).state;
    for (const char* name : {"mask", "measured"}) EXPECT_TRUE(state.get(name).to(at::kBool).equal(ever)) << name;
  }
  State full = forecaster.observe(state, clips.video.select(1, 0), {});
  EXPECT_TRUE(full.get("measured").eq(1).all().item<bool>()) << "no NaN, so all was measured";
  State bad = state;
  bad.set("measured", at::ones({1, 2, 7, 9}, at::kDouble));
  expect_error([&] { forecaster.next(bad, {}); }, {"measured", "2 clips", "got 1"});
  bad.set("measured", at::ones({2, 3, 7, 9}, at::kDouble));
  expect_error([&] { forecaster.clips_in(bad); }, {"measured", "[B,2,7,9]", "[2,3,7,9]"});
}

TEST(PixelField, GradientsAreThoseOfFiniteDifferences) {
  const nlohmann::json coder = {{"depths", {2}}};
  data::FrameFormat format(2, 3, 4);
  format.channels[0].diagnostic = true;
  const auto model = make_model({{"encoder", coder},
                                 {"decoder", coder},
                                 {"core", {{"name", "convs5"}, {"features", 2}, {"state_size", 2}}},
                                 {"action_maps", 1},
                                 {"mask_input", true},
                                 {"loss_weight", 0.7}},
                                format);
  model->to(at::kDouble);
  Clips clips = field_clips(2, 4);
  clips.video = clips.video.slice(2, 0, 2).slice(3, 0, 3).slice(4, 0, 4);
  clips.valid = randn({2, 4, 2, 3, 4}, 9) > -0.3;
  clips.actions = clips.actions.slice(2, 0, 1).slice(3, 0, 3).slice(4, 0, 4);
  model->loss(clips, {}).loss.backward();
  constexpr double kStep = 1e-6;
  double largest = 0;
  for (auto& item : model->named_parameters()) {
    at::Tensor flat = item.value().detach().view({-1}), gradient = item.value().grad().reshape({-1});
    for (int64_t i = 0; i < flat.numel(); i += std::max<int64_t>(1, flat.numel() / 5)) {
      const double at = flat[i].item<double>();
      const auto loss_at = [&](double value) {
        flat[i].fill_(value);  // which says that the parameter has changed
        return loss_of(*model, clips);
      };
      const double above = loss_at(at + kStep), below = loss_at(at - kStep);
      flat[i].fill_(at);
      const double expected = (above - below) / (2 * kStep);
      largest = std::max(largest, std::abs(expected));
      EXPECT_NEAR(gradient[i].item<double>(), expected, 1e-5 * (1 + std::abs(expected))) << item.key() << " " << i;
    }
  }
  EXPECT_GT(largest, 0.01);
}

TEST(PixelField, OfManyMissingPixelsTheLossKeepsItsScale) {
  const auto model = double_model(false);
  Clips clips = field_clips(2, 6);
  clips.valid.fill_(true);
  const double all = loss_of(*model, clips);
  clips.valid = randn(clips.video.sizes(), 8) > 1.3;  // a tenth
  EXPECT_NEAR(loss_of(*model, clips), all, 0.2 * all);
  clips.valid.fill_(false);
  EXPECT_EQ(loss_of(*model, clips), 0);
}

TEST(PixelField, SaysWhoTakesMaps) {
  const auto model = double_model();
  const data::FrameFormat format = testing::field_format();
  EXPECT_EQ(model->as_forecaster()->actions().maps, 2);
  EXPECT_EQ(model->as_forecaster()->actions().height, testing::kFieldHeight);
  model->check_data({format, {.maps = 2}});
  expect_error([&] { model->check_data({format, {.maps = 3}}); }, {"3 maps", "takes 2", "model.action_maps=3"});
  expect_error([&] { model->check_data({format, {.values = 3}}); }, {"0 maps", "takes 2"});
  expect_error([&] { model->check_data({format}); }, {"action_maps=2", "the data has none"});
  Clips clips = field_clips(1, 3);
  clips.actions = clips.actions.slice(4, 0, 8);
  expect_error([&] { model->loss(clips, {}); }, {"maps [B,T,2,7,9]", "[1,3,2,7,8]"});
  clips.actions = at::zeros({1, 3, 2}, at::kDouble);
  expect_error([&] { model->loss(clips, {}); }, {"maps [B,T,2,7,9]", "[1,3,2]"});

  const nlohmann::json core = testing::kFieldCore, coder = {{"depths", {4, 8}}};
  const nlohmann::json plain = {{"encoder", coder}, {"decoder", coder}, {"core", core}};
  const auto numbered = make_model(plain, {3, 7, 9});
  expect_error([&] { numbered->loss(field_clips(1, 3, 1, at::kFloat), {}); }, {"[B,T] whole numbers", "[1,3,2,7,9]"});
  expect_error([&] { numbered->check_data({{3, 7, 9}, {.maps = 2}}); }, {"2 maps", "takes 0", "model.action_maps=2"});
  nlohmann::json both = plain;
  both.update({{"action_maps", 2}, {"action_values", 2}});
  expect_error([&] { make_model(both, {3, 7, 9}); }, {"action_values", "action_maps", "2 and 2"});
  both.update({{"action_maps", 2}, {"action_values", 0}, {"actions", 4}});
  expect_error([&] { make_model(both, {3, 7, 9}); }, {"action_maps", "4 and 2"});

  const nlohmann::json vectors = {{"name", "cwvae"}, {"filters", 4}, {"deterministic", 8}, {"embedding", 8}};
  const auto other = make_model(vectors, {3, 8, 8});
  expect_error([&] { other->check_data({{3, 8, 8}, {.maps = 2}}); }, {"2 maps", "model.name=pixel"});
  nlohmann::json asked = vectors;
  asked["action_maps"] = 2;
  expect_error([&] { make_model(asked, {3, 8, 8}); }, {"action_maps is 2", "model.name=pixel"});
}

TEST(PixelField, SaysWhoForecastsWhatItDoesNotSee) {
  data::FrameFormat format(3, 8, 8);
  format.channels[2].diagnostic = true;
  expect_error(
      [&] {
        make_model({{"name", "cwvae"}, {"filters", 4}}, format);
      },
      {"1 of 3 channels are diagnostic", "model.name=pixel", "cwvae cannot"});
  for (auto& channel : format.channels) channel.diagnostic = true;
  expect_error([&] { make_model({{"name", "pixel"}}, format); }, {"all channels are diagnostic"});
}

}  // namespace
}  // namespace convssm::models
