// Scores of fields in units, from an evaluation of made-up clips to metrics.json and the table, against NumPy
// (tools/golden/make_skill.py).
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <fstream>

#include "convssm/evaluate/evaluate.h"
#include "convssm/evaluate/references.h"
#include "convssm/metrics/measured.h"
#include "convssm/models/registry.h"
#include "tests/evaluate/block_model.h"
#include "tests/evaluate/field_clips.h"
#include "tests/support.h"

namespace convssm::evaluate {
namespace {

using testing::expect_error;

// Future number i of `futures`, from `begin` on, is the last frame, fading, and a constant by which futures differ.
class ScriptedModel : public models::Model, public models::Forecaster {
 public:
  explicit ScriptedModel(int64_t futures, int64_t begin = 0) : futures_(futures), begin_(begin) {
    register_parameter("nothing", at::zeros({1}));
  }
  models::LossOutput loss(const models::Clips&, const models::LossContext&, const models::State& = {}) override {
    return {};
  }
  models::Forecaster* as_forecaster() override { return this; }
  std::string description() const override { return "scripted model"; }
  models::State start(const models::Clips& context, const models::Seeds&) override {
    models::State state;
    state.set("frame", context.video.select(1, context.frames() - 1).clone());
    state.set("offset", at::full({context.batch()}, 0.05 * static_cast<double>(begin_ + starts_++ % futures_ - 1)));
    return state;
  }
  models::Forecast next(const models::State& state, const at::Tensor&) override {
    const at::Tensor faded = 0.9 * state.get("frame");
    models::State after = state;
    after.set("frame", faded);
    return {(faded + state.get("offset").view({-1, 1, 1, 1})).to(at::kFloat), after};
  }
  models::State observe(const models::State& state, const at::Tensor& frame, const at::Tensor&) override {
    models::State after = state;
    after.set("frame", frame.clone());
    return after;
  }
  bool draws() const override { return futures_ > 1; }
  int64_t clips_in(const models::State& state) const override { return state.get("frame").size(0); }

