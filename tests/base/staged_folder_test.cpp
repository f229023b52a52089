#include "convssm/base/staged_folder.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "convssm/base/atomic_file.h"
#include "convssm/base/error.h"
#include "scratch_folder.h"

namespace convssm {
namespace {

namespace fs = std::filesystem;

constexpr const char* kOwn[] = {"a", "b"};

size_t entries_in(const std::string& folder) {
  return static_cast<size_t>(std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

TEST(StagedFolder, ReplacesItsOwnFilesAndKeepsTheOthers) {
  const ScratchFolder scratch;
  for (const char* name : {"out/a", "out/b", "out/README.md", "out/sub/deep/c"}) scratch.write(name, "old");
  {
    StagedFolder staged(scratch.path("out/"));
    replace_file(staged.path("a"), "new");
    EXPECT_EQ(read_text(scratch.path("out/a")), "old");
    staged.commit(kOwn);
  }
  EXPECT_EQ(read_text(scratch.path("out/a")), "new");
  EXPECT_FALSE(fs::exists(scratch.path("out/b")));  // the new one has none
  EXPECT_EQ(read_text(scratch.path("out/README.md")), "old");
  EXPECT_EQ(read_text(scratch.path("out/sub/deep/c")), "old");
  EXPECT_EQ(entries_in(scratch.path()), 1u);
}

TEST(StagedFolder, MakesTheTargetAndItsParents) {
  const ScratchFolder scratch;
  StagedFolder staged(scratch.path("x/y/out"));
  replace_file(staged.path("a"), "new");
  EXPECT_FALSE(fs::exists(scratch.path("x/y/out")));
  staged.commit(kOwn);
  EXPECT_EQ(read_text(scratch.path("x/y/out/a")), "new");
  EXPECT_EQ(fs::status(scratch.path("x/y/out")).permissions(), fs::status(scratch.path("x/y")).permissions());
}

TEST(StagedFolder, WithoutCommitNothingChanges) {
  const ScratchFolder scratch;
  scratch.write("out/a", "old");
  { replace_file(StagedFolder(scratch.path("out")).path("a"), "new"); }
  EXPECT_EQ(read_text(scratch.path("out/a")), "old");
  EXPECT_EQ(entries_in(scratch.path()), 1u);
}

TEST(StagedFolder, RemovesWhatKilledProcessesLeft) {
  const ScratchFolder scratch;
  scratch.write("out.staged-abc123/model", "half");
  scratch.write("other.staged-abc123/model", "half");
  const StagedFolder first(scratch.path("out")), second(scratch.path("out"));
  EXPECT_FALSE(fs::exists(scratch.path("out.staged-abc123")));
  EXPECT_EQ(entries_in(scratch.path()), 3u);  // of the other, and both that are in use
}

TEST(StagedFolder, WithoutExchangingTheOldFolderIsNeverLost) {
  const ScratchFolder scratch;
  scratch.write("out/a", "old");
  scratch.write("new/a", "new");
  EXPECT_TRUE(exchange_folders(scratch.path("new"), scratch.path("out"), false));
  EXPECT_EQ(read_text(scratch.path("out/a")), "new");
  EXPECT_EQ(read_text(scratch.path("new/a")), "old");
  EXPECT_FALSE(exchange_folders(scratch.path("missing"), scratch.path("out"), false));  // the second step fails
  EXPECT_EQ(read_text(scratch.path("out/a")), "new");
  EXPECT_EQ(entries_in(scratch.path()), 2u);
  fs::rename(scratch.path("out"), scratch.path("out.staged-abc123-old"));  // killed between the two
  fs::rename(scratch.path("new"), scratch.path("out.staged-abc123"));
  const StagedFolder next(scratch.path("out"));
  EXPECT_EQ(read_text(scratch.path("out/a")), "new");
  EXPECT_FALSE(fs::exists(scratch.path("out.staged-abc123")));
}

TEST(StagedFolder, ALinkKeepsNamingTheFolder) {
  const ScratchFolder scratch;
  scratch.write("real/a", "old");
  fs::create_directory_symlink("real", scratch.path("link"));
  StagedFolder staged(scratch.path("link"));
  replace_file(staged.path("a"), "new");
  staged.commit(kOwn);
  EXPECT_TRUE(fs::is_symlink(scratch.path("link")));
  EXPECT_EQ(read_text(scratch.path("real/a")), "new");
}

TEST(StagedFolder, NothingOfTheTargetStaysIfItIsReplacedWhole) {
  const ScratchFolder scratch;
  for (const char* name : {"out/a", "out/README.md"}) scratch.write(name, "old");
  {
    StagedFolder staged(scratch.path("out"));
    replace_file(staged.path("a"), "new");
    staged.commit_whole();
  }
  EXPECT_EQ(read_text(scratch.path("out/a")), "new");
  EXPECT_EQ(entries_in(scratch.path("out")), 1u);
  EXPECT_EQ(entries_in(scratch.path()), 1u);
}

TEST(StagedFolder, APlaceForOneFile) {
  const ScratchFolder scratch;
  for (const bool commit : {true, false}) {
    StagedFolder staged(scratch.path("file.nc"));
    replace_file(staged.path("any"), commit ? "new" : "newer");
    EXPECT_EQ(fs::exists(scratch.path("file.nc")), !commit);
    if (commit) staged.commit_file("any");
  }
  EXPECT_EQ(read_text(scratch.path("file.nc")), "new");
  EXPECT_EQ(entries_in(scratch.path()), 1u);
}

TEST(StagedFolder, SaysWhereItCannotWrite) {
  try {
    StagedFolder("/proc/nowhere/out");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::io);
    EXPECT_NE(std::string(error.what()).find("/proc/nowhere"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace convssm
