// The sums of a line of the log through the JSON of a checkpoint, which knows no NaN and no infinity.
#include "convssm/train/interval.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>

namespace convssm::train {
namespace {

Interval reread(const nlohmann::json& json) { return Interval::from_json(nlohmann::json::parse(json.dump())); }

TEST(Interval, GoesOnWithItsSums) {
  Interval interval;
  interval.count("", {2, {{"l1", 1}}}, 4);
  interval.count_skipped();
  Interval after = reread(interval.to_json());
  EXPECT_EQ(after.to_json(), interval.to_json());
  after.count("", {4, {{"l1", 3}}}, 6);
  EXPECT_EQ(after.means(), (nlohmann::json{{"loss", 3.0}, {"l1", 2.0}, {"grad_norm", 5.0}}));
  EXPECT_EQ(after.skipped(), 1);
}

TEST(Interval, APartThatIsNotFiniteStaysSo) {
  for (const double bad : {NAN, INFINITY}) {
    Interval interval;
    interval.count("", {2, {{"part", bad}}}, 4);
    const nlohmann::json means = reread(interval.to_json()).means();
    EXPECT_EQ(means["loss"], 2.0);
    EXPECT_TRUE(std::isnan(means["part"].get<double>()));
  }
}

TEST(Interval, ReadsTheFormOfVersion01) {
  const auto json = nlohmann::json::parse(
      R"({"steps": 2, "skipped": 1, "loss": 6.0, "gradient_norm": 8.0, "parts": [["l1", 3.0], ["l2", null]]})");
  const Interval interval = Interval::from_json(json);
  EXPECT_EQ(interval.skipped(), 1);
  const nlohmann::json means = interval.means();
  EXPECT_EQ(means["loss"], 3.0);
  EXPECT_EQ(means["grad_norm"], 4.0);
  EXPECT_EQ(means["l1"], 1.5);
  EXPECT_TRUE(std::isnan(means["l2"].get<double>()));
}

}  // namespace
}  // namespace convssm::train
