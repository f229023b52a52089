// The loader: the same batches for any number of threads, resume at any batch, errors where they belong.
#include "convssm/data/loader.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "../support.h"
#include "convssm/data/order.h"

namespace convssm::data {
namespace {

using convssm::testing::expect_error;

// Every pixel and action of clip i says i; clips may be slow, and one may be broken.
class Numbers : public Dataset {
 public:
  explicit Numbers(uint64_t size, uint64_t broken = UINT64_MAX) : size_(size), broken_(broken) {}

  Clips clip(Split, uint64_t index, int64_t frames) const override {
    ++made;
    std::this_thread::sleep_for(std::chrono::microseconds(delay));
    if (index % size_ == broken_) fail(ErrorKind::data, "clip {} is broken", index);
    const auto value = static_cast<float>(index % size_);
    return {.video = at::full({1, frames, 1, 2, 2}, value),
            .actions = at::full({1, frames}, static_cast<int64_t>(index % size_), at::kLong)};
  }
  uint64_t size(Split split) const override { return split == Split::train ? size_ : 0; }
  int64_t longest(Split) const override { return 10; }
  FrameFormat format() const override { return {1, 2, 2}; }
  std::vector<std::string> summary() const override { return {}; }

  mutable std::atomic<int> made = 0;
  std::atomic<int> delay = 0;

