// Worlds as datasets: what clips hold, parts of them, and what is refused.
#include "convssm/data/world_clips.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "../support.h"
#include "convssm/worlds/record.h"

namespace convssm::data {
namespace {

using convssm::testing::expect_error;

std::shared_ptr<const Dataset> tiny_world(const char* name, const nlohmann::json& more = nlohmann::json::object()) {
  nlohmann::json options = {{"name", name}, {"image_size", 16}};
  options.update(more);
  return make_dataset(options, 7);
}

TEST(WorldClips, AreFramesActionsAndRevisits) {
  for (const auto& [name, actions] : {std::pair{"maze", 6}, {"terrain", 4}}) {
    const auto dataset = tiny_world(name);
    EXPECT_EQ(dataset->actions().count, actions);
    EXPECT_EQ(dataset->format().depth(), 3);
    EXPECT_EQ(dataset->longest(Split::train), any_length);
    EXPECT_EQ(dataset->size(Split::test), 1024u);
    const Clips clip = dataset->clip(Split::test, 4, 60);
    check_clips("test", clip);
    EXPECT_EQ(clip.video.sizes(), (at::IntArrayRef{1, 60, 3, 16, 16}));
    EXPECT_EQ(clip.actions.sizes(), (at::IntArrayRef{1, 60}));
    EXPECT_LT(clip.actions.max().item<int64_t>(), actions);
    EXPECT_TRUE(dataset->clip(Split::test, 4 + 1024, 60).video.equal(clip.video)) << "a later visit of the same clip";
    const auto world = worlds::make_worlds({{"name", name}, {"image_size", 16}}, 7)->at("test", 4);
    const worlds::Recorded walk = worlds::record(world, 0, 60);
    const at::Tensor bytes = ((clip.video[0] + 1) * 127.5).round().to(at::kByte).permute({0, 2, 3, 1}).contiguous();
    EXPECT_TRUE(std::equal(walk.video.begin(), walk.video.end(), bytes.data_ptr<uint8_t>()));
    EXPECT_EQ(dataset->extras(Split::test, 4, 60)[0].array.shape(), (std::vector<int64_t>{60, 3}));
  }
}

TEST(WorldClips, PartsAreThoseOfTheClip) {
  const auto dataset = tiny_world("maze");
  const Clips whole = frames_of(dataset->clip(Split::valid, 1, 150), 90, 150),
              part = dataset->part(Split::valid, 1, 90, 60);
  EXPECT_TRUE(part.video.equal(whole.video));
  EXPECT_TRUE(part.actions.equal(whole.actions));
  EXPECT_TRUE(part.revisit.equal(whole.revisit));
}

TEST(WorldClips, OptionsAreChecked) {
  EXPECT_EQ(tiny_world("maze", {{"clips", 0}})->size(Split::train), any_count);
  EXPECT_EQ(tiny_world("terrain", {{"valid_clips", 3}})->size(Split::valid), 3u);
  expect_error([] { tiny_world("maze", {{"revisit_overlap", 0}}); }, {"revisit_overlap", "above 0"});
  expect_error([] { tiny_world("maze", {{"revisit_gap", 0}}); }, {"revisit_gap"});
  expect_error([] { tiny_world("maze", {{"sise", 5}}); }, {"did you mean 'size'?"});
  expect_error([] { tiny_world("maze", {{"clips", "many"}}); }, {"clips"});
}

}  // namespace
}  // namespace convssm::data