 private:
  int64_t futures_, begin_, starts_ = 0;
};

EvaluateOptions field_options(const nlohmann::json& more = nlohmann::json::object()) {
  nlohmann::json section = {{"context", 3},
                            {"horizons", {2, 6}},
                            {"samples", 3},
                            {"batch", 2},
                            {"futures", 3},
                            {"quantize", false},
                            {"thresholds", {{"rain", {2.0, 0.5}}}},
                            {"fss_windows", {1, 3}}};
  section.update(more);
  return EvaluateOptions::from_json(section);
}

Evaluation evaluate_fields(const data::Dataset& dataset, const EvaluateOptions& options) {
  ScriptedModel model(3);
  const auto metrics = make_metrics(options, dataset.format(), metrics::WeightFolder("/nonexistent"));
  return evaluate(model, dataset, options, metrics, "scripted");
}

TEST(SkillOfFields, SingleForecastsHaveACrpsBesideAnEnsemble) {
  const auto row = [](int64_t futures) {
    ScriptedModel model(futures);
    const EvaluateOptions options = field_options({{"futures", futures}});
    const FieldClips dataset;
    const auto metrics = make_metrics(options, dataset.format(), metrics::WeightFolder("/nonexistent"));
    return evaluate(model, dataset, options, metrics, "scripted").metrics["skill"]["horizons"][0]["rows"][1];
  };
  const auto copy = row(3)["variables"]["t2m"];
  EXPECT_EQ(copy["crps"], copy["mae"]);
  EXPECT_FALSE(row(1)["variables"]["t2m"].contains("crps"));
}

TEST(SkillOfFields, MembersAreFuturesOfSeveralModels) {
  const FieldClips dataset;
  const EvaluateOptions options = field_options();
  const auto metrics = make_metrics(options, dataset.format(), metrics::WeightFolder("/nonexistent"));
  ScriptedModel first(1, 0), second(1, 1), third(1, 2);
  const Evaluation members =
      evaluate(first, dataset, options, metrics, "scripted", {}, {}, std::vector<models::Model*>{&second, &third});
  const Evaluation futures = evaluate_fields(dataset, options);
  EXPECT_EQ(members.metrics["skill"], futures.metrics["skill"]);
  EXPECT_EQ(members.metrics["horizons"], futures.metrics["horizons"]);
  EXPECT_EQ(members.metrics["protocol"]["futures"], 3);
}

// Every number of `expected` stands in `found`; null is missing or null.
void expect_like(const nlohmann::json& found, const nlohmann::json& expected, const std::string& where) {
  for (const auto& [key, value] : expected.items()) {
    const std::string here = where + "/" + key;
    const auto at = found.is_object() ? found.value(key, nlohmann::json()) : found.at(std::stoul(key));
    if (value.is_structured()) {
      expect_like(at, value, here);
    } else if (value.is_null()) {
      EXPECT_TRUE(at.is_null()) << here << at;
    } else {
      ASSERT_TRUE(at.is_number()) << here << at;
      EXPECT_NEAR(at.get<double>(), value.get<double>(), 2e-5 * (1 + std::abs(value.get<double>()))) << here;
    }
  }
}

TEST(SkillOfFields, IsThatOfNumpy) {
  const Evaluation result = evaluate_fields(FieldClips(), field_options());
  const nlohmann::json& skill = result.metrics["skill"];
  std::ifstream file(CONVSSM_SOURCE_DIR "/tests/golden/skill.json");
  const nlohmann::json golden = nlohmann::json::parse(file);
  for (const size_t h : {0u, 1u}) {
    EXPECT_EQ(skill["horizons"][h]["frames"], h == 0 ? 2 : 6);
    for (const auto& row : skill["horizons"][h]["rows"]) {
      const std::string name = row["name"];
      if (name == "advection") continue;
      expect_like(row["variables"], golden[h == 0 ? "to 2" : "to 6"][name], name);
    }
  }
  for (const char* name : {"scripted", "copy last frame", "climatology"}) {
    const auto& rain = golden["at 4"][name]["rain"];
    const auto& curves = skill["curves"]["variables"]["rain"];
    EXPECT_NEAR(curves["rmse"][name][3].get<double>(), rain["rmse"].get<double>(), 1e-5);
    if (rain["events"][1]["csi"].is_null()) continue;
    EXPECT_NEAR(curves["csi@2"][name][3].get<double>(), rain["events"][1]["csi"].get<double>(), 1e-5);
    EXPECT_NEAR(curves["fss@0.5/3px"][name][3].get<double>(), rain["events"][0]["fss"]["3"].get<double>(), 1e-5);
  }
  EXPECT_EQ(skill["curves"]["variables"]["t2m"]["rmse"]["advection"].size(), 6u);
  EXPECT_EQ(skill["variables"][0]["units"], "K");
  const auto& protocol = result.metrics["protocol"];
  EXPECT_EQ(protocol["skill"]["weights"], "cosine of latitude");
  EXPECT_EQ(protocol["thresholds"]["rain"], (std::vector<double>{0.5, 2}));
  EXPECT_EQ(protocol["references"]["climatology"], "mean of 80 training frames by hour of the day (4)");
}

TEST(SkillOfFields, StandsInTheTableWithUnits) {
  const std::string table = table_text(evaluate_fields(FieldClips(), field_options()).metrics);
  for (const char* part :
       {"t2m [K]", "rain [mm]", "rmse", "acc", "csi >= 0.5 mm", "climatology", "advection", "spread"}) {
    EXPECT_NE(table.find(part), std::string::npos) << part << " is not in\n" << table;
  }
}

class Uneven : public FieldClips {
 public:
  explicit Uneven(double other) : FieldClips(true, false), other_(other) {}
  data::Clips part(data::Split split, uint64_t index, int64_t first, int64_t frames) const override {
    data::Clips clip = FieldClips::part(split, index, first, frames);
    clip.timing.dt = at::ones({1, frames});
    for (int64_t t = 1; t < frames; t += 2) clip.timing.dt[0][t] = other_;
    return clip;
  }

