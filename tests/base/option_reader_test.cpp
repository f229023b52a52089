#include "convssm/base/option_reader.h"

#include <gtest/gtest.h>

#include <cmath>

#include "convssm/base/error.h"

namespace convssm {
namespace {

template <typename Value>
Value read_as(const nlohmann::json& json) {
  Value value{};
  const nlohmann::json options{{"key", json}};
  OptionReader read("test", options);
  read("key", value);
  return value;
}

TEST(OptionReader, WholeNumbersMayBeWrittenWithAnExponent) {
  EXPECT_EQ(read_as<int64_t>(1e3), 1000);
  EXPECT_EQ(read_as<int64_t>(-2e2), -200);
  EXPECT_EQ(read_as<uint64_t>(1e6), 1000000u);
  EXPECT_EQ(read_as<std::vector<int64_t>>({1e2, 7}), (std::vector<int64_t>{100, 7}));
  EXPECT_EQ(read_as<uint64_t>(UINT64_MAX), UINT64_MAX);
  for (const double wrong : {1.5, 1e300, static_cast<double>(NAN), static_cast<double>(INFINITY)}) {
    EXPECT_THROW(read_as<int64_t>(wrong), Error) << wrong;
  }
  EXPECT_THROW(read_as<uint64_t>(-1e3), Error);
}

}  // namespace
}  // namespace convssm
