// Scores in units on the page: tables, charts, maps; and files that are not what they should be.
#include <gtest/gtest.h>

#include <cmath>

#include "convssm/base/error.h"
#include "convssm/base/read_file.h"
#include "convssm/report/field_map.h"
#include "convssm/report/report.h"
#include "convssm/report/sections.h"
#include "tests/report/fake_run.h"

namespace convssm::report {
namespace {

nlohmann::json skill_metrics() {
  const nlohmann::json event = {{"threshold", 0.5}, {"csi", 0.4321}, {"pod", nullptr}, {"fss", {{"3", 0.61}}}};
  const nlohmann::json ours = {{"rmse", 1.25},      {"bias", -0.5}, {"acc", 0.75},
                               {"events", {event}}, {"crps", 0.9},  {"rank_histogram", {0.5, 0.25, 0.25}}};
  const nlohmann::json copy = {{"rmse", 2.5}, {"bias", 0.5}, {"acc", nullptr}};
  const nlohmann::json rows = {{{"name", "ours"}, {"variables", {{"<t2m>", ours}}}},
                               {{"name", "copy last frame"}, {"variables", {{"<t2m>", copy}}}}};
  const nlohmann::json curves = {{"rmse", {{"ours", {1.0, 1.5}}, {"copy last frame", {2.0, 3.0}}}},
                                 {"csi@0.5", {{"ours", {0.5, nullptr}}}}};
  return {{"protocol",
           {{"model", "ours"},
            {"fss_windows", {3}},
            {"skill", {{"weights", "cosine of latitude"}, {"clipped", true}}},
            {"references", {{"climatology", "mean of 80 frames"}}}}},
          {"horizons", {{{"frames", 2}, {"rows", {{{"name", "ours"}, {"psnr_f01", {{"mean", 20}}}}}}}}},
          {"skill",
           {{"variables", {{{"name", "<t2m>"}, {"units", "K"}, {"thresholds", {0.5}}}}},
            {"horizons", {{{"frames", 2}, {"rows", rows}}}},
            {"curves", {{"frames", {1, 2}}, {"variables", {{"<t2m>", curves}}}}}}}};
}

FieldMaps two_maps() {
  FieldMaps maps{"t2m: error 2 frames ahead", "K", 3, 4, {{"ours", std::vector<double>(12, 0.5)}, {"copy", {}}}};
  for (int i = 0; i < 12; ++i) maps.maps[1].values.push_back(i);
  maps.maps[1].values[3] = std::nan("");
  return maps;
}

TEST(SkillReport, ShowsScoresCurvesRanksAndMaps) {
  const ScratchFolder folder;
  write_whole_run(folder);
  folder.write("metrics.json", skill_metrics().dump());
  write_field_maps_png(folder.path("samples/" + error_map_file(0, 0)), two_maps());
  write_report(folder.path(""));
  const std::string page = read_text(folder.path("report.html"));
  for (const char* part : {"&lt;t2m&gt; [K]", "<b>1.25</b>", "2.5", "CSI ≥ 0.5 K", "0.4321", "FSS ≥ 0.5 K, 3 px",
                           "0.61", "id=\"skill-1-1-rmse\"", "id=\"skill-1-1-ranks\"", "alt=\"error-map-1.png\"",
                           "weighted by the cosine of latitude", "climatology: mean of 80 frames", "(data.clamp)"}) {
    EXPECT_NE(page.find(part), std::string::npos) << part;
  }
  EXPECT_EQ(page.find("<t2m>"), std::string::npos);
  EXPECT_EQ(page.find("POD"), std::string::npos);                          // nobody has a number
  EXPECT_EQ(page.find("error-map-1.png"), page.rfind("error-map-1.png"));  // not among the samples too
}

TEST(SkillReport, SurvivesFilesThatAreSomethingElse) {
  const ScratchFolder folder;
  write_whole_run(folder);
  const nlohmann::json whole = skill_metrics(), flat = whole.flatten();
  for (const auto& [path, value] : flat.items()) {
    for (const nlohmann::json& other : {nlohmann::json(), nlohmann::json("x"), nlohmann::json(7),
                                        nlohmann::json::array({1}), nlohmann::json::object()}) {
      nlohmann::json damaged = whole;
      nlohmann::json::json_pointer at(path);
      while (true) {
        damaged[at] = other;
        folder.write("metrics.json", damaged.dump());
        EXPECT_NO_THROW(write_report(folder.path(""))) << path;
        if (at.parent_pointer().empty()) break;
        at = at.parent_pointer();
        if (at.to_string().find("/skill") != 0) break;
      }
    }
  }
}

TEST(FieldMaps, HaveOneScaleAndGreyWhereNothingIsKnown) {
  const io::Image image = field_maps_image(two_maps());
  EXPECT_EQ(image.channels, 3);
  const auto colour = [&](int64_t x, int64_t y) {
    const uint8_t* p = &image.pixels[static_cast<size_t>((y * image.width + x) * 3)];
    return std::array<int, 3>{p[0], p[1], p[2]};
  };
  const int64_t top = 92, second = 32 + 440 + 28, step = 110;  // pixels: of a map, of the second map, of a value
  EXPECT_EQ(colour(second + 5, top + 5), (std::array<int, 3>{68, 1, 84}));                           // 0
  EXPECT_EQ(colour(second + 3 * step + 5, top + 2 * step + 5), (std::array<int, 3>{253, 231, 37}));  // 11, the largest
  EXPECT_EQ(colour(second + 3 * step + 5, top + 5), (std::array<int, 3>{215, 219, 226}));            // NaN
  EXPECT_EQ(colour(40, top + 5), colour(32 + 3 * step + 5, top + 2 * step + 5));                     // 0.5 all over
  EXPECT_NE(colour(40, top + 5), (std::array<int, 3>{68, 1, 84}));
}

TEST(FieldMaps, OfManyPixelsStaySmallAndOfWrongSizesAreErrors) {
  FieldMaps large{"large", "", 700, 2000, {{"a", std::vector<double>(700 * 2000, 1)}}};
  EXPECT_LT(field_maps_image(large).width, 1200);
  large.maps[0].values.pop_back();
  EXPECT_THROW(field_maps_image(large), Error);
  EXPECT_THROW(field_maps_image({"none", "", 3, 3, {}}), Error);
}

}  // namespace
}  // namespace convssm::report
