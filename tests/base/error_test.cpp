#include "convssm/base/error.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <string>

namespace convssm {
namespace {

TEST(Error, KindsHaveTheDocumentedExitCodes) {
  EXPECT_EQ(exit_code(ErrorKind::usage), 2);
  EXPECT_EQ(exit_code(ErrorKind::data), 3);
  EXPECT_EQ(exit_code(ErrorKind::io), 4);
  EXPECT_EQ(exit_code(ErrorKind::numeric), 5);
}

TEST(Error, FailCarriesKindAndFormattedText) {
  try {
    fail(ErrorKind::numeric, "[scan] {} of {} values are NaN", 3, 8);
    FAIL() << "did not throw";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::numeric);
    EXPECT_STREQ(error.what(), "[scan] 3 of 8 values are NaN");
  }
}

TEST(Error, FormatErrorNamesFileOffsetAndReason) {
  const FormatError error("clip.npy", 10, "the header ends before its length says");
  EXPECT_EQ(error.kind(), ErrorKind::data);
  EXPECT_EQ(error.file(), "clip.npy");
  EXPECT_EQ(error.offset(), 10u);
  EXPECT_EQ(error.reason(), "the header ends before its length says");
  EXPECT_STREQ(error.what(), "clip.npy: at byte 10: the header ends before its length says");
}

TEST(Error, FailIoAddsTheReasonOfTheSystem) {
  try {
    errno = ENOENT;
    fail_io("cannot open 'clip.npy'");
    FAIL() << "did not throw";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::io);
    EXPECT_STREQ(error.what(), "cannot open 'clip.npy': No such file or directory");
  }
}

}  // namespace
}  // namespace convssm
