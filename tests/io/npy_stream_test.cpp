#include "convssm/io/npy_stream.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "../base/scratch_folder.h"
#include "convssm/io/npy.h"
#include "convssm/io/npz.h"
#include "malformed.h"
#include "samples.h"

namespace convssm::io {
namespace {

// In chunks that do not end with elements or rows.
template <typename Out>
void write_in_chunks(Out& out, const Array& array, size_t chunk) {
  for (auto rest = array.bytes(); !rest.empty(); rest = rest.subspan(std::min(chunk, rest.size()))) {
    out.write(rest.first(std::min(chunk, rest.size())));
  }
}

TEST(NpyStream, SameFileAsWrittenWhole) {
  const ScratchFolder folder;
  for (const auto& shape : std::vector<std::vector<int64_t>>{{5, 4, 3}, {7}, {}, {0, 3}}) {
    const Array array = sample(DType::f32, shape);
    NpyStream out(folder.path("a.npy"), DType::f32, shape);
    write_in_chunks(out, array, 7);
    EXPECT_FALSE(std::filesystem::exists(folder.path("a.npy")));
    out.close();
    write_npy(folder.path("b.npy"), array);
    EXPECT_EQ(read_text(folder.path("a.npy")), read_text(folder.path("b.npy")));
    std::filesystem::remove(folder.path("a.npy"));
  }
}

TEST(NpyStream, CountsBytes) {
  const ScratchFolder folder;
  {
    NpyStream out(folder.path("a.npy"), DType::u16, {2, 2});
    out.write(std::vector<uint8_t>(5));
    expect_error(ErrorKind::usage, "shape [2, 2] of u16 has 3 bytes left, got 4",
                 [&] { out.write(std::vector<uint8_t>(4)); });
    expect_error(ErrorKind::usage, "3 bytes are missing", [&] { out.close(); });
    out.write(std::vector<uint8_t>(3));
    out.close();
    expect_error(ErrorKind::usage, "after close()", [&] { out.close(); });
    expect_error(ErrorKind::usage, "after close()", [&] { out.write(std::vector<uint8_t>(0)); });
  }
  EXPECT_EQ(read_npy(folder.path("a.npy")).shape(), (std::vector<int64_t>{2, 2}));
  NpyStream(folder.path("b.npy"), DType::u8, {3});  // never completed
  expect_error(ErrorKind::usage, "negative", [&] { NpyStream(folder.path("c.npy"), DType::u8, {-3}); });
  expect_error(ErrorKind::usage, "bf16", [&] { NpyStream(folder.path("c.npy"), DType::bf16, {3}); });
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1);
}

TEST(NpzStream, SameFileAsWrittenWhole) {
  const ScratchFolder folder;
  const std::vector<NamedArray> arrays = {{"video", sample(DType::u8, {5, 4, 3})},
                                          {"empty", sample(DType::f64, {0, 2})},
                                          {"größe", sample(DType::i64, {})},
                                          {"more", sample(DType::f32, {1000})}};
  NpzStream out(folder.path("a.npz"));
  for (const auto& [name, array] : arrays) {
    out.begin(name, array.dtype(), array.shape());
    write_in_chunks(out, array, 33);
    out.end();
  }
  EXPECT_FALSE(std::filesystem::exists(folder.path("a.npz")));
  out.close();
  write_npz(folder.path("b.npz"), arrays);
  EXPECT_EQ(read_text(folder.path("a.npz")), read_text(folder.path("b.npz")));
  const NpzFile file(folder.path("a.npz"));
  for (const auto& [name, array] : arrays) expect_equal(file.read(name), array);
}

TEST(NpzStream, CountsBytesAndKeepsOrder) {
  const ScratchFolder folder;
  {
    NpzStream out(folder.path("a.npz"));
    expect_error(ErrorKind::usage, "without begin()", [&] { out.write(std::vector<uint8_t>(1)); });
    expect_error(ErrorKind::usage, "without begin()", [&] { out.end(); });
    out.begin("a", DType::u8, {3});
    expect_error(ErrorKind::usage, "before end()", [&] { out.begin("b", DType::u8, {3}); });
    expect_error(ErrorKind::usage, "before end()", [&] { out.close(); });
    expect_error(ErrorKind::usage, "3 bytes are missing", [&] { out.end(); });
    expect_error(ErrorKind::usage, "has 3 bytes left, got 4", [&] { out.write(std::vector<uint8_t>(4)); });
    out.write(std::vector<uint8_t>(3));
    out.end();
    expect_error(ErrorKind::usage, "two arrays are named 'a'", [&] { out.begin("a", DType::u8, {3}); });
    expect_error(ErrorKind::usage, "bf16", [&] { out.begin("c", DType::bf16, {3}); });
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(ZipWriter, PiecesMustFillTheMember) {
  const ScratchFolder folder;
  ZipWriter zip(folder.path("a.zip"));
  expect_error(ErrorKind::usage, "append() without begin()", [&] { zip.append({}); });
  expect_error(ErrorKind::usage, "end() without begin()", [&] { zip.end(); });
  zip.begin("a", 4);
  expect_error(ErrorKind::usage, "add() while member 'a' is open", [&] { zip.add("b", {}, {}, false); });
  expect_error(ErrorKind::usage, "commit() while member 'a' is open", [&] { zip.commit(); });
  expect_error(ErrorKind::usage, "was to have 4 bytes, got 0", [&] { zip.end(); });
  expect_error(ErrorKind::usage, "more are coming", [&] { zip.append(as_bytes("12345")); });
  zip.append(as_bytes("1234"));
  zip.end();
  zip.commit();
  const ZipFile file(open_source(folder.path("a.zip")));
  std::string text(4, ' ');
  const auto reader = file.open(file.members()[0]);
  reader->read(std::as_writable_bytes(std::span(text)));
  reader->finish();  // checks the checksum
  EXPECT_EQ(text, "1234");
}

TEST(NpyRows, AreThoseOfTheWholeArray) {
  const ScratchFolder folder;
  for (const DType dtype : {DType::u8, DType::f32, DType::c128, DType::bool8}) {
    const Array array = sample(dtype, {6, 2, 3});
    write_npy(folder.path("a.npy"), array);
    const size_t row = array.byte_count() / 6;
    for (const auto& [first, count] : {std::pair<size_t, size_t>{0, 6}, {0, 1}, {2, 3}, {5, 1}, {6, 0}, {3, 0}}) {
      const Array rows = read_npy_rows(folder.path("a.npy"), static_cast<int64_t>(first), static_cast<int64_t>(count));
      EXPECT_EQ(rows.shape(), (std::vector<int64_t>{static_cast<int64_t>(count), 2, 3}));
      EXPECT_TRUE(std::ranges::equal(rows.bytes(), array.bytes().subspan(first * row, count * row)));
    }
  }
  const Array big = read_npy_rows(data_path("big_i4.npy"), 1, 1);
  EXPECT_EQ(big.values<int32_t>()[0], read_npy(data_path("big_i4.npy")).values<int32_t>()[3]);
}

TEST(NpyRows, RefusesOthers) {
  const ScratchFolder folder;
  write_npy(folder.path("a.npy"), sample(DType::u8, {6, 2}));
  for (const auto& [first, count] : {std::pair<int64_t, int64_t>{0, 7},
                                     {6, 1},
                                     {-1, 2},
                                     {2, -1},
                                     {7, 0},
                                     {1, std::numeric_limits<int64_t>::max()}}) {
    expect_error(ErrorKind::usage, "has shape [6, 2]: there are no",
                 [&] { read_npy_rows(folder.path("a.npy"), first, count); });
  }
  write_npy(folder.path("b.npy"), sample(DType::u8, {}));
  expect_error(ErrorKind::usage, "has shape []", [&] { read_npy_rows(folder.path("b.npy"), 0, 1); });
  write_npy(folder.path("c.npy"), sample(DType::u8, {0, 2}));
  EXPECT_EQ(read_npy_rows(folder.path("c.npy"), 0, 0).shape(), (std::vector<int64_t>{0, 2}));
  expect_error(ErrorKind::data, "Fortran order", [] { read_npy_rows(data_path("fortran_f4.npy"), 0, 1); });
}

TEST(NpyRows, ReadOnlyWhatIsAsked) {
  const ScratchFolder folder;
  write_npy(folder.path("a.npy"), sample(DType::u8, {64, 1 << 18}));
  reset_largest_allocation();
  read_npy_rows(folder.path("a.npy"), 3, 2);
  EXPECT_LT(largest_allocation(), 1u << 20);
}

}  // namespace
}  // namespace convssm::io
