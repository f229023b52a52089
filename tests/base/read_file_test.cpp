#include "convssm/base/read_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "convssm/base/error.h"
#include "tests/base/scratch_folder.h"

namespace convssm {
namespace {

TEST(ReadFile, GivesEveryByte) {
  const ScratchFolder folder;
  const std::string bytes("a\r\n\0\xff\x1a b\n", 9);
  folder.write("some", bytes);
  folder.write("empty", "");
  folder.write("long", std::string(200000, 'x') + "y");
  EXPECT_EQ(read_file(folder.path("some")), bytes);
  EXPECT_EQ(read_file(folder.path("empty")), "");
  EXPECT_EQ(read_file(folder.path("long")), std::string(200000, 'x') + "y");
}

TEST(ReadFile, NothingIsNotEmpty) {
  const ScratchFolder folder;
  EXPECT_EQ(try_read_file(folder.path("missing")), std::nullopt);
  EXPECT_EQ(try_read_file(folder.path()), std::nullopt);  // a folder opens but cannot be read
  EXPECT_THROW(read_file(folder.path("missing")), Error);
}

TEST(ReadFile, WhatMayHaveNoEndIsRefused) {
  const ScratchFolder folder;
  ASSERT_EQ(mkfifo(folder.path("pipe").c_str(), 0600), 0);
  ASSERT_EQ(symlink("/dev/zero", folder.path("zero").c_str()), 0);
  for (const char* name : {"pipe", "zero"}) {
    try {
      read_file(folder.path(name));
      ADD_FAILURE() << name;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::io);
      EXPECT_NE(std::string(error.what()).find("not a regular file"), std::string::npos) << error.what();
    }
  }
  EXPECT_NE(try_read_file("/proc/self/status").value_or(""), "");  // of size 0, says the system
}

TEST(ReadFile, AFileAboveTheLimitIsNotRead) {
  const ScratchFolder folder;
  folder.write("sparse", "");
  ASSERT_EQ(truncate(folder.path("sparse").c_str(), int64_t{1} << 40), 0);
  try {
    read_file(folder.path("sparse"));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::data);
    for (const char* part : {"sparse", "1.0 TiB", "1.0 GiB", "--file-memory"}) {
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
    }
  }
}

}  // namespace
}  // namespace convssm
