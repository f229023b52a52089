// The scores of a tokenizer against loops over its frames and codes.
#include "convssm/evaluate/reconstruct.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>
#include <set>

#include "tests/models/toy_data.h"
#include "tests/models/toys.h"
#include "tests/support.h"

namespace convssm::evaluate {
namespace {

class PatchModel : public models::Model {
 public:
  PatchModel() { register_parameter("nothing", at::zeros({1})); }
  models::LossOutput loss(const models::Clips&, const models::LossContext&, const models::State& = {}) override {
    return {};
  }
  models::Tokenizer* as_tokenizer() override { return &tokenizer_; }
  std::string description() const override { return "patches"; }

 private:
  testing::PatchTokenizer tokenizer_;
};

TEST(Reconstruct, ScoresWhatComesBack) {
  PatchModel model;
  const testing::NoiseClips dataset;
  const auto options = EvaluateOptions::from_json(
      {{"frames", 3}, {"samples", 5}, {"batch", 2}, {"strips", 2}, {"metrics", {"psnr_f01"}}, {"quantize", false}});
  const auto metrics = make_frame_metrics(options, dataset);
  EXPECT_EQ(count_reconstructed(dataset, options), 5);
  int64_t told = 0;
  const Evaluation found = evaluate_tokenizer(model, dataset, options, metrics, "patches", [&](int64_t done) {
    told = done;
    return true;
  });
  EXPECT_EQ(told, 5);
  double psnr = 0, entropy = 0;
  std::map<int64_t, double> counts;
  testing::PatchTokenizer tokenizer;
  for (uint64_t clip = 0; clip < 5; ++clip) {
    const at::Tensor video = dataset.clip(data::Split::test, clip, 3).video,
                     codes = tokenizer.encode(video).contiguous();
    const at::Tensor back = tokenizer.decode(codes);
    for (int64_t t = 0; t < 3; ++t) {
      const double error = ((video[0][t] - back[0][t]) / 2).square().mean().item<double>();
      psnr += 10 * std::log10(1 / error) / 15;
    }
    for (int64_t i = 0; i < codes.numel(); ++i) counts[codes.data_ptr<int64_t>()[i]] += 1;
  }
  for (const auto& [code, count] : counts) entropy -= count / 60 * std::log(count / 60);
  const auto& rows = found.metrics["horizons"][0]["rows"];
  EXPECT_EQ(rows[0]["name"], "patches");
  EXPECT_NEAR(rows[0]["psnr_f01"]["mean"].get<double>(), psnr, 1e-4);
  EXPECT_EQ(found.metrics["codes"]["count"], 60);
  EXPECT_NEAR(found.metrics["codes"]["used"].get<double>(), static_cast<double>(counts.size()) / 16, 1e-12);
  EXPECT_NEAR(found.metrics["codes"]["perplexity"].get<double>(), std::exp(entropy), 1e-9);
  EXPECT_EQ(found.clips[0].truth.size(), 2u);
  EXPECT_EQ(found.clips[0].forecast[1].size(0), 3);
  EXPECT_NE(reconstruction_text(found.metrics).find("2 x 2 per frame"), std::string::npos);
}

// Of 4x4 frames the upper half was never measured.
class HalfClips : public testing::NoiseClips {
 public:
  explicit HalfClips(float filler) : filler_(filler) {}
  data::Clips clip(data::Split split, uint64_t index, int64_t frames) const override {
    data::Clips clip = testing::NoiseClips::clip(split, index, frames);
    clip.valid = at::ones(clip.video.sizes(), at::kBool);
    clip.valid.slice(3, 0, 2).fill_(false);
    clip.video = clip.video.masked_fill(clip.valid.logical_not(), filler_);
    return clip;
  }

 private:
  float filler_;
};

TEST(Reconstruct, WhatWasNotMeasuredCountsNowhere) {
  PatchModel model;
  const auto options = EvaluateOptions::from_json(
      {{"frames", 3}, {"samples", 5}, {"batch", 2}, {"metrics", {"psnr_f01"}}, {"quantize", false}});
  const auto rows = [&](const data::Dataset& dataset) {
    const auto metrics = make_frame_metrics(options, dataset);
    return evaluate_tokenizer(model, dataset, options, metrics, "patches").metrics["horizons"][0]["rows"];
  };
  const auto all = rows(testing::NoiseClips()), half = rows(HalfClips(0.05f)), other = rows(HalfClips(-0.9f));
  for (const size_t row : {0u, 1u}) {
    const auto psnr = [&](const auto& x) { return x[row]["psnr_f01"]["mean"].template get<double>(); };
    EXPECT_NEAR(psnr(half), psnr(other), 1e-4);
    EXPECT_NEAR(psnr(half), psnr(all), 3);  // and not 3 dB better for pixels that are equal by themselves
  }
}

TEST(Reconstruct, StopsAndSaysWhatIsWrong) {
  PatchModel model;
  const testing::NoiseClips dataset;
  const auto options =
      EvaluateOptions::from_json({{"frames", 3}, {"samples", 5}, {"batch", 2}, {"metrics", {"psnr_f01"}}});
  const auto metrics = make_frame_metrics(options, dataset);
  const Evaluation part =
      evaluate_tokenizer(model, dataset, options, metrics, "patches", [](int64_t) { return false; });
  EXPECT_EQ(part.metrics["protocol"]["samples"], 2);
  testing::CountingModel other;
  testing::expect_error([&] { evaluate_tokenizer(other, dataset, options, metrics, "other"); }, {"no tokenizer"});
  testing::expect_error([] { EvaluateOptions::from_json({{"frames", 0}}); }, {"frames", "positive"});
}

}  // namespace
}  // namespace convssm::evaluate
