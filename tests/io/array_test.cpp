#include "convssm/io/array.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>

#include "../base/scratch_folder.h"
#include "convssm/io/layout.h"
#include "convssm/io/source.h"
#include "convssm/io/text.h"
#include "malformed.h"
#include "samples.h"

namespace convssm::io {
namespace {

constexpr int64_t huge = std::numeric_limits<int64_t>::max();

TEST(Array, HoldsValuesOfEveryType) {
  EXPECT_EQ((make_array<float>({2, 2}, {1, 2, 3, 4}).values<float>()[3]), 4);
  EXPECT_EQ((make_array<bool>({2}, {true, false}).dtype()), DType::bool8);
  EXPECT_EQ((make_array<Float16>({1}, {Float16{0x3c00}}).dtype()), DType::f16);
  EXPECT_EQ((make_array<BFloat16>({1}, {BFloat16{0x3f80}}).dtype()), DType::bf16);
  EXPECT_EQ(make_array({3}, std::vector<int64_t>{1, 2, 3}).dtype(), DType::i64);
  EXPECT_EQ(make_array({3}, std::vector<unsigned long long>{1, 2, 3}).dtype(), DType::u64);
  EXPECT_EQ((make_array<std::complex<double>>({}, {{1, 2}}).values<std::complex<double>>()[0].imag()), 2);
}

TEST(Array, EveryTypeHasANameAndASize) {
  std::vector<std::string> names;
  for (const DType dtype : all_dtypes) {
    names.emplace_back(dtype_name(dtype));
    EXPECT_EQ(Array(dtype, {3}).byte_count(), 3 * dtype_size(dtype));
  }
  EXPECT_EQ(names.front(), "bool8");
  EXPECT_EQ(names.back(), "c128");
  EXPECT_EQ(dtype_size(DType::bf16), 2u);
  EXPECT_EQ(dtype_size(DType::c128), 16u);
}

TEST(Array, IsAligned) {
  for (const int64_t size : {0, 1, 63, 65, 4097}) {
    EXPECT_EQ(reinterpret_cast<uintptr_t>(Array(DType::u8, {size}).bytes().data()) % 64, 0u);
  }
}

TEST(Array, CopiesShareTheirBytes) {
  Array a = make_array<int32_t>({2}, {1, 2});
  const Array b = a;
  a.values<int32_t>()[0] = 7;
  EXPECT_EQ(b.values<int32_t>()[0], 7);
  EXPECT_EQ(a.storage(), b.storage());
}

TEST(Array, ScalarsAndEmptyOnes) {
  EXPECT_EQ(Array(DType::f64, {}).element_count(), 1u);
  EXPECT_EQ(Array(DType::f64, {3, 0}).element_count(), 0u);
  EXPECT_EQ(Array().element_count(), 0u);
}

TEST(Array, RefusesWrongTypesAndCounts) {
  const Array array(DType::f32, {2});
  expect_error(ErrorKind::usage, "holds f32, not i32", [&] { array.values<int32_t>(); });
  expect_error(ErrorKind::usage, "[2, 2] does not hold 3 values", [] { make_array<int>({2, 2}, {1, 2, 3}); });
  expect_error(ErrorKind::usage, "negative", [] { Array(DType::u8, {-1}); });
  expect_error(ErrorKind::usage, "2^63", [] { Array(DType::u16, {huge}); });
}

TEST(Array, ProductsThatLeave64BitsAreFound) {
  const auto bytes = [](std::vector<int64_t> shape, size_t item) { return checked_byte_count(shape, item); };
  EXPECT_EQ(bytes({}, 4), 4u);
  EXPECT_EQ(bytes({2, 3}, 4), 24u);
  EXPECT_EQ(bytes({huge}, 1), static_cast<uint64_t>(huge));
  EXPECT_EQ(bytes({huge, 0}, 1), 0u);
  EXPECT_EQ(bytes({huge}, 2), std::nullopt);
  EXPECT_EQ(bytes({0, huge, 2}, 1), std::nullopt);
  EXPECT_EQ(bytes({1LL << 32, 1LL << 32}, 1), std::nullopt);
  EXPECT_EQ(bytes({-1}, 1), std::nullopt);
}

TEST(Array, BoolsBecomeZeroOrOne) {
  Array array(DType::bool8, {3});
  array.bytes()[0] = std::byte{0}, array.bytes()[1] = std::byte{1}, array.bytes()[2] = std::byte{200};
  normalize_bools(array);
  EXPECT_EQ(array.bytes()[2], std::byte{1});
  EXPECT_FALSE(array.values<bool>()[0]);
}

TEST(Layout, FortranOrderOfEverySize) {
  for (const DType dtype : {DType::u8, DType::i16, DType::f32, DType::f64, DType::c128}) {
    const Array fortran = sample(dtype, {2, 3, 1, 4});
    const Array c = from_fortran_order(fortran);
    const size_t item = dtype_size(dtype);
    for (size_t i = 0; i < 2; ++i)
      for (size_t j = 0; j < 3; ++j)
        for (size_t k = 0; k < 4; ++k) {
          const auto expected = fortran.bytes().subspan((i + 2 * (j + 3 * k)) * item, item);
          EXPECT_TRUE(std::ranges::equal(c.bytes().subspan(((i * 3 + j) * 4 + k) * item, item), expected));
        }
  }
}

TEST(Layout, ByteOrderOfComplexNumbersIsThatOfTheirParts) {
  Array array = make_array<std::complex<float>>({1}, {{1, 2}});
  swap_byte_order(array);
  EXPECT_EQ(array.bytes()[0], std::byte{0x3f});
  EXPECT_EQ(array.bytes()[4], std::byte{0x40});
}

TEST(Source, SaysWhatCannotBeOpened) {
  const ScratchFolder folder;
  expect_error(ErrorKind::io, "No such file", [&] { open_source(folder.path("missing")); });
  expect_error(ErrorKind::io, "is a folder", [&] { open_source(folder.path()); });
  expect_error(ErrorKind::io, "not a regular file", [] { open_source("/dev/null"); });
}

TEST(Source, ReadsInsideOnly) {
  const ScratchFolder folder;
  folder.write("digits", "0123456789");
  const auto file = open_source(folder.path("digits"));
  const std::string digits = "0123456789";
  for (const auto& source : {file, memory_source("memory", as_bytes(digits))}) {
    std::string out = "...";
    source->read(7, std::as_writable_bytes(std::span(out)));
    EXPECT_EQ(out, "789");
    EXPECT_EQ(source->size(), 10u);
    expect_error(ErrorKind::data, "only 2 are left", [&] { source->read(8, std::as_writable_bytes(std::span(out))); });
    expect_error(ErrorKind::data, "only 0", [&] { source->read(UINT64_MAX, std::as_writable_bytes(std::span(out))); });
    source->read(UINT64_MAX, {});
  }
}

TEST(Array, GivesChunks) {
  const Array whole = make_array<int16_t>({2, 3}, {1, 2, 3, 4, 5, 6});
  expect_equal(chunk_of(whole, 2, 3, "f"), make_array<int16_t>({3}, {3, 4, 5}));
  expect_equal(chunk_of(whole, 6, 0, "f"), Array(DType::i16, {0}));
  for (const auto& [first, count] : {std::pair<uint64_t, uint64_t>{6, 1}, {7, 0}, {0, 7}, {1, UINT64_MAX}}) {
    expect_error(ErrorKind::data, "'f' has changed since it was opened",
                 [&, first = first, count = count] { chunk_of(whole, first, count, "f"); });
  }
}

TEST(Array, KnowsFloats) {
  for (const DType dtype : all_dtypes) {
    EXPECT_EQ(is_float(dtype), dtype_name(dtype)[0] == 'f' || dtype == DType::bf16) << dtype_name(dtype);
  }
}

TEST(Text, IsCutAndEscaped) {
  EXPECT_EQ(in_quotes("abc"), "'abc'");
  EXPECT_EQ(in_quotes(std::string_view("a\0\x1b\xff", 4)), "'a\\x00\\x1b\\xff'");
  EXPECT_LT(in_quotes(std::string(1 << 20, 'x')).size(), 100u);
}

TEST(Text, Utf8) {
  for (const auto* good : {"", "abc",
                           "gr\xc3\xb6\xc3\x9f"
                           "e",
                           "\xe2\x82\xac", "\xf0\x9f\x98\x80", "\xed\x9f\xbf"}) {
    EXPECT_TRUE(is_utf8(good)) << in_quotes(good);
  }
  for (const auto* bad : {"\xff", "\x80", "\xc3", "\xc0\x80", "\xe0\x80\x80", "\xed\xa0\x80", "\xf0\x80\x80\x80",
                          "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xe2\x82", "\xf0\x9f\x98"}) {
    EXPECT_FALSE(is_utf8(bad)) << in_quotes(bad);
  }
}

TEST(Text, MissingNames) {
  const std::vector<std::string> names = {"weight", "bias", std::string(100000, 'x')};
  expect_error(ErrorKind::data, "did you mean 'weight'?", [&] { fail_missing("f", "wieght", names); });
  expect_error(ErrorKind::data, "3 others: 'weight', 'bias'", [&] { fail_missing("f", "something", names); });
  expect_error(ErrorKind::data, "0 others", [&] { fail_missing("f", "something", {}); });
}

}  // namespace
}  // namespace convssm::io
