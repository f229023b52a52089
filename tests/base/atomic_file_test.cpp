#include "convssm/base/atomic_file.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <functional>
#include <string>

#include "convssm/base/error.h"
#include "scratch_folder.h"

namespace convssm {
namespace {

namespace fs = std::filesystem;

size_t count_files(const std::string& folder) {
  return static_cast<size_t>(std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

void expect_io_error(const std::function<void()>& action, const std::string& path) {
  try {
    action();
    FAIL() << "did not throw";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::io);
    EXPECT_NE(std::string(error.what()).find(path), std::string::npos) << error.what();
  }
}

// Files of this process cannot grow past `bytes` while it lives: the nearest thing to a full disk.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  rlimit before_{};
  void (*handler_)(int);
};

TEST(AtomicFile, CommitReplacesTheWholeFile) {
  const ScratchFolder folder;
  const std::string path = folder.path("result.json");
  replace_file(path, "a long first version");
  replace_file(path, "short");
  EXPECT_EQ(read_text(path), "short");
  EXPECT_EQ(count_files(folder.path()), 1u);
}

TEST(AtomicFile, WritesBytesInOrderAndEmptyWritesAreFine) {
  const ScratchFolder folder;
  const std::string path = folder.path("bytes");
  AtomicFile file(path);
  file.write("a\0b", 3);
  file.write(nullptr, 0);
  file.write("c", 1);
  file.commit();
  EXPECT_EQ(read_text(path), std::string("a\0bc", 4));
}

TEST(AtomicFile, SeekGoesBackOverWhatIsThere) {
  const ScratchFolder folder;
  AtomicFile file(folder.path("a"));
  file.write("0123456789", 10);
  file.seek(2);
  file.write("xy", 2);
  file.seek(10);
  file.write("!", 1);
  file.commit();
  EXPECT_EQ(read_text(folder.path("a")), "01xy456789!");
}

TEST(AtomicFile, WithoutCommitTheOldContentSurvives) {
  const ScratchFolder folder;
  const std::string path = folder.path("result.json");
  replace_file(path, "old");
  {
    AtomicFile file(path);
    file.write("new", 3);
    EXPECT_EQ(read_text(path), "old");
  }
  EXPECT_EQ(read_text(path), "old");
  EXPECT_EQ(count_files(folder.path()), 1u);
}

TEST(AtomicFile, NameWithoutFolderMeansTheCurrentFolder) {
  const ScratchFolder folder;
  const fs::path before = fs::current_path();
  fs::current_path(folder.path());
  replace_file("plain.txt", "here");
  fs::current_path(before);
  EXPECT_EQ(read_text(folder.path("plain.txt")), "here");
}

TEST(AtomicFile, MissingFolderIsAnIoErrorNamingThePath) {
  const ScratchFolder folder;
  const std::string path = folder.path("missing/result.json");
  expect_io_error([&] { AtomicFile file(path); }, path);
}

TEST(AtomicFile, UnwritableFolderIsAnIoErrorNamingThePath) {
  // Not by permissions, which root passes: /proc takes files from nobody, and a file is no folder.
  expect_io_error([] { AtomicFile file("/proc/convssm.json"); }, "/proc/convssm.json");
  const ScratchFolder folder;
  folder.write("file", "");
  expect_io_error([&] { AtomicFile file(folder.path("file/result.json")); }, folder.path("file/result.json"));
}

TEST(AtomicFile, ReplacingAFolderIsAnIoErrorAndLeavesNothingBehind) {
  const ScratchFolder folder;
  const std::string path = folder.path("taken");
  fs::create_directory(path);
  expect_io_error([&] { replace_file(path, "text"); }, path);
  EXPECT_EQ(count_files(folder.path()), 1u);
}

TEST(AtomicFile, CommitAfterAFailedWriteFails) {
  const ScratchFolder folder;
  const std::string path = folder.path("result.bin");
  {
    AtomicFile file(path);
    {
      const FileSizeLimit limit(10000);
      const std::string text(1 << 20, 'x');
      expect_io_error([&] { file.write(text.data(), text.size()); }, path);
    }
    expect_io_error([&] { file.commit(); }, path);
  }
  EXPECT_EQ(count_files(folder.path()), 0u);
}

TEST(AtomicFile, FailedWriteKeepsTheOldContent) {
  const ScratchFolder folder;
  const std::string path = folder.path("result.bin");
  replace_file(path, "old");
  {
    const FileSizeLimit limit(10000);
    expect_io_error([&] { replace_file(path, std::string(1 << 20, 'x')); }, path);
    // Small enough for the buffer: the failure shows only when commit() flushes.
    const FileSizeLimit tighter(10);
    expect_io_error([&] { replace_file(path, std::string(100, 'x')); }, path);
  }
  EXPECT_EQ(read_text(path), "old");
  EXPECT_EQ(count_files(folder.path()), 1u);
}

TEST(AtomicFile, PermissionsFollowTheUmask) {
  const ScratchFolder folder;
  for (const mode_t mask : {mode_t{022}, mode_t{077}, mode_t{002}}) {
    const mode_t before = umask(mask);
    replace_file(folder.path("file"), "text");
    umask(before);
    struct stat status {};
    ASSERT_EQ(stat(folder.path("file").c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777, 0666u & ~mask);
  }
}

TEST(AtomicFile, WhatKilledProcessesLeftIsRemoved) {
  const ScratchFolder folder;
  for (const char* name : {"log.jsonl.convssm-tmp-a1B2c3", "x.png.convssm-tmp-zzzzzz"}) folder.write(name, "half");
  const std::vector<std::string> others = {"log.jsonl",          "a.convssm-tmp-",        "a.convssm-tmp-abc",
                                           "notes.tmp-backup",   "a.convssm-tmp-abcdefg", "a.convssm-tmp-abcde.",
                                           ".convssm-tmp-abcdef"};
  for (const std::string& name : others) folder.write(name, "whole");
  fs::create_directory(folder.path("b.convssm-tmp-abcdef"));
  AtomicFile writing(folder.path("status.json"));
  writing.write("1234", 4);
  remove_temporary_files(folder.path());
  EXPECT_EQ(count_files(folder.path()), others.size() + 2);  // the folder, and what is being written
  writing.commit();
  EXPECT_EQ(read_text(folder.path("status.json")), "1234");
  remove_temporary_files(folder.path("missing"));
}

}  // namespace
}  // namespace convssm
