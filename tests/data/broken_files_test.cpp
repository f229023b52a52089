// Files that cannot be read: named, counted, and left out by choice.
#include <gtest/gtest.h>

#include <filesystem>

#include "convssm/data/inspect.h"
#include "episode_files.h"

namespace convssm::data {
namespace {

class BrokenFiles : public EpisodeTest {
 protected:
  void cut(const std::string& name, size_t part, size_t of) {
    const std::string bytes = read_text(folder.path(name));
    folder.write(name, bytes.substr(0, bytes.size() * part / of));
  }
  const json skip = with({{"on_error", "skip"}});
};

TEST_F(BrokenFiles, AreNamedAndLeftOutByChoice) {
  for (const char* name : {"a.npz", "b.npz", "c.npz", "d.npz"}) {
    npz(name, {{"video", numbers({4, 8, 8, 3})}, {"actions", whole({0, 1, 2, 3})}});
  }
  cut("b.npz", 1, 2);
  npz("d.npz", {{"video", numbers({4, 8, 8, 3})}, {"actions", whole({0})}});
  expect_refused({"b.npz"}, all_train);
  ::testing::internal::CaptureStderr();
  const auto dataset = open(skip);
  const std::string warning = ::testing::internal::GetCapturedStderr();
  ASSERT_EQ(dataset->size(Split::train), 2u);
  for (const char* part : {"2 of 4 files cannot be read", "'b.npz', 'd.npz'", "the first: "}) {
    EXPECT_NE(warning.find(part), std::string::npos) << warning;
    EXPECT_NE(text(*dataset).find(part), std::string::npos) << text(*dataset);
  }
  cut("a.npz", 1, 2), cut("c.npz", 1, 2);
  expect_refused({"4 of 4 files cannot be read"}, skip);
  convssm::testing::expect_error([this] { open({{"on_error", "ignore"}}); }, {"on_error is skip or fail", "'ignore'"});
}

TEST_F(BrokenFiles, CutVideos) {
  for (const char* name : {"a.mp4", "b.mp4"}) {
    video(name, numbers({6, 16, 16, 3}));
    npz(std::filesystem::path(name).replace_extension(".npz"), {{"actions", whole({0, 1, 2, 3, 4, 5})}});
  }
  cut("b.mp4", 1, 2);
  expect_refused({"b.mp4"}, all_train);
  EXPECT_EQ(open(skip)->size(Split::train), 1u);
  cut("a.npz", 1, 2);
  expect_refused({"a.npz"}, all_train);  // still the actions of a.mp4
  expect_refused({"2 of 2 files cannot be read", "'a.mp4', 'b.mp4'"}, skip);
}

// Damage inside of frames is found when they are decoded: training goes on with another clip, a table does not.
TEST_F(BrokenFiles, DamageOnTheWay) {
  const at::Tensor noise = at::randint(0, 255, {30, 64, 64, 3}, at::kByte);
  for (const char* name : {"train/a.mp4", "train/b.mp4", "test/c.mp4"}) video(name, noise);
  for (const char* name : {"train/b.mp4", "test/c.mp4"}) {
    std::string bytes = read_text(folder.path(name));
    for (size_t at = bytes.size() / 3; at < bytes.size() * 2 / 3; at += 1000) bytes.replace(at, 200, 200, '\xff');
    folder.write(name, bytes);
  }
  const json some{{"valid_fraction", 0.0}, {"crop", "start"}};
  json other = some;
  other["on_error"] = "skip";
  const auto strict = open(some);
  EXPECT_THROW(strict->clip(Split::train, 1, 30), Error);
  const auto dataset = open(other);
  ::testing::internal::CaptureStderr();
  const Clips clip = dataset->clip(Split::train, 1, 30);
  EXPECT_TRUE(at::equal(clip.video, dataset->clip(Split::train, 0, 30).video));
  dataset->clip(Split::train, 1, 30);
  const std::string warning = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(warning.find("b.mp4"), std::string::npos) << warning;
  EXPECT_EQ(std::ranges::count(warning, '\n'), 1) << "once for each file: " << warning;
  EXPECT_THROW(dataset->clip(Split::test, 0, 30), Error);
}

TEST_F(BrokenFiles, AreListedByInspect) {
  npz("a.npz", {{"video", numbers({4, 8, 8, 3})}});
  folder.write("b.npz", "nonsense");
  npz("c.npz", {{"video", numbers({6, 8, 8, 3})}});
  const Inspection found = inspect(folder.path(), "", "");
  EXPECT_NE(found.problem.find("b.npz"), std::string::npos) << found.problem;
  EXPECT_NE(found.problem.find("1 of 3 files cannot be read; on_error: skip"), std::string::npos) << found.problem;
  EXPECT_EQ(found.files.size(), 2u) << "those after it too";
  const Inspection skipped = inspect({{"path", folder.path()}, {"on_error", "skip"}});
  EXPECT_EQ(skipped.problem, "");
  EXPECT_EQ(skipped.broken.size(), 1u);
  ASSERT_FALSE(skipped.notes.empty());
  EXPECT_NE(skipped.notes[0].find("1 of 3 files cannot be read and are left out"), std::string::npos)
      << skipped.notes[0];
  EXPECT_NE(skipped.yaml.find("on_error: \"skip\""), std::string::npos) << skipped.yaml;
}

TEST_F(BrokenFiles, GarbageOfEachKind) {
  for (const char* name : {"a.npz", "a.npy", "a.h5", "a.mp4", "a.gif", "x/a.png", "x/a.jpg"}) {
    std::filesystem::remove_all(folder.path());
    folder.write(name, std::string("\x01\x02nothing at all"));
    expect_refused({std::filesystem::path(name).filename().string()});
  }
}

}  // namespace
}  // namespace convssm::data
