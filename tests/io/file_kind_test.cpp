// Kinds of files by their first bytes, and by which ending they are read.
#include "convssm/io/file_kind.h"

#include <gtest/gtest.h>

#include "../base/scratch_folder.h"
#include "convssm/base/error.h"
#include "malformed.h"

namespace convssm::io {
namespace {

class FileKinds : public ::testing::Test {
 protected:
  FileKind of(const std::string& bytes) {
    folder.write("file", bytes);
    return file_kind(folder.path("file"));
  }
  ScratchFolder folder;
};

TEST_F(FileKinds, FirstBytesTell) {
  using namespace std::string_literals;
  EXPECT_EQ(of("\x93NUMPY"s).ending, ".npy");
  EXPECT_EQ(of("PK\x03\x04"s).ending, ".npz");
  EXPECT_EQ(of("GIF89a"s).ending, ".gif");
  EXPECT_EQ(of("\0\0\0\x20"
               "ftypisom"s)
                .ending,
            ".mp4");
  EXPECT_EQ(of("\0\0\0\x08moov"s).ending, ".mov");
  EXPECT_EQ(of("RIFF....AVI LIST"s).ending, ".avi");
  EXPECT_EQ(of("\x1a\x45\xdf\xa3"s).ending, ".mkv");
  EXPECT_EQ(of("\x89PNG\r\n\x1a\n"s).ending, ".png");
  EXPECT_EQ(of("\0\0\x08\x03\0\0\0\x01"s).ending, ".idx");
  EXPECT_EQ(of("\x1f\x8b\x08"s).ending, ".gz");
  for (const std::string& bytes : {"II*\0"s, "MM\0*"s, "II+\0"s, "MM\0+"s}) EXPECT_EQ(of(bytes).ending, ".tif");
  for (const char* bytes : {"P5 3", "P6\n", "P2#", "P3\t"}) EXPECT_EQ(of(bytes).ending, ".pnm");
  EXPECT_EQ(of("P5.3").name, "text");
  EXPECT_EQ(of("\x89HDF\r\n\x1a\n"s).name, "an HDF5 file");
  EXPECT_EQ(of("\x89HDF\r\n\x1a\n"s).ending, ".h5");
  EXPECT_EQ(of("CDF\x05"s).ending, ".nc");
  EXPECT_EQ(of("GRIB"s).ending, ".grib");
  folder.write("store/.zmetadata", "{}");
  EXPECT_EQ(file_kind(folder.path("store")).ending, ".zarr");
  EXPECT_EQ(file_kind(folder.path()).name, "");
  EXPECT_EQ(of("\xff\xd8\xff\xe0"s).ending, ".jpg");
  EXPECT_EQ(of(std::string(512, '\1') + "\x89HDF\r\n\x1a\n").name, "an HDF5 file") << "after a block of the user";
  EXPECT_EQ(of(std::string(257, '\0') + "ustar").name, "a tar archive");
  EXPECT_EQ(of("grüße, a text\n").name, "text");
  EXPECT_EQ(of(std::string(1023, 'x') + "ü").name, "text") << "a letter cut in two";
  EXPECT_EQ(of("").name, "an empty file");
  EXPECT_EQ(of("\1\2\3").name, "");
  EXPECT_EQ(of("\0\0\x07\x03"s).name, "") << "no type of IDX";
  expect_error(ErrorKind::io, "none", [&] { file_kind(folder.path("none")); });
}

// Whatever is not read says what to do, with the path in the words.
TEST_F(FileKinds, AdviceNamesTheFile) {
  for (const char* bytes : {"SIMPLE  =", "MATLAB 5.0 MAT-file", "FLV\x01", "1 2 3"}) {
    EXPECT_NE(of(bytes).advice.find(folder.path("file")), std::string::npos) << of(bytes).name;
    EXPECT_EQ(of(bytes).ending, "");
  }
}

TEST_F(FileKinds, EndingsByContentsThenByName) {
  const auto ending = [&](const std::string& name, const std::string& bytes) {
    folder.write(name, bytes);
    return reading_ending(folder.path(name));
  };
  EXPECT_EQ(ending("a.npy", "GIF89a"), ".gif");
  EXPECT_EQ(ending("a.NPY", "\1\2\3"), ".npy") << "damaged: its reader says how";
  EXPECT_EQ(ending("a.npy", "some text"), "");
  EXPECT_EQ(reading_ending(folder.path("none.png")), ".png");
}

}  // namespace
}  // namespace convssm::io
