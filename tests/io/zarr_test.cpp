// Stores that zarr-python and xarray wrote (tools/golden/make_zarr.py): every element of every array, whole and in boxes; names,
// dimensions and attributes; threads, links, and what is kept of decoded chunks.
#include "convssm/io/zarr.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <limits>
#include <random>
#include <set>
#include <thread>

#include "../base/scratch_folder.h"
#include "convssm/base/file_memory.h"
#include "convssm/io/npz.h"
#include "convssm/io/zarr_cache.h"
#include "convssm/io/zarr_number.h"
#include "malformed.h"
#include "samples.h"

namespace convssm::io {
namespace {

namespace fs = std::filesystem;
using Names = std::vector<std::string>;

std::string store_path(const std::string& name) { return data_path("zarr/" + name + ".zarr"); }

// What is expected of the arrays of a store; where an array is not there, its values are those of its group.
class Expected {
 public:
  explicit Expected(const std::string& store) : file_(data_path("zarr/" + store + ".npz")) {}
  Array of(const std::string& variable) const {
    return file_.read(file_.contains(variable) ? variable : variable.substr(0, variable.rfind('/')));
  }

 private:
  NpzFile file_;
};

// The same box of a whole array, element by element.
Array naive_box(const Array& whole, const std::vector<int64_t>& first, const std::vector<int64_t>& count) {
  Array out(whole.dtype(), count);
  const size_t item = dtype_size(whole.dtype());
  for (uint64_t i = 0; i < out.element_count(); ++i) {
    uint64_t rest = i, from = 0, stride = 1;
    for (size_t d = count.size(); d-- > 0;) {
      from += (rest % static_cast<uint64_t>(count[d]) + static_cast<uint64_t>(first[d])) * stride;
      rest /= static_cast<uint64_t>(count[d]);
      stride *= static_cast<uint64_t>(whole.shape()[d]);
    }
    std::ranges::copy(whole.bytes().subspan(from * item, item), out.bytes().data() + i * item);
  }
  return out;
}

void expect_boxes(const GridFile& file, const GridVariable& variable, const Array& whole, std::mt19937& random) {
  for (int trial = 0; trial < 12; ++trial) {
    std::vector<int64_t> first, count;
    for (const int64_t length : variable.shape) {
      first.push_back(std::uniform_int_distribution<int64_t>(0, length)(random));
      count.push_back(std::uniform_int_distribution<int64_t>(0, length - first.back())(random));
    }
    SCOPED_TRACE(shape_text(first) + " + " + shape_text(count));
    expect_equal(file.read(variable, first, count), naive_box(whole, first, count));
  }
}

// Every array of the store, whole and in boxes; those that cannot be read are named.
size_t expect_store(const std::string& name, const std::set<std::string>& unreadable) {
  const auto file = open_zarr(store_path(name));
  const Expected expected(name);
  std::mt19937 random(7);
  size_t read = 0;
  for (const GridVariable& variable : file->variables()) {
    SCOPED_TRACE(variable.name);
    EXPECT_EQ(variable.dimensions.size(), variable.shape.size());
    EXPECT_EQ(variable.chunks.size(), variable.shape.size());
    if (unreadable.contains(variable.name)) continue;
    const Array whole = expected.of(variable.name);
    EXPECT_EQ(variable.dtype, whole.dtype());
    expect_equal(file->read(variable), whole);
    const auto cold = open_zarr(store_path(name));  // boxes of chunks that were not decoded before
    expect_boxes(*cold, variable, whole, random);
    ++read;
  }
  return read;
}

Names names_of(const GridFile& file) {
  Names names;
  for (const GridVariable& variable : file.variables()) names.push_back(variable.name);
  return names;
}

double only_number(const GridVariable& variable, const std::string& name) {
  const auto at = variable.attributes.find(name);
  if (at == variable.attributes.end() || at->second.numbers.size() != 1) return -12345;
  return at->second.numbers[0];
}

TEST(Zarr, ReadsEveryArrayOfVersion2) {
  EXPECT_EQ(expect_store("v2", {"codecs/unknown", "filters/unknown"}), 65u);
  const auto file = open_zarr(store_path("v2"));
  EXPECT_EQ(file->kind(), "Zarr v2");
  EXPECT_EQ(file->attributes().at("title").text, "version 2");
  EXPECT_EQ(file->attributes().at("count").numbers, std::vector<double>{3});
  EXPECT_EQ(file->attributes().at("levels").numbers, (std::vector<double>{1, 2.5}));
  EXPECT_FALSE(file->attributes().contains("nested"));
  for (const std::string& name : names_of(*file)) EXPECT_FALSE(name.starts_with("others/")) << name;
}

TEST(Zarr, ReadsEveryArrayOfVersion3) {
  EXPECT_EQ(expect_store("v3", {"codecs/unknown", "shards/nested"}), 44u);
  const auto file = open_zarr(store_path("v3"));
  EXPECT_EQ(file->kind(), "Zarr v3");
  EXPECT_EQ(file->attributes().at("title").text, "version 3");
  EXPECT_EQ(file->variable("shards/plain").chunks, (std::vector<int64_t>{2, 4})) << "those inside of a shard";
  EXPECT_EQ(file->variable("names/some").dimensions, (Names{"names/y", "names/some_dim_1"}));
  for (const std::string& name : names_of(*file)) EXPECT_FALSE(name.starts_with("others/")) << name;
}

TEST(Zarr, NamesCodecsThatItDoesNotRead) {
  for (const auto& [store, name, part] :
       {std::tuple{"v2", "codecs/unknown", "'codecs/unknown' is stored with the codec 'bz2', which is not read here"},
        std::tuple{"v2", "filters/unknown", "'fletcher32'"}, std::tuple{"v3", "codecs/unknown", "'bz2'"},
        std::tuple{"v3", "shards/nested", "shards inside of shards"}}) {
    const auto file = open_zarr(store_path(store));
    expect_error(ErrorKind::data, part, [&] { file->read(file->variable(name)); });
  }
}

TEST(Zarr, WalksWithoutConsolidatedMetadata) {
  for (const std::string store : {"walked_v2", "walked_v3"}) {
    SCOPED_TRACE(store);
    EXPECT_EQ(expect_store(store, {}), 3u);
    const auto file = open_zarr(store_path(store) + "/");
    EXPECT_EQ(names_of(*file), (Names{"radar/north/rain", "radar/rain", "top"}));
    EXPECT_EQ(file->attributes().at("title").text, "walked");
    const GridVariable& rain = file->variable("radar/rain");
    EXPECT_EQ(rain.attributes.at("units").text, "mm");
    EXPECT_EQ(rain.dimensions, (Names{"radar/rain_dim_0", "radar/rain_dim_1"}));
    EXPECT_EQ(rain.chunks, (std::vector<int64_t>{2, 3}));
    expect_error(ErrorKind::data, "did you mean 'radar/rain'?", [&] { file->variable("radar/rein"); });
    const auto group = open_zarr(store_path(store) + "/radar");
    EXPECT_EQ(names_of(*group), (Names{"north/rain", "rain"}));
    expect_equal(group->read(group->variable("rain")), file->read(rain));
  }
}

TEST(Zarr, AStoreMayBeOneArray) {
  for (const std::string store : {"array_v2", "array_v3"}) {
    SCOPED_TRACE(store);
    EXPECT_EQ(expect_store(store, {}), 1u);
    const auto file = open_zarr(store_path(store));
    EXPECT_EQ(names_of(*file), Names{"data"});
    EXPECT_EQ(file->variables()[0].attributes.at("units").text, "K");
  }
}

TEST(Zarr, FollowsTheConventionsOfXarray) {
  for (const std::string store : {"xarray_v2", "xarray_v3"}) {
    SCOPED_TRACE(store);
    const auto file = open_zarr(store_path(store));
    const Expected expected(store);
    for (const std::string name : {"t2m", "sst", "mask", "time", "latitude", "longitude", "ocean/sst"}) {
      SCOPED_TRACE(name);
      expect_equal(file->read(file->variable(name)), expected.of(name));
    }
    EXPECT_EQ(file->find("name"), nullptr) << "text";
    EXPECT_EQ(file->attributes().at("title").text, "made by xarray");
    const GridVariable& t2m = file->variable("t2m");
    EXPECT_EQ(t2m.dtype, DType::i16);
    EXPECT_EQ(t2m.dimensions, (Names{"time", "latitude", "longitude"}));
    EXPECT_EQ(t2m.chunks, (std::vector<int64_t>{2, 3, 3}));
    EXPECT_FALSE(t2m.attributes.contains("_ARRAY_DIMENSIONS"));
    EXPECT_FALSE(t2m.attributes.contains("flags"));
    EXPECT_EQ(t2m.attributes.at("valid_range").numbers, (std::vector<double>{-50, 60}));
    EXPECT_EQ(only_number(t2m, "_FillValue"), -32768);
    EXPECT_EQ(only_number(t2m, "steps"), 6);
    EXPECT_EQ(only_number(file->variable("sst"), "_FillValue"), -999);
    EXPECT_TRUE(std::isnan(only_number(file->variable("longitude"), "_FillValue")));
    EXPECT_EQ(file->variable("ocean/sst").dimensions, (Names{"ocean/time", "ocean/latitude", "ocean/longitude"}));
    EXPECT_EQ(file->variable("time").attributes.at("units").text.substr(0, 11), "hours since");

    const double scale = only_number(t2m, "scale_factor"), offset = only_number(t2m, "add_offset");
    const Array raw = file->read(t2m), decoded = expected.of("decoded/t2m");
    for (size_t i = 0; i < raw.element_count(); ++i) {
      const double want = decoded.dtype() == DType::f64 ? decoded.values<double>()[i] : decoded.values<float>()[i];
      const int16_t value = raw.values<int16_t>()[i];
      if (value == -32768)
        EXPECT_TRUE(std::isnan(want));
      else
        EXPECT_NEAR(value * scale + offset, want, 1e-5);
    }
  }
}

const char* const kArray2 = R"({"zarr_format":2,"shape":[4],"chunks":[2],"dtype":"<i2","compressor":null,
  "fill_value":null,"filters":null,"order":"C"})";

