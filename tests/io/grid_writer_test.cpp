// Files that are written and read back, in pieces of any size and with any chunks; what ends early, what is refused, full disks. That
// other programs read the same is checked by check_grids.py, where Python has xarray.
#include "convssm/io/grid_writer.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <random>

#include "../base/scratch_folder.h"
#include "convssm/io/netcdf.h"
#include "convssm/io/zarr.h"
#include "malformed.h"
#include "samples.h"

namespace convssm::io {
namespace {

namespace fs = std::filesystem;

struct Format {
  const char* name;
  int zarr_version;
  std::unique_ptr<GridFile> (*open)(const std::string&);
};

const std::vector<Format> kFormats = {
    {"out.nc", 2, open_netcdf}, {"out.zarr", 2, open_zarr}, {"out3.zarr", 3, open_zarr}};

// A box of rows along an axis.
Array rows_of(const Array& whole, size_t axis, int64_t first, int64_t count) {
  std::vector<int64_t> shape = whole.shape();
  size_t parts = 1, row = dtype_size(whole.dtype());
  for (size_t d = 0; d < axis; ++d) parts *= static_cast<size_t>(shape[d]);
  for (size_t d = axis + 1; d < shape.size(); ++d) row *= static_cast<size_t>(shape[d]);
  const auto rows = static_cast<size_t>(shape[axis]);
  shape[axis] = count;
  Array out(whole.dtype(), shape);
  for (size_t part = 0; part < parts; ++part) {
    std::ranges::copy(
        whole.bytes().subspan((part * rows + static_cast<size_t>(first)) * row, static_cast<size_t>(count) * row),
        out.bytes().begin() + static_cast<std::ptrdiff_t>(part * static_cast<size_t>(count) * row));
  }
  return out;
}

void write_in_pieces(GridWriter& out, const std::string& name, const Array& whole, size_t axis, std::mt19937& random) {
  for (int64_t at = 0; at < whole.shape()[axis];) {
    const auto count = std::uniform_int_distribution<int64_t>(1, whole.shape()[axis] - at)(random);
    out.write(name, rows_of(whole, axis, at, count));
    at += count;
  }
}

// What the file holds of a type: NetCDF has no bools.
DType stored_as(const Format& format, DType dtype) {
  return dtype == DType::bool8 && format.open == open_netcdf ? DType::i8 : dtype;
}

bool has_type(const Format& format, DType dtype) {
  if (dtype == DType::bf16 || dtype == DType::c64 || dtype == DType::c128) return false;
  return dtype != DType::f16 || format.open != open_netcdf;
}

class GridWriters : public ::testing::TestWithParam<Format> {
 protected:
  std::string path() const { return folder.path(GetParam().name); }
  std::unique_ptr<GridWriter> create(GridLayout layout) const {
    layout.zarr_version = GetParam().zarr_version;
    return open_grid_writer(path(), layout);
  }
  std::unique_ptr<GridFile> reopen() const { return GetParam().open(path()); }
  ScratchFolder folder;
};

std::string name_of_format(const ::testing::TestParamInfo<Format>& info) {
  return info.param.open == open_netcdf ? "Netcdf" : fmt::format("Zarr{}", info.param.zarr_version);
}
INSTANTIATE_TEST_SUITE_P(All, GridWriters, ::testing::ValuesIn(kFormats), name_of_format);

TEST_P(GridWriters, EveryTypeInPiecesWithAnyChunks) {
  std::mt19937 random(3);
  for (int trial = 0; trial < 3; ++trial) {
    GridLayout layout{.dimensions = {{"time", 7}, {"y", 5}, {"x", 3}}, .records = "time", .compressed = trial % 2 == 0};
    std::vector<NamedArray> arrays;
    for (const DType dtype : all_dtypes) {
      if (!has_type(GetParam(), dtype)) continue;
      const std::string name(dtype_name(dtype));
      GridVariable variable{.name = name, .dtype = dtype, .dimensions = {"time", "y", "x"}};
      if (trial > 0) variable.chunks = {1 + trial, 2 * trial, 3 - trial};
      layout.variables.push_back(variable);
      arrays.push_back({name, sample(dtype, {7, 5, 3})});
    }
    layout.variables.push_back({.name = "scalar", .dtype = DType::i16});
    layout.variables.push_back({.name = "fixed", .dtype = DType::f32, .dimensions = {"y", "x"}});
    layout.variables.push_back({.name = "members", .dtype = DType::f64, .dimensions = {"y", "time"}, .chunks = {2, 3}});
    const Array scalar = make_array<int16_t>({}, {-5}), fixed = sample(DType::f32, {5, 3});
    const Array members = sample(DType::f64, {5, 7});
    const auto out = create(layout);
    for (const auto& [name, array] : arrays) write_in_pieces(*out, name, array, 0, random);
    write_in_pieces(*out, "members", members, 1, random);
    write_in_pieces(*out, "fixed", fixed, 0, random);
    out->write("scalar", scalar);
    EXPECT_FALSE(fs::exists(path()) && trial == 0) << "before close()";
    out->close();
    const auto file = reopen();
    for (const auto& [name, array] : arrays) {
      SCOPED_TRACE(name);
      const GridVariable& variable = file->variable(name);
      EXPECT_EQ(variable.dimensions, (std::vector<std::string>{"time", "y", "x"}));
      EXPECT_EQ(variable.dtype, stored_as(GetParam(), array.dtype()));
      const Array read = file->read(variable);
      EXPECT_EQ(read.shape(), array.shape());
      EXPECT_TRUE(std::ranges::equal(read.bytes(), array.bytes()));
    }
    expect_equal(file->read(file->variable("scalar")), scalar);
    expect_equal(file->read(file->variable("fixed")), fixed);
    expect_equal(file->read(file->variable("members")), members);
    EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), fs::directory_iterator()), 1)
        << "nothing else is left";
  }
}

