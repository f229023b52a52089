// Runs side by side: what a record says, the table of the terminal, curves.
#include "convssm/report/results.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "convssm/base/error.h"
#include "tests/report/fake_records.h"

namespace convssm::report {
namespace {

struct Results : testing::Test {
  ScratchFolder folder;
  std::vector<Record> records() const { return read_records({folder.path("results")}); }
};

void expect_contains(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << "'" << part << "' is not in:\n" << text;
}

TEST_F(Results, ARecordKnowsItsCosts) {
  write_fake_results(folder);
  const auto all = records();
  ASSERT_EQ(all.size(), 9u);
  EXPECT_EQ(all[0].row, "convs5");
  EXPECT_EQ(all[2].row, "a_lstm");  // by place, not by name
  EXPECT_DOUBLE_EQ(all[0].training_minutes.value(), 10);
  EXPECT_EQ(all[0].lr, 0.001);
  EXPECT_EQ(all[0].parameters, 158675);
  EXPECT_EQ(all[0].frames_per_second, 812.4);
  EXPECT_FALSE(all[2].frames_per_second);
  EXPECT_EQ(all[1].seed, 2);
  EXPECT_EQ(all[6].validation_psnr, 19.5);
  EXPECT_TRUE(all[8].diverged);
}

TEST_F(Results, ARecordIsAnObjectForOtherPrograms) {
  write_fake_results(folder);
  const auto all = records();
  const nlohmann::json first = to_json(all[0]);
  EXPECT_EQ(first.at("row"), "convs5");
  EXPECT_EQ(first.at("training_minutes"), 10);
  EXPECT_EQ(first.at("record").at("commit"), "abc1");
  EXPECT_EQ(first.at("metrics").at("horizons").size(), 2u);
  EXPECT_TRUE(to_json(all[2]).at("frames_per_second").is_null());
}

TEST_F(Results, PlainRunFoldersAreRowsUnderTheirNames) {
  write_fake_run(folder, {"b"});
  write_fake_run(folder, {"a"});
  const auto all = records();
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].label, "a");
  EXPECT_EQ(all[1].part, "table");
  EXPECT_EQ(all[1].lr, 0.002);
  EXPECT_EQ(read_records({folder.path("results/b")}).at(0).label, "b");
}

TEST_F(Results, MissingAndDamagedFilesAreLeftOut) {
  folder.write("results/empty/config.yaml", "seed: [");
  folder.write("results/broken/metrics.json", "{\"horizons\": 3, ");
  folder.write("results/broken/record.json", "[]");
  folder.write("results/broken/speed.json", "7");
  folder.write("results/odd/metrics.json",
               R"({"horizons": [7, {"frames": "x", "rows": [3]}], "curves": 1, "protocol": 2})");
  folder.write("results/not_a_run/text", "");
  const auto all = records();
  ASSERT_EQ(all.size(), 3u);
  EXPECT_FALSE(all[0].evaluated());
  EXPECT_FALSE(all[1].training_minutes);
  EXPECT_TRUE(horizon_chart(all, "psnr_f01").lines.empty());
  EXPECT_TRUE(protocol_differences(all).empty());
  EXPECT_EQ(results_text({}), "");
  EXPECT_THROW(read_records({folder.path("results/none")}), Error);
  EXPECT_THROW(read_records({folder.path("results/not_a_run")}), Error);
}

TEST_F(Results, TheTerminalShowsEveryRun) {
  write_fake_results(folder);
  const std::string text = results_text(records());
  expect_contains(text, "2 frames ahead  4 frames ahead\n");
  expect_contains(
      text,
      "ConvS5, seed 2         0.16 M  0.001             10                     -  21.00  0.200    20.00  0.300\n");
  expect_contains(text, "\nblank frame  ");
  EXPECT_EQ(text.find("s1"), std::string::npos);
  EXPECT_EQ(text.find("of drawn digits"), std::string::npos);
  expect_contains(results_text(only_rows(records(), {"s1"})), "s1");
  expect_contains(results_text(only_rows(records(), {"pretrained"})), "of drawn digits");
}

TEST_F(Results, RowsAreChosenWithTheirSeeds) {
  write_fake_results(folder);
  EXPECT_EQ(only_rows(records(), {}).size(), 9u);
  EXPECT_EQ(only_rows(records(), {"a_lstm"}).size(), 1u);
  EXPECT_EQ(model_rows(only_rows(records(), {"convs5"}), "table").at(0).seeds.size(), 2u);
  EXPECT_THROW(only_rows(records(), {"convs6"}), Error);
}

TEST_F(Results, CurvesAreMeansOverSeeds) {
  write_fake_results(folder);
  const Chart chart = horizon_chart(records(), "psnr_f01");
  ASSERT_EQ(chart.lines.size(), 4u);
  EXPECT_EQ(chart.lines[0].name, "ConvS5");
  EXPECT_DOUBLE_EQ(chart.lines[0].points.at(1).y, 20.5);
  EXPECT_EQ(chart.lines[1].stroke, Stroke::solid);
  EXPECT_EQ(chart.lines[2].stroke, Stroke::dashed);
  EXPECT_EQ(chart.lines[3].stroke, Stroke::dotted);
  EXPECT_TRUE(horizon_chart(records(), "lpips_alex").lines.empty());
  const Chart alone = horizon_chart(only_rows(records(), {"no_gelu"}), "psnr_f01");  // no row of the table
  EXPECT_EQ(alone.lines.at(0).name, "without GELU");
}