std::string array3(const std::string& type, const std::string& fill, const std::string& more = "") {
  return R"({"zarr_format":3,"node_type":"array","shape":[4],"data_type":")" + type + R"(","fill_value":)" + fill +
         more +
         R"(,"chunk_grid":{"name":"regular","configuration":{"chunk_shape":[2]}},"chunk_key_encoding":{"name":"default"},
         "codecs":[{"name":"bytes","configuration":{"endian":"little"}}]})";
}

TEST(Zarr, FillsWithEveryFormOfANumber) {
  const ScratchFolder folder;
  const auto fill = [&](const std::string& type, const std::string& value) {
    folder.write("zarr.json", array3(type, value));
    const auto file = open_zarr(folder.path());
    return file->read(file->variable("data"));
  };
  EXPECT_EQ(fill("bfloat16", "\"0x3fc0\"").values<BFloat16>()[3], BFloat16{0x3fc0});
  EXPECT_EQ(fill("bfloat16", "1.5").values<BFloat16>()[0], BFloat16{0x3fc0});
  EXPECT_EQ(fill("float16", "\"NaN\"").values<Float16>()[0], Float16{0x7e00});
  EXPECT_EQ(fill("float16", "-0.1").values<Float16>()[0], Float16{0xae66});
  EXPECT_TRUE(std::isnan(fill("float32", "\"0x7fc00001\"").values<float>()[2]));
  EXPECT_EQ(fill("float32", "\"0xbf800000\"").values<float>()[2], -1);
  EXPECT_EQ(fill("float64", "\"-Infinity\"").values<double>()[0], -std::numeric_limits<double>::infinity());
  EXPECT_EQ(fill("int64", "-9223372036854775808").values<int64_t>()[1], INT64_MIN);
  EXPECT_EQ(fill("uint64", "18446744073709551615").values<uint64_t>()[1], UINT64_MAX);
  EXPECT_EQ(fill("int8", "-7.0").values<int8_t>()[1], -7);
  EXPECT_EQ(fill("bool", "true").values<bool>()[1], true);
}

