#include "convssm/io/npz.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "../base/scratch_folder.h"
#include "convssm/io/npy.h"
#include "malformed.h"
#include "samples.h"
#include "zip_parts.h"

namespace convssm::io {
namespace {

void expect_survives(const std::vector<NamedArray>& arrays, bool compress) {
  const ScratchFolder folder;
  write_npz(folder.path("a.npz"), arrays, compress);
  const NpzFile file(folder.path("a.npz"));
  ASSERT_EQ(file.names().size(), arrays.size());
  for (size_t i = 0; i < arrays.size(); ++i) {
    SCOPED_TRACE(arrays[i].name);
    EXPECT_EQ(file.names()[i], arrays[i].name);
    EXPECT_EQ(file.info(arrays[i].name).shape, arrays[i].array.shape());
    expect_equal(file.read(arrays[i].name), arrays[i].array);
  }
}

TEST(Npz, EveryTypeSurvives) {
  for (const bool compress : {false, true}) expect_survives(samples_without(DType::bf16), compress);
}

TEST(Npz, EdgeCasesSurvive) {
  for (const bool compress : {false, true}) {
    expect_survives({}, compress);
    expect_survives({{"scalar", sample(DType::f64, {})},
                     {"empty", sample(DType::f32, {3, 0, 2})},
                     {"folder/gr\xc3\xb6\xc3\x9f"
                      "e",
                      sample(DType::u8, {7})},
                     {"../name.npy", sample(DType::bool8, {1, 2})},
                     {std::string(60000, 'x'), sample(DType::i64, {3})}},
                    compress);
  }
}

TEST(Npz, LargeDataIsCompressedInChunks) {
  expect_survives({{"counted", sample(DType::f32, {1000, 777})}, {"more", sample(DType::u8, {65536})}}, true);
  Array noise(DType::u32, {300000});
  uint32_t state = 1;
  for (uint32_t& value : noise.values<uint32_t>()) value = state = state * 1664525 + 1013904223;
  expect_survives({{"noise", noise}}, true);
  Array zeros(DType::u8, {5000000});
  std::ranges::fill(zeros.bytes(), std::byte{0});
  expect_survives({{"zeros", zeros}}, true);
}

TEST(Npz, ManyMembersNeedZip64) {
  std::vector<NamedArray> arrays;
  const Array one = sample(DType::u8, {1});
  for (int i = 0; i < 65535; ++i) arrays.push_back({std::to_string(i), one});
  const ScratchFolder folder;
  write_npz(folder.path("a.npz"), arrays);
  const NpzFile file(folder.path("a.npz"));
  EXPECT_EQ(file.names().size(), 65535u);
  expect_equal(file.read("65534"), one);
  EXPECT_NE(read_text(folder.path("a.npz")).find("PK\6\6"), std::string::npos);
}

TEST(Npz, ReadsWhatNumpyWrites) {
  for (const char* name : {"stored.npz", "compressed.npz"}) {
    const NpzFile file(data_path(name));
    for (const std::string& code : numpy_codes) expect_counted_code(code, file.read(code));
  }
  const NpzFile file(data_path("compressed.npz"));
  expect_counted_code("i4", file.read("fortran"));
  EXPECT_EQ(file.read("zeros").shape(), (std::vector<int64_t>{100, 100}));
  EXPECT_EQ(file.read("zeros").values<float>()[9999], 0);
  EXPECT_TRUE(NpzFile(data_path("none.npz")).names().empty());
}

TEST(Npz, ReadsDataDescriptorsCommentsAndOtherMembers) {
  const NpzFile streamed(data_path("streamed.npz"));
  expect_counted_code("f4", streamed.read("a"));
  expect_counted_code("i2", streamed.read("b"));
  const NpzFile mixed(data_path("mixed.npz"));
  EXPECT_EQ(mixed.names(), (std::vector<std::string>{"folder/gr\xc3\xb6\xc3\x9f"
                                                     "e"}));
  expect_counted_code("f4", mixed.read(mixed.names()[0]));
}

TEST(Npz, NamesTheMemberInErrors) {
  expect_error(ErrorKind::data, "stored.npz: holds no array 'f44'; did you mean 'f4'?",
               [] { NpzFile(data_path("stored.npz")).read("f44"); });
  expect_error(ErrorKind::data, "'a.npy' has compression method 12; supported are 0 (np.savez)",
               [] { NpzFile(data_path("bzip2.npz")); });
  const std::string bytes = join({zip_part("a.npy", "not an array", false, 0)});
  const NpzFile file(memory_source("b.npz", as_bytes(bytes)));
  expect_error(ErrorKind::data, "b.npz('a.npy'): at byte 0: expected the magic", [&] { file.read("a"); });
}

TEST(Npz, RefusesToWrite) {
  const ScratchFolder folder;
  const auto refuse = [&](const std::string& part, const std::vector<NamedArray>& arrays) {
    expect_error(ErrorKind::usage, part, [&] { write_npz(folder.path("a.npz"), arrays); });
  };
  const Array array = sample(DType::u8, {1});
  refuse("two arrays are named 'a'", {{"a", array}, {"a", array}});
  refuse("no type for bf16", {{"a", sample(DType::bf16, {1})}});
  refuse("must be UTF-8", {{"\xff", array}});
  refuse("1 to 65535 bytes", {{std::string(65532, 'x'), array}});
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(Npz, EqualArraysGiveEqualFiles) {
  const ScratchFolder folder;
  const auto arrays = samples_without(DType::bf16);
  write_npz(folder.path("a.npz"), arrays, true);
  write_npz(folder.path("b.npz"), arrays, true);
  EXPECT_EQ(read_text(folder.path("a.npz")), read_text(folder.path("b.npz")));
}

// A member beyond 4 GiB, without writing as much: the member before it is a hole in the file.
TEST(Npz, ReadsBeyondFourGigabytes) {
  const ScratchFolder folder;
  const uint64_t hole = 5000000000;
  ZipPart first = zip_part("hole.npy", "", false, 0);
  for (const size_t offset : {18, 22}) patch(first.local, offset, UINT32_MAX, 4);
  for (const size_t offset : {20, 24}) patch(first.central, offset, UINT32_MAX, 4);
  patch(first.local, 28, 20, 2);
  patch(first.central, 30, 20, 2);
  const std::string sizes = number(1, 2) + number(16, 2) + number(hole, 8) + number(hole, 8);
  first.local += sizes, first.central += sizes;

  const Array array = make_array<int32_t>({2}, {42, -42});
  const uint64_t begin = first.local.size() + hole;
  ZipPart second =
      zip_part("after.npy", npy_header(array) + std::string(reinterpret_cast<const char*>(array.bytes().data()), 8),
               false, UINT32_MAX);
  patch(second.central, 30, 12, 2);
  second.central += number(1, 2) + number(8, 2) + number(begin, 8);

  const std::string directory = first.central + second.central;
  const uint64_t offset = begin + second.local.size() + second.data.size();
  folder.write("large.npz", first.local);
  ASSERT_EQ(truncate(folder.path("large.npz").c_str(), static_cast<off_t>(begin)), 0);
  std::ofstream(folder.path("large.npz"), std::ios::app | std::ios::binary)
      << second.local << second.data << directory << end64_records(2, directory.size(), offset)
      << end_record(2, directory.size(), UINT32_MAX);
  const NpzFile file(folder.path("large.npz"));
  expect_equal(file.read("after"), array);
  expect_error(ErrorKind::data, "expected the magic", [&] { file.info("hole"); });
}

}  // namespace
}  // namespace convssm::io
