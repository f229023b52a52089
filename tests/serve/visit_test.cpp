// A visitor's walk is the library's rollout, bit for bit, wherever it was rewound or branched; and its bounds.
#include "convssm/serve/visit.h"

#include "convssm/data/picture.h"
#include "convssm/io/gif.h"
#include "convssm/io/source.h"
#include "convssm/serve/visitors.h"
#include "tests/serve/tiny_scene.h"

namespace convssm::serve {
namespace {

using testing::expect_error;
using testing::expect_same_state;
using testing::LibraryWalk;
using testing::some_action;
using testing::some_actions;
using testing::TinyScene;

std::shared_ptr<uint64_t> no_bytes() { return std::make_shared<uint64_t>(0); }

void walk(Visit& visit, int64_t first, int64_t end, bool all = false) {
  for (int64_t k = first; k < end; ++k) visit.step({static_cast<double>(some_action(k))}, all);
}

class VisitLaws : public ::testing::TestWithParam<bool> {};

TEST_P(VisitLaws, WalkedRewoundAndBranchedItIsTheRolloutOfTheLibrary) {
  TinyScene tiny(GetParam());
  Visit visit(tiny.scene, 300, no_bytes());
  visit.start({3, 7});
  expect_same_state(visit.now(0).state, LibraryWalk(*tiny.model, 3, 7).state());

  walk(visit, 0, 50);
  LibraryWalk whole(*tiny.model, 3, 7);
  const at::Tensor last = whole.walk(some_actions(0, 50));
  expect_same_state(visit.now(0).state, whole.state());
  EXPECT_EQ(visit.now(0).seen.pixels, data::picture(last).pixels);
  EXPECT_EQ(visit.now(0).number, 50);

  visit.rewind(20, false);
  LibraryWalk part(*tiny.model, 3, 7);
  part.walk(some_actions(0, 30));
  EXPECT_EQ(visit.now(0).number, 30);
  expect_same_state(visit.now(0).state, part.state());

  visit.branch(3);
  walk(visit, 100, 110, true);
  for (int64_t i = 0; i < 3; ++i) {
    LibraryWalk branch = i == 0 ? LibraryWalk(*tiny.model, part.state()) : part.branch(branch_seed(7, 30, i));
    const at::Tensor frame = branch.walk(some_actions(100, 110));
    expect_same_state(visit.now(i).state, branch.state());
    EXPECT_EQ(visit.now(i).seen.pixels, data::picture(frame).pixels) << i;
  }
  const bool draws = tiny.scene.forecaster().draws();
  EXPECT_EQ(draws, GetParam());
  EXPECT_EQ(visit.now(1).seen.pixels == visit.now(2).seen.pixels, !draws) << "branches differ where there are draws";
}

INSTANTIATE_TEST_SUITE_P(PixelsAndCodes, VisitLaws, ::testing::Bool());

TEST(Visit, ShowsTheTrueWorldThatTheSameActionsLeadTo) {
  TinyScene tiny(false);
  Visit visit(tiny.scene, 300, no_bytes());
  visit.start({2, 1});
  const Beginning beginning = testing::tiny_mazes()->at(2);
  worlds::Pose pose = beginning.pose;
  const auto shown = [&] {
    std::vector<uint8_t> rgb(static_cast<size_t>(beginning.world->view().bytes()));
    beginning.world->render(pose, rgb);
    return rgb;
  };
  EXPECT_EQ(visit.now(0).truth.pixels, shown());
  EXPECT_EQ(visit.now(0).seen.pixels, visit.now(0).truth.pixels) << "the last frame of the context is true";
  for (int64_t k = 0; k < 12; ++k) {
    visit.step({static_cast<double>(some_action(k))}, false);
    pose = beginning.world->step(pose, some_action(k));
    ASSERT_EQ(visit.now(0).truth.pixels, shown()) << k;
  }
  visit.rewind(12, false);
  pose = beginning.pose;
  EXPECT_EQ(visit.now(0).truth.pixels, shown());
}

TEST(Visit, BranchesAreWalkedApartAndOneIsKept) {
  TinyScene tiny(false);
  Visit visit(tiny.scene, 300, no_bytes());
  walk(visit, 0, 5);
  visit.branch(2);
  visit.choose(1);
  visit.step({1}, false);
  visit.step({2}, false);
  EXPECT_EQ(visit.now(0).number, 5);
  EXPECT_EQ(visit.now(1).number, 7);
  const auto kept = visit.now(1).seen.pixels;
  visit.keep();
  EXPECT_EQ(visit.branches(), 1);
  EXPECT_EQ(visit.chosen(), 0);
  EXPECT_EQ(visit.now(0).seen.pixels, kept);
  EXPECT_EQ(visit.kept(0), 7) << "it can go back to before it was branched";
  visit.branch(4);
  visit.branch(2);
  EXPECT_EQ(visit.branches(), 2) << "of the chosen one, not of all";
}

TEST(Visit, ABranchOfABranchIsAnotherFuture) {
  TinyScene tiny(true);
  Visit visit(tiny.scene, 300, no_bytes());
  walk(visit, 0, 3);
  visit.branch(3);
  visit.choose(1);
  visit.keep();
  visit.branch(3);  // at the very frame where it was branched off
  visit.set_temperature(2);
  for (int64_t k = 3; k < 12; ++k) visit.step({static_cast<double>(k % 6)}, true);
  EXPECT_NE(visit.now(0).seen.pixels, visit.now(1).seen.pixels);
  EXPECT_NE(visit.now(0).seen.pixels, visit.now(2).seen.pixels);
  EXPECT_NE(visit.now(1).seen.pixels, visit.now(2).seen.pixels);
}

TEST(Visit, KeepsARingOfMoments) {
  TinyScene tiny(false);
  const auto used = no_bytes();
  Visit visit(tiny.scene, 10, used);
  walk(visit, 0, 11);
  const uint64_t full = *used;
  walk(visit, 11, 35);
  EXPECT_EQ(visit.kept(0), 10);
  EXPECT_EQ(*used, full) << "constant memory";
  visit.rewind(1000, false);
  EXPECT_EQ(visit.now(0).number, 25);
  EXPECT_EQ(visit.kept(0), 0);
  LibraryWalk part(*tiny.model, 0, 1);
  part.walk(some_actions(0, 25));
  expect_same_state(visit.now(0).state, part.state());
  EXPECT_FALSE(visit.forget_oldest()) << "the present stays";
  visit.start({});
  EXPECT_LT(*used, full / 5);
}

TEST(Visit, BranchesShareTheirPast) {
  TinyScene tiny(false);
  const auto used = no_bytes();
  Visit visit(tiny.scene, 300, used);
  walk(visit, 0, 30);
  const uint64_t before = *used;
  visit.branch(4);
  EXPECT_LT(*used, before + before / 5);
}

TEST(Visit, WithoutFramesToGoBackItWalksAllTheSame) {
  TinyScene tiny(false);
  Visit visit(tiny.scene, 0, no_bytes());
  walk(visit, 0, 3);
  visit.rewind(1, false);
  EXPECT_EQ(visit.now(0).number, 3);
}

TEST(Visit, TemperatureIsOfAVisitor) {
  TinyScene tiny(true);
  Visit cold(tiny.scene, 10, no_bytes()), plain(tiny.scene, 10, no_bytes()), alone(tiny.scene, 10, no_bytes());
  cold.set_temperature(1e-4);
  EXPECT_EQ(plain.temperature(), 1.0);
  for (int64_t k = 0; k < 5; ++k) {  // in turns
    walk(cold, k, k + 1);
    walk(plain, k, k + 1);
  }
  walk(alone, 0, 5);
  EXPECT_EQ(plain.now(0).seen.pixels, alone.now(0).seen.pixels);
  EXPECT_NE(plain.now(0).seen.pixels, cold.now(0).seen.pixels);
  walk(cold, 5, 6);
  Visit late(tiny.scene, 10, no_bytes());  // while the model still has that of the visitor before
  EXPECT_EQ(late.temperature(), 1.0);
  expect_error([&] { cold.set_temperature(0); }, {"temperature", "above 0"});
  expect_error([&] { cold.set_temperature(NAN); }, {"temperature", "above 0"});
  EXPECT_EQ(cold.temperature(), 1e-4);
  TinyScene pixels(false);
  Visit sure(pixels.scene, 10, no_bytes());
  EXPECT_EQ(sure.temperature(), std::nullopt);
  expect_error([&] { sure.set_temperature(0.5); }, {"no temperature"});
}

TEST(Visit, RefusesWhatIsNotThere) {
  TinyScene tiny(false);
  Visit visit(tiny.scene, 10, no_bytes());
  walk(visit, 0, 2);
  expect_error([&] { visit.step({}, false); }, {"needs an action", "0 to 5"});
  expect_error([&] { visit.step({6}, false); }, {"0 to 5", "got 6"});
  expect_error([&] { visit.step({1.5}, false); }, {"whole number", "1.5"});
  expect_error([&] { visit.step({-1}, false); }, {"0 to 5", "-1"});
  expect_error([&] { visit.step({1e300}, false); }, {"0 to 5"});
  expect_error([&] { visit.step({1, 2}, false); }, {"action"});
  expect_error([&] { visit.rewind(0, false); }, {"1 or more"});
  expect_error([&] { visit.branch(1); }, {"2 to 4", "got 1"});
  expect_error([&] { visit.branch(5); }, {"2 to 4", "got 5"});
  expect_error([&] { visit.choose(1); }, {"0 to 0", "got 1"});
  expect_error([&] { visit.start({-1, 1}); }, {"world", "-1"});
  expect_error([&] { visit.stop_recording(); }, {"nothing is being recorded"});
  expect_error([&] { visit.record(0); }, {"fps", "1 to 50"});
  EXPECT_EQ(visit.now(0).number, 2) << "and stays where it is";
}

TEST(Visit, RecordsTheChosenBranchBesideTheTruth) {
  TinyScene tiny(false);
  Visit visit(tiny.scene, 10, no_bytes());
  visit.record(20);
  walk(visit, 0, 4);
  EXPECT_TRUE(visit.recording()->open());
  visit.stop_recording();
  walk(visit, 4, 6);
  EXPECT_EQ(visit.recording()->frames(), 4);
  const io::Array gif =
      io::read_gif(io::memory_source("walk.gif", std::as_bytes(std::span(*visit.recording()->gif()))));
  const int64_t scale = 128 / testing::kSceneSide;
  EXPECT_EQ(gif.shape(), (std::vector<int64_t>{4, 128, (2 * testing::kSceneSide + 2) * scale, 3}));
}

TEST(Recording, EndsByItself) {
  Recording recording(10);
  const io::Image dot{1, 1, 1, {200}};
  for (int64_t i = 0; i < kMostRecorded + 5; ++i) recording.add(dot, {});
  EXPECT_EQ(recording.frames(), kMostRecorded);
  EXPECT_FALSE(recording.open());
  Recording empty(10);
  empty.close();
  EXPECT_EQ(*empty.gif(), "");
}

TEST(Scene, ForModelsWithoutActionsTheTruthIsNotShown) {
  const auto model = models::make_model({{"encoder", {{"depths", {4}}}},
                                         {"decoder", {{"depths", {4}}}},
                                         {"core", {{"name", "convs5"}, {"features", 4}, {"state_size", 4}}}},
                                        {3, testing::kSceneSide, testing::kSceneSide});
  Scene scene(*model, testing::tiny_mazes());
  Visit visit(scene, 10, no_bytes());
  visit.step({}, false);
  EXPECT_EQ(visit.now(0).number, 1);
  EXPECT_TRUE(visit.now(0).truth.pixels.empty());
}

TEST(Scene, BeginsAfterRecordings) {
  const auto model = testing::tiny_world_model(false);
  data::Clips clips = testing::tiny_mazes()->at(5).context;
  Scene scene(*model, beginnings_after(clips));
  EXPECT_EQ(scene.beginnings().count(), 1);
  Visit visit(scene, 10, no_bytes());
  visit.step({2}, false);
  LibraryWalk same(*model, 5, 1);
  same.walk({2});
  expect_same_state(visit.now(0).state, same.state());
  expect_error([&] { visit.start({1, 1}); }, {"0 to 0", "got 1"});
}

TEST(Scene, RefusesAWorldOfOtherActions) {
  const auto model = testing::tiny_world_model(false);
  const auto hills = worlds::make_worlds({{"name", "terrain"}, {"image_size", testing::kSceneSide}}, 1);
  expect_error([&] { Scene(*model, beginnings_in("terrain", hills, 2)); }, {"6 actions", "terrain", "has 4"});
}

}  // namespace
}  // namespace convssm::serve