TEST(Zarr, RoundsHalvesToTheNearestEven) {
  for (const auto& [value, bits] : {std::pair{0.0, 0x0000},
                                    {-0.0, 0x8000},
                                    {1.0, 0x3c00},
                                    {65504.0, 0x7bff},
                                    {65519.0, 0x7bff},
                                    {65520.0, 0x7c00},
                                    {1 + 0x1p-11, 0x3c00},
                                    {1 + 0x3p-11, 0x3c02},
                                    {0x1p-24, 0x0001},
                                    {0x1p-25, 0x0000},
                                    {0x1.8p-25, 0x0001},
                                    {0x1.ff8p-15, 0x03ff},
                                    {0x1.fffp-15, 0x0400},
                                    {2 - 0x1p-12, 0x4000},
                                    {1.0 / 3, 0x3555}}) {
    std::array<std::byte, 2> bytes{};
    EXPECT_TRUE(store_number(DType::f16, value, bytes));
    EXPECT_EQ(load<uint16_t>(bytes.data()), bits) << value;
  }
}

TEST(Zarr, TakesBareNanAsPythonWritesIt) {
  const ScratchFolder folder;
  folder.write("a/.zarray", kArray2);
  folder.write(".zgroup", R"({"zarr_format":2})");
  folder.write("a/.zattrs",
               R"({"missing_value": NaN, "limits": [-Infinity, Infinity], "text": "NaN \" Infinity", "b": true})");
  const auto file = open_zarr(folder.path());
  const GridAttributes& attributes = file->variable("a").attributes;
  EXPECT_TRUE(std::isnan(attributes.at("missing_value").numbers.at(0)));
  EXPECT_EQ(attributes.at("limits").numbers.at(0), -std::numeric_limits<double>::infinity());
  EXPECT_EQ(attributes.at("text").text, "NaN \" Infinity");
  EXPECT_EQ(attributes.at("b").numbers, std::vector<double>{1});
  EXPECT_FALSE(attributes.contains("_FillValue"));
}

