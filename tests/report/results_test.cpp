// Runs side by side: what a record says, means over seeds, the best of a column, learning rates, curves.
#include "convssm/report/results.h"

#include <gtest/gtest.h>

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
  for (const std::string& text : {table_block({}), short_block({}), seeds_block(all), ablations_block(all),
                                  sweep_block(all), about_block({}), results_text({})}) {
    EXPECT_EQ(text, "");
  }
  EXPECT_NE(table_block(all), "");  // a row without a number
  EXPECT_THROW(read_records({folder.path("results/none")}), Error);
  EXPECT_THROW(read_records({folder.path("results/not_a_run")}), Error);
}

TEST_F(Results, TheTableHasMeansOverSeedsAndBoldIsBest) {
  write_fake_results(folder);
  const std::string table = table_block(records());
  expect_contains(table,
                  "| model | parameters | lr | training, min | generation, frames/s |\n|---|---:|---:|---:|---:|\n");
  expect_contains(table, "| ConvS5 | 0.16 M | 0.001 | 10 | 812 |\n| ConvLSTM | 0.16 M | 0.001 | 10 | – |\n\n");
  expect_contains(table, "**The first 2 generated frames**\n\n| model | PSNR ↑ | LPIPS ↓ |\n");
  expect_contains(table,
                  "| ConvS5 | **20.50** ± 0.50 | 0.150 ± 0.050 |\n| ConvLSTM | 20.25 | **0.050** |\n"
                  "| copy last frame | 15.00 | 0.500 |\n| blank frame | 17.00 | 0.900 |\n");
  expect_contains(table, "**The first 4 generated frames**");
  expect_contains(table, "± is half the range between seeds (ConvS5 2)");
  EXPECT_EQ(table.find("GELU"), std::string::npos);
}

TEST_F(Results, ATrivialForecastMayBeTheBest) {
  write_fake_run(folder, {"weak", nlohmann::json::object(), 16.5, 0.2});
  expect_contains(short_block(records()), "| weak | 16.50 | **0.200** | 15.50 | **0.300** |\n");
  expect_contains(short_block(records()), "| blank frame | **17.00** | 0.900 | **17.00** | 0.900 |\n");
}

TEST_F(Results, SeedsAblationsAndLearningRates) {
  write_fake_results(folder);
  const auto all = records();
  expect_contains(seeds_block(all), "| model | PSNR ↑ 2 | LPIPS ↓ 2 | PSNR ↑ 4 | LPIPS ↓ 4 |");
  expect_contains(seeds_block(all), "| ConvS5, seed 1 | 20.00 | 0.100 | 19.00 | 0.200 |\n| ConvS5, seed 2 | 21.00 |");
  expect_contains(ablations_block(all), "| without GELU | 0.16 M | 10 | 19.00 | 0.300 |");
  EXPECT_EQ(ablations_block(all).find("Conv"), std::string::npos);  // rows of the table may have trained longer
  EXPECT_EQ(
      sweep_block(all),
      "| model | lr 0.001 | lr 0.004 | lr 0.01 |\n|---|---:|---:|---:|\n| ConvS5 | **19.50** | 18.25 | diverged |\n");
  expect_contains(rates_block(all),
                  "| ConvLSTM | 1e-4 | 18.00 | 0.400 | 17.00 | 0.500 |\n| ConvLSTM | 0.001 | 20.25 |");
  EXPECT_EQ(rates_block(all).find("ConvS5"), std::string::npos);  // no other rate at full length
}

TEST_F(Results, SayWhereTheyComeFrom) {
  write_fake_results(folder);
  const std::string about = about_block(records());
  expect_contains(about, "A Machine, 1 thread; convssm 0.1, commit abc1.\n");
  expect_contains(about, "32 clips of the test split, 10 frames of context; PSNR is `psnr_f01`, LPIPS is `lpips_alex`");
  expect_contains(about, "alexnet `12ab`");
  const std::string rows = rows_block(records(), folder.path("docs"));
  expect_contains(rows, "- ConvS5: [convs5](../results/convs5), `make results ROW=convs5`\n");
  expect_contains(rows, "train a_lstm\n");
  expect_contains(rows, "- ConvS5, seed 2: [convs5_seed2]");
  EXPECT_EQ(rows.find("ROW=s1"), std::string::npos);
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
  expect_contains(lines[0], "a_lstm was evaluated with samples 16, convs5 with 32");
  expect_contains(lines[1], "on other clips than convs5");
}

}  // namespace
}  // namespace convssm::report
