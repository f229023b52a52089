// The evaluation against numbers computed here from the same clips, one by one.
#include "convssm/evaluate/evaluate.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "convssm/generate/rollout.h"
#include "convssm/models/registry.h"
#include "tests/support.h"

namespace convssm::evaluate {
namespace {

using testing::expect_error;

struct Fixture {
  std::shared_ptr<const data::Dataset> dataset =
      data::make_dataset({{"name", "moving-mnist"}, {"digits", 1}, {"image_size", 16}, {"digit_size", 8}}, 3);
  std::shared_ptr<models::Model> model =
      models::make_model({{"encoder", {{"depths", {4, 8}}}},
                          {"decoder", {{"depths", {4, 8}}}},
                          {"core", {{"name", "convs5"}, {"features", 8}, {"state_size", 8}}}},
                         {1, 16, 16});
  EvaluateOptions options = EvaluateOptions::from_json(
      {{"context", 4}, {"horizons", {3, 6}}, {"samples", 5}, {"chunk", 2}, {"batch", 3}, {"strips", 2}});
  std::vector<metrics::MetricSet> metrics =
      make_metrics(options, dataset->format(), metrics::WeightFolder("/nonexistent"));
};

double psnr(const at::Tensor& a, const at::Tensor& b) {  // of frames in [-1,1], as 8-bit numbers cut down
  const auto pixels = [](const at::Tensor& x) { return at::floor((0.5 * x + 0.5) * 255).clamp(0, 255) / 255; };
  const double mse = (pixels(a) - pixels(b)).to(at::kDouble).square().mean().item<double>();
  return mse == 0 ? 100 : -10 * std::log10(mse);
}

TEST(Evaluate, IsTheMeanOverClipsAndGeneratedFrames) {
  Fixture f;
  const Evaluation result = evaluate(*f.model, *f.dataset, f.options, f.metrics, "ours");
  std::vector<double> ours, copies, blanks;
  for (int64_t i = 0; i < 5; ++i) {
    const at::Tensor video = f.dataset->clip(data::Split::test, i, 10).video[0];
    const at::Tensor context = video.slice(0, 0, 4);
    generate::Predictor predictor(*f.model);
    predictor.start({context.unsqueeze(0)});
    const at::Tensor future = generate::rollout(predictor, {}, 6)[0];
    double mine = 0, copy = 0, blank = 0;
    for (int64_t k = 0; k < 3; ++k) {
      mine += psnr(future[k], video[4 + k]) / 3;
      copy += psnr(video[3], video[4 + k]) / 3;
      blank += psnr(at::full_like(video[0], -1), video[4 + k]) / 3;
    }
    ours.push_back(mine), copies.push_back(copy), blanks.push_back(blank);
  }
  const auto mean = [](const std::vector<double>& v) { return std::accumulate(v.begin(), v.end(), 0.0) / v.size(); };
  const auto& rows = result.metrics["horizons"][0]["rows"];
  EXPECT_EQ(result.metrics["horizons"][0]["frames"], 3);
  EXPECT_EQ(rows[0]["name"], "ours");
  EXPECT_NEAR(rows[0]["psnr_f01"]["mean"].get<double>(), mean(ours), 0.02);
  EXPECT_NEAR(rows[1]["psnr_f01"]["mean"].get<double>(), mean(copies), 0.02);
  EXPECT_NEAR(rows[2]["psnr_f01"]["mean"].get<double>(), mean(blanks), 0.02);
  EXPECT_GT(rows[0]["psnr_f01"]["std"].get<double>(), 0);
  EXPECT_TRUE(rows[1].contains("ssim_gauss11"));
  EXPECT_EQ(result.metrics["curves"]["psnr_f01"]["copy last frame"].size(), 6u);
  ASSERT_EQ(result.clips[0].truth.size(), 2u);
  EXPECT_EQ(result.clips[0].forecast[1].sizes(), (std::vector<int64_t>{10, 1, 16, 16}));
  EXPECT_TRUE(result.clips[0].forecast[1].slice(0, 0, 4).equal(result.clips[0].truth[1].slice(0, 0, 4)));
  EXPECT_NE(table_text(result.metrics).find("6 frames ahead"), std::string::npos);
  EXPECT_NE(table_text(result.metrics).find(" ± "), std::string::npos);
  nlohmann::json whole = result.metrics;
  whole["protocol"]["chunk"] = whole["protocol"]["samples"];
  EXPECT_EQ(table_text(whole).find("±"), std::string::npos);  // one chunk has no spread
}

TEST(Evaluate, CanBeStoppedAndSaysHowManyClipsItSaw) {
  Fixture f;
  const Evaluation result = evaluate(*f.model, *f.dataset, f.options, f.metrics, "ours", [](int64_t) { return false; });
  EXPECT_EQ(result.metrics["protocol"]["samples"], 3);
}

// Clips whose first frames come back: a place is seen in the context, another one not.
class Returning : public data::Dataset {
 public:
  data::Clips clip(data::Split, uint64_t index, int64_t frames) const override {
    data::Clips clip{.video = testing::randn({1, frames, 1, 16, 16}, index).to(at::kFloat).clamp(-1, 1)};
    clip.revisit = at::full({1, frames}, -1, at::kLong);
    clip.revisit[0][5] = 1;  // in the context of 4
    clip.revisit[0][7] = 4;  // among the generated ones, never seen
    clip.revisit[0][8] = 5;  // back to 5, and from there to 1
    return clip;
  }
  uint64_t size(data::Split) const override { return 5; }
  int64_t longest(data::Split) const override { return 10; }
  data::FrameFormat format() const override { return {1, 16, 16}; }
  std::vector<std::string> summary() const override { return {}; }
};

TEST(Evaluate, ScoresPlacesSeenBeforeAndTheOthersApart) {
  Fixture f;
  const Returning dataset;
  const Evaluation result = evaluate(*f.model, dataset, f.options, f.metrics, "ours");
  double seen = 0, fresh = 0;  // of the copy of the last frame, over 6 frames
  for (uint64_t i = 0; i < 5; ++i) {
    const at::Tensor video = dataset.clip(data::Split::test, i, 10).video[0];
    for (int64_t k = 0; k < 6; ++k) {
      (k == 1 || k == 4 ? seen : fresh) += psnr(video[3], video[4 + k]) / (k == 1 || k == 4 ? 10 : 20);
    }
  }
  const auto& horizon = result.metrics["horizons"][1];
  EXPECT_NEAR(horizon["seen_before"]["share"].get<double>(), 2.0 / 6, 1e-9);
  EXPECT_NEAR(horizon["never_seen"]["share"].get<double>(), 4.0 / 6, 1e-9);
  EXPECT_EQ(horizon["seen_before"]["rows"][0]["name"], "ours");
  EXPECT_NEAR(horizon["seen_before"]["rows"][1]["psnr_f01"]["mean"].get<double>(), seen, 0.02);
  EXPECT_NEAR(horizon["never_seen"]["rows"][1]["psnr_f01"]["mean"].get<double>(), fresh, 0.02);
  const std::string table = table_text(result.metrics);
  EXPECT_NE(table.find("seen before: 33% of the frames"), std::string::npos) << table;
  EXPECT_NE(table.find("never seen: 67% of the frames"), std::string::npos) << table;
  const Evaluation plain = evaluate(*f.model, *f.dataset, f.options, f.metrics, "ours");
  EXPECT_FALSE(plain.metrics["horizons"][0].contains("seen_before"));
  EXPECT_EQ(table_text(plain.metrics).find("seen before"), std::string::npos);
}

TEST(Evaluate, WrongOptionsAreExplained) {
  const auto wrong = [](const nlohmann::json& json, const std::vector<std::string>& parts) {
    expect_error([&] { EvaluateOptions::from_json(json); }, parts);
  };
  wrong({{"context", 0}}, {"context", "at least 1"});
  wrong({{"horizons", nlohmann::json::array()}}, {"horizons"});
  wrong({{"horizons", {5, -1}}}, {"horizons", "-1"});
  wrong({{"horizons", "many"}}, {"horizons", "list"});
  wrong({{"sample", 3}}, {"did you mean 'samples'"});
}

}  // namespace
}  // namespace convssm::evaluate
