// NetCDF files that netCDF4 wrote (data/make_netcdf_data.py): every format and type, any box, what is not followed, damage.
#include "convssm/io/netcdf.h"

#include <gtest/gtest.h>

#include <fstream>
#include <thread>

#include "../base/scratch_folder.h"
#include "convssm/base/file_memory.h"
#include "convssm/io/grid_writer.h"
#include "convssm/io/netcdf_classic.h"
#include "malformed.h"
#include "samples.h"

namespace convssm::io {
namespace {

std::string path_of(const std::string& name) { return data_path("netcdf/" + name + ".nc"); }

double at(const Array& array, size_t i) {
  switch (array.dtype()) {
    case DType::i8:
      return array.values<int8_t>()[i];
    case DType::u8:
      return array.values<uint8_t>()[i];
    case DType::i16:
      return array.values<int16_t>()[i];
    case DType::u16:
      return array.values<uint16_t>()[i];
    case DType::i32:
      return array.values<int32_t>()[i];
    case DType::u32:
      return array.values<uint32_t>()[i];
    case DType::i64:
      return static_cast<double>(array.values<int64_t>()[i]);
    case DType::u64:
      return static_cast<double>(array.values<uint64_t>()[i]);
    case DType::f32:
      return array.values<float>()[i];
    default:
      return array.values<double>()[i];
  }
}

// Every box of a variable of counted values.
void expect_counted(const GridFile& file, const GridVariable& variable) {
  SCOPED_TRACE(file.path() + " " + variable.name);
  ASSERT_EQ(variable.shape, (std::vector<int64_t>{4, 3, 5}));
  for (int64_t t = 0; t < 4; ++t) {
    for (int64_t count = 0; count <= 4 - t; ++count) {
      for (int64_t y = 0; y < 3; ++y) {
        for (int64_t x = 0; x < 5; ++x) {
          const Array box = file.read(variable, std::vector{t, y, x}, std::vector{count, 3 - y, 5 - x});
          ASSERT_EQ(box.shape(), (std::vector{count, 3 - y, 5 - x}));
          size_t i = 0;
          for (int64_t a = t; a < t + count; ++a) {
            for (int64_t b = y; b < 3; ++b) {
              for (int64_t c = x; c < 5; ++c) ASSERT_EQ(at(box, i++), (a * 3 + b) * 5 + c);
            }
          }
        }
      }
    }
  }
}

TEST(Netcdf, EveryFormatAndType) {
  const std::vector<std::string> few = {"f4", "f8", "i1", "i2", "i4"};
  const std::vector<std::string> all = {"f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"};
  for (const auto& [name, kind, types] :
       {std::tuple{"classic", "NetCDF-3", few}, std::tuple{"records", "NetCDF-3", few},
        std::tuple{"offsets", "NetCDF-3", few}, std::tuple{"data64", "NetCDF-3", all},
        std::tuple{"four", "NetCDF-4", all}}) {
    const auto file = open_netcdf(path_of(name));
    EXPECT_EQ(file->kind(), kind);
    EXPECT_EQ(file->attributes().at("title").text, "counted");
    EXPECT_EQ(file->attributes().at("numbers").numbers, (std::vector{1.5, -2.0}));
    ASSERT_EQ(file->variables().size(), types.size() + 2) << "text is left out";
    for (const std::string& type : types) {
      const GridVariable& variable = file->variable(type);
      EXPECT_EQ(variable.dimensions, (std::vector<std::string>{"time", "y", "x"}));
      EXPECT_EQ(variable.attributes.at("units").text, "K");
      EXPECT_EQ(variable.attributes.at("scale_factor").numbers, std::vector{0.5});
      EXPECT_EQ(std::string(type[0] == 'f'   ? "f"
                            : type[0] == 'i' ? "i"
                                             : "u") +
                    std::to_string(8 * (type[1] - '0')),
                dtype_name(variable.dtype));
      expect_counted(*file, variable);
    }
    const Array fixed = file->read(file->variable("fixed"));
    for (size_t i = 0; i < 15; ++i) EXPECT_EQ(at(fixed, i), static_cast<double>(i));
    EXPECT_TRUE(file->variable("scalar").shape.empty());
    EXPECT_EQ(at(file->read(file->variable("scalar")), 0), 7);
  }
}

TEST(Netcdf, GroupsAndChunks) {
  const auto file = open_netcdf(path_of("groups"));
  ASSERT_EQ(file->variables().size(), 2u) << "text and compounds are left out";
  const GridVariable& rate = file->variable("radar/rain/rate");
  EXPECT_EQ(rate.dimensions, (std::vector<std::string>{"time", "radar/rain/x"}));
  EXPECT_EQ(rate.chunks, (std::vector<int64_t>{2, 4}));
  EXPECT_EQ(rate.attributes.at("places").text, "here there");
  const Array box = file->read(rate, std::vector<int64_t>{1, 3}, std::vector<int64_t>{3, 2});
  for (size_t i = 0; i < 6; ++i) EXPECT_EQ(at(box, i), static_cast<double>((1 + i / 2) * 7 + 3 + i % 2));
}

TEST(Netcdf, NothingElseIsOpened) {
  const auto file = open_netcdf(path_of("links"));
  ASSERT_EQ(file->variables().size(), 1u);
  EXPECT_EQ(file->variables()[0].name, "own");
}

TEST(Netcdf, SaysWhatIsWrong) {
  const auto file = open_netcdf(path_of("four"));
  expect_error(ErrorKind::data, "did you mean 'fixed'?", [&] { file->variable("fixd"); });
  expect_error(ErrorKind::data, "there are f4, f8", [&] { file->variable("temperature"); });
  expect_error(ErrorKind::usage, "not inside of 'i4'", [&] {
    file->read(file->variable("i4"), std::vector<int64_t>{4, 0, 0}, std::vector<int64_t>{1, 3, 5});
  });
  expect_error(ErrorKind::usage, "not inside of 'i4'", [&] {
    file->read(file->variable("i4"), std::vector<int64_t>{0, 0}, std::vector<int64_t>{1, 3});
  });
  const auto other = open_netcdf(path_of("groups"));
  expect_error(ErrorKind::usage, "not a variable of this file", [&] { other->read(file->variable("i4")); });
  expect_error(ErrorKind::io, "nowhere.nc", [] { open_netcdf("nowhere.nc"); });
  expect_error(ErrorKind::data, "not a valid NetCDF file", [] { open_netcdf(data_path("little_f4.npy")); });
  set_file_memory_limit(100);
  expect_error(ErrorKind::data, "four.nc", [&] { file->read(file->variable("f8")); });
  set_file_memory_limit(default_file_memory);
}

TEST(Netcdf, FromSeveralThreads) {
  const auto file = open_netcdf(path_of("groups")), other = open_netcdf(path_of("four"));
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int repeat = 0; repeat < 50; ++repeat) {
        EXPECT_EQ(at(file->read(file->variable("radar/rain/rate")), 41), 41);
        EXPECT_EQ(at(other->read(other->variable("f4")), 59), 59);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

std::string bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void read_everything(std::shared_ptr<const Source> source) {
  const auto file = open_classic_netcdf(std::move(source));
  for (const GridVariable& variable : file->variables()) file->read(variable);
}

// libnetcdf alone reads zeros there.
TEST(ClassicNetcdf, FilesThatWereCutOffAreRefused) {
  for (const char* name : {"classic", "records", "offsets", "data64", "one_record"}) {
    SCOPED_TRACE(name);
    std::string whole = bytes_of(path_of(name));
    while (true) {  // what is only padding may go
      const std::string shorter = whole.substr(0, whole.size() - 1);
      try {
        read_everything(memory_source("whole", as_bytes(shorter)));
      } catch (const Error&) {
        break;
      }
      whole = shorter;
    }
    EXPECT_LT(bytes_of(path_of(name)).size() - whole.size(), 4u);
    expect_prefixes_refused(whole, read_everything);
  }
}

TEST(ClassicNetcdf, DamageIsAnErrorAtWorst) {
  for (const char* name : {"records", "data64", "one_record"})
    expect_damage_survived(bytes_of(path_of(name)), read_everything);
}

TEST(ClassicNetcdf, HeadersThatLieAreRefused) {
  const std::string whole =
      bytes_of(path_of("one_record"));  // CDF-1: time (records), x = 3, v(time, x) of bytes, 5 records
  const auto with = [&](size_t at, const std::string& bytes) {
    return std::string(whole).replace(at, bytes.size(), bytes);
  };
  const std::string huge = "\x7f\xff\xff\xff";
  const size_t x = whole.find(std::string("\0\0\0\1x\0\0\0", 8));
  ASSERT_NE(x, std::string::npos);
  for (const Malformed& file :
       {Malformed{"magic", with(3, "\x03"), "not a classic NetCDF file"},
        Malformed{"records", with(4, huge), "it was cut off: 'v' ends at byte"},
        Malformed{"kind of list", with(11, "\x0b"), "a list of kind 11"},
        Malformed{"length of a list", with(12, huge), "a list of 2147483647"},
        Malformed{"length of a name", with(16, huge), "the header is cut off"},
        Malformed{"length of a dimension", with(x + 8, huge), "it was cut off: 'v' ends at byte"}}) {
    expect_refused(file, read_everything);
  }
  const size_t variable = whole.find(std::string("\0\0\0\1v\0\0\0", 8)) + 8;
  expect_refused({"dimension", with(variable + 4, std::string("\0\0\0\7", 4)), "dimension 7 of 2"}, read_everything);
  expect_refused({"rank", with(variable, huge), "the header is cut off"}, read_everything);
  expect_refused({"type", with(whole.size() - 15 - 12, std::string("\0\0\0\xd", 4)), "type 13 is not known"},
                 read_everything);
}

// Frames of 1 MiB, 40 of which are a chunk.
TEST(Netcdf, ChunksThatAreKeptHaveALimitForAllFiles) {
  const ScratchFolder folder;
  const std::string path = folder.path("a.nc");
  GridLayout layout{.dimensions = {{"t", 40}, {"x", 1 << 20}}};
  layout.variables = {{.name = "v", .dtype = DType::u8, .dimensions = {"t", "x"}, .chunks = {40, 1 << 20}}};
  const auto out = open_grid_writer(path, layout);
  for (int t = 0; t < 40; ++t) out->write("v", make_array({1, 1 << 20}, std::vector<uint8_t>(1 << 20, uint8_t(t))));
  out->close();
  const uint64_t before = kept_netcdf_chunks();
  std::vector<std::unique_ptr<GridFile>> files;
  for (uint64_t i = 0; i < 8; ++i) {
    files.push_back(open_netcdf(path));
    EXPECT_EQ(kept_netcdf_chunks(), before + std::min<uint64_t>(i, 6) * (40 << 20)) << "before anything is read";
    for (const int64_t t : {3, 30}) {
      const Array one =
          files.back()->read(files.back()->variable("v"), std::vector<int64_t>{t, 5}, std::vector<int64_t>{1, 1});
      EXPECT_EQ(one.values<uint8_t>()[0], t);
    }
  }
  EXPECT_LE(kept_netcdf_chunks(), uint64_t{256} << 20);
  files.clear();
  EXPECT_EQ(kept_netcdf_chunks(), before);
}

}  // namespace
}  // namespace convssm::io
