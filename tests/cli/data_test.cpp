// convssm data as a process: make files, inspect them, and what is said when something is wrong.
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "../base/scratch_folder.h"
#include "convssm/io/npy.h"
#include "convssm/io/npz.h"
#include "convssm/io/png.h"
#include "program.h"

namespace convssm {
namespace {

using Shape = std::vector<int64_t>;

class CliData : public ::testing::Test {
 protected:
  std::string at(const std::string& name) { return "'" + folder.path(name) + "'"; }
  nlohmann::json inspect(const std::string& name, int code = 0) {
    const Outcome outcome = run("data inspect " + at(name) + " --json " + at("found.json"));
    EXPECT_EQ(outcome.code, code) << outcome.err;
    return nlohmann::json::parse(read_all(folder.path("found.json")));
  }
  ScratchFolder folder;
};

TEST_F(CliData, MakesAFolderOfOneFilePerClip) {
  const Outcome outcome = run("data make " + at("d") + " digits=1 image_size=32 digit_size=16 --clips 3 --frames 5");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  expect_contains(outcome.out, "3 clips of 5 frames");
  for (const char* name : {"d/train/00/clip-000000.npz", "d/train/00/clip-000002.npz"}) {
    const io::NpzFile file(folder.path(name));
    EXPECT_EQ(file.names(), std::vector<std::string>{"data"});
    EXPECT_EQ(file.read("data").dtype(), io::DType::u8);
    EXPECT_EQ(file.read("data").shape(), (Shape{5, 32, 32, 1}));
  }
  EXPECT_FALSE(std::filesystem::exists(folder.path("d/train/00/clip-000003.npz")));
}

TEST_F(CliData, RefusesToOverwriteUnlessForced) {
  const std::string make = "data make " + at("d") + " image_size=32 digit_size=16 --frames 2";
  ASSERT_EQ(run(make + " --clips 3").code, 0);
  const Outcome refused = run(make + " --clips 1");
  EXPECT_EQ(refused.code, 4);
  expect_contains(refused.err, "is not empty; choose another folder or use --force");
  EXPECT_EQ(run(make + " --clips 1 --split test").code, 0) << "the other split is free";
  ASSERT_EQ(run(make + " --clips 1 --force").code, 0);
  EXPECT_FALSE(std::filesystem::exists(folder.path("d/train/00/clip-000001.npz"))) << "a clip of the former run";
  ASSERT_EQ(run("data make " + at("a.npy") + " --clips 1 --frames 1").code, 0);
  expect_contains(run("data make " + at("a.npy") + " --clips 1 --frames 1").err, "exists");
}

// The same clips in a folder, in one .npz and in one .npy file, and the same on every run.
TEST_F(CliData, AllKindsOfFilesHoldTheSameClips) {
  const std::string options = " image_size=32 digit_size=16 seed=5 --clips 2 --frames 4 --split test";
  for (const char* out : {"d", "a.npz", "a.npy"}) ASSERT_EQ(run("data make " + at(out) + options).code, 0) << out;
  ASSERT_EQ(run("data make " + at("c.npz") + options + " --compress").code, 0);
  const io::Array all = io::read_npy(folder.path("a.npy"));
  EXPECT_EQ(all.shape(), (Shape{2, 4, 32, 32, 1}));
  EXPECT_TRUE(std::ranges::equal(all.bytes(), io::NpzFile(folder.path("a.npz")).read("data").bytes()));
  EXPECT_TRUE(std::ranges::equal(all.bytes(), io::NpzFile(folder.path("c.npz")).read("data").bytes()));
  const io::Array second = io::NpzFile(folder.path("d/test/00/clip-000001.npz")).read("data");
  EXPECT_TRUE(std::ranges::equal(all.bytes().subspan(4 * 32 * 32), second.bytes()));
  EXPECT_LT(std::filesystem::file_size(folder.path("c.npz")), std::filesystem::file_size(folder.path("a.npz")));
}

TEST_F(CliData, WrongRequestsAreExplained) {
  const auto expect = [](const std::string& arguments, int code, const std::string& part) {
    const Outcome outcome = run("data " + arguments);
    EXPECT_EQ(outcome.code, code) << arguments;
    expect_contains(outcome.err, part);
  };
  expect("mak", 2, "Did you mean 'make'?");
  expect("make " + at("x") + " digit=1 --clips 1 --frames 1", 2, "did you mean 'digits'?");
  expect("make " + at("x") + " digits --clips 1 --frames 1", 2, "got 'digits'");
  expect("make " + at("x") + " seed=one --clips 1 --frames 1", 2, "seed must be a whole number");
  expect("make " + at("x") + " --frames 1", 2, "--clips is required");
  expect("make " + at("x") + " --clips 1 --frames 1 --split validation", 2, "train, valid or test, got 'validation'");
  expect("make " + at("x") + " clips=2 --clips 3 --frames 1", 2, "3 clips are asked for, the dataset has 2");
  expect("make " + at("x") + " --clips 900000000 --frames 900000000", 4, "but the disk has");
  expect("make /proc/nothing/x --compress --clips 1 --frames 1", 4, "cannot create '/proc/nothing");
  expect("inspect " + at("missing"), 4, "there is no file or folder");
  EXPECT_FALSE(std::filesystem::exists(folder.path("x")));
}

TEST_F(CliData, MakesWorldsAndGoesOnWhereItStopped) {
  const std::string make =
      "data make --world maze image_size=16 --frames 12 --clips 3 --test-clips 1 --workers 2 --out ";
  const Outcome outcome = run(make + at("d"));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const io::NpzFile file(folder.path("d/train/00/clip-000002.npz"));
  EXPECT_EQ(file.names(), (std::vector<std::string>{"video", "actions", "revisit", "pose"}));
  EXPECT_EQ(file.read("video").shape(), (Shape{12, 16, 16, 3}));
  EXPECT_EQ(file.read("actions").shape(), (Shape{12}));
  EXPECT_EQ(file.read("revisit").dtype(), io::DType::i64);
  EXPECT_EQ(file.read("pose").shape(), (Shape{12, 3}));
  EXPECT_TRUE(std::filesystem::exists(folder.path("d/test/00/clip-000000.npz")));
  const std::string kept = read_all(folder.path("d/train/00/clip-000001.npz"));
  std::filesystem::remove(folder.path("d/train/00/clip-000001.npz"));
  ASSERT_EQ(run(make + at("d") + " --resume").code, 0);
  EXPECT_EQ(read_all(folder.path("d/train/00/clip-000001.npz")), kept) << "the clip that was missing";
  const Outcome other = run("data make --world maze image_size=32 --frames 12 --clips 3 --resume --out " + at("d"));
  EXPECT_EQ(other.code, 2);
  expect_contains(other.err, "made in another way");
  EXPECT_EQ(run("data make --world maze size=5 --clips 1").code, 2) << "no folder";
  expect_contains(run("data make --world mase --clips 1 --out " + at("e")).err, "did you mean 'maze'?");
}

TEST_F(CliData, LooksAtAWorld) {
  const Outcome outcome =
      run("data inspect --world terrain image_size=16 --frames 10 --gif " + at("w.gif") + " --png " + at("w.png"));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  for (const char* part : {"4 actions: none, forward", "clip 0 of train, 10 frames", "seen before"})
    expect_contains(outcome.out, part);
  EXPECT_EQ(io::read_png(folder.path("w.png")).width, 8 * 64 + 7 * 2);
  EXPECT_TRUE(std::filesystem::exists(folder.path("w.gif")));
  EXPECT_EQ(run("data inspect").code, 2);
  EXPECT_EQ(run("data inspect --world maze imagesize=3").code, 2);
}

TEST_F(CliData, InspectsAFolder) {
  ASSERT_EQ(run("data make " + at("d") + " image_size=32 digit_size=16 --clips 2 --frames 4").code, 0);
  ASSERT_EQ(run("data make " + at("d") + " image_size=32 digit_size=16 --clips 1 --frames 9 --split test").code, 0);
  const auto found = inspect("d");
  EXPECT_EQ(found["clips"], 3);
  EXPECT_EQ(found["files"], 3);
  EXPECT_EQ(found["shortest"], 4);
  EXPECT_EQ(found["longest"], 9);
  EXPECT_EQ(found["layout"], "THWC");
  EXPECT_EQ(found["height"], 32);
  EXPECT_EQ(found["channels"], 1);
  EXPECT_EQ(found["high"], 255);
  EXPECT_EQ(found["problem"], "");
  const Outcome outcome = run("data inspect " + at("d") + " --png " + at("d.png"));
  for (const char* part : {"data:\n  name: folder\n  path: ", "layout     THWC: the last of 4", "3 of 4 to 9 frames"}) {
    expect_contains(outcome.out, part);
  }
  const io::Image strip = io::read_png(folder.path("d.png"));
  EXPECT_EQ(strip.height, 64);             // twice as large
  EXPECT_EQ(strip.width, 4 * 64 + 3 * 2);  // a training clip
}

TEST_F(CliData, InspectsArraysOfTheUser) {
  std::vector<float> values(3 * 4 * 4, 250.0f);
  values[7] = 300.5f;
  io::write_npz(folder.path("t.npz"), std::vector<io::NamedArray>{{"temperature", io::make_array({3, 4, 4}, values)},
                                                                  {"time", io::make_array<double>({3}, {0, 1, 2})}});
  const auto found = inspect("t.npz");
  EXPECT_EQ(found["key"], "temperature");
  EXPECT_EQ(found["arrays"].size(), 2u);
  EXPECT_EQ(found["arrays"][1]["shape"], (nlohmann::json{3}));
  expect_contains(found["yaml"], "low: 250");
  expect_contains(found["yaml"], "high: 300.5");
  values[8] = std::numeric_limits<float>::quiet_NaN();
  io::write_npy(folder.path("n.npy"), io::make_array({3, 4, 4}, values));
  const auto broken = inspect("n.npy", 3);
  EXPECT_EQ(broken["nan"], 1);
  expect_contains(broken["problem"], "NaN");
}

// Episodes of a real engine, skipped where they are not. All of them take many seconds; here are those for testing.
TEST_F(CliData, InspectsRealEpisodes) {
  const std::string path = CONVSSM_SOURCE_DIR "/../shared/assets/vizdoom/test";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "no " << path;
  const Outcome outcome = run("data inspect '" + path + "'");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  for (const char* part : {"clips      8 of 300 frames in 8 files", "6 different actions", "actions: 6"}) {
    expect_contains(outcome.out, part);
  }
}

TEST_F(CliData, InspectsWithOptionsOfTheDataset) {
  const auto frames = io::make_array({4, 8, 8}, std::vector<uint8_t>(256, 7));
  io::write_npz(folder.path("a.npz"),
                std::vector<io::NamedArray>{{"data", frames}, {"actions", io::make_array<int64_t>({4}, {0, 1, 2, 3})}});
  folder.write("b.npz", "nonsense");
  EXPECT_EQ(run("data inspect '" + folder.path() + "'").code, 3);
  const Outcome outcome = run("data inspect '" + folder.path() + "' on_error=skip actions_align=taken_at size=4");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  for (const char* part : {"4x4 (height x width)", "1 of 2 files cannot be read and are left out", "moved by one",
                           "actions_align: \"taken_at\"", "size: 4"}) {
    expect_contains(outcome.out, part);
  }
  const Outcome wrong = run("data inspect '" + folder.path() + "' strid=2");
  EXPECT_EQ(wrong.code, 2);
  expect_contains(wrong.err, "did you mean 'stride'?");
}

TEST_F(CliData, InspectsWhatCannotBeRead) {
  const auto array = io::make_array<uint8_t>({1, 1, 1}, {1});
  io::write_npz(folder.path("two.npz"), std::vector<io::NamedArray>{{"a", array}, {"b", array}});
  const Outcome outcome = run("data inspect " + at("two.npz"));
  EXPECT_EQ(outcome.code, 3);
  expect_contains(outcome.out, "'a' u8 [1, 1, 1]");
  expect_contains(outcome.err, "2 of its arrays could be the clips");
  EXPECT_EQ(run("data inspect " + at("two.npz") + " --key b").code, 0);
  folder.write("notes.txt", "hello, world");
  expect_contains(run("data inspect " + at("notes.txt")).err, "notes.txt' is text, none of fields (.nc");
}

}  // namespace
}  // namespace convssm
