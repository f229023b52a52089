// HDF5 files that h5py wrote (data/make_episode_data.py): every type, any part, what is not followed, damage.
#include "convssm/io/hdf5.h"

#include <gtest/gtest.h>

#include "../base/scratch_folder.h"
#include "convssm/base/file_memory.h"
#include "convssm/io/array_file.h"
#include "malformed.h"
#include "samples.h"

namespace convssm::io {
namespace {

const std::string kTypes = data_path("types.h5");

TEST(Hdf5, ListsArraysOfNumbersInThisFile) {
  const std::vector<std::string> names = hdf5_names(kTypes);
  for (const char* name : {"packed", "summed", "lzf", "scalar", "types/f8", "types/b1"}) {
    EXPECT_EQ(std::ranges::count(names, name), 1) << name;
  }
  for (const char* name : {"text", "pairs", "elsewhere", "soft", "outside", "virtual", "types"}) {
    EXPECT_EQ(std::ranges::count(names, name), 0) << name;
  }
  const std::vector<std::string> episodes = hdf5_names(data_path("minari.h5"));
  ASSERT_EQ(episodes.size(), 12u);
  EXPECT_EQ(episodes[0], "episode_0/actions");
  EXPECT_EQ(episodes[11], "episode_10/rewards") << "sorted by number";
  EXPECT_EQ(array_names(kTypes), names);
}

TEST(Hdf5, ReadsEveryType) {
  const std::vector<std::pair<std::string, DType>> cases{
      {"b1", DType::bool8}, {"u1", DType::u8},  {"i1", DType::i8},  {"u2", DType::u16}, {"i2", DType::i16},
      {"u4", DType::u32},   {"i4", DType::i32}, {"u8", DType::u64}, {"i8", DType::i64}, {"f2", DType::f32},
      {"f4", DType::f32},   {"f8", DType::f64}, {"big", DType::u16}};
  for (const auto& [name, dtype] : cases) {
    const Hdf5Array array(kTypes, "types/" + name);
    EXPECT_EQ(array.info().dtype, dtype) << name;
    EXPECT_EQ(array.info().shape, (std::vector<int64_t>{2, 3})) << name;
    const Array values = array.read(0, 6);
    for (size_t i = 0; i < 6; ++i) {
      const double want = name == "b1" ? static_cast<double>(i % 2) : static_cast<double>(i);
      const double got = dtype == DType::bool8 ? values.values<bool>()[i]
                         : dtype == DType::u8  ? values.values<uint8_t>()[i]
                         : dtype == DType::i8  ? values.values<int8_t>()[i]
                         : dtype == DType::u16 ? values.values<uint16_t>()[i]
                         : dtype == DType::i16 ? values.values<int16_t>()[i]
                         : dtype == DType::u32 ? values.values<uint32_t>()[i]
                         : dtype == DType::i32 ? values.values<int32_t>()[i]
                         : dtype == DType::u64 ? static_cast<double>(values.values<uint64_t>()[i])
                         : dtype == DType::i64 ? static_cast<double>(values.values<int64_t>()[i])
                         : dtype == DType::f32 ? static_cast<double>(values.values<float>()[i])
                                               : values.values<double>()[i];
      EXPECT_EQ(got, want) << name << " " << i;
    }
  }
  const ArrayFile scalar(kTypes, "scalar");
  EXPECT_TRUE(scalar.info().shape.empty());
  EXPECT_EQ(scalar.read().values<int64_t>()[0], 7);
}

// Any range of elements, of packed and of plain arrays: 7 x 5 x 4 x 3.
TEST(Hdf5, ReadsAnyPart) {
  for (const char* name : {"packed", "summed"}) {
    const ArrayFile array(kTypes, name);
    EXPECT_FALSE(array.whole_only());
    for (uint64_t first = 0; first <= 420; first += 11) {
      for (uint64_t count = 0; count <= 420 - first; count += 1 + count / 3) {
        const Array some = array.read(first, count);
        ASSERT_EQ(some.element_count(), count);
        for (uint64_t i = 0; i < count; ++i)
          ASSERT_EQ(some.values<uint8_t>()[i], (first + i) % 120) << first << " " << count;
      }
    }
    expect_error(ErrorKind::usage, "420 elements", [&] { array.read(419, 2); });
  }
}

TEST(Hdf5, NothingElseIsOpened) {
  for (const char* name : {"elsewhere", "soft", "nothing", "types/none", "text/a", ""}) {
    expect_error(ErrorKind::data, "types.h5", [&] { Hdf5Array(kTypes, name); });
  }
  for (const char* name : {"outside", "virtual", "text", "pairs"}) {
    expect_error(ErrorKind::data, "is not an array of numbers", [&] { Hdf5Array(kTypes, name); });
  }
  expect_error(ErrorKind::data, "write it with gzip", [&] { Hdf5Array(kTypes, "lzf"); });
  expect_error(ErrorKind::data, "did you mean 'packed'", [&] { Hdf5Array(kTypes, "paked"); });
}

TEST(Hdf5, DamagedFilesAreRefusedOrRead) {
  const ScratchFolder folder;
  const std::string good = read_text(data_path("minari.h5"));
  const auto read_everything = [&](const std::string& bytes) {
    folder.write("bad.h5", bytes);
    for (const std::string& name : hdf5_names(folder.path("bad.h5"))) {
      const Hdf5Array array(folder.path("bad.h5"), name);
      array.read(0, checked_byte_count(array.info().shape, 1).value_or(0));
    }
  };
  ::testing::internal::CaptureStderr();
  read_everything(good);
  for (const size_t length : {size_t{0}, size_t{7}, size_t{9}, size_t{100}, good.size() / 2, good.size() - 1}) {
    expect_error(ErrorKind::data, "bad.h5", [&] { read_everything(good.substr(0, length)); });
  }
  for (const std::string& garbage :
       {std::string("\x89HDF\r\n\x1a\n") + std::string(2000, '\x5a'), std::string(99, 'x')}) {
    expect_error(ErrorKind::data, "not a valid HDF5 file", [&] { read_everything(garbage); });
  }
  std::string bad = good;
  for (size_t i = 8; i < bad.size(); i += bad.size() / 150) {
    bad[i] = static_cast<char>(good[i] ^ 0x55);
    try {
      read_everything(bad);
    } catch (const Error&) {
    }
    bad[i] = good[i];
  }
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "") << "libhdf5 is silent";
  expect_error(ErrorKind::io, "No such file", [] { hdf5_names("/nowhere/a.h5"); });
}

TEST(Hdf5, MemoryIsLimited) {
  set_file_memory_limit(200);
  expect_error(ErrorKind::data, "--file-memory", [] { Hdf5Array(kTypes, "summed"); });  // one chunk of 420 bytes
  expect_error(ErrorKind::data, "--file-memory", [] { Hdf5Array(kTypes, "packed").read(0, 400); });
  set_file_memory_limit(default_file_memory);
}

}  // namespace
}  // namespace convssm::io
