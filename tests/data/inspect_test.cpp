// What an inspection finds and suggests; that what it suggests can be opened.
#include "convssm/data/inspect.h"

#include <gtest/gtest.h>

#include <array>
#include <filesystem>

#include "convssm/io/grib.h"
#include "convssm/io/video_writer.h"
#include "folder_files.h"

namespace convssm::data {
namespace {

class Inspect : public FolderTest {
 protected:
  Inspection look(const std::string& name) { return inspect(folder.path(name), "", ""); }
};

TEST_F(Inspect, SuggestsARangeForEachChannel) {
  at::Tensor fields = at::zeros({4, 2, 6, 7});
  fields.select(1, 0).fill_(280)[1][2][3] = 300;
  fields.select(1, 1)[0][0][0] = -7.5;
  npy("a.npy", fields);
  const Inspection found = look("a.npy");
  EXPECT_EQ(found.problem, "");
  EXPECT_NE(found.yaml.find("low: [280, -7.5]"), std::string::npos) << found.yaml;
  EXPECT_NE(found.yaml.find("high: [300, 0]"), std::string::npos) << found.yaml;
  EXPECT_EQ(found.values.low, -7.5);
  EXPECT_EQ(found.values.high, 300);
  const auto dataset =
      open({{"low", {280, -7.5}}, {"high", {300, 0}}, {"test_fraction", 0.0}, {"valid_fraction", 0.0}});
  const at::Tensor video = dataset->clip(Split::train, 0, 4).video;
  EXPECT_EQ(video.min().item<float>(), -1);
  EXPECT_EQ(video.max().item<float>(), 1);
  const io::Image strip = frame_strip(found, 2);  // the first channel by its own range: frame 0 is black
  EXPECT_EQ(strip.channels, 1);
  EXPECT_EQ(strip.pixels[0], 0);
}

TEST_F(Inspect, AChannelOfOneValueHasARangeToo) {
  at::Tensor fields = at::zeros({4, 2, 6, 7});
  fields.select(1, 1).fill_(990)[0][0][0] = 1030;
  npy("a.npy", fields);
  const Inspection found = look("a.npy");
  EXPECT_NE(found.yaml.find("low: [0, 990]"), std::string::npos) << found.yaml;
  EXPECT_NE(found.yaml.find("high: [1, 1030]"), std::string::npos) << found.yaml;
}

TEST_F(Inspect, CountsWhatIsNoNumberInAllChannels) {
  at::Tensor fields = at::zeros({4, 2, 6, 7});
  fields.select(1, 0)[1][2][3] = NAN;
  fields.select(1, 1).slice(0, 0, 1).fill_(NAN);
  npy("a.npy", fields);
  EXPECT_NE(look("a.npy").problem.find("43 "), std::string::npos) << look("a.npy").problem;
}

TEST_F(Inspect, KnowsActionsOfBothKinds) {
  npz("a.npz", {{"video", numbers({2, 3, 6, 6, 1})}, {"actions", at::zeros({2, 3, 4})}});
  const auto text_of = [](const Inspection& found) {
    std::string all;
    for (const std::string& line : inspection_lines(found)) all += line + "\n";
    return all;
  };
  EXPECT_NE(text_of(look("a.npz")).find("4 numbers per frame"), std::string::npos);
  EXPECT_EQ(inspection_json(look("a.npz"))["action_values"], 4);
  npz("a.npz", {{"video", numbers({2, 3, 6, 6, 1})}, {"actions", at::zeros({2, 3}, at::kLong)}});
  EXPECT_NE(text_of(look("a.npz")).find("one per frame"), std::string::npos);
  EXPECT_TRUE(inspection_json(look("a.npz"))["actions"].get<bool>());
}

TEST_F(Inspect, KnowsAnimations) {
  const auto video = io::open_video(folder.path("a.gif"), {.frames = 3, .width = 6, .height = 5, .channels = 1});
  const at::Tensor frames = numbers({3, 5, 6});
  for (int64_t t = 0; t < 3; ++t) video->write({frames[t].data_ptr<uint8_t>(), 30});
  video->close();
  const Inspection found = look("a.gif");
  EXPECT_EQ(found.problem, "");
  ASSERT_EQ(found.arrays.size(), 1u);
  EXPECT_EQ(found.arrays[0].shape, "[3, 5, 6, 1]");
  EXPECT_EQ(found.clips, 1u);
  EXPECT_EQ(found.longest, 3);
  EXPECT_EQ(found.values.high, frames.max().item<int>());
  const io::Image strip = frame_strip(found, 3);
  EXPECT_EQ(strip.pixels[0], frames[0][0][0].item<int>());
}

// What a file is, is told by its bytes, and what is not read here is named with the way to go, by whoever opens it.
TEST_F(Inspect, NamesWhatItCannotRead) {
  const std::vector<std::array<std::string, 4>> cases{
      {"a.h5", std::string("\x89HDF\r\n\x1a\n\0\0", 10), "not a valid HDF5 file", ""},
      {"a.nc", std::string("CDF\x01\0\0", 6), "the header is cut off", ""},
      {"a.grib", "GRIB....", io::reads_grib() ? "GRIB of edition 46" : "without eccodes", ""},
      {"a.avi", "RIFF....AVI LIST", "the AVI file is cut short", ""},
      {"a.flv", "FLV\x01....", "is a Flash video", "ffmpeg"},
      {"a.csv", "1,2,3\n4,5,6\n", "is text", "np.loadtxt"},
      {"a.npy", "1,2,3\n4,5,6\n", "is text", "np.loadtxt"},
      {"b.npy", "", "is an empty file", ""},
      {"noise", std::string("\x01\x02\x03\x04", 4), "of no kind that is known here", ".npy, .npz"},
  };
  for (const auto& [name, bytes, what, advice] : cases) {
    folder.write(name, bytes);
    const std::string problem = look(name).problem;
    EXPECT_NE(problem.find(what), std::string::npos) << problem;
    EXPECT_NE(problem.find(advice), std::string::npos) << problem;
    expect_refused({name, what, advice}, {{"path", folder.path(name)}});
  }
}

TEST_F(Inspect, NamesWhatAFolderHoldsInstead) {
  folder.write("d/a.flv", "FLV\x01");
  EXPECT_NE(look("d").problem.find("a.flv' is a Flash video"), std::string::npos) << look("d").problem;
  expect_refused({"holds no recordings", "but 1 others", "a.flv' is a Flash video", "ffmpeg"},
                 {{"path", folder.path("d")}});
  npy("d/b.npy", numbers({3, 8, 8}));
  EXPECT_NE(text(*open({{"path", folder.path("d")}})).find("left out, such as 'a.flv' (a Flash video)"),
            std::string::npos);
  folder.write("z/.zarray", "{}");
  folder.write("z/0.0.0", "x");
  expect_refused({"z", "zarr_format"}, {{"path", folder.path("z")}});
}

TEST_F(Inspect, ReadsByContentsWhateverTheName) {
  npy("clip", numbers({3, 8, 8}));
  EXPECT_EQ(look("clip").longest, 3);
  const auto video = io::open_video(folder.path("a.gif"), {.frames = 3, .width = 8, .height = 8, .channels = 1});
  const std::vector<uint8_t> frame(64, 9);
  for (int k = 0; k < 3; ++k) video->write(frame);
  video->close();
  std::filesystem::rename(folder.path("a.gif"), folder.path("a.npy"));
  EXPECT_EQ(look("a.npy").longest, 3) << look("a.npy").problem;
  EXPECT_EQ(open({{"path", folder.path("a.npy")}})->format().width, 8);
}

TEST_F(Inspect, TellsThatTestClipsWouldBeTrainedOn) {
  npy("test/a.npy", numbers({3, 8, 8}));
  const Inspection found = inspect(folder.path(), "", "");
  EXPECT_NE(found.problem.find("has test/ but no train/"), std::string::npos) << found.problem;
  EXPECT_EQ(found.clips, 1u);
}

}  // namespace
}  // namespace convssm::data