TEST(Zarr, DimensionsBelongToTheGroupWithTheirCoordinates) {
  const ScratchFolder folder;
  const auto named = [](const std::string& name) {
    return array3("int16", "0", R"(,"dimension_names":[")" + name + "\"]");
  };
  folder.write("zarr.json", R"({"zarr_format":3,"node_type":"group"})");
  folder.write("time/zarr.json", named("time"));
  folder.write("radar/zarr.json", R"({"zarr_format":3,"node_type":"group"})");
  folder.write("radar/rain/zarr.json", named("time"));
  folder.write("radar/snow/zarr.json", named("range"));
  const auto file = open_zarr(folder.path());
  EXPECT_EQ(file->variable("radar/rain").dimensions, Names{"time"});
  EXPECT_EQ(file->variable("radar/snow").dimensions, Names{"radar/range"});
}

TEST(Zarr, DecodesXarraysMissingValues) {
  const ScratchFolder folder;
  const auto missing = [&](const std::string& type, const std::string& value) {
    folder.write("zarr.json", array3(type, "0", R"(,"attributes":{"_FillValue":)" + value + "}"));
    return open_zarr(folder.path())->variable("data").attributes.at("_FillValue");
  };
  EXPECT_EQ(missing("float32", "\"AAAAAAA4j8A=\"").numbers, std::vector<double>{-999});
  EXPECT_EQ(missing("float32", "\"AMB5xA==\"").numbers, std::vector<double>{-999});
  EXPECT_TRUE(std::isnan(missing("float64", "\"AAAAAAAA+H8=\"").numbers.at(0)));
  EXPECT_EQ(missing("int16", "-1").numbers, std::vector<double>{-1});
  EXPECT_EQ(missing("float32", "\"none\"").text, "none");
  EXPECT_EQ(missing("float32", "\"====\"").text, "====");
}

