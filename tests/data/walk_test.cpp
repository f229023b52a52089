// Walks along recordings: every window once in a pass, each beginning where the one before it ended, the same places from
// any step and with any number of threads.
#include "convssm/data/walk.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "convssm/data/loader.h"
#include "tests/models/recordings.h"

namespace convssm::data {
namespace {

using convssm::testing::expect_error;
using convssm::testing::NoiseRecordings;

using Window = std::pair<uint64_t, int64_t>;  // clip and first frame

TEST(Walk, EveryFrameIsPredictedOnceInAPass) {
  const NoiseRecordings data({13, 7, 22, 4});  // of windows of 4: 4 + 2 + 7 + 1
  for (const int64_t batch : {1, 2, 7, 14}) {
    const Walk walk(data, Split::train, 3, batch, 4);
    ASSERT_EQ(walk.windows(), 14u);
    ASSERT_EQ(walk.steps(), 14u / static_cast<uint64_t>(batch));
    for (uint64_t pass = 0; pass < 3; ++pass) {
      std::map<uint64_t, std::set<int64_t>> predicted;
      int64_t frames = 0;
      for (uint64_t step = 0; step < walk.steps(); ++step) {
        for (int64_t row = 0; row < batch; ++row) {
          const Walk::Place at = walk.place(pass * walk.steps() + step, row);
          for (int64_t t = 1; t < 4; ++t, ++frames) predicted[at.clip].insert(at.first + t);
        }
      }
      EXPECT_EQ(frames, 42);
      for (uint64_t clip = 0; clip < 4; ++clip) {
        EXPECT_EQ(predicted[clip].size(), static_cast<size_t>(data.length(Split::train, clip) - 1)) << clip;
        EXPECT_EQ(*predicted[clip].rbegin(), data.length(Split::train, clip) - 1);
      }
    }
  }
}

TEST(Walk, ARowGoesOnWhereItWasOrBegins) {
  const NoiseRecordings data({60, 11, 35, 23});  // with frames left over
  const Walk walk(data, Split::train, 5, 3, 6);
  std::set<Window> firsts;
  for (int64_t row = 0; row < 3; ++row) {
    Walk::Place before;
    for (uint64_t step = 0; step < 4 * walk.steps(); ++step) {
      const Walk::Place at = walk.place(step, row);
      EXPECT_LE(at.first + 6, data.length(Split::train, at.clip));
      EXPECT_TRUE(at.begins || step % walk.steps() > 0);
      if (!at.begins) {
        EXPECT_EQ(at.clip, before.clip);
        EXPECT_EQ(at.first, before.first + 5);
      }
      before = at;
      if (at.begins) firsts.insert({at.clip, at.first % 5});
    }
  }
  EXPECT_GT(firsts.size(), 4u) << "in other passes other frames are left out";
}

// 14 windows for 4 rows: two come twice.
TEST(Walk, RowsThatDoNotDivideTheWindowsSeeSomeTwice) {
  const Walk walk(NoiseRecordings({13, 7, 22, 4}), Split::train, 3, 4, 4);
  std::map<Window, int> seen;
  for (uint64_t step = 0; step < walk.steps(); ++step) {
    for (int64_t row = 0; row < 4; ++row) {
      const Walk::Place at = walk.place(step, row);
      ++seen[{at.clip, at.first}];
    }
  }
  EXPECT_EQ(seen.size(), 14u);
  int twice = 0;
  for (const auto& [window, count] : seen) twice += count - 1;
  EXPECT_EQ(twice, 2);
}

TEST(Walk, BatchesAreThoseOfItsPlacesFromAnyStepAndThread) {
  const auto data = std::make_shared<NoiseRecordings>(std::vector<int64_t>{30, 17, 41});
  const Walk walk(*data, Split::train, 9, 2, 5);
  for (const int workers : {0, 1, 3}) {
    for (const uint64_t first : {0, 7, 31}) {
      Loader loader(data,
                    {.batch = 2, .frames = 5, .seed = 9, .workers = workers, .first_batch = first, .walks = true});
      for (uint64_t step = first; step < first + 20; ++step) {
        const Batch batch = loader.next();
        for (int64_t row = 0; row < 2; ++row) {
          const Walk::Place at = walk.place(step, row);
          EXPECT_EQ(batch.begins.at(static_cast<size_t>(row)), at.begins);
          EXPECT_EQ(batch.indices.at(static_cast<size_t>(row)), at.clip);
          EXPECT_TRUE(batch.clips.video[row].equal(data->whole(at.clip).video[0].slice(0, at.first, at.first + 5)));
        }
      }
    }
  }
}

TEST(Walk, SaysWhatCannotBeWalked) {
  struct Endless : NoiseRecordings {
    using NoiseRecordings::NoiseRecordings;
    int64_t longest(Split) const override { return any_length; }
  };
  expect_error([] { Walk(Endless({9}), Split::train, 1, 2, 4); }, {"carry_state", "clips of any length", "folder"});
  expect_error([] { Walk(NoiseRecordings({9}), Split::train, 1, 2, 1); }, {"carry_state", "at least 2", "got 2 and 1"});
  expect_error([] { Walk(NoiseRecordings({9}), Split::valid, 1, 2, 4); }, {"no valid clips"});
  expect_error([] { Walk(NoiseRecordings({3, 3}), Split::train, 1, 2, 4); }, {"no train clip has 4 frames"});
}

}  // namespace
}  // namespace convssm::data