TEST_F(Results, LongCurvesAreSmoothedAndSaySo) {
  write_fake_run(folder, {"a"});
  nlohmann::json metrics = fake_metrics({"a"});
  nlohmann::json frames = nlohmann::json::array(), values = frames;
  for (int k = 1; k <= 200; ++k) frames.push_back(k), values.push_back(k + (k % 2 == 0 ? 5 : -5));
  metrics["curves"] = {{"frames", frames}, {"psnr_f01", {{"core", values}}}};
  folder.write("results/a/metrics.json", metrics.dump());
  const Chart chart = horizon_chart(records(), "psnr_f01");
  const auto& points = chart.lines.at(0).points;
  EXPECT_DOUBLE_EQ(points.front().y, -4);  // stays
  EXPECT_DOUBLE_EQ(points.back().y, 197.5);
  EXPECT_NEAR(points[100].y, 101, 0.5);
  expect_contains(chart.hint, "running mean over 11 frames");
}

TEST_F(Results, OtherProtocolsAreNamed) {
  write_fake_results(folder);
  EXPECT_TRUE(protocol_differences(records()).empty());
  nlohmann::json metrics = fake_metrics({"a_lstm"});
  metrics["protocol"]["samples"] = 16;
  metrics["horizons"][0]["rows"][1]["psnr_f01"]["mean"] = 14;
  folder.write("results/a_lstm/metrics.json", metrics.dump());
  const auto lines = protocol_differences(records());
  ASSERT_EQ(lines.size(), 2u);
  expect_contains(lines[0], "on other clips than convs5");
  expect_contains(lines[1], "a_lstm was evaluated with samples 16, convs5 with 32");
}

// Each data has its table and its own forecasts without a model, in whatever order the runs come.
TEST_F(Results, RunsAreGroupedByTheirData) {
  const auto write = [&](const std::string& row, const std::string& path, double copy) {
    write_fake_run(folder, {row});
    nlohmann::json metrics = fake_metrics({row});
    for (auto& horizon : metrics["horizons"]) horizon["rows"][1]["psnr_f01"]["mean"] = copy;
    metrics["protocol"]["data"] = {{"name", "folder"}, {"path", path}, {"seed", 1}};
    folder.write("results/" + row + "/metrics.json", metrics.dump());
  };
  write("a", "waves", 11), write("b", "maze", 12), write("c", "waves", 11);
  const auto all = records();
  const std::string text = results_text(all);
  const size_t waves = text.find("data: folder, path waves\n"), maze = text.find("data: folder, path maze\n");
  ASSERT_NE(waves, std::string::npos) << text;
  ASSERT_NE(maze, std::string::npos) << text;
  EXPECT_LT(waves, maze);
  expect_contains(text.substr(waves, maze - waves), "11.00");
  EXPECT_EQ(text.substr(waves, maze - waves).find("12.00"), std::string::npos) << text;
  expect_contains(text.substr(maze), "12.00");
  EXPECT_TRUE(protocol_differences(all).empty()) << "other data is no other protocol";
  const Chart chart = horizon_chart(all, "psnr_f01");
  EXPECT_EQ(chart.lines.size(), 3u + 2 * 2);
  EXPECT_EQ(chart.lines.back().name, "blank frame · folder, path maze");
}

TEST_F(Results, WarningsDoNotDependOnTheOrder) {
  for (const char* row : {"a", "b", "c"}) {
    write_fake_run(folder, {row});
    nlohmann::json metrics = fake_metrics({row});
    if (row[0] == 'a') metrics["protocol"]["samples"] = 16;
    folder.write(fmt::format("results/{}/metrics.json", row), metrics.dump());
  }
  auto all = records();
  const std::vector<std::string> expected{"a was evaluated with samples 16, b with 32"};
  EXPECT_EQ(protocol_differences(all), expected);
  std::reverse(all.begin(), all.end());
  EXPECT_EQ(protocol_differences(all), expected);
}

TEST_F(Results, ScoresOlderThanTheNewestCheckpointAreMarked) {
  write_fake_run(folder, {"a"});
  nlohmann::json metrics = fake_metrics({"a"});
  metrics["protocol"]["checkpoint"] = {{"step", 60}};
  folder.write("results/a/metrics.json", metrics.dump());
  expect_contains(results_text(records()), "a (at step 60 of 100)");  // of status.json
  folder.write("results/a/checkpoints/step-60.json", "{}");
  EXPECT_FALSE(records()[0].stale()) << "what was not saved cannot be scored";
  folder.write("results/a/checkpoints/step-80.json", "{}");
  folder.write("results/a/checkpoints/step-90.json.tmp", "{}");
  EXPECT_TRUE(records()[0].stale());
  expect_contains(results_text(records()), "a (at step 60 of 80)");
  EXPECT_EQ(to_json(records()[0])["scored_step"], 60);
}

}  // namespace
}  // namespace convssm::report
