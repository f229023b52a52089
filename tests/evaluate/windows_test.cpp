// Which windows of test clips are scored, and that long recordings give many.
#include "convssm/evaluate/windows.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "convssm/evaluate/evaluate.h"
#include "convssm/io/npy.h"
#include "convssm/io/tensor.h"
#include "convssm/models/registry.h"
#include "tests/base/scratch_folder.h"

namespace convssm::evaluate {
namespace {

using Windows = std::vector<Window>;

struct EvaluateWindows : ::testing::Test {
  ScratchFolder folder;

  // Test clips of these lengths.
  std::shared_ptr<const data::Dataset> clips_of_lengths(const std::vector<int64_t>& lengths) {
    folder.write("train/a.npy", "");
    io::write_npy(folder.path("train/a.npy"), io::to_array(at::rand({20, 8, 8})));
    for (size_t i = 0; i < lengths.size(); ++i) {
      const std::string name = fmt::format("test/{}.npy", i);
      folder.write(name, "");
      io::write_npy(folder.path(name), io::to_array(at::rand({lengths[i], 8, 8})));
    }
    return data::make_dataset({{"name", "folder"}, {"path", folder.path()}, {"valid_fraction", 0.0}}, 1);
  }
};

TEST_F(EvaluateWindows, BeginningsFirstThenTheRestEvenly) {
  const auto dataset = clips_of_lengths({25, 12, 40});
  EXPECT_EQ(test_windows(*dataset, 10, 0, 2), (Windows{{0, 0}, {1, 0}})) << "enough clips: as many as asked for";
  EXPECT_EQ(test_windows(*dataset, 10, 0, 99), (Windows{{0, 0}, {1, 0}, {2, 0}, {0, 10}, {2, 10}, {2, 20}, {2, 30}}));
  EXPECT_EQ(test_windows(*dataset, 10, 0, 5), (Windows{{0, 0}, {1, 0}, {2, 0}, {0, 10}, {2, 20}}));
  EXPECT_EQ(test_windows(*dataset, 10, 15, 99), (Windows{{0, 0}, {1, 0}, {2, 0}, {0, 15}, {2, 15}, {2, 30}}));
  EXPECT_EQ(evaluate::clips_of(test_windows(*dataset, 10, 0, 99)), 3);
  const auto made = data::make_dataset({{"name", "moving-mnist"}, {"test_clips", 3}}, 1);
  EXPECT_EQ(test_windows(*made, 10, 0, 99).size(), 3u) << "clips of any length have no end to look for";
}

TEST_F(EvaluateWindows, PartsOfAClipAreItsFrames) {
  const auto dataset = clips_of_lengths({25});
  const auto whole = dataset->clip(data::Split::test, 0, 25).video;
  EXPECT_EQ(dataset->length(data::Split::test, 0), 25);
  EXPECT_TRUE(dataset->part(data::Split::test, 0, 7, 10).video.equal(whole.slice(1, 7, 17)));
  EXPECT_THROW(dataset->part(data::Split::test, 0, 16, 10), Error);
  const auto made = data::make_dataset({{"name", "moving-mnist"}}, 1);
  EXPECT_TRUE(
      made->part(data::Split::test, 3, 2, 5).video.equal(made->clip(data::Split::test, 3, 7).video.slice(1, 2, 7)));
}

// One recording in one file is scored on many windows, which the output counts; no spread is claimed of one chunk.
TEST_F(EvaluateWindows, ALongRecordingIsManySamples) {
  io::write_npy(folder.path("a.npy"), io::to_array(at::rand({200, 8, 8})));
  const auto dataset =
      data::make_dataset({{"name", "folder"}, {"path", folder.path("a.npy")}, {"test_fraction", 0.5}}, 1);
  const auto model = models::make_model({{"encoder", {{"depths", {4}}}},
                                         {"decoder", {{"depths", {4}}}},
                                         {"core", {{"name", "convs5"}, {"features", 8}, {"state_size", 8}}}},
                                        dataset->format());
  auto options =
      EvaluateOptions::from_json({{"context", 4}, {"horizons", {6}}, {"batch", 4}, {"metrics", {"psnr_f01"}}});
  EXPECT_EQ(count_samples(*dataset, options), 10);
  const auto run = [&] {
    return evaluate(*model, *dataset, options, make_metrics(options, dataset->format()), "ours").metrics;
  };
  const auto metrics = run();
  EXPECT_EQ(metrics["protocol"]["samples"], 10);
  EXPECT_EQ(metrics["protocol"]["clips"], 1);
  EXPECT_NE(table_text(metrics).find("10 windows of 1 clip, 4 frames of context"), std::string::npos)
      << table_text(metrics);
  EXPECT_FALSE(metrics["horizons"][0]["rows"][0]["psnr_f01"].contains("std"));
  EXPECT_EQ(table_text(metrics).find("±"), std::string::npos);
  options.chunk = 5;  // of one clip they are no independent samples
  EXPECT_FALSE(run()["horizons"][0]["rows"][0]["psnr_f01"].contains("std"));
}

}  // namespace
}  // namespace convssm::evaluate