TEST_P(GridWriters, AttributesOfEveryKind) {
  GridLayout layout{.dimensions = {{"x", 2}}};
  layout.attributes = {{"title", {.text = "a future of größe"}},
                       {"version", {.numbers = {3}, .dtype = DType::i32}},
                       {"limits", {.numbers = {-1.5, 2.25}}}};
  layout.variables = {{.name = "rain",
                       .dtype = DType::i16,
                       .dimensions = {"x"},
                       .attributes = {{"_FillValue", {.numbers = {-999}}},
                                      {"units", {.text = "mm"}},
                                      {"scale_factor", {.numbers = {0.5}, .dtype = DType::f32}}}},
                      {.name = "sst",
                       .dtype = DType::f32,
                       .dimensions = {"x"},
                       .attributes = {{"_FillValue", {.numbers = {std::numeric_limits<double>::quiet_NaN()}}}}}};
  const auto out = create(layout);
  out->write("rain", make_array<int16_t>({2}, {-999, 4}));
  out->write("sst", make_array<float>({2}, {NAN, 4}));
  out->close();
  const auto file = reopen();
  EXPECT_EQ(file->attributes().at("title").text, "a future of größe");
  EXPECT_EQ(file->attributes().at("version").numbers, std::vector<double>{3});
  EXPECT_FALSE(is_float(file->attributes().at("version").dtype));
  EXPECT_EQ(file->attributes().at("limits").numbers, (std::vector<double>{-1.5, 2.25}));
  const GridAttributes& rain = file->variable("rain").attributes;
  EXPECT_EQ(rain.at("_FillValue").numbers, std::vector<double>{-999});
  EXPECT_EQ(rain.at("scale_factor").numbers, std::vector<double>{0.5});
  EXPECT_EQ(rain.at("units").text, "mm");
  EXPECT_TRUE(std::isnan(file->variable("sst").attributes.at("_FillValue").numbers.at(0)));
}

