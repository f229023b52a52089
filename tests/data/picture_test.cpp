// Pictures of more than bytes, files of several, and folders of them.
#include <gtest/gtest.h>

#include "convssm/data/folder.h"
#include "convssm/data/inspect.h"
#include "convssm/data/recording.h"
#include "convssm/data/recording_files.h"
#include "convssm/io/npy.h"
#include "convssm/io/png.h"
#include "folder_files.h"

namespace convssm::data {
namespace {

using convssm::testing::expect_error;

class Pictures : public FolderTest {
 protected:
  static std::string tiff(const std::string& name) { return CONVSSM_SOURCE_DIR "/tests/io/data/tiff/" + name; }

  void copy(const std::string& name, const std::string& to) {
    folder.write(to, "");
    std::filesystem::copy_file(tiff(name), folder.path(to), std::filesystem::copy_options::overwrite_existing);
  }

  // [T,C,H,W]
  static at::Tensor numbers_of(const std::string& name) {
    return io::to_tensor(io::read_npy(tiff(name))).permute({0, 3, 1, 2});
  }

  // A grey picture of 3 x 2 whose values begin with `first`.
  void pgm(const std::string& name, int first, int largest = 255) {
    std::string text = "P2 3 2 " + std::to_string(largest);
    for (int i = 0; i < 6; ++i) text += " " + std::to_string(first + i);
    folder.write(name, text);
  }
};

TEST_F(Pictures, PagesAreFrames) {
  for (const Access access : {Access::random, Access::in_order}) {
    const auto stack = open_recording(tiff("stack.tif"), {.access = access});
    const at::Tensor want = numbers_of("stack.npy");
    EXPECT_EQ(stack->info().dtype, io::DType::f32);
    EXPECT_EQ(stack->info().frames, 5);
    EXPECT_FALSE(stack->info().always_bytes);
    EXPECT_TRUE(io::to_tensor(stack->read(0, 0, 5)).equal(want));
    EXPECT_TRUE(io::to_tensor(stack->read(0, 3, 2)).equal(want.slice(0, 3, 5)));
    EXPECT_TRUE(io::to_tensor(stack->read(0, 1, 1)).equal(want.slice(0, 1, 2)));
  }
  EXPECT_TRUE(open_recording(tiff("tiles_rgb.tif"))->info().always_bytes);
  EXPECT_EQ(open_recording(tiff("five.tif"))->info().channels, 5);
}

TEST_F(Pictures, ActionsBesideAStack) {
  copy("stack.tif", "a.tif");
  npy("a.npy", at::arange(5));
  const auto stack = open_recording(folder.path("a.tif"));
  ASSERT_TRUE(stack->info().has_actions);
  EXPECT_TRUE(stack->read_actions(0, 1, 2).equal(at::arange(1, 3)));
  EXPECT_EQ(find_recordings(folder.path(), Kinds::one).names, (std::vector<std::string>{"a.tif"}));
}

TEST_F(Pictures, UnitsApply) {
  copy("stack.tif", "a.tif");
  copy("stack.tif", "b.tif");
  expect_refused({"set low and high to the values that become -1 and 1"}, all_train);
  json options = all_train;
  options["low"] = -40, options["high"] = 40;
  const auto dataset = open(options);
  EXPECT_EQ(dataset->size(Split::train), 2u) << "a file of several pages is a clip";
  EXPECT_TRUE(dataset->clip(Split::train, 0, 5).video[0].allclose(numbers_of("stack.npy") / 40));
}

TEST_F(Pictures, AFolderOfSinglePagesIsAClip) {
  for (int t = 1; t <= 12; ++t) copy("grey_i2.tif", "walk/" + std::to_string(t) + ".tif");
  const FoundFiles found = find_recordings(folder.path(), Kinds::one);
  EXPECT_EQ(found.names, (std::vector<std::string>{"walk"}));
  const auto clip = open_recording(folder.path("walk"));
  EXPECT_EQ(clip->info().frames, 12);
  EXPECT_EQ(clip->info().dtype, io::DType::i16);
  EXPECT_FALSE(clip->info().always_bytes);
  EXPECT_TRUE(io::to_tensor(clip->read(0, 11, 1)).equal(numbers_of("grey_i2.npy")));
}

TEST_F(Pictures, StacksAndFoldersOfFramesBesideEachOther) {
  copy("stack.tif", "stacks/a.tif");
  copy("stack.tif", "stacks/b.tif");
  io::write_png(folder.path("stacks/look.png"), {4, 3, 1, std::vector<uint8_t>(12)});
  copy("grey_f4.tif", "frames/1.tif");
  copy("grey_f4.tif", "frames/2.tif");
  const FoundFiles found = find_recordings(folder.path(), Kinds::one);
  EXPECT_EQ(found.names, (std::vector<std::string>{"frames", "stacks/a.tif", "stacks/b.tif"}));
  EXPECT_EQ(found.others, 1u);
  EXPECT_EQ(found.other, "stacks/look.png");
}

TEST_F(Pictures, PnmFrames) {
  for (int t = 1; t <= 11; ++t) pgm("walk/" + std::to_string(t) + ".pgm", t);
  const auto clip = open_recording(folder.path("walk"));
  EXPECT_EQ(clip->info().frames, 11);
  EXPECT_TRUE(clip->info().always_bytes);
  EXPECT_EQ(io::to_tensor(clip->read(0, 9, 1)).view(-1)[0].item<int>(), 10) << "in the order of their numbers";
  pgm("deep/1.pgm", 1000, 4095);
  const auto deep = open_recording(folder.path("deep"));
  EXPECT_EQ(deep->info().dtype, io::DType::u16);
  EXPECT_EQ(deep->read(0, 0, 1).values<uint16_t>()[5], 1005);
}

TEST_F(Pictures, DeepPngKeepsItsBits) {
  const unsigned char bytes[] = {// by Pillow: 2 x 1 pixels of 16 bits, 0x1234 and 0xfffe
                                 0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0x00, 0x00, 0x00, 0x0d, 0x49, 0x48,
                                 0x44, 0x52, 0x00, 0x00, 0x00, 0x02, 0x00, 0x00, 0x00, 0x01, 0x10, 0x00, 0x00, 0x00,
                                 0x00, 0x81, 0xd9, 0xfc, 0x15, 0x00, 0x00, 0x00, 0x0d, 0x49, 0x44, 0x41, 0x54, 0x78,
                                 0x9c, 0x63, 0x10, 0x32, 0xf9, 0xff, 0x0f, 0x00, 0x03, 0xe5, 0x02, 0x44, 0x58, 0xd5,
                                 0x1a, 0x21, 0x00, 0x00, 0x00, 0x00, 0x49, 0x45, 0x4e, 0x44, 0xae, 0x42, 0x60, 0x82};
  folder.write("walk/1.png", std::string(reinterpret_cast<const char*>(bytes), sizeof bytes));
  const auto clip = open_recording(folder.path("walk"));
  EXPECT_EQ(clip->info().dtype, io::DType::u16);
  EXPECT_FALSE(clip->info().always_bytes);
  EXPECT_EQ(clip->read(0, 0, 1).values<uint16_t>()[0], 0x1234);
  const auto alone = open_recording(folder.path("walk/1.png"));
  EXPECT_EQ(alone->read(0, 0, 1).values<uint16_t>()[1], 0xfffe);
}

TEST_F(Pictures, AFolderHoldsOneKind) {
  pgm("a/1.pgm", 1);
  io::write_png(folder.path("a/2.png"), {3, 2, 1, std::vector<uint8_t>(6)});
  expect_error([&] { open_recording(folder.path("a")); }, {"must have one format", "'1.pgm' and '2.png'"});
  pgm("b/1.pgm", 1);
  pgm("b/2.pgm", 1, 4095);
  const auto mixed = open_recording(folder.path("b"));
  expect_error([&] { mixed->read(0, 1, 1); }, {"must have one type", "2.pgm' holds u16, '1.pgm' u8"});
  pgm("c/1.pgm", 1);
  folder.write("c/2.pgm", "P5 3 2 255\nabcdefP5 3 2 255\nabcdef");
  const auto several = open_recording(folder.path("c"));
  expect_error([&] { several->read(0, 1, 1); }, {"2.pgm' holds 2 pictures"});
}

TEST_F(Pictures, InspectTellsTheRange) {
  copy("stack.tif", "a.tif");
  FolderOptions options;
  const Inspection found = inspect({{"path", folder.path("a.tif")}});
  EXPECT_EQ(found.problem, "");
  EXPECT_NE(found.yaml.find("low: "), std::string::npos) << found.yaml;
}

}  // namespace
}  // namespace convssm::data
