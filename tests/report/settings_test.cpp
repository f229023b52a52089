// Evaluations in several settings, in the report, in results and in model cards; files without settings are read as before.
#include <gtest/gtest.h>

#include "convssm/base/error.h"
#include "convssm/report/model_card.h"
#include "convssm/report/plot.h"
#include "convssm/report/report.h"
#include "convssm/report/results.h"
#include "tests/report/fake_records.h"

namespace convssm::report {
namespace {

using nlohmann::json;

json two_setting_metrics(double psnr, double ceiling = 30) {
  const auto value = [](double mean) { return json{{"mean", mean}, {"std", 0.5}}; };
  json best = value(psnr);
  best["best"] = psnr + 1, best["best_std"] = 0.25;
  const json first_rows = {{{"name", "core"}, {"psnr_f01", best}},
                           {{"name", "copy last frame"}, {"psnr_f01", value(15)}},
                           {{"name", "tokenizer ceiling"}, {"psnr_f01", value(ceiling)}}};
  const json seen = {{"share", 0.25}, {"rows", {{{"name", "core"}, {"psnr_f01", value(33.33)}}}}};
  const json first = {{"name", "144+156 actions"},
                      {"context", 144},
                      {"frames", 156},
                      {"actions", true},
                      {"samples", 32},
                      {"horizons", {{{"frames", 156}, {"rows", first_rows}, {"seen_before", seen}}}},
                      {"curves", {{"frames", {1, 2}}, {"psnr_f01", {{"core", {psnr, psnr - 1}}}}}}};
  const json second = {{"name", "<36>+264"},
                       {"context", 36},
                       {"frames", 264},
                       {"actions", false},
                       {"samples", 32},
                       {"horizons", {{{"frames", 264}, {"rows", {{{"name", "core"}, {"fvd_i3d", value(70)}}}}}}},
                       {"curves", {{"frames", {1, 2}}, {"ssim_gauss11", {{"core", {0.5, 0.25}}}}}}};
  const json protocol = {{"model", "core"},     {"samples", 32},
                         {"chunk", 8},          {"futures", 4},
                         {"real", "originals"}, {"settings", {{{"context", 144}}, {{"context", 36}}}}};
  return {{"protocol", protocol}, {"settings", {first, second}}};
}

struct SettingsReport : testing::Test {
  ScratchFolder folder;
  void write(const std::string& row, const json& metrics) const {
    write_fake_run(folder, {row});
    folder.write("results/" + row + "/metrics.json", metrics.dump());
  }
  std::vector<Record> records() const { return read_records({folder.path("results")}); }
};

void expect_text(const std::string& text, const std::vector<std::string>& parts) {
  for (const std::string& part : parts) {
    EXPECT_NE(text.find(part), std::string::npos) << "'" << part << "' is not in:\n" << text;
  }
}

TEST_F(SettingsReport, ThePageHasATableAndChartsForEach) {
  write("a", two_setting_metrics(22.5));
  folder.write("results/a/samples/evaluate.gif", "no picture");
  write_report(folder.path("results/a"));
  const std::string page = read_text(folder.path("results/a/report.html"));
  expect_text(page, {"<h3>144+156 actions</h3>", "144 frames of context · 32 samples · actions given",
                     "<h3>&lt;36&gt;+264</h3>", "actions masked", "<td>22.50 <span class=\"soft\">± 0.50</span>",
                     "best of 4:</span> 23.50 <span class=\"soft\">± 0.25</span>", "<b>30.00</b>", "70.0",
                     "seen before: 25%", "33.33", "id=\"horizon-psnr_f01\"", "id=\"horizon-2-ssim_gauss11\""});
}

TEST_F(SettingsReport, ResultsHaveAGroupOfColumnsForEach) {
  write("a", two_setting_metrics(22.5));
  write("b", two_setting_metrics(23.5));
  const auto all = records();
  EXPECT_TRUE(all[0].evaluated());
  const std::string text = results_text(all);
  expect_text(text, {"144+156 actions", "<36>+264", "22.50", "23.50", "70.0", "copy last frame", "15.00"});
  const std::string heads = text.substr(text.find('\n') + 1, text.find('\n', text.find('\n') + 1) - text.find('\n'));
  EXPECT_EQ(heads.find("PSNR"), heads.rfind("PSNR")) << heads;  // no column that nobody has
  EXPECT_EQ(heads.find("FVD"), heads.rfind("FVD")) << heads;
  EXPECT_TRUE(protocol_differences(all).empty());
}

TEST_F(SettingsReport, OldFilesStandBesideNewOnes) {
  write("a", two_setting_metrics(22.5));
  write("old", fake_metrics({"old"}));
  expect_text(results_text(records()), {"2 frames ahead", "4 frames ahead", "144+156 actions", "20.00"});
  const auto lines = protocol_differences(records());
  ASSERT_FALSE(lines.empty());
  for (const std::string& line : lines) EXPECT_EQ(line.find("real"), std::string::npos) << line;
}

TEST_F(SettingsReport, CeilingsOfDifferentTokenizersAreDifferentRows) {
  write("a", two_setting_metrics(22.5, 30));
  write("b", two_setting_metrics(23.5, 30));
  const std::string same = results_text(records());
  EXPECT_EQ(same.find("tokenizer ceiling"), same.rfind("tokenizer ceiling")) << same;
  write("c", two_setting_metrics(23.5, 35));
  expect_text(results_text(records()), {"tokenizer ceiling of c", "35.00", "30.00"});
}

TEST_F(SettingsReport, ChartsAreOfOneSetting) {
  write("a", two_setting_metrics(22.5));
  const Chart psnr = horizon_chart(records(), "psnr_f01");
  EXPECT_EQ(psnr.title, "PSNR over the horizon, 144+156 actions");
  ASSERT_EQ(psnr.lines.size(), 1u);
  EXPECT_EQ(psnr.lines[0].points[1].y, 21.5);
  EXPECT_EQ(horizon_chart(records(), "ssim_gauss11").title, "SSIM over the horizon, <36>+264");
  EXPECT_FALSE(has_points(horizon_chart(records(), "ssim_gauss11", "144+156 actions")));
  try {
    horizon_chart(records(), "psnr_f01", "144+156 action");
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    expect_text(error.what(), {"did you mean '144+156 actions'"});
  }
}

TEST_F(SettingsReport, AModelCardHasATableForEach) {
  write("a", two_setting_metrics(22.5));
  expect_text(
      model_card(folder.path("results/a"), ""),
      {"Setting 144+156 actions, 144 frames of context:", "22.50 ± 0.50", "36 frames of context", "70.0 ± 0.5"});
}

}  // namespace
}  // namespace convssm::report