TEST_P(GridWriters, AFileMayEndEarly) {
  GridLayout layout{.dimensions = {{"time", 100}, {"x", 3}}, .records = "time"};
  layout.variables = {{.name = "time", .dtype = DType::i64, .dimensions = {"time"}},
                      {.name = "v", .dtype = DType::f32, .dimensions = {"time", "x"}, .chunks = {4, 2}}};
  for (const int64_t records : {0, 4, 5}) {
    const auto out = create(layout);
    if (records > 0) out->write("v", sample(DType::f32, {records, 3}));
    for (int64_t i = 0; i < records; ++i) out->write("time", make_array<int64_t>({}, {i}));
    expect_error(ErrorKind::usage, fmt::format("expected 100 rows, got {}", records), [&] { out->close(); });
    out->close_early();
    const auto file = reopen();
    EXPECT_EQ(file->variable("v").shape, (std::vector<int64_t>{records, 3}));
    expect_equal(file->read(file->variable("v")), sample(DType::f32, {records, 3}));
    EXPECT_EQ(file->variable("time").shape, std::vector<int64_t>{records});
  }
  const auto uneven = create(layout);
  uneven->write("v", sample(DType::f32, {3}));
  expect_error(ErrorKind::usage, "records came of 'v'", [&] { uneven->close_early(); });
}

TEST_P(GridWriters, WithoutCloseThereIsNothing) {
  {
    const auto out = create({.dimensions = {{"x", 2}}, .variables = {{.name = "v", .dimensions = {"x"}}}});
    out->write("v", sample(DType::f32, {2}));
  }
  EXPECT_TRUE(fs::is_empty(folder.path()));
}

TEST_P(GridWriters, TheFormerFileStaysUntilClose) {
  const auto write = [&](float value, bool close) {
    const auto out =
        create({.dimensions = {{"x", 1}}, .variables = {{.name = fmt::format("v{}", value), .dimensions = {"x"}}}});
    out->write(fmt::format("v{}", value), make_array<float>({1}, {value}));
    if (close) out->close();
  };
  write(1, true);
  write(2, false);
  EXPECT_NE(reopen()->find("v1"), nullptr);
  write(3, true);
  ASSERT_EQ(reopen()->variables().size(), 1u) << "nothing of the former file";
  EXPECT_EQ(reopen()->variables()[0].name, "v3");
}

TEST_P(GridWriters, LargeRecordsAreDivided) {
  const auto out =
      create({.dimensions = {{"time", 2}, {"y", 1500}, {"x", 1500}},
              .records = "time",
              .variables = {{.name = "v", .dimensions = {"time", "y", "x"}}, {.name = "row", .dimensions = {"x"}}}});
  const Array record = sample(DType::f32, {1500, 1500});
  for (int i = 0; i < 2; ++i) out->write("v", record);
  out->write("row", sample(DType::f32, {1500}));
  out->close();
  const auto file = reopen();
  EXPECT_EQ(file->variable("v").chunks, (std::vector<int64_t>{1, 750, 750}));
  const Array read =
      file->read(file->variable("v"), std::vector<int64_t>{1, 0, 0}, std::vector<int64_t>{1, 1500, 1500});
  EXPECT_TRUE(std::ranges::equal(read.bytes(), record.bytes()));
}

