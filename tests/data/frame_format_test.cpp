// Sizes, units and names of channels: the two forms of JSON, and from [-1,1] back to the units of the data.
#include "convssm/data/frame_format.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "../support.h"

namespace convssm::data {
namespace {

using convssm::testing::distance;
using convssm::testing::expect_error;
using nlohmann::json;

FrameFormat weather() {
  FrameFormat format(2, 20, 30);
  format.channels = {{"t850", 220, 320}, {"", -30, 30}};
  return format;
}

TEST(FrameFormat, SurvivesJson) {
  for (const FrameFormat& format : {weather(), FrameFormat(3, 20, 30, -1.5, 2.5), FrameFormat(1, 1, 1)}) {
    const FrameFormat back = FrameFormat::from_json(format.to_json());
    EXPECT_EQ(back.channels, format.channels);
    EXPECT_EQ(back.height, format.height);
    EXPECT_EQ(back.width, format.width);
  }
  EXPECT_EQ(FrameFormat(3, 20, 30, -1.5, 2.5).to_json(),
            json::parse(R"({"height": 20, "width": 30, "channels": 3, "low": -1.5, "high": 2.5})"))
      << "what version 0.1 reads";
  EXPECT_EQ(weather().to_json(), json::parse(R"({"height": 20, "width": 30, "channels": [
      {"name": "t850", "low": 220.0, "high": 320.0}, {"low": -30.0, "high": 30.0}]})"));
}

TEST(FrameFormat, KeepsHowValuesOutsideAreRead) {
  json with = weather().to_json();
  with["clamp"] = true;
  EXPECT_EQ(FrameFormat::from_json(with).to_json(), with);
  EXPECT_FALSE(weather().to_json().contains("clamp")) << "the default needs no word";
}

TEST(FrameFormat, ReadsTheFormOfOneRange) {
  const FrameFormat format =
      FrameFormat::from_json({{"channels", 3}, {"height", 20}, {"width", 30}, {"low", -1.5}, {"high", 2.5}});
  EXPECT_EQ(format.channels, std::vector<Channel>(3, {"", -1.5, 2.5}));
  EXPECT_EQ(format.width, 30);
}

TEST(FrameFormat, WrongJsonIsNamed) {
  const auto refuse = [](const char* text, const std::vector<std::string>& parts) {
    expect_error([&] { FrameFormat::from_json(json::parse(text)); }, parts);
  };
  refuse(R"({"channels": 0, "height": 2, "width": 2})", {"channels must be 1 to"});
  refuse(R"({"channels": [], "height": 2, "width": 2})", {"sizes must be positive"});
  refuse(R"({"channels": 1, "height": -2, "width": 2})", {"sizes must be positive", "-2 x 2"});
  refuse(R"({"channels": [{"lo": 1}], "height": 2, "width": 2})", {"frames.channels", "did you mean 'low'?"});
  refuse(R"({"channels": [{"low": 1, "high": 1}], "height": 2, "width": 2})", {"less than high", "1 and 1"});
}

TEST(FrameFormat, Compares) {
  const FrameFormat bytes(1, 4, 5), floats(1, 4, 5, 0, 1);
  EXPECT_TRUE(bytes.is_8_bit());
  EXPECT_FALSE(floats.is_8_bit());
  EXPECT_TRUE(bytes.same_size(floats));
  EXPECT_FALSE(bytes.same_ranges(floats));
  EXPECT_FALSE(bytes.same_size(FrameFormat(2, 4, 5)));
  EXPECT_FALSE(bytes.same_ranges(FrameFormat(2, 4, 5)));
  FrameFormat named = bytes;
  named.channels[0].name = "radar";
  EXPECT_TRUE(bytes.same_ranges(named)) << "a name is not a range";
  EXPECT_FALSE(named.is_8_bit()) << "a quantity, not a picture";
  named.channels[0] = {.units = "dBZ"};
  EXPECT_FALSE(named.is_8_bit());
  EXPECT_EQ(bytes.size_text(), "4 x 5 with 1 channel");
  EXPECT_EQ(FrameFormat(3, 4, 5).range_text(), "0 to 255");
  EXPECT_EQ(weather().range_text(), "t850 220 to 320, -30 to 30");
  EXPECT_EQ(weather().pixels(), 1200);
}

TEST(FrameFormat, GivesTheUnitsOfEachChannelBack) {
  const at::Tensor x = at::tensor({-1.0, 0.0, 1.0, -1.0, 0.5, 1.0}).view({1, 2, 1, 3}).to(at::kFloat);
  FrameFormat format(2, 1, 3);
  EXPECT_TRUE(in_units(x, format).equal(at::tensor({0, 0, 128, 191, 255, 255}, at::kByte).view({1, 1, 3, 2})));
  format.channels = {{"", 0, 1}, {"", 200, 300}};
  const at::Tensor units = in_units(x, format);
  EXPECT_EQ(units.scalar_type(), at::kFloat);
  EXPECT_LT(distance(units, at::tensor({0.0, 200.0, 0.5, 275.0, 1.0, 300.0}).view({1, 1, 3, 2}).to(at::kFloat)), 1e-4);
  expect_error([&] { in_units(x, FrameFormat(3, 1, 3)); }, {"[...,3,H,W]"});
}

}  // namespace
}  // namespace convssm::data
