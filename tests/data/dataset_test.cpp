// What all datasets share: names of splits, clips in order, and datasets of the caller's own.
#include "convssm/data/dataset.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "../support.h"

namespace convssm::data {
namespace {

using convssm::testing::expect_error;

// Every pixel of clip i of a split says 10 i + split.
class Constant : public Dataset {
 public:
  Clips clip(Split split, uint64_t index, int64_t frames) const override {
    return {.video = at::full({1, frames, 1, 2, 2}, static_cast<float>(10 * index) + static_cast<float>(split))};
  }
  uint64_t size(Split) const override { return any_count; }
  int64_t longest(Split) const override { return any_length; }
  FrameFormat format() const override { return {1, 2, 2}; }
  std::vector<std::string> summary() const override { return {}; }
};

TEST(Dataset, SplitsHaveNames) {
  for (const Split split : all_splits) EXPECT_EQ(parse_split(name(split)), split);
  EXPECT_EQ(parse_split("valid"), Split::valid);
  expect_error([] { parse_split("validation"); }, {"train, valid or test", "'validation'"});
}

TEST(Dataset, ClipsAreReadInOrder) {
  const Clips clips = read_clips(Constant(), Split::valid, 3, 4, 5);
  EXPECT_EQ(clips.video.sizes(), (at::IntArrayRef{4, 5, 1, 2, 2}));
  EXPECT_TRUE(
      clips.video.select(1, 0).select(-1, 0).select(-1, 0).flatten().equal(at::tensor({31.f, 41.f, 51.f, 61.f})));
  EXPECT_TRUE(Constant().actions().none());
}

TEST(Dataset, OnesOfTheCallersOwnAreFoundByName) {
  nlohmann::json seen;
  register_dataset({"constant", "all pixels alike", [&seen](const nlohmann::json& options, uint64_t seed) {
                      seen = options, seen["seed"] = seed;
                      return std::make_shared<Constant>();
                    }});
  EXPECT_EQ(all_datasets().back().name, "constant");
  EXPECT_EQ(make_dataset({{"name", "constant"}, {"level", 3}}, 9)->format().height, 2);
  EXPECT_EQ(seen, (nlohmann::json{{"level", 3}, {"seed", 9}}));
  const auto make = all_datasets().back().make;
  expect_error([&] { register_dataset({"constant", "", make}); }, {"already", "'constant'"});
  expect_error([&] { register_dataset({"folder", "", make}); }, {"'folder'"});
  expect_error([&] { register_dataset({"", "", make}); }, {"needs a name"});
  expect_error([&] { register_dataset({"empty", "", {}}); }, {"needs a name and"});
  expect_error([] { make_dataset({{"name", "constnat"}}, 1); }, {"did you mean 'constant'?"});
}

}  // namespace
}  // namespace convssm::data