 private:
  uint64_t size_, broken_;
};

TEST(Order, EveryEpochVisitsEveryClipOnce) {
  for (const uint64_t size : {1, 2, 3, 7, 64, 1000, 1025}) {
    for (const uint64_t key : {0, 1, 99}) {
      std::set<uint64_t> seen;
      for (uint64_t i = 0; i < size; ++i) seen.insert(permute(i, size, key));
      EXPECT_EQ(seen.size(), size);
      EXPECT_EQ(*seen.rbegin(), size - 1);
    }
  }
  std::map<uint64_t, int> count;
  for (uint64_t batch = 0; batch < 35; ++batch) {
    for (const uint64_t index : batch_indices(Split::train, 5, batch, 3, 21)) {
      ++count[index];
      EXPECT_EQ(index / 21, batch / 7) << "epochs come one after the other";
    }
  }
  EXPECT_EQ(count.size(), 105u);
}

TEST(Order, AllPermutationsAreEquallyLikely) {
  std::map<std::vector<uint64_t>, int> count;
  for (uint64_t epoch = 0; epoch < 6000; ++epoch) {
    auto indices = batch_indices(Split::train, 1, epoch, 3, 3);
    for (uint64_t& index : indices) index %= 3;
    ++count[indices];
  }
  EXPECT_EQ(count.size(), 6u);
  double chi2 = 0;
  for (const auto& [order, n] : count) chi2 += (n - 1000.0) * (n - 1000.0) / 1000.0;
  EXPECT_LT(chi2, 20.5);  // 5 degrees of freedom, p = 0.001
}

TEST(Order, SeedsDifferAndOtherSplitsComeInOrder) {
  EXPECT_NE(batch_indices(Split::train, 1, 0, 50, 1000), batch_indices(Split::train, 2, 0, 50, 1000));
  EXPECT_EQ(batch_indices(Split::test, 1, 2, 3, 7), (std::vector<uint64_t>{6, 7, 8}));
  EXPECT_EQ(batch_indices(Split::valid, 1, 2, 3, 7), (std::vector<uint64_t>{6, 7, 8}));
  EXPECT_EQ(batch_indices(Split::train, 1, 2, 3, any_count), (std::vector<uint64_t>{6, 7, 8}));
}

TEST(Loader, BatchesDoNotDependOnTheNumberOfThreads) {
  const auto dataset = std::make_shared<Numbers>(23);
  dataset->delay = 50;
  std::vector<std::vector<uint64_t>> expected;
  for (const int workers : {0, 1, 3, 8}) {
    Loader loader(dataset, {.batch = 4, .frames = 5, .seed = 3, .workers = workers});
    for (uint64_t k = 0; k < 20; ++k) {
      const Batch batch = loader.next();
      EXPECT_EQ(batch.number, k);
      EXPECT_EQ(batch.clips.video.sizes(), (at::IntArrayRef{4, 5, 1, 2, 2}));
      EXPECT_EQ(batch.clips.actions.sizes(), (at::IntArrayRef{4, 5}));
      for (int64_t row = 0; row < 4; ++row) {
        const auto clip = static_cast<int64_t>(batch.indices[static_cast<size_t>(row)] % 23);
        EXPECT_TRUE((batch.clips.video[row] == clip).all().item<bool>());
        EXPECT_TRUE((batch.clips.actions[row] == clip).all().item<bool>());
      }
      if (workers == 0) expected.push_back(batch.indices);
      EXPECT_EQ(batch.indices, expected[k]) << workers << " workers, batch " << k;
    }
  }
}

TEST(Loader, GoesOnWhereItStopped) {
  const auto dataset = std::make_shared<Numbers>(9);
  Loader all(dataset, {.batch = 2, .frames = 1, .seed = 8, .workers = 2});
  for (int k = 0; k < 7; ++k) all.next();
  Loader rest(dataset, {.batch = 2, .frames = 1, .seed = 8, .workers = 1, .first_batch = 7});
  for (int k = 0; k < 7; ++k) EXPECT_EQ(all.next().indices, rest.next().indices);
}

TEST(Loader, AnErrorArrivesInItsTurn) {
  for (const int workers : {0, 1, 4}) {
    Loader loader(std::make_shared<Numbers>(12, 5), {.batch = 2, .frames = 1, .seed = 1, .workers = workers});
    uint64_t bad = 0;
    while (true) {
      const auto indices = batch_indices(Split::train, 1, bad, 2, 12);
      if (indices[0] == 5 || indices[1] == 5) break;
      EXPECT_EQ(loader.next().number, bad++);
    }
    for (int again = 0; again < 2; ++again) expect_error([&] { loader.next(); }, {"clip 5 is broken"});
  }
}

TEST(Loader, MakesABoundedNumberAheadAndStopsQuickly) {
  const auto dataset = std::make_shared<Numbers>(100);
  {
    Loader loader(dataset, {.batch = 2, .frames = 1, .workers = 2});
    loader.next();
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    EXPECT_LE(dataset->made, 2 * (1 + 3));
    dataset->delay = 20000;
    loader.next();
  }
  const auto begin = std::chrono::steady_clock::now();
  { Loader loader(dataset, {.batch = 1000, .frames = 1, .workers = 2}); }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(2));
}

TEST(Loader, RefusesAtOnceWhatCannotWork) {
  const auto dataset = std::make_shared<Numbers>(4);
  expect_error([&] { Loader(dataset, {.frames = 11}); }, {"11 frames", "shortest train clip has 10"});
  expect_error([&] { Loader(dataset, {.split = Split::test, .frames = 1}); }, {"no test clips"});
  expect_error([&] { Loader(dataset, {.batch = 0, .frames = 1}); }, {"positive"});
  expect_error([&] { Loader(dataset, {.batch = 1}); }, {"positive"});
}

TEST(Loader, LoadsMovingMnist) {
  const auto dataset = make_dataset({{"name", "moving-mnist"}, {"image_size", 32}, {"digit_size", 16}}, 2);
  Loader loader(dataset, {.batch = 3, .frames = 6, .seed = 2, .workers = 2});
  const Batch batch = loader.next();
  EXPECT_FALSE(batch.clips.actions.defined());
  for (int64_t row = 0; row < 3; ++row) {
    const Clips clip = dataset->clip(Split::train, batch.indices[static_cast<size_t>(row)], 6);
    EXPECT_TRUE(at::equal(batch.clips.video[row], clip.video[0]));
  }
}

}  // namespace
}  // namespace convssm::data
