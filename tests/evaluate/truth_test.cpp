// What forecasts are compared with: clips, what a tokenizer makes of them, what it makes of codes; and bad use of options.
#include "convssm/evaluate/truth.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <cmath>

#include "convssm/evaluate/evaluate.h"
#include "convssm/generate/generate.h"
#include "tests/evaluate/block_model.h"
#include "tests/support.h"

namespace convssm::evaluate {
namespace {

using nlohmann::json;
using testing::expect_error;

json truth_rows(models::Model& model, const data::Dataset& dataset, const json& more, json* protocol = nullptr) {
  json section = {{"samples", 6}, {"batch", 6}, {"context", 4},           {"horizons", {5}},
                  {"strips", 0},  {"seed", 1},  {"metrics", {"psnr_f01"}}};
  section.update(more);
  const auto o = EvaluateOptions::from_json(section);
  const json found = evaluate(model, dataset, o, make_metrics(o, scored_frames(model, dataset)), "blocks").metrics;
  if (protocol != nullptr) *protocol = found["protocol"];
  return found["horizons"][0]["rows"];
}

// As 8-bit numbers cut down.
double truth_psnr(const at::Tensor& a, const at::Tensor& b) {
  const at::Tensor x = a.contiguous(), y = b.contiguous();
  double sum = 0;
  const auto pixel = [](float v) { return std::clamp(std::floor((0.5f * v + 0.5f) * 255.0f), 0.0f, 255.0f) / 255.0; };
  for (int64_t i = 0; i < x.numel(); ++i) {
    const double d = pixel(x.data_ptr<float>()[i]) - pixel(y.data_ptr<float>()[i]);
    sum += d * d / static_cast<double>(x.numel());
  }
  return -10 * std::log10(sum);
}

// Of the model, the copy and the ceiling, frame by frame; `real` turns clips into what is real.
struct Expected {
  double ours = 0, copy = 0, ceiling = 0;
};

Expected expected_scores(const BlockClips& dataset, const std::function<at::Tensor(const data::Clips&)>& real) {
  const at::NoGradGuard no_grad;
  BlockModel model;
  Expected all;
  for (int64_t i = 0; i < 6; ++i) {
    const data::Clips clip = dataset.clip(data::Split::test, static_cast<uint64_t>(i), 9);
    const at::Tensor truth = real(clip)[0];
    models::State state = model.start(data::frames_of(clip, 0, 4), {generate::future_seed(1, i, 0)});
    for (int64_t k = 0; k < 5; ++k) {
      models::Forecast out = model.next(state, clip.actions.select(1, 4 + k));
      state = out.state;
      all.ours += truth_psnr(truth[4 + k], out.frame[0]) / 30;
      all.copy += truth_psnr(truth[4 + k], truth[3]) / 30;
      if (!clip.video.defined()) continue;
      all.ceiling += truth_psnr(clip.video[0][4 + k], block_video(block_codes(clip.video))[0][4 + k]) / 30;
    }
  }
  return all;
}

double mean_of(const json& row) { return row["psnr_f01"]["mean"].get<double>(); }

TEST(Truth, OriginalsWithTheCeilingOfTheTokenizerBeside) {
  BlockModel model;
  const BlockClips dataset;
  json protocol;
  const json rows = truth_rows(model, dataset, json::object(), &protocol);
  const Expected expected = expected_scores(dataset, [](const data::Clips& clip) { return clip.video; });
  ASSERT_EQ(rows.size(), 4u);
  EXPECT_EQ(rows[3]["name"], "tokenizer ceiling");
  EXPECT_NEAR(mean_of(rows[0]), expected.ours, 0.02);
  EXPECT_NEAR(mean_of(rows[1]), expected.copy, 0.02);
  EXPECT_NEAR(mean_of(rows[3]), expected.ceiling, 0.02);
  EXPECT_EQ(protocol["real"], "originals");
  BlockModel plain(false);
  EXPECT_EQ(truth_rows(plain, dataset, json::object()).size(), 3u);
}

TEST(Truth, Reconstructions) {
  BlockModel model;
  const BlockClips dataset;
  json protocol;
  const json rows = truth_rows(model, dataset, {{"real", "reconstructions"}}, &protocol);
  const Expected expected =
      expected_scores(dataset, [](const data::Clips& clip) { return block_video(block_codes(clip.video)); });
  EXPECT_NEAR(mean_of(rows[0]), expected.ours, 0.02);
  EXPECT_NEAR(mean_of(rows[1]), expected.copy, 0.02);
  EXPECT_NEAR(mean_of(rows[3]), expected.ceiling, 0.02);  // against originals
  EXPECT_EQ(protocol["real"], "reconstructions");
  BlockModel plain(false);
  expect_error(
      [&] {
        truth_rows(plain, dataset, {{"real", "reconstructions"}});
      },
      {"tokenizer", "block model", "originals"});
}

TEST(Truth, OfClipsOfCodesIsWhatTheyDecodeTo) {
  BlockModel model;
  const BlockClips dataset(true);
  json protocol;
  const json rows = truth_rows(model, dataset, json::object(), &protocol);
  const Expected expected = expected_scores(dataset, [](const data::Clips& clip) { return block_video(clip.codes); });
  ASSERT_EQ(rows.size(), 3u);  // there are no originals
  EXPECT_NEAR(mean_of(rows[0]), expected.ours, 0.02);
  EXPECT_NEAR(mean_of(rows[1]), expected.copy, 0.02);
  EXPECT_EQ(protocol["real"], "codes");
  EXPECT_EQ(scored_frames(model, dataset).height, kBlockSide);
  BlockModel plain(false);
  expect_error([&] { truth_rows(plain, dataset, json::object()); },
               {"clips hold codes", "tokenizer", "block model has none"});
}

TEST(Truth, CodesOfAnotherTokenizerAreRefused) {
  class Others : public BlockClips {
   public:
    Others() : BlockClips(true) {}
    data::CodeFormat codes() const override { return {32, 3, 3}; }
  };
  BlockModel model;
  expect_error([&] { truth_rows(model, Others(), json::object()); }, {"16 codes in 6 x 6", "32 in 3 x 3"});
}

TEST(Settings, WrongOnesAreExplained) {
  const auto wrong = [](const json& section, const std::vector<std::string>& parts) {
    expect_error([&] { EvaluateOptions::from_json(section); }, parts);
  };
  const json good = {{"context", 4}, {"frames", 6}};
  wrong({{"settings", json::array()}}, {"settings", "at least one", "frames: 156"});
  wrong({{"settings", 3}}, {"settings", "list"});
  wrong({{"settings", {good}}, {"horizons", {3}}}, {"horizons and settings are both given", "evaluate.horizons=null"});
  wrong({{"settings", {good}}, {"context", 3}}, {"context and settings are both given"});
  wrong({{"settings", {good, {{"context", 4}}}}}, {"evaluate.settings[1]", "'frames' is missing"});
  wrong({{"settings", {{{"frames", 4}}}}}, {"evaluate.settings[0]", "'context' is missing"});
  wrong({{"settings", {{{"context", 0}, {"frames", 4}}}}}, {"context must be at least 1 frame, got 0"});
  wrong({{"settings", {{{"context", 1}, {"frames", -4}}}}}, {"frames must be at least 1 frame, got -4"});
  wrong({{"settings", {{{"context", 1}, {"frames", 4}, {"action", true}}}}}, {"did you mean 'actions'"});
  wrong({{"settings", {{{"context", 1}, {"frames", 4}, {"metrics", {"psnr_f1"}}}}}}, {"psnr_f01"});
  wrong({{"settings", {good, good}}}, {"evaluate.settings[1]", "the name '4+6' too"});
  wrong({{"futures", 0}}, {"futures", "positive"});
  wrong({{"real", "pixels"}}, {"originals or reconstructions", "'pixels'"});
  const auto settings = EvaluateOptions::from_json({{"settings", {good}}, {"horizons", nullptr}, {"context", nullptr}});
  EXPECT_EQ(settings.settings[0].name, "4+6");
}

TEST(Settings, TooLongForTheClipsAreNamed) {
  const BlockClips dataset;
  const auto wrong = [&](const json& setting, const std::vector<std::string>& parts) {
    const json fits = {{"context", 4}, {"frames", 6}};
    const auto o = EvaluateOptions::from_json({{"settings", {fits, setting}}});
    expect_error([&] { count_samples(dataset, o); }, parts);
  };
  wrong({{"context", 12}, {"frames", 9}}, {"'12+9'", "test clips of 21 frames, they have 20", "evaluate.settings"});
  wrong({{"name", "far"}, {"context", 30}, {"frames", 2}}, {"'far'", "context of 30 frames", "20 in all"});
}

}  // namespace
}  // namespace convssm::evaluate
