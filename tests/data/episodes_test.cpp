// Every format of episodes that people have, and how their actions are lined up with frames.
#include <gtest/gtest.h>

#include <cmath>

#include "convssm/io/animation.h"
#include "convssm/io/file_kind.h"
#include "episode_files.h"

namespace convssm::data {
namespace {

using convssm::testing::expect_error;

class Episodes : public EpisodeTest {};

const std::string kMinari = CONVSSM_SOURCE_DIR "/tests/io/data/minari.h5";

TEST_F(Episodes, VideoAndActionsInOneArchive) {  // DMLab, TECO
  npz("train/0/a.npz", {{"video", numbers({5, 8, 8, 3})}, {"actions", whole({0, 1, 2, 3, 4})}});
  npz("test/0/b.npz", {{"video", numbers({6, 8, 8, 3})}, {"actions", whole({5, 1, 2, 3, 4, 0})}});
  const auto dataset = open({{"valid_fraction", 0.0}});
  EXPECT_TRUE(actions_of(*dataset).equal(whole({0, 1, 2, 3, 4}))) << "action k leads to frame k";
  EXPECT_EQ(dataset->actions().count, 6);
  EXPECT_EQ(dataset->clip(Split::test, 0, 6).actions[0][0].item<int64_t>(), 5);
}

TEST_F(Episodes, VideosWithActionsBesideThem) {  // Minecraft, Habitat
  const at::Tensor frames = numbers({6, 8, 8, 1});
  video("x/a.gif", frames);
  npz("x/a.npz", {{"actions", whole({0, 4, 2, 3, 1, 0})}});
  video("x/b.mp4", frames);
  npy("x/b.npy", whole({1, 1, 2, 3, 1, 0}));
  json rgb = with({{"colour", "rgb"}});
  const auto dataset = open(rgb);
  ASSERT_EQ(dataset->size(Split::train), 2u);
  EXPECT_TRUE(actions_of(*dataset, 0).equal(whole({0, 4, 2, 3, 1, 0})));
  EXPECT_TRUE(actions_of(*dataset, 1).equal(whole({1, 1, 2, 3, 1, 0})));
  EXPECT_EQ(text(*dataset).find("left out"), std::string::npos) << "files of actions are no clips: " << text(*dataset);
  const at::Tensor gif = dataset->clip(Split::train, 0, 6).video[0];
  EXPECT_TRUE(at::equal(gif.select(1, 2), expected(frames.squeeze(3))));
  std::filesystem::remove(folder.path("x/b.npy"));
  expect_refused({"either all files have actions or none", "a.gif' has whole numbers", "b.mp4' has none"}, rgb);
  rgb["actions"] = "required";
  expect_refused({"b.mp4' has no actions", "'b.npz' with an array 'actions'", "'b.csv' beside it"}, rgb);
  rgb["on_error"] = "skip";
  EXPECT_EQ(open(rgb)->size(Split::train), 1u);
  rgb["actions"] = "ignore";
  EXPECT_EQ(open(rgb)->size(Split::train), 2u);
  EXPECT_TRUE(open(rgb)->actions().none());
}

TEST_F(Episodes, ClipsInArraysComeBeforeAnimationsOfThem) {
  npz("a.npz", {{"data", numbers({4, 8, 8})}, {"actions", whole({0, 1, 2, 3})}});
  video("a.gif", numbers({9, 8, 8, 1}));
  EXPECT_EQ(open(all_train)->longest(Split::train), 4);
}

TEST_F(Episodes, OneHotActionsAndOneFrameMore) {  // Memory Maze
  const at::Tensor one_hot = at::zeros({4, 6});
  const std::vector<int64_t> chosen{2, 0, 5, 2};
  for (int64_t k = 0; k < 4; ++k) one_hot[k][chosen[static_cast<size_t>(k)]] = 1;
  npz("a.npz", {{"image", numbers({5, 8, 8, 3})}, {"action", one_hot}, {"maze_layout", numbers({5, 9, 9})}});
  const auto dataset = open(with({{"actions_key", "action"}}));
  EXPECT_EQ(dataset->actions().count, 6);
  EXPECT_EQ(dataset->format().height, 8);
  EXPECT_TRUE(actions_of(*dataset).equal(whole({-1, 2, 0, 5, 2})));
  EXPECT_NE(text(*dataset).find("one-hot rows of 6"), std::string::npos) << text(*dataset);
  EXPECT_NE(text(*dataset).find("one action less than frames"), std::string::npos) << text(*dataset);
  const Clips middle = dataset->part(Split::train, 0, 2, 2);
  EXPECT_TRUE(middle.actions[0].equal(whole({0, 5})));
  const auto numbers_of = open(with({{"actions_key", "action"}, {"actions_kind", "values"}}));
  EXPECT_EQ(numbers_of->actions().values, 6);
  EXPECT_TRUE(std::isnan(actions_of(*numbers_of)[0][0].item<float>()));
  EXPECT_EQ(actions_of(*numbers_of)[1][2].item<float>(), 1);
  one_hot[1][3] = 1;  // two at once: numbers, unless the user says otherwise
  npz("a.npz", {{"image", numbers({5, 8, 8, 3})}, {"action", one_hot}});
  EXPECT_EQ(open(with({{"actions_key", "action"}}))->actions().values, 6);
  expect_refused({"a.npz", "not one-hot"}, {{"actions_key", "action"}, {"actions_kind", "one_hot"}});
  npz("a.npz", {{"image", numbers({5, 8, 8, 3})}, {"action", one_hot.to(at::kLong)}});
  expect_refused({"a.npz", "not one-hot", "actions_kind: values"}, {{"actions_key", "action"}});
}

// The two ways to be off by one.
TEST_F(Episodes, ActionsAreLinedUpAsSaid) {
  npz("a.npz", {{"video", numbers({4, 8, 8, 3})}, {"actions", whole({3, 1, 2, 0})}});
  EXPECT_TRUE(actions_of(*open(with({{"actions_align", "leads_to"}}))).equal(whole({3, 1, 2, 0})));
  const auto taken = open(with({{"actions_align", "taken_at"}}));
  EXPECT_TRUE(actions_of(*taken).equal(whole({-1, 3, 1, 2}))) << "the last one led to no frame";
  EXPECT_NE(text(*taken).find("moved by one"), std::string::npos) << text(*taken);
  EXPECT_EQ(text(*taken).find("masked", text(*taken).find("is masked") + 9), std::string::npos) << text(*taken);
  npz("a.npz", {{"video", numbers({4, 8, 8, 3})}, {"actions", whole({3, 1, 2})}});
  for (const json& align : {json::object(), json{{"actions_align", "taken_at"}}}) {
    EXPECT_TRUE(actions_of(*open(with(align))).equal(whole({-1, 3, 1, 2})));
  }
  expect_refused({"[4]", "i64 [3]", "actions_align: taken_at"}, {{"actions_align", "leads_to"}});
  npz("a.npz", {{"video", numbers({4, 8, 8, 3})}, {"actions", whole({3, 1})}});
  expect_refused({"a.npz", "[4]", "i64 [2]"}, {{"actions_align", "taken_at"}});
  expect_error([this] { open({{"actions_align", "before"}}); }, {"leads_to", "taken_at", "'before'"});
  const at::Tensor clips = at::arange(6, at::kLong).view({2, 3});  // of several clips
  npz("a.npz", {{"video", numbers({2, 4, 8, 8, 3})}, {"actions", clips}});
  EXPECT_TRUE(actions_of(*open(all_train), 1).equal(whole({-1, 3, 4, 5})));
  const at::Tensor floats = at::rand({3, 2});
  npz("a.npz", {{"video", numbers({4, 8, 8, 3})}, {"actions", floats}});
  EXPECT_TRUE(actions_of(*open(all_train)).slice(0, 1).equal(floats));
}

TEST_F(Episodes, GroupsOfAnHdf5File) {  // Minari
  const auto dataset = open(with({{"path", kMinari}}));
  ASSERT_EQ(dataset->size(Split::train), 4u);
  EXPECT_EQ(dataset->longest(Split::train), 4);
  const std::vector<std::pair<int64_t, int64_t>> episodes{{0, 6}, {1, 4}, {2, 7}, {10, 5}};  // number, frames
  for (uint64_t i = 0; i < 4; ++i) {
    const auto [number, frames] = episodes[i];
    ASSERT_EQ(dataset->length(Split::train, i), frames);
    const Clips clip = dataset->clip(Split::train, i, frames);
    const at::Tensor stored = ((at::arange(frames * 60) + number) % 256).view({frames, 5, 4, 3}).to(at::kByte);
    EXPECT_TRUE(at::equal(clip.video[0], expected(stored.permute({0, 3, 1, 2})))) << i;
    const at::Tensor actions = at::cat({whole({-1}), (at::arange(frames - 1) + number) % 5});
    EXPECT_TRUE(clip.actions[0].equal(actions)) << i;
    const Clips window = dataset->part(Split::train, i, 1, 3);
    EXPECT_TRUE(at::equal(window.video[0], clip.video[0].slice(0, 1, 4)));
    EXPECT_TRUE(window.actions[0].equal(actions.slice(0, 1, 4)));
  }
  const auto longer = open(with({{"path", kMinari}, {"min_frames", 6}}));
  EXPECT_EQ(longer->size(Split::train), 2u);
  EXPECT_NE(
      text(*longer).find("clips of fewer than 6 frames are left out, in 1 of 1 files: 'minari.h5' (2 of 4 clips)"),
      std::string::npos)
      << text(*longer);
  expect_refused({"minari.h5, 'episode_0/'", "did you mean 'rewards'"}, {{"path", kMinari}, {"key", "reward"}});
}

TEST_F(Episodes, AllEpisodesAreReadFromTheSameArray) {
  const at::Tensor a = numbers({4, 8, 8, 3}), b = numbers({4, 8, 8, 3}, 1);
  npz("a.npz", {{"e_0/image", a}, {"e_1/image", b}, {"e_1/data", numbers({6, 8, 8, 3}, 2)}});
  const auto dataset = open(all_train);
  EXPECT_EQ(dataset->length(Split::train, 1), 4);
  EXPECT_TRUE(at::equal(dataset->clip(Split::train, 1, 4).video[0], expected(b.permute({0, 3, 1, 2}))));
  npz("a.npz", {{"e_0/image", a}, {"e_1/data", b}});
  expect_refused({"a.npz, 'e_1/'", "holds no array 'image'"});
}

TEST_F(Episodes, OneArrayOfAnHdf5File) {
  const std::string path = CONVSSM_SOURCE_DIR "/tests/io/data/types.h5";
  const auto dataset = open(with({{"path", path}, {"key", "packed"}}));
  ASSERT_EQ(dataset->longest(Split::train), 7);
  const at::Tensor stored = (at::arange(420) % 120).view({7, 5, 4, 3}).to(at::kByte);
  EXPECT_TRUE(
      at::equal(dataset->part(Split::train, 0, 2, 3).video[0], expected(stored.permute({0, 3, 1, 2}).slice(0, 2, 5))));
}

TEST_F(Episodes, FoldersOfFrames) {
  const at::Tensor a = numbers({12, 6, 8, 3}), b = numbers({5, 6, 8, 3}, 3);
  pictures("walk", a);
  folder.write("walk/actions.csv", "frame,action\n0,0\n1,1\n2,2\n3,0\n4,1\n5,2\n6,0\n7,1\n8,2\n9,0\n10,1\n11,4\n");
  pictures("run/left", b);
  npy("run/left.npy", whole({3, 2, 1, 0, 3}));
  const auto dataset = open(all_train);
  ASSERT_EQ(dataset->size(Split::train), 2u);
  EXPECT_TRUE(at::equal(dataset->part(Split::train, 0, 0, 5).video[0], expected(b.permute({0, 3, 1, 2}))));
  EXPECT_TRUE(at::equal(dataset->part(Split::train, 1, 0, 12).video[0], expected(a.permute({0, 3, 1, 2}))))
      << "by numbers";
  EXPECT_TRUE(actions_of(*dataset, 0).equal(whole({3, 2, 1, 0, 3})));
  EXPECT_EQ(actions_of(*dataset, 1)[11].item<int64_t>(), 4);
  EXPECT_EQ(dataset->actions().count, 5);
  EXPECT_TRUE(at::equal(open(with({{"path", folder.path("run/left")}}))->clip(Split::train, 0, 5).video[0],
                        expected(b.permute({0, 3, 1, 2}))));
  pictures("odd", numbers({1, 6, 8, 3}));
  io::write_png(folder.path("odd/frame1.png"), {8, 7, 3, std::vector<uint8_t>(168)});
  expect_refused({"frame1.png' is 7x8", "6x8 with 3 channels"}, with({{"actions", "ignore"}, {"crop", "start"}}));
}

TEST_F(Episodes, JpegFrames) {
  const std::string data = CONVSSM_SOURCE_DIR "/tests/io/data/";
  for (const char* name : {"a/1.jpg", "a/2.jpeg"}) {
    folder.write(name, "");
    std::filesystem::copy_file(data + "rgb.jpg", folder.path(name), std::filesystem::copy_options::overwrite_existing);
  }
  const auto dataset = open(all_train);
  EXPECT_EQ(dataset->longest(Split::train), 2);
  const at::Tensor want = io::to_tensor(io::read_animation(data + "rgb.jpg"))[0].permute({2, 0, 1});
  EXPECT_TRUE(at::equal(dataset->clip(Split::train, 0, 2).video[0][1], expected(want)));
}

TEST_F(Episodes, TablesOfNumbers) {
  video("a.gif", numbers({3, 8, 8, 1}));
  folder.write("a.csv", "0.5,-1\n0.25,nan\n1,2\n");
  const auto dataset = open(with({{"masked_actions", "allow"}}));
  EXPECT_EQ(dataset->actions().values, 2);
  EXPECT_EQ(actions_of(*dataset)[0][1].item<float>(), -1);
  EXPECT_NE(text(*dataset).find("1 of 3 actions are masked"), std::string::npos) << text(*dataset);
  expect_refused({"a.csv' clip 0", "frame 1 is NaN", "masked_actions"});
  folder.write("a.csv", "0,1\n1,0\n0,1\n");
  EXPECT_TRUE(actions_of(*open(all_train)).equal(whole({1, 0, 1})));
  folder.write("a.csv", "0,1\n1\n0,1\n");
  expect_refused({"a.csv", "line 2: expected 2 numbers, got 1"});
  folder.write("a.csv", "time,speed\n0,1\n1,2\n2,3\n");
  expect_refused({"a.csv", "no column", "'action'", "'time'"});
  EXPECT_EQ(open(with({{"actions_key", "speed"}}))->actions().count, 4);
  folder.write("a.csv", "1\n2\n3\n4\n5\n");
  expect_refused({"a.csv", "[3]", "i64 [5]"});
}

TEST_F(Episodes, ATableOfActionsIsReadOnceAndOtherColumnsDoNotMatter) {
  video("a.gif", numbers({3, 8, 8, 1}));
  folder.write("a.csv", "time,action,reward\n0,2,0.5\n0.05,1,nan\n0.1,0,1\n");
  const auto dataset = open(all_train);
  EXPECT_EQ(dataset->actions().count, 3);
  folder.write("a.csv", "changed");
  EXPECT_TRUE(actions_of(*dataset).equal(whole({2, 1, 0})));
}

TEST_F(Episodes, ActionsUnderAnotherNameAreNotLeftOutSilently) {
  video("a.gif", numbers({3, 8, 8, 1}));
  npz("a.npz", {{"action", whole({0, 1, 2})}, {"reward", at::rand({5})}});
  EXPECT_NE(text(*open(all_train)).find("if 'action' holds them, set data.actions_key=action"), std::string::npos)
      << text(*open(all_train));
  expect_refused({"a.gif' has no actions", "data.actions_key=action?"}, {{"actions", "required"}});
  EXPECT_EQ(open(with({{"actions_key", "action"}}))->actions().count, 3);
}

TEST_F(Episodes, ActionsOutOfRange) {
  npz("a.npz", {{"video", numbers({4, 8, 8, 3})}, {"actions", whole({0, 1, 7, -1})}});
  expect_refused({"a.npz' clip 0", "frame 2 is 7", "allows 0 to 5"}, {{"action_count", 6}});
  expect_refused({"frame 3 is -1", "masked_actions: allow"}, {{"masked_actions", "fail"}});
  EXPECT_EQ(open(with({{"action_count", 9}}))->actions().count, 9);
  EXPECT_EQ(open(all_train)->actions().count, 8);
  expect_error([this] { open({{"action_count", -1}}); }, {"action_count", "0 or positive"});
}

}  // namespace
}  // namespace convssm::data