TEST_P(GridWriters, SaysWhatIsWrong) {
  const auto refused = [&](const GridLayout& layout, const std::string& part) {
    expect_error(ErrorKind::usage, part, [&] { create(layout); });
  };
  const GridVariable v{.name = "v", .dimensions = {"x"}};
  const auto with = [&](auto edit) {
    GridLayout layout{.dimensions = {{"x", 2}}, .variables = {v}};
    edit(layout, layout.variables[0]);
    return layout;
  };
  refused({.variables = {v}}, "'v' has the unknown dimension 'x'");
  refused({.dimensions = {{"x", 0}}}, "the dimension 'x' has the size 0");
  refused({.dimensions = {{"x", 1}, {"x", 1}}}, "two dimensions are named 'x'");
  refused({.dimensions = {{"x", 1}}, .variables = {v, v}}, "two variables are named 'v'");
  refused({.records = "time"}, "records come along 'time'");
  refused(with([](auto&, auto& it) { it.name = "a/b"; }), "'a/b' is not a name");
  refused(with([](auto&, auto& it) { it.name = ".."; }), "'..' is not a name");
  refused(with([](auto&, auto& it) { it.dtype = DType::c64; }), "complex");
  refused(with([](auto&, auto& it) { it.dtype = DType::bf16; }), "'v' is of bf16");
  refused(with([](auto&, auto& it) { it.shape = {3}; }), "'v' is [3], but its dimensions are [2]");
  refused(with([](auto&, auto& it) { it.chunks = {0}; }), "cannot have chunks of [0]");
  refused(with([](auto&, auto& it) { it.dimensions = {"x", "x"}; }), "twice");
  refused(with([](auto& layout, auto&) { layout.dimensions[0].size = INT64_MAX; }), "more than 2^63 bytes");
  refused(with([](auto&, auto& it) { it.dtype = DType::u8, it.attributes["_FillValue"].numbers = {-1}; }),
          "u8 can hold");
  refused(with([](auto&, auto& it) { it.attributes["a"] = {.numbers = {300}, .dtype = DType::i8}; }), "i8 cannot hold");
  expect_error(ErrorKind::usage, "ends with .nc, .zarr", [] { open_grid_writer("out.npy", {}); });
  const auto out = create(with([](auto&, auto&) {}));
  expect_error(ErrorKind::usage, "no variable 'w'", [&] { out->write("w", sample(DType::f32, {2})); });
  expect_error(ErrorKind::usage, "got [2] of f64", [&] { out->write("v", sample(DType::f64, {2})); });
  expect_error(ErrorKind::usage, "got [1, 2] of f32", [&] { out->write("v", sample(DType::f32, {1, 2})); });
  expect_error(ErrorKind::usage, "2 rows left of 2, got 3", [&] { out->write("v", sample(DType::f32, {3})); });
  expect_error(ErrorKind::usage, "expected 2 rows, got 0", [&] { out->close(); });
  expect_error(ErrorKind::io, "/proc/", [] { open_grid_writer("/proc/nowhere/out.nc", {}); });
}

TEST(GridWriter, ReplacesNothingOfAnotherKind) {
  const ScratchFolder folder;
  folder.write("mine.zarr/letter.txt", "dear");
  folder.write("file.zarr", "text");
  folder.write("folder.nc/file", "text");
  expect_error(ErrorKind::usage, "is no Zarr store", [&] { open_grid_writer(folder.path("mine.zarr"), {}); });
  expect_error(ErrorKind::usage, "is a file", [&] { open_grid_writer(folder.path("file.zarr"), {}); });
  expect_error(ErrorKind::io, "it is a folder", [&] { open_grid_writer(folder.path("folder.nc"), {}); });
}

