// Real episodes of a 3D engine: videos with actions beside them for training, arrays for testing. Skipped where they are not.
#include <gtest/gtest.h>

#include <filesystem>

#include "convssm/data/inspect.h"
#include "convssm/data/recording.h"
#include "convssm/io/video_read.h"
#include "episode_files.h"

namespace convssm::data {
namespace {

const std::string kVizdoom = CONVSSM_SOURCE_DIR "/../shared/assets/vizdoom";

class Vizdoom : public EpisodeTest {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(kVizdoom)) GTEST_SKIP() << "no " << kVizdoom;
  }
};

TEST_F(Vizdoom, IsReadAsItIs) {
  const auto dataset = open({{"path", kVizdoom}});
  EXPECT_EQ(dataset->size(Split::train) + dataset->size(Split::valid), 96u);
  EXPECT_EQ(dataset->size(Split::test), 8u);
  EXPECT_EQ(dataset->longest(Split::test), 300);
  EXPECT_EQ(dataset->actions().count, 6);
  const Clips clip = dataset->clip(Split::test, 0, 300);
  EXPECT_EQ(clip.video.sizes(), (std::vector<int64_t>{1, 300, 3, 64, 64}));
  EXPECT_EQ(clip.actions[0][0].item<int64_t>(), 0);
}

TEST_F(Vizdoom, WindowsOfVideosEqualWholeDecoding) {
  std::string path;
  for (const auto& entry : std::filesystem::directory_iterator(kVizdoom + "/train")) {
    if (entry.path().extension() == ".mp4" && (path.empty() || entry.path().string() < path)) path = entry.path();
  }
  const at::Tensor whole_video = io::to_tensor(io::read_video(path)).permute({0, 3, 1, 2});
  const auto recording = open_recording(path, {.cache = std::make_shared<ArrayCache>(1)});  // too small: by windows
  ASSERT_EQ(recording->info().frames, 300);
  for (const int64_t first : {0, 1, 100, 249, 250, 251, 290}) {
    EXPECT_TRUE(io::to_tensor(recording->read(0, first, 10)).equal(whole_video.slice(0, first, first + 10))) << first;
  }
}

// Some of it: all takes many seconds.
TEST_F(Vizdoom, IsInspected) {
  namespace fs = std::filesystem;
  for (const char* split : {"train", "test"}) {
    std::vector<fs::path> files;
    for (const auto& entry : fs::directory_iterator(fs::path(kVizdoom) / split)) files.push_back(entry.path());
    std::ranges::sort(files);
    fs::create_directories(folder.path(split));
    for (size_t i = 0; i < 4; ++i) fs::copy(files[i], fs::path(folder.path(split)) / files[i].filename());
  }
  const Inspection found = inspect(folder.path(), "", "");
  EXPECT_EQ(found.problem, "");
  EXPECT_EQ(found.clips, 6u);
  ASSERT_EQ(found.splits.size(), 2u);
  EXPECT_EQ(found.splits[0].second, 2u);
  std::string all;
  for (const std::string& line : inspection_lines(found)) all += line + "\n";
  for (const char* part : {"train 2, test 4", "64x64", "6 different actions", "beside the clips"}) {
    EXPECT_NE(all.find(part), std::string::npos) << all;
  }
}

}  // namespace
}  // namespace convssm::data
