// Clips of codes: written, read again, and refused where they are not what they should be.
#include "convssm/data/codes.h"

#include <gtest/gtest.h>

#include "convssm/data/inspect.h"
#include "convssm/data/loader.h"
#include "convssm/data/write_codes.h"
#include "episode_files.h"

namespace convssm::data {
namespace {

using convssm::testing::expect_error;

class Codes : public EpisodeTest {
 protected:
  at::Tensor some_codes(int64_t frames, int64_t count = 1000) {
    return (at::arange(frames * 20) * 77 % count).view({frames, 4, 5});
  }
};

TEST_F(Codes, WrittenAndRead) {
  const at::Tensor codes = some_codes(6), actions = whole({0, 1, 2, 0, 1, 2});
  write_codes(folder.path("a.npz"), codes, actions, 1024);
  const io::NpzFile file(folder.path("a.npz"));
  EXPECT_EQ(file.info("codes").dtype, io::DType::u16);
  EXPECT_EQ(file.info("codebook_size").shape, std::vector<int64_t>{});
  const auto dataset = open(with({{"crop", "start"}}));
  EXPECT_EQ(dataset->codes().count, 1024);
  EXPECT_EQ(dataset->codes().height, 4);
  EXPECT_EQ(dataset->codes().width, 5);
  EXPECT_EQ(dataset->format().depth(), 1);
  const Clips clip = dataset->clip(Split::train, 0, 6);
  EXPECT_FALSE(clip.video.defined());
  EXPECT_TRUE(clip.codes[0].equal(codes));
  EXPECT_TRUE(clip.actions[0].equal(actions));
  EXPECT_TRUE(dataset->part(Split::train, 0, 2, 3).codes[0].equal(codes.slice(0, 2, 5)));
  EXPECT_NE(text(*dataset).find("codes of 4 x 5 for each frame, 1024 different ones: as the files say"),
            std::string::npos)
      << text(*dataset);
  Loader loader(dataset, {.batch = 2, .frames = 3});
  EXPECT_EQ(loader.next().clips.codes.sizes(), (std::vector<int64_t>{2, 3, 4, 5}));
  const at::Tensor strided = open(with({{"stride", 2}}))->clip(Split::train, 0, 3).codes[0];
  EXPECT_TRUE(strided.equal(codes.index({at::arange(0, 6, 2)})));
  dataset->check();
  for (const json& view : {json{{"size", 2}}, json{{"colour", "rgb"}}}) {
    expect_refused({"a.npz' holds codes, which have no pixels"}, view);
  }
}

TEST_F(Codes, OfSeveralClipsAndWithoutActions) {
  const at::Tensor codes = (at::arange(2 * 3 * 36) % 50).view({2, 3, 6, 6});
  write_codes(folder.path("a.npz"), codes, at::rand({2, 3, 2}), 50);
  const auto dataset = open(all_train);
  ASSERT_EQ(dataset->size(Split::train), 2u);
  EXPECT_TRUE(dataset->clip(Split::train, 1, 3).codes[0].equal(codes[1]));
  EXPECT_EQ(dataset->actions().values, 2);
  write_codes(folder.path("a.npz"), codes, {}, 50);
  EXPECT_TRUE(open(all_train)->actions().none());
}

TEST_F(Codes, EncodedElsewhere) {  // TECO: `video` [T,16,16] of whole numbers
  const at::Tensor codes = (at::arange(4 * 256) * 5 % 700).view({4, 16, 16});
  npz("a.npz", {{"video", codes.to(at::kInt)}, {"actions", whole({0, 1, 2, 3})}});
  const auto dataset = open(with({{"content", "codes"}}));
  EXPECT_EQ(dataset->codes().count, 696) << "by the largest";
  EXPECT_TRUE(dataset->clip(Split::train, 0, 4).codes[0].equal(codes));
  EXPECT_NE(text(*dataset).find("data.codebook_size"), std::string::npos) << text(*dataset);
  EXPECT_EQ(open(with({{"content", "codes"}, {"codebook_size", 1024}}))->codes().count, 1024);
  expect_refused({"a.npz' clip 0, frame 0, row 6, column 4", "is none of the codes 0 to 499"},
                 with({{"content", "codes"}, {"codebook_size", 500}}), 4);
  npz("a.npz", {{"video", at::rand({4, 16, 16})}});
  expect_refused({"a.npz", "codes are whole numbers", "f32 [4, 16, 16]"}, {{"content", "codes"}});
}

TEST_F(Codes, FilesMustAgree) {
  write_codes(folder.path("a.npz"), some_codes(6), {}, 1024);
  write_codes(folder.path("b.npz"), some_codes(6), {}, 2048);
  expect_refused({"a.npz' has a codebook_size of 1024", "b.npz' of 2048"}, all_train);
  expect_refused({"codebook_size 7 is given", "says 1024"},
                 with({{"path", folder.path("a.npz")}, {"codebook_size", 7}}));
  npz("c/a.npz", {{"codes", some_codes(6)}, {"codebook_size", at::tensor({2.5})}});
  expect_refused({"codebook_size must be one whole number"}, {{"path", folder.path("c")}});
  expect_error([this] { open({{"content", "codes"}, {"size", 8}}); }, {"codes have no pixels"});
  expect_error([this] { open({{"content", "code"}}); }, {"video or codes", "'code'"});
}

TEST_F(Codes, WrongOnesAreNotWritten) {
  const std::string path = folder.path("a.npz");
  expect_error([&] { write_codes(path, some_codes(6), {}, 500); }, {"0 to 499", "got 0 to"});
  expect_error([&] { write_codes(path, some_codes(6), {}, 65537); }, {"1 to 65536"});
  expect_error([&] { write_codes(path, some_codes(6) - 1, {}, 1024); }, {"got -1"});
  expect_error([&] { write_codes(path, some_codes(6).to(at::kInt), {}, 1024); }, {"int64"});
  expect_error([&] { write_codes(path, at::zeros({6}, at::kLong), {}, 1024); }, {"[T,h,w]"});
  expect_error([&] { write_codes(path, some_codes(6), whole({0, 1}), 1024); }, {"one for each frame"});
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST_F(Codes, AreInspected) {
  write_codes(folder.path("a.npz"), some_codes(6), {}, 1024);
  const Inspection found = inspect(folder.path("a.npz"), "", "");
  EXPECT_EQ(found.problem, "");
  EXPECT_EQ(found.codes.count, 1024);
  EXPECT_EQ(found.yaml.find("low"), std::string::npos) << found.yaml;
}

}  // namespace
}  // namespace convssm::data