 private:
  double other_;
};

TEST(SkillOfFields, IsOfForecastsThatKnowTheIntervals) {
  const nlohmann::json coder = {{"depths", {4, 8}}};
  const nlohmann::json core = {{"name", "convs5"}, {"features", 8}, {"state_size", 8}, {"layers", 1}};
  const auto model =
      models::make_model({{"encoder", coder}, {"decoder", coder}, {"core", core}}, FieldClips().format());
  const EvaluateOptions options = field_options({{"futures", 1}, {"context", 1}});
  const auto scored = [&](double other) {
    const Uneven dataset(other);
    const auto metrics = make_metrics(options, dataset.format(), metrics::WeightFolder("/nonexistent"));
    return evaluate(*model, dataset, options, metrics, "convs5").metrics;
  };
  const auto even = scored(1), uneven = scored(2);
  EXPECT_EQ(even["protocol"]["engine"], "eager") << "a plan knows one interval";
  const auto rmse = [](const nlohmann::json& x) -> const nlohmann::json& {
    return x["skill"]["horizons"][1]["rows"][0]["variables"]["t2m"]["rmse"];
  };
  EXPECT_NE(rmse(even), rmse(uneven)) << "of frames after one that was seen: their intervals alone differ";
}

TEST(SkillOfFields, WindowsStandByTheirSize) {
  const std::string table =
      table_text(evaluate_fields(FieldClips(), field_options({{"fss_windows", {15, 3}}})).metrics);
  EXPECT_LT(table.find("fss 3 px"), table.find("fss 15 px"));
}

TEST(SkillOfFields, MapsAreOfTheLastLeadTime) {
  const FieldClips dataset;
  const Evaluation result = evaluate_fields(dataset, field_options());
  ASSERT_EQ(result.error_maps[0].size(), 2u);
  const VariableMaps& map = result.error_maps[0][0];
  EXPECT_EQ(map.variable + map.units + map.names[1], "t2mKcopy last frame");
  EXPECT_EQ(map.frames, 6);
  double sum = 0, count = 0;  // of pixel (4, 7): the last of its values that was measured, of three clips
  for (int64_t i = 0; i < 3; ++i) {
    const int64_t n = FieldClips::frame_number(data::Split::test, static_cast<uint64_t>(i), 8);
    if (!FieldClips::measured(n, 0, 4, 7)) continue;
    int64_t last = n - 6;
    while (!FieldClips::measured(last, 0, 4, 7)) --last;
    const double error = FieldClips::temperature(last, 4, 7) - FieldClips::temperature(n, 4, 7);
    sum += error * error, count += 1;
  }
  EXPECT_NEAR(map.maps[1][4][7].item<double>(), std::sqrt(sum / count), 1e-4);
}

TEST(SkillOfFields, WhatWasNotMeasuredCountsNowhereInPsnrEither) {
  const FieldClips dataset;
  const Evaluation result = evaluate_fields(dataset, field_options({{"horizons", {2}}}));
  double expected = 0;  // of the last frame, in [0,1], over the measured pixels
  for (uint64_t i = 0; i < 3; ++i) {
    const data::Clips clip = dataset.clip(data::Split::test, i, 5);
    const at::Tensor last = metrics::last_measured(clip.video.slice(1, 0, 3), clip.valid.slice(1, 0, 3))[0];
    for (int64_t k = 3; k < 5; ++k) {
      const at::Tensor valid = clip.valid[0][k];
      const at::Tensor error = (last - clip.video[0][k]).masked_select(valid) / 2;
      expected += -10 * std::log10(error.square().mean().item<double>()) / 6;
    }
  }
  EXPECT_NEAR(result.metrics["horizons"][0]["rows"][1]["psnr_f01"]["mean"].get<double>(), expected, 1e-3);
}

// One test clip, of which a frame was not measured at all.
class Dark : public FieldClips {
 public:
  data::Clips part(data::Split split, uint64_t index, int64_t first, int64_t frames) const override {
    data::Clips clip = FieldClips::part(split, index, first, frames);
    if (split == data::Split::test && frames > 4) clip.valid.select(1, 4).fill_(false);
    return clip;
  }
};

TEST(SkillOfFields, AFrameThatWasNeverMeasuredCountsNowhere) {
  const Evaluation result = evaluate_fields(Dark(), field_options());
  const auto& curve = result.metrics["curves"]["psnr_f01"]["scripted"];
  EXPECT_TRUE(std::isnan(curve[1].get<double>()) || curve[1].is_null());
  EXPECT_TRUE(std::isfinite(curve[2].get<double>()));
  EXPECT_TRUE(std::isfinite(result.metrics["horizons"][0]["rows"][0]["psnr_f01"]["mean"].get<double>()));
  EXPECT_TRUE(result.metrics["skill"]["curves"]["variables"]["t2m"]["rmse"]["scripted"][1].is_null());
  EXPECT_TRUE(result.metrics["skill"]["horizons"][0]["rows"][0]["variables"]["t2m"]["rmse"].is_number());
}

class Clipped : public FieldClips {
 public:
  data::FrameFormat format() const override {
    data::FrameFormat format = FieldClips::format();
    format.clamp = true;
    return format;
  }
};

TEST(SkillOfFields, SaysThatTheTruthWasClipped) {
  const Evaluation clipped = evaluate_fields(Clipped(), field_options());
  EXPECT_EQ(clipped.metrics["protocol"]["skill"]["clipped"], true);
  EXPECT_NE(table_text(clipped.metrics).find("data.clamp"), std::string::npos);
  const Evaluation whole = evaluate_fields(FieldClips(), field_options({{"thresholds", {{"rain", 20.0}}}}));
  EXPECT_EQ(whole.metrics["protocol"]["skill"]["clipped"], false);
  EXPECT_EQ(table_text(whole.metrics).find("data.clamp"), std::string::npos);
  const auto with = [](double threshold) {
    return [threshold] { fields_of(Clipped(), field_options({{"thresholds", {{"rain", threshold}}}}).skill); };
  };
  expect_error(with(20), {"threshold 20 of rain", "0 to 10", "data.clamp"});
  expect_error(with(0), {"threshold 0 of rain"});
  EXPECT_NO_THROW(with(10)());
}

TEST(SkillOfFields, IsOfFieldsUnlessOneChooses) {
  const FieldClips fields(true, false);
  EXPECT_TRUE(evaluate_fields(fields, field_options()).metrics.contains("skill"));
  EXPECT_FALSE(evaluate_fields(fields, field_options({{"skill", "off"}})).metrics.contains("skill"));
  const BlockClips pictures;
  BlockModel model(false);
  EvaluateOptions o = EvaluateOptions::from_json({{"context", 4}, {"horizons", {3}}, {"samples", 2}});
  const auto metrics = make_metrics(o, pictures.format(), metrics::WeightFolder("/nonexistent"));
  const Evaluation plain = evaluate(model, pictures, o, metrics, "ours");
  EXPECT_FALSE(plain.metrics.contains("skill"));
  EXPECT_EQ(plain.metrics["horizons"][0]["rows"][2]["name"], "blank frame");
  o.skill.skill = Skill::on;
  const Evaluation chosen = evaluate(model, pictures, o, metrics, "ours");
  EXPECT_TRUE(chosen.metrics["skill"]["horizons"][0]["rows"][0]["variables"].contains("channel 0"));
  o.references = {"copy last frame"};
  EXPECT_EQ(evaluate(model, pictures, o, metrics, "ours").metrics["horizons"][0]["rows"].size(), 2u);
}

TEST(SkillOfFields, WrongOptionsAreExplained) {
  const auto wrong = [](const nlohmann::json& section, const std::vector<std::string>& parts) {
    expect_error([&] { EvaluateOptions::from_json(section); }, parts);
  };
  wrong({{"skill", "yes"}}, {"skill must be auto, on or off", "'yes'"});
  wrong({{"thresholds", {{"rain", "much"}}}}, {"thresholds of rain", "numbers", "much"});
  wrong({{"fss_windows", {0}}}, {"fss_windows", "at least 1 pixel"});
  wrong({{"references", {"copy last fram"}}}, {"did you mean 'copy last frame'"});
  expect_error(
      [] {
        evaluate_fields(FieldClips(), field_options({{"thresholds", {{"rian", {1}}}}}));
      },
      {"unknown channel", "did you mean 'rain'"});
}

TEST(SkillOfFields, AValueAtTheThresholdIsAnEvent) {
  data::FrameFormat format(2, 4, 5);
  format.channels[0] = {.name = "rain", .low = 0, .high = 128};
  format.channels[1] = {.name = "log rain", .low = 0, .high = 128, .log_offset = 0.01};
  class Flat : public FieldClips {
   public:
    explicit Flat(data::FrameFormat format) : format_(std::move(format)) {}
    data::FrameFormat format() const override { return format_; }
    const data::Axes* axes() const override { return nullptr; }

   private:
    data::FrameFormat format_;
  };
  SkillOptions options;
  std::vector<double> steps;
  for (int64_t i = 1; i < 400; ++i) steps.push_back(0.05 * static_cast<double>(i));
  options.thresholds = {{"rain", steps}, {"log rain", steps}};
  const Fields fields = fields_of(Flat(format), options);
  for (size_t i = 0; i < steps.size(); ++i) {
    const at::Tensor back =
        data::values_of(data::frames_of_values(at::full({2, 4, 5}, steps[i], at::kDouble), format), format);
    for (const size_t c : {0u, 1u}) {
      EXPECT_GE(back[static_cast<int64_t>(c)][0][0].item<double>(), fields.variables[c].lowered[i]) << steps[i];
      EXPECT_NEAR(fields.variables[c].lowered[i], steps[i], 1e-4);
    }
  }
}

}  // namespace
}  // namespace convssm::evaluate