TEST(Zarr, ReadsFromSeveralThreads) {
  const auto file = open_zarr(store_path("v3"));
  const Expected expected("v3");
  std::vector<std::thread> threads;
  for (unsigned seed = 0; seed < 4; ++seed) {
    threads.emplace_back([&, seed] {
      std::mt19937 random(seed);
      for (const char* name : {"shards/deep", "codecs/blosc_zstd", "codecs/zstd", "order/turned", "shards/missing"}) {
        expect_boxes(*file, file->variable(name), expected.of(name), random);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(Zarr, KeepsDecodedChunks) {
  const ScratchFolder folder;
  folder.write(".zarray", kArray2);
  folder.write("0", "abcd");
  const auto file = open_zarr(folder.path());
  const GridVariable& data = file->variable("data");
  const std::vector<int64_t> first{0}, one{1}, second{2};
  expect_equal(file->read(data, first, one), make_array<int16_t>({1}, {0x6261}));
  folder.write("0", "damaged");
  expect_equal(file->read(data, first, one), make_array<int16_t>({1}, {0x6261}));
  expect_equal(file->read(data, second, one), make_array<int16_t>({1}, {0}));
  folder.write("1", "efgh");
  expect_equal(file->read(data, second, one), make_array<int16_t>({1}, {0x6665}));
}

TEST(Zarr, TheCacheIsBounded) {
  ZarrCache cache(100);
  int made = 0;
  const auto get = [&](uint64_t number, int64_t size) {
    return cache.get({0, number, false}, [&] { return ++made, std::optional(Array(DType::u8, {size})); });
  };
  get(1, 40), get(2, 40), get(1, 40);
  EXPECT_EQ(made, 2);
  get(3, 40);  // drops 2, which was used before 1
  EXPECT_EQ(cache.bytes(), 80u);
  get(1, 40), get(3, 40);
  EXPECT_EQ(made, 3);
  get(2, 40);
  EXPECT_EQ(made, 4);
  get(4, 500), get(4, 500);  // alone above the bound: it stays, all others go
  EXPECT_EQ(made, 5);
  EXPECT_EQ(cache.bytes(), 500u);
  EXPECT_FALSE(cache.get({0, 4, true}, [] { return std::nullopt; }).has_value()) << "an index is another thing";
  EXPECT_FALSE(cache.get({1, 4, false}, [] { return std::nullopt; }).has_value()) << "of another array";
}

TEST(Zarr, LinksDoNotLeadOutOfTheStore) {
  const ScratchFolder folder;
  folder.write("store/.zgroup", R"({"zarr_format":2})");
  folder.write("store/a/.zarray", kArray2);
  folder.write("store/a/0", "abcd");
  folder.write("outside/.zarray", kArray2);
  folder.write("outside/0", "abcd");
  folder.write("outside_file", "abcd");
  fs::create_directory_symlink(folder.path("store"), folder.path("named"));
  fs::create_directory_symlink(folder.path("outside"), folder.path("store/b"));
  fs::create_directory_symlink("a", folder.path("store/c"));
  fs::create_symlink("0", folder.path("store/a/1"));
  const auto file = open_zarr(folder.path("named"));
  EXPECT_EQ(names_of(*file), (Names{"a", "c"}));
  const auto pairs = make_array<int16_t>({4}, {0x6261, 0x6463, 0x6261, 0x6463});
  expect_equal(file->read(file->variable("a")), pairs);
  expect_equal(file->read(file->variable("c")), pairs);
  for (const std::string target : {"../../outside_file", "/etc/passwd", "../../store_of_another"}) {
    fs::remove(folder.path("store/a/1"));
    folder.write("store_of_another", "abcd");
    fs::create_symlink(target, folder.path("store/a/1"));
    const auto again = open_zarr(folder.path("store"));
    expect_error(ErrorKind::data, "a/1: at byte 0: a link out of the store",
                 [&] { again->read(again->variable("a")); });
  }
  fs::remove(folder.path("store/a/1"));
  fs::create_symlink("nothing", folder.path("store/a/1"));
  const auto again = open_zarr(folder.path("store"));
  expect_error(ErrorKind::data, "a link to nothing", [&] { again->read(again->variable("a")); });
}

TEST(Zarr, WhatIsNoStoreIsSaid) {
  const ScratchFolder folder;
  folder.write("archive.zip", "PK");
  expect_error(ErrorKind::io, "No such file", [&] { open_zarr(folder.path("nothing")); });
  expect_error(ErrorKind::data, "this is a file; unpack it", [&] { open_zarr(folder.path("archive.zip")); });
  expect_error(ErrorKind::data, "no Zarr store", [&] { open_zarr(folder.path()); });
}

TEST(Zarr, BoxesAndVariablesAreChecked) {
  const auto file = open_zarr(store_path("v2")), other = open_zarr(store_path("walked_v2"));
  const GridVariable& variable = file->variable("order/f");
  const std::vector<int64_t> first{3, 3}, count{3, 1}, one{1};
  expect_error(ErrorKind::usage, "is not inside of", [&] { file->read(variable, first, count); });
  expect_error(ErrorKind::usage, "is not inside of", [&] { file->read(variable, one, one); });
  expect_error(ErrorKind::usage, "not a variable of this file", [&] { other->read(variable); });
  GridVariable longer = variable;
  longer.shape[0] = 100;
  expect_error(ErrorKind::usage, "not a variable of this file", [&] { file->read(longer); });
}

TEST(Zarr, MemoryIsLimited) {
  const auto file = open_zarr(store_path("v2"));
  const std::vector<int64_t> first{0, 0}, count{1, 1};
  set_file_memory_limit(300);
  expect_error(ErrorKind::data, "0.0: a chunk of it may take", [&] {  // 384 bytes
    file->read(file->variable("codecs/zlib"), first, count);
  });
  expect_error(ErrorKind::data, "--file-memory", [&] { file->read(file->variable("codecs/zlib")); });
  set_file_memory_limit(5000);
  expect_error(ErrorKind::data, "--file-memory", [&] { open_zarr(store_path("v2")); });
  set_file_memory_limit(default_file_memory);
}

}  // namespace
}  // namespace convssm::io
