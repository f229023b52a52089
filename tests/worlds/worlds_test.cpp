// What all worlds promise: pure functions of (seed, split, index), first frames that do not depend on the length, splits that
// share nothing, actions that do what they say, the same bytes from several threads, options that are checked.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>
#include <tuple>

#include "convssm/base/error.h"
#include "convssm/worlds/maze.h"
#include "convssm/worlds/record.h"
#include "convssm/worlds/terrain.h"

namespace convssm::worlds {
namespace {

constexpr const char* kNames[] = {"maze", "terrain"};
constexpr const char* kProtocols[] = {"walk", "retrieval", "loop", "reasoning"};

std::shared_ptr<const Worlds> small_worlds(const std::string& name, const std::string& protocol = "walk",
                                           uint64_t seed = 1) {
  return make_worlds({{"name", name}, {"image_size", 16}, {"protocol", protocol}}, seed);
}

void expect_same_walk(const Recorded& a, const Recorded& b, size_t frames) {
  const auto same = [&](const auto& x, const auto& y, size_t each) {
    return std::equal(x.begin(), x.begin() + static_cast<std::ptrdiff_t>(frames * each), y.begin());
  };
  EXPECT_TRUE(same(a.video, b.video, a.video.size() / a.poses.size()));
  EXPECT_TRUE(same(a.actions, b.actions, 1));
  EXPECT_TRUE(same(a.poses, b.poses, 1));
  EXPECT_TRUE(same(a.revisit, b.revisit, 1));
}

TEST(Worlds, AreFunctionsOfSeedSplitAndIndex) {
  for (const char* name : kNames) {
    const Recorded first = record(small_worlds(name)->at("train", 3), 0, 20);
    expect_same_walk(first, record(small_worlds(name)->at("train", 3), 0, 20), 20);
    EXPECT_NE(first.video, record(small_worlds(name)->at("train", 4), 0, 20).video);
    EXPECT_NE(first.video, record(small_worlds(name)->at("test", 3), 0, 20).video);
    EXPECT_NE(first.video, record(small_worlds(name, "walk", 2)->at("train", 3), 0, 20).video);
    EXPECT_EQ(first.actions[0], 0);
  }
}

TEST(Worlds, FirstFramesDoNotDependOnTheLength) {
  for (const char* name : kNames) {
    for (const char* protocol : kProtocols) {
      const auto world = small_worlds(name, protocol)->at("train", 1);
      expect_same_walk(record(world, 0, 60), record(world, 0, 200), 60);
    }
  }
}

TEST(Worlds, ALaterPartIsThatOfTheWholeWalk) {
  for (const char* name : kNames) {
    const auto world = small_worlds(name)->at("valid", 2);
    const Recorded whole = record(world, 0, 120), part = record(world, 50, 70);
    const auto bytes = static_cast<size_t>(world->view().bytes());
    EXPECT_TRUE(std::equal(part.video.begin(), part.video.end(),
                           whole.video.begin() + static_cast<std::ptrdiff_t>(50 * bytes)));
    for (size_t t = 0; t < 70; ++t) {
      EXPECT_EQ(part.poses[t], whole.poses[t + 50]);
      EXPECT_EQ(part.actions[t], whole.actions[t + 50]);
      EXPECT_EQ(part.revisit[t], std::max<int64_t>(whole.revisit[t + 50] - 50, -1));
    }
  }
}

TEST(Worlds, SplitsShareNoWorld) {
  std::map<uint64_t, std::string> owner;
  for (const char* split : {"train", "valid", "test"}) {
    for (uint64_t i = 0; i < 15; ++i) {
      for (const Protocol protocol : {Protocol::walk, Protocol::reasoning}) {
        MazeOptions options;
        options.size = 3;  // so few mazes that by chance many would be in two splits
        options.protocol = protocol;
        const Maze maze(options, 1, split, i);
        const auto [at, fresh] = owner.emplace(maze.layout().key(), split);
        EXPECT_EQ(at->second, split) << "maze " << i;
        EXPECT_TRUE(in_split(maze.layout().key(), split));
      }
    }
    const Terrain terrain({}, 1, split, 0);
    EXPECT_TRUE(in_split(terrain.key(), split));
    EXPECT_EQ(owner.emplace(terrain.key(), split).first->second, split);
  }
  EXPECT_LT(owner.size(), 90u) << "the test is too easy: no maze came twice";
  for (uint64_t key = 0; key < 100; ++key) {
    EXPECT_EQ(in_split(key, "train") + in_split(key, "valid") + in_split(key, "test"), 1);
  }
}

// Turns turn by 15 degrees, forward goes along the view, nothing goes through walls.
TEST(Worlds, ActionsDoWhatTheySay) {
  for (const char* protocol : kProtocols) {
    const auto maze = std::dynamic_pointer_cast<const Maze>(small_worlds("maze", protocol)->at("train", 5));
    const Recorded walk = record_poses(maze, 0, 400);
    for (size_t t = 1; t < walk.poses.size(); ++t) {
      const Pose &from = walk.poses[t - 1], &to = walk.poses[t];
      const int64_t action = walk.actions[t];
      ASSERT_TRUE(action >= 0 && action < 6);
      const double gone = std::hypot(cells(to.x - from.x), cells(to.y - from.y));
      const int turn = wrap_heading(to.heading - from.heading);
      EXPECT_EQ(turn, action == 2 || action == 4 ? 23 : action == 3 || action == 5 ? 1 : 0);
      EXPECT_NEAR(gone, action == 1 ? 0.125 : action >= 4 ? 2 * 0.5 * std::sin(radians(1) / 2) : 0, 1e-4) << action;
      if (gone > 0) {
        const double course = std::atan2(cells(to.y - from.y), cells(to.x - from.x));
        const double middle = radians(from.heading) + (action == 4 ? -0.5 : action == 5 ? 0.5 : 0) * radians(1);
        EXPECT_NEAR(std::cos(course - middle), 1, 1e-6);
      }
      const int64_t a = from.y / unit * 7 + from.x / unit, b = to.y / unit * 7 + to.x / unit;
      if (a != b) {
        EXPECT_TRUE(maze->layout().open(a, maze->layout().direction(a, b)));
      }
    }
  }
  const auto terrain = small_worlds("terrain")->at("train", 5);
  const Recorded walk = record_poses(terrain, 0, 400);
  constexpr int64_t whole = Ground::side * unit;
  for (size_t t = 1; t < walk.poses.size(); ++t) {
    const Pose &from = walk.poses[t - 1], &to = walk.poses[t];
    const auto apart = [](int64_t d) { return cells(((d + whole / 2) & (whole - 1)) - whole / 2); };
    const int64_t action = walk.actions[t];
    ASSERT_TRUE(action >= 0 && action < 4);
    EXPECT_NEAR(apart(to.x - from.x), action == 1 ? 0.5 * std::cos(radians(from.heading)) : 0, 1e-4);
    EXPECT_NEAR(apart(to.y - from.y), action == 1 ? 0.5 * std::sin(radians(from.heading)) : 0, 1e-4);
    EXPECT_EQ(wrap_heading(to.heading - from.heading), action == 2 ? 23 : action == 3 ? 1 : 0);
  }
}

// Any actions at all: the walker stays inside and away from the walls.
TEST(Worlds, WallsStopWhoeverSteps) {
  const auto maze = std::make_shared<Maze>(MazeOptions{}, 3, "train", 0);
  Walk walk(maze);
  Stream random(9);
  std::vector<uint8_t> frame(static_cast<size_t>(maze->view().bytes()));
  constexpr int64_t margin = unit / 5;
  for (int i = 0; i < 3000; ++i) {
    const Pose from = walk.pose();
    walk.step(random.uniform() < 0.6 ? 1 : static_cast<int64_t>(random.below(6)));
    const int64_t a = from.y / unit * 7 + from.x / unit, b = walk.pose().y / unit * 7 + walk.pose().x / unit;
    const int64_t x = walk.pose().x % unit, y = walk.pose().y % unit, away[] = {unit - x, unit - y, x, y};
    for (int d = 0; d < 4; ++d) EXPECT_TRUE(maze->layout().open(b, d) || away[d] >= margin) << "step " << i;
    if (a == b) continue;
    const Stream path(1);
    Stream copy = path;
    EXPECT_LE(maze->layout().path(a, b, copy).size(), 3u) << "through a wall";
  }
  walk.frame(frame);
  EXPECT_THROW(walk.step(6), Error);
  EXPECT_THROW(walk.step(-1), Error);
}

// A larger move is several small ones, and every protocol holds for it.
TEST(Worlds, MovesOfTheMazeAreSmallStepsTogether) {
  const auto make = [](const char* moves, const char* protocol) {
    return make_worlds({{"name", "maze"},
                        {"image_size", 16},
                        {"size", 4},
                        {"moves", moves},
                        {"protocol", protocol},
                        {"second", 72}},
                       1)
        ->at("train", 2);
  };
  const auto small = make("eighths", "walk");
  for (const auto& [moves, forward, turn] :
       {std::tuple<const char*, int, int>{"quarters", 2, 2}, std::tuple<const char*, int, int>{"cells", 8, 6}}) {
    const Recorded walk = record_poses(make(moves, "walk"), 0, 300);
    Pose pose = walk.poses[0];
    for (size_t t = 1; t < walk.poses.size(); ++t) {
      for (int i = 0; i < (walk.actions[t] == 1 ? forward : turn); ++i) pose = small->step(pose, walk.actions[t]);
      ASSERT_EQ(pose, walk.poses[t]) << moves << t;
      ASSERT_TRUE(walk.actions[t] != 1 || walk.poses[t].x != walk.poses[t - 1].x ||
                  walk.poses[t].y != walk.poses[t - 1].y)
          << "no action is wasted on a wall";
    }
    for (const char* protocol : kProtocols) EXPECT_EQ(record_poses(make(moves, protocol), 0, 150).poses.size(), 150u);
    const Recorded back = record_poses(make(moves, "retrieval"), 0, 160);
    const size_t half = turn == 2 ? 6 : 2;
    for (size_t k = 0; k < 72; ++k) {
      const Pose &there = back.poses[71 - k], &here = back.poses[71 + half + k];
      EXPECT_EQ(here.x, there.x) << moves << k;
      EXPECT_EQ(here.y, there.y) << moves << k;
      EXPECT_EQ(here.heading, wrap_heading(there.heading + 12)) << moves << k;
    }
  }
  EXPECT_EQ(make("cells", "walk")->actions().size(), 4u);
  EXPECT_EQ(small->actions().size(), 6u);
}

// A walker that strays pushes against walls and leaves its way, and always stands in the middle of a cell.
TEST(Worlds, StrayingWalkersPushAgainstWalls) {
  const auto make = [](double strays) {
    return make_worlds({{"name", "maze"}, {"image_size", 16}, {"size", 4}, {"moves", "cells"}, {"strays", strays}}, 1)
        ->at("train", 3);
  };
  for (const double strays : {0.0, 0.3}) {
    const Recorded walk = record_poses(make(strays), 0, 2000);
    int64_t pushes = 0;
    std::set<std::pair<int64_t, int64_t>> cells;
    for (size_t t = 1; t < walk.poses.size(); ++t) {
      const Pose &from = walk.poses[t - 1], &to = walk.poses[t];
      EXPECT_EQ(to.x % unit, unit / 2);
      EXPECT_EQ(to.y % unit, unit / 2);
      pushes += walk.actions[t] == 1 && from == to ? 1 : 0;
      cells.emplace(to.x, to.y);
    }
    EXPECT_EQ(cells.size(), 16u) << "it still comes everywhere";
    EXPECT_NEAR(static_cast<double>(pushes) / 2000, strays / 3 / 2, strays / 10) << "about half of all ways are walls";
  }
  EXPECT_THROW(make_worlds({{"name", "maze"}, {"strays", 0.3}}, 1), Error) << "moves that are parts of a cell";
  EXPECT_THROW(make(1.0), Error);
  for (const char* protocol : {"loop", "retrieval"}) {
    EXPECT_THROW(
        make_worlds({{"name", "maze"}, {"moves", "cells"}, {"strays", 0.3}, {"second", 48}, {"protocol", protocol}}, 1),
        Error);
  }
}

// The same few colours in every maze, near and far.
TEST(Worlds, MazesOfRoomsShareTheirColours) {
  std::set<std::array<uint8_t, 3>> colours;
  const auto mazes = make_worlds({{"name", "maze"}, {"look", "rooms"}, {"samples", 1}}, 1);
  for (uint64_t index = 0; index < 20; ++index) {
    const Recorded walk = record(mazes->at("train", index), 0, 40);
    for (size_t i = 0; i < walk.video.size(); i += 3)
      colours.insert({walk.video[i], walk.video[i + 1], walk.video[i + 2]});
  }
  EXPECT_EQ(colours.size(), 4u * 2 + 1 + 1);  // walls in two lights; floor and ceiling
}

// All walls of a cell are alike, and cells of one maze differ.
TEST(Worlds, RoomsHaveAToneEach) {
  const MazeOptions options = MazeOptions::from_json({{"look", "rooms"}});
  const Maze maze(options, 1, "train", 0);
  std::set<const Texture*> tones;
  for (int64_t cell = 0; cell < maze.layout().cells(); ++cell) {
    for (int d = 1; d < 4; ++d) EXPECT_EQ(&maze.wall(cell, d), &maze.wall(cell, 0)) << cell;
    tones.insert(&maze.wall(cell, 0));
  }
  EXPECT_EQ(tones.size(), 4u);
}

TEST(Worlds, RetrievalWalksTheSameWayBack) {
  for (const char* name : kNames) {
    const auto world = small_worlds(name, "retrieval")->at("test", 1);
    const Recorded walk = record(world, 0, 310);
    constexpr size_t second = 144;
    for (size_t k = 0; k < second; ++k) {
      const Pose &out = walk.poses[second - 1 - k], &back = walk.poses[second + 11 + k];
      EXPECT_EQ(back.x, out.x) << name << k;
      EXPECT_EQ(back.y, out.y) << name << k;
      EXPECT_EQ(back.heading, wrap_heading(out.heading + 12)) << name << k;
    }
    int64_t seen = 0;
    for (size_t t = second; t < 299; ++t) seen += walk.revisit[t] >= 0 ? 1 : 0;
    EXPECT_GT(seen, 30) << name;
  }
}

TEST(Worlds, LoopsReturnByAnotherWayAndGoRoundAgain) {
  for (const char* name : kNames) {
    for (uint64_t i = 0; i < 4; ++i) {
      const auto world = small_worlds(name, "loop")->at("train", i);
      const Recorded walk = record(world, 0, 300);
      size_t lap = 1;
      while (lap < 300 && walk.poses[lap] != walk.poses[0]) ++lap;
      ASSERT_LT(lap, 144u) << name;
      ASSERT_GE(lap, 40u) << name;
      std::set<std::pair<int64_t, int64_t>> places;  // no place twice on the way round, but for turns on the spot
      for (size_t t = 1; t < lap; ++t) {
        if (walk.poses[t].x != walk.poses[t - 1].x || walk.poses[t].y != walk.poses[t - 1].y) {
          EXPECT_TRUE(places.emplace(walk.poses[t].x, walk.poses[t].y).second || name == std::string("maze"))
              << name << t;
        }
      }
      const auto bytes = static_cast<size_t>(world->view().bytes());
      int64_t seen = 0;
      for (size_t t = 144; t < 300; ++t) {
        seen += walk.revisit[t] >= 0 ? 1 : 0;
        const auto before = std::find(walk.poses.begin(), walk.poses.begin() + 144, walk.poses[t]);
        ASSERT_NE(before, walk.poses.begin() + 144) << "a pose of the second part that the first did not have";
        const auto at = static_cast<size_t>(before - walk.poses.begin());
        EXPECT_TRUE(std::equal(walk.video.begin() + static_cast<std::ptrdiff_t>(t * bytes),
                               walk.video.begin() + static_cast<std::ptrdiff_t>((t + 1) * bytes),
                               walk.video.begin() + static_cast<std::ptrdiff_t>(at * bytes)));
      }
      EXPECT_GT(seen, 120) << name << " " << i;
    }
  }
}

TEST(Worlds, ReasoningShowsEverythingFirst) {
  for (const char* name : kNames) {
    for (uint64_t i = 0; i < 4; ++i) {
      const auto world = small_worlds(name, "reasoning")->at("train", i);
      const Recorded walk = record_poses(world, 0, 300);
      std::vector<uint8_t> frame(static_cast<size_t>(world->view().bytes()));
      std::set<uint32_t> known;
      double fresh = 0, all = 0;
      for (size_t t = 0; t < walk.poses.size(); ++t) {
        Sight sight;
        world->render(walk.poses[t], frame, &sight);
        for (const Surface& s : sight) {
          if (t < 144) known.insert(s.id);
          if (t >= 144) all += s.rays, fresh += known.contains(s.id) ? 0 : s.rays;
        }
      }
      EXPECT_LT(fresh, (name == std::string("maze") ? 0.01 : 0.03) * all) << name << " " << i;
      EXPECT_GT(std::ranges::count(walk.actions.begin() + 144, walk.actions.end(), 1), 10) << name << ": does not walk";
    }
  }
}

TEST(Worlds, AreTheSameFromSeveralThreads) {
  for (const char* name : kNames) {
    const auto source = small_worlds(name);
    const auto shared = source->at("train", 0);
    const Recorded expected = record(shared, 0, 30);
    std::vector<Recorded> found(4);
    std::vector<std::thread> threads;
    for (Recorded& one : found)
      threads.emplace_back([&] { one = record(&one == &found[0] ? source->at("train", 0) : shared, 0, 30); });
    for (std::thread& thread : threads) thread.join();
    for (const Recorded& one : found) expect_same_walk(one, expected, 30);
  }
}

TEST(Worlds, MapsShowTheWalker) {
  for (const char* name : kNames) {
    const auto world = small_worlds(name)->at("train", 0);
    const Recorded walk = record_poses(world, 0, 50);
    const io::Image empty = world->map({}, 100), full = world->map(walk.poses, 100);
    EXPECT_EQ(full.width, 100);
    EXPECT_EQ(full.pixels.size(), 30000u);
    EXPECT_NE(full.pixels, empty.pixels);
    EXPECT_EQ(full.pixels, world->map(walk.poses, 100).pixels);
  }
}

TEST(Worlds, WrongOptionsAreExplained) {
  const auto wrong = [](const nlohmann::json& options, const std::vector<std::string>& parts) {
    try {
      make_worlds(options, 1);
      ADD_FAILURE() << "no error for " << options.dump();
    } catch (const Error& error) {
      for (const std::string& part : parts)
        EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
    }
  };
  wrong({{"name", "mase"}}, {"did you mean 'maze'?"});
  wrong({{"image_size", 64}}, {"maze, terrain"});
  wrong({{"name", "maze"}, {"image_sise", 64}}, {"did you mean 'image_size'?"});
  wrong({{"name", "maze"}, {"image_size", 33}}, {"even", "33"});
  wrong({{"name", "maze"}, {"size", 2}}, {"size must be 3 to 64", "2"});
  wrong({{"name", "maze"}, {"loops", 1.5}}, {"loops must be 0 to 1"});
  wrong({{"name", "maze"}, {"moves", "miles"}}, {"moves must be eighths, quarters or cells", "miles"});
  wrong({{"name", "maze"}, {"look", "fancy"}}, {"look must be patterns or rooms", "fancy"});
  wrong({{"name", "maze"}, {"fov", 180}}, {"fov must be 20 to 140"});
  wrong({{"name", "maze"}, {"protocol", "retreival"}}, {"did you mean 'retrieval'?"});
  wrong({{"name", "maze"}, {"protocol", "loop"}, {"second", 20}}, {"64 frames or more", "20"});
  wrong({{"name", "terrain"}, {"protocol", "reasoning"}, {"second", 90}}, {"97 for reasoning", "90"});
  wrong({{"name", "terrain"}, {"trees", -1}}, {"trees must be 0 to 10"});
  EXPECT_THROW(small_worlds("maze")->at("training", 0), Error);
  // Without any inner wall there is one maze only, which is of one split.
  int refused = 0;
  for (const char* split : {"train", "valid", "test"}) {
    try {
      make_worlds({{"name", "maze"}, {"size", 3}, {"loops", 1}}, 1)->at(split, 0);
    } catch (const Error& error) {
      const std::string text = error.what();
      EXPECT_NE(text.find("with loops 1 none was of the split"), std::string::npos) << text;
      EXPECT_EQ(text.find("second"), std::string::npos) << text;
      ++refused;
    }
  }
  EXPECT_EQ(refused, 2);
  EXPECT_THROW(record_poses(small_worlds("maze")->at("train", 0), 0, 0), Error);
}

}  // namespace
}  // namespace convssm::worlds