// In a process of its own: what libhdf5 could not write stays with it.
TEST_P(GridWriters, AFullDiskIsAnErrorWithItsReason) {
  folder.write("report", "");
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{100'000, 100'000};
    setrlimit(RLIMIT_FSIZE, &limit);
    std::string text = "no error";
    try {
      GridLayout layout{.dimensions = {{"time", 8}, {"x", 100'000}}, .records = "time", .compressed = false};
      layout.variables = {{.name = "v", .dimensions = {"time", "x"}}};
      const auto out = create(layout);
      for (int i = 0; i < 8; ++i) out->write("v", sample(DType::f32, {100'000}));
      out->close();
    } catch (const Error& error) {
      text = fmt::format("{} {}", error.what(), error.kind() == ErrorKind::io);
    }
    const auto next = create({.dimensions = {{"x", 2}}, .variables = {{.name = "small", .dimensions = {"x"}}}});
    next->write("small", sample(DType::f32, {2}));
    next->close();
    std::ofstream(folder.path("report")) << text;
    std::exit(0);  // as a program ends
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status)) << status;
  const std::string text = read_text(folder.path("report"));
  EXPECT_NE(text.find("cannot write '" + path() + "': File too large true"), std::string::npos) << text;
  EXPECT_NE(reopen()->find("small"), nullptr) << "what fits is written all the same";
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), fs::directory_iterator()), 2);
}

// The same content for every program that reads such files; check_grids.py holds what it expects.
void write_for_others(GridWriter& out) {
  for (int64_t t = 0; t < 5; ++t) {
    Array field(DType::f32, {3, 4}), packed(DType::i16, {3, 4});
    for (size_t i = 0; i < 12; ++i) {
      field.values<float>()[i] = i == 5 ? NAN : static_cast<float>(280 + t) + static_cast<float>(i) / 8;
      packed.values<int16_t>()[i] = i == 5 ? int16_t{-32768} : static_cast<int16_t>(100 * t + static_cast<int64_t>(i));
    }
    out.write("t2m", field);
    out.write("rain", packed);
    out.write("time", make_array<int64_t>({}, {6 * t}));
  }
  out.write("latitude", make_array<double>({3}, {58, 57.5, 57}));
  out.write("longitude", make_array<double>({4}, {-10, -9.75, -9.5, -9.25}));
  out.write("mask",
            make_array<bool>({3, 4}, {true, false, true, true, false, true, false, false, true, true, true, false}));
  out.write("height", make_array<float>({}, {2}));
}

GridLayout layout_for_others() {
  GridLayout layout{.dimensions = {{"time", 5}, {"latitude", 3}, {"longitude", 4}}, .records = "time"};
  layout.attributes = {{"Conventions", {.text = "CF-1.8"}}, {"members", {.numbers = {4}, .dtype = DType::i32}}};
  const std::vector<std::string> all = {"time", "latitude", "longitude"};
  const GridAttributes time = {{"units", {.text = "hours since 2019-03-01 00:00:00"}},
                               {"calendar", {.text = "standard"}}};
  layout.variables = {{.name = "t2m",
                       .dtype = DType::f32,
                       .dimensions = all,
                       .chunks = {2, 2, 3},
                       .attributes = {{"units", {.text = "K"}}, {"_FillValue", {.numbers = {NAN}}}}},
                      {.name = "rain",
                       .dtype = DType::i16,
                       .dimensions = all,
                       .attributes = {{"_FillValue", {.numbers = {-32768}}},
                                      {"scale_factor", {.numbers = {0.5}}},
                                      {"add_offset", {.numbers = {1}}}}},
                      {.name = "time", .dtype = DType::i64, .dimensions = {"time"}, .attributes = time},
                      {.name = "latitude",
                       .dtype = DType::f64,
                       .dimensions = {"latitude"},
                       .attributes = {{"units", {.text = "degrees_north"}}}},
                      {.name = "longitude",
                       .dtype = DType::f64,
                       .dimensions = {"longitude"},
                       .attributes = {{"units", {.text = "degrees_east"}}}},
                      {.name = "mask", .dtype = DType::bool8, .dimensions = {"latitude", "longitude"}},
                      {.name = "height", .dtype = DType::f32, .attributes = {{"units", {.text = "m"}}}}};
  return layout;
}

TEST_P(GridWriters, OtherProgramsReadTheSame) {
  const auto out = create(layout_for_others());
  write_for_others(*out);
  out->close();
  const std::string script = std::string(CONVSSM_SOURCE_DIR) + "/tests/io/check_grids.py";
  const std::string debian = "/usr/bin/python3";  // which has what tools/setup.sh --writers installs
  const char* chosen = std::getenv("CONVSSM_PYTHON");
  const std::string python = chosen != nullptr ? chosen : std::filesystem::exists(debian) ? debian : "python3";
  const int status = std::system(fmt::format("{} '{}' '{}'", python, script, path()).c_str());
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == 77)
    GTEST_SKIP() << python << " has no xarray, netCDF4, h5py and zarr (tools/setup.sh --writers), or too old a zarr";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace convssm::io
