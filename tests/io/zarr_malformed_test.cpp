// Damaged Zarr stores, one kind per line, each with the reason that must be given: metadata, names, chunks of every codec, shards.
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "../base/scratch_folder.h"
#include "convssm/base/file_memory.h"
#include "convssm/io/zarr.h"
#include "malformed.h"
#include "samples.h"

namespace convssm::io {
namespace {

using Json = nlohmann::json;
using Files = std::map<std::string, std::string>;
using Edit = std::function<void(Json&)>;

void read_all(const std::string& path) {
  const auto file = open_zarr(path);
  for (const GridVariable& variable : file->variables()) EXPECT_EQ(file->read(variable).shape(), variable.shape);
}

void write_files(const ScratchFolder& folder, const Files& files) {
  std::filesystem::remove_all(folder.path("bad.zarr"));
  for (const auto& [name, text] : files) folder.write("bad.zarr/" + name, text);
}

// Refused as damaged, by the name of the file, for that reason, without allocating what is claimed.
void expect_refused_store(const std::string& kind, const Files& files, const std::string& file,
                          const std::string& reason) {
  SCOPED_TRACE(kind);
  const ScratchFolder folder;
  write_files(folder, files);
  reset_largest_allocation();
  try {
    read_all(folder.path("bad.zarr"));
    ADD_FAILURE() << "was accepted";
  } catch (const Error& error) {
    EXPECT_LT(largest_allocation(), 1u << 20);
    const std::string text = error.what(), name = folder.path("bad.zarr/" + file);
    EXPECT_EQ(error.kind(), ErrorKind::data) << text;
    EXPECT_EQ(text.find(file.empty() ? folder.path("bad.zarr") : name), 0u) << text << "\nexpected: " << name;
    EXPECT_NE(text.find(reason), std::string::npos) << text << "\nexpected: " << reason;
    EXPECT_LT(text.size(), 1000u);
  }
}

struct Case {
  std::string kind;
  Edit edit;
  std::string reason;
};

Edit set(const std::string& pointer, const Json& value) {
  return [=](Json& json) { json[Json::json_pointer(pointer)] = value; };
}

Edit drop(const std::string& key) {
  return [=](Json& json) { json.erase(key); };
}

const Json good2 =
    Json::parse(R"({"zarr_format":2,"shape":[4],"chunks":[2],"dtype":"<i2","compressor":null,"fill_value":0,
  "filters":null,"order":"C"})");

const Json good3 = Json::parse(R"({"zarr_format":3,"node_type":"array","shape":[4],"data_type":"int16","fill_value":0,
  "chunk_grid":{"name":"regular","configuration":{"chunk_shape":[2]}},"chunk_key_encoding":{"name":"default"},
  "codecs":[{"name":"bytes","configuration":{"endian":"little"}}]})");

Json sharded() {
  Json json = good3;
  json["chunk_grid"]["configuration"]["chunk_shape"] = {4};
  const Json bytes = good3["codecs"];
  json["codecs"] = {{{"name", "sharding_indexed"},
                     {"configuration", {{"chunk_shape", {2}}, {"codecs", bytes}, {"index_codecs", bytes}}}}};
  return json;
}

std::string number(uint64_t value) { return {reinterpret_cast<const char*>(&value), sizeof value}; }

std::string shard(uint64_t offset0, uint64_t size0, uint64_t offset1, uint64_t size1,
                  const std::string& data = "abcdefgh") {
  return data + number(offset0) + number(size0) + number(offset1) + number(size1);
}

Files store2(const Json& array) { return {{".zarray", array.dump()}, {"0", "abcd"}, {"1", "efgh"}}; }
Files store3(const Json& array) { return {{"zarr.json", array.dump()}, {"c/0", "abcd"}, {"c/1", "efgh"}}; }
Files store_of_shard(const Json& array, const std::string& bytes) {
  return {{"zarr.json", array.dump()}, {"c/0", bytes}};
}

void expect_cases(const Json& good, const std::function<Files(const Json&)>& store, const std::string& file,
                  const std::vector<Case>& cases) {
  for (const Case& bad : cases) {
    Json json = good;
    bad.edit(json);
    expect_refused_store(bad.kind, store(json), file, bad.reason);
  }
}

TEST(ZarrMalformed, TheUndamagedStoresAreRead) {
  const ScratchFolder folder;
  for (const Files& files : {store2(good2), store3(good3), store_of_shard(sharded(), shard(0, 4, 4, 4)),
                             store_of_shard(sharded(), shard(UINT64_MAX, UINT64_MAX, 4, 4))}) {
    write_files(folder, files);
    read_all(folder.path("bad.zarr"));
  }
}

TEST(ZarrMalformed, MetadataOfVersion2) {
  expect_cases(
      good2, store2, ".zarray",
      {
          {"version", set("/zarr_format", 3), "'zarr_format' of .zarray must be 2"},
          {"no version", drop("zarr_format"), "'zarr_format' of .zarray must be 2"},
          {"no shape", drop("shape"), "expected a list of whole numbers as 'shape'"},
          {"shape is a number", set("/shape", 4), "expected a list of whole numbers as 'shape'"},
          {"negative length", set("/shape", {-4}), "expected whole numbers from 0 to 2^63-1 in 'shape'"},
          {"length with a point", set("/shape", {4.5}), "expected whole numbers"},
          {"length of 2^63", set("/shape", {uint64_t{1} << 63}), "expected whole numbers"},
          {"length as text", set("/shape", {"4"}), "expected whole numbers"},
          {"many dimensions", set("/shape", std::vector<int>(65, 1)), "has more than 64 dimensions"},
          {"no chunks", drop("chunks"), "as 'chunks'"},
          {"chunks of 0", set("/chunks", {0}), "an array of [4] has no chunks of [0]"},
          {"chunks of another rank", set("/chunks", {2, 2}), "has no chunks of [2, 2]"},
          {"chunks of 2^62", set("/chunks", {int64_t{1} << 62}), "no chunk can have the shape"},
          {"no type", drop("dtype"), "expected a string as 'dtype'"},
          {"type of no size", set("/dtype", "<i"), "unknown type '<i'"},
          {"type of 3 bytes", set("/dtype", "<i3"), "unknown type '<i3'"},
          {"long type", set("/dtype", std::string(5000, 'f')), "unknown type 'ffff"},
          {"empty type", set("/dtype", ""), "unknown type ''"},
          {"no order", drop("order"), "expected a string as 'order'"},
          {"order", set("/order", "A"), "'order' must be C or F, found 'A'"},
          {"separator", set("/dimension_separator", ".."), "'dimension_separator' must be . or /, found '..'"},
          {"separator is a number", set("/dimension_separator", 1), "expected a string as 'dimension_separator'"},
          {"compressor is text", set("/compressor", "zlib"), "expected an object as codec"},
          {"compressor has no name", set("/compressor", Json::object()), "expected a string as 'id'"},
          {"filters are text", set("/filters", "delta"), "expected a list as 'filters'"},
          {"filter has no type", set("/filters", {{{"id", "delta"}}}), "expected a string as 'dtype'"},
          {"shuffle of 0", set("/filters", {{{"id", "shuffle"}, {"elementsize", 0}}}),
           "must be a number from 1 to 4096"},
          {"shuffle of -1", set("/filters", {{{"id", "shuffle"}, {"elementsize", -1}}}), "from 1 to 4096"},
          {"delta of an unknown type", set("/filters", {{{"id", "delta"}, {"dtype", "<i3"}}}), "unknown type '<i3'"},
          {"fill value is text", set("/fill_value", "none"), "'fill_value' is not a number that i16 can hold"},
          {"fill value is a list", set("/fill_value", {1}), "'fill_value' is not"},
          {"fill value is too large", set("/fill_value", 32768), "'fill_value' is not"},
          {"fill value is too small", set("/fill_value", -32769), "'fill_value' is not"},
          {"fill value has a point", set("/fill_value", 0.5), "'fill_value' is not"},
          {"fill value is NaN", set("/fill_value", "NaN"), "'fill_value' is not"},
          {"fill value is 2^64", set("/fill_value", 0x1p64), "'fill_value' is not"},
      });
  expect_cases(good2, store2, "",
               {{"a shape that no array has", set("/shape", {int64_t{1} << 62}), "which no array can have"},
                {"an array above the limit", set("/shape", {int64_t{1} << 40}), "--file-memory"},
                {"two compressors", set("/filters", {{{"id", "zlib"}}, {{"id", "zstd"}}}), "is compressed twice"},
                {"numbers behind bytes", set("/filters", {{{"id", "shuffle"}}, {{"id", "delta"}, {"dtype", "<i2"}}}),
                 "has the filter 'delta' behind one of bytes"},
                {"filter of another type", set("/filters", {{{"id", "delta"}, {"dtype", "<i4"}}}), "between types"},
                {"filter of floats to whole numbers",
                 set("/filters", {{{"id", "delta"}, {"dtype", "<i2"}, {"astype", "<f4"}}}), "between types"}});
  Json scaled = good2;
  scaled["dtype"] = "<f4", scaled["filters"] = {{{"id", "fixedscaleoffset"}, {"dtype", "<f4"}, {"offset", 0}}};
  expect_refused_store("filter has no scale", store2(scaled), ".zarray", "expected a number as 'scale'");
  Json shuffled = good2;
  shuffled["filters"] = {{{"id", "shuffle"}, {"elementsize", 3}}};
  expect_refused_store("elements that do not fit", store2(shuffled), "0", "4 bytes are not elements of 3");
  Json wide = good2;
  wide["shape"] = {10}, wide["chunks"] = {int64_t{1} << 32};
  expect_refused_store("a chunk above the limit", store2(wide), "0", "--file-memory");
  wide["chunks"] = {int64_t{1} << 28}, wide["compressor"] = {{"id", "zlib"}};
  expect_refused_store("a chunk that cannot hold it", store2(wide), "0",
                       "4 compressed bytes cannot hold the 536870912");
}

TEST(ZarrMalformed, Json) {
  const std::string deep = R"({"a":)" + std::string(200, '[') + std::string(200, ']') + "}";
  for (const auto& [kind, text, reason] :
       {std::tuple{"no JSON", std::string("x"), "not valid JSON"}, std::tuple{"empty", std::string(), "not valid JSON"},
        std::tuple{"a list", std::string("[]"), "must be a JSON object"}, std::tuple{"deep", deep, "levels of nesting"},
        std::tuple{"cut", good2.dump().substr(0, 20), "not valid JSON"}}) {
    for (const std::string file : {".zarray", "zarr.json", ".zmetadata"}) {
      expect_refused_store(kind, {{file, text}}, file, reason);
    }
    expect_refused_store(kind, {{".zgroup", "{}"}, {"a/.zarray", good2.dump()}, {"a/.zattrs", text}}, "a/.zattrs",
                         reason);
  }
}

TEST(ZarrMalformed, MetadataOfVersion3) {
  const auto codecs = [](const Json& list) { return set("/codecs", list); };
  const Json bytes = good3["codecs"][0];
  const Json turned = {{"name", "transpose"}, {"configuration", {{"order", {0}}}}};
  expect_cases(
      good3, store3, "zarr.json",
      {
          {"version", set("/zarr_format", 2), "'zarr_format' of zarr.json must be 3"},
          {"no kind", drop("node_type"), "expected a string as 'node_type'"},
          {"kind", set("/node_type", "table"), "'node_type' must be array or group, found 'table'"},
          {"no shape", drop("shape"), "as 'shape'"},
          {"no type", drop("data_type"), "'data_type' is missing"},
          {"type is a number", set("/data_type", 7), "expected an object with a name as data_type"},
          {"no grid", drop("chunk_grid"), "expected an object as 'chunk_grid'"},
          {"grid has no name", set("/chunk_grid", Json::object()), "expected a string as 'name'"},
          {"grid has no chunks", set("/chunk_grid", {{"name", "regular"}}), "as 'chunk_shape'"},
          {"chunks of 0", set("/chunk_grid/configuration/chunk_shape", {0}), "has no chunks of [0]"},
          {"chunks of 2^62", set("/chunk_grid/configuration/chunk_shape", {int64_t{1} << 62}), "no chunk can have"},
          {"configuration is a list", set("/chunk_grid/configuration", {1}),
           "the configuration of chunk_grid is no object"},
          {"no names of chunks", drop("chunk_key_encoding"), "'chunk_key_encoding' is missing"},
          {"separator", set("/chunk_key_encoding/configuration", {{"separator", "../"}}), "'separator' must be . or /"},
          {"no codecs", drop("codecs"), "expected a list of codecs as 'codecs'"},
          {"codecs are empty", codecs(Json::array()), "its codecs do not end in bytes"},
          {"many codecs", codecs(std::vector<Json>(33, bytes)), "more than 32 codecs"},
          {"codec is a number", codecs({1}), "expected an object with a name as codec"},
          {"bytes twice", codecs({bytes, bytes}), "its codecs make bytes of it twice"},
          {"bytes without order", codecs({"bytes"}), "must say the byte order"},
          {"byte order", set("/codecs/0/configuration/endian", "middle"), "'endian' must be little or big"},
          {"transpose after bytes", codecs({bytes, turned}), "'transpose' must come before 'bytes'"},
          {"transpose of another rank",
           codecs({{{"name", "transpose"}, {"configuration", {{"order", {0, 1}}}}}, bytes}),
           "the order [0, 1] is not one of 1"},
          {"transpose to the same axis", codecs({{{"name", "transpose"}, {"configuration", {{"order", {1}}}}}, bytes}),
           "the order [1] is not one of 1"},
          {"attributes are text", set("/attributes", "x"), "expected an object as 'attributes'"},
          {"fill value", set("/fill_value", "0xfffff"), "'fill_value' is not a number that i16 can hold"},
          {"fill value is no hex", set("/fill_value", "0xg"), "'fill_value' is not"},
          {"fill value is empty hex", set("/fill_value", "0x"), "'fill_value' is not"},
          {"names of dimensions", set("/dimension_names", {"a", "b"}), "expected 1 names as 'dimension_names'"},
      });
  expect_cases(
      good3, store3, "",
      {{"grid", set("/chunk_grid/name", "rectilinear"), "has the chunk grid 'rectilinear'"},
       {"names of chunks", set("/chunk_key_encoding/name", "hash"), "names of chunks of an unknown kind, 'hash'"},
       {"extension", set("/twist", {{"a", 1}}), "has the extension 'twist'"},
       {"transformer", set("/storage_transformers", {{{"name", "x"}}}), "has the extension 'storage_transformers'"},
       {"codec", codecs({bytes, "zfpy"}), "is stored with the codec 'zfpy'"}});
}

TEST(ZarrMalformed, MetadataOfShards) {
  const std::string at = "/codecs/0/configuration/";
  const auto store = [](const Json& json) { return store_of_shard(json, shard(0, 4, 4, 4)); };
  expect_cases(sharded(), store, "zarr.json",
               {{"no chunks", set(at + "chunk_shape", nullptr), "as 'chunk_shape'"},
                {"chunks that do not fit", set(at + "chunk_shape", {3}), "shards of [4] are not made of chunks of [3]"},
                {"chunks of 0", set(at + "chunk_shape", {0}), "are not made of chunks of [0]"},
                {"chunks of another rank", set(at + "chunk_shape", {2, 2}), "are not made of chunks of [2, 2]"},
                {"place of the index", set(at + "index_location", "middle"), "'index_location' must be start or end"},
                {"no codecs", set(at + "codecs", nullptr), "expected a list of codecs as 'codecs'"},
                {"no codecs of the index", set(at + "index_codecs", nullptr), "as 'index_codecs'"},
                {"index codecs are empty", set(at + "index_codecs", Json::array()), "do not end in bytes"}});
  Json packed = sharded();
  packed["codecs"][0]["configuration"]["index_codecs"].push_back("gzip");
  expect_refused_store("compressed index", store(packed), "", "has compressed indexes of shards");
  Json large = sharded();
  large["chunk_grid"]["configuration"]["chunk_shape"] = {int64_t{1} << 40};
  expect_refused_store("an index larger than the shard", store(large), "c/0",
                       "an index of 8796093022208 bytes is expected");
}

TEST(ZarrMalformed, Shards) {
  for (const auto& [kind, bytes, reason] :
       {std::tuple{"empty", std::string(), "an index of 32 bytes is expected, found 0"},
        std::tuple{"shorter than its index", std::string(31, '\0'), "an index of 32 bytes is expected, found 31"},
        std::tuple{"chunk beyond the end", shard(37, 4, 4, 4),
                   "chunk 0 of the shard has 4 bytes from 37 on, but the file has 40"},
        std::tuple{"offset of 2^64-2", shard(UINT64_MAX - 1, 4, 4, 4), "chunk 0 of the shard has 4 bytes"},
        std::tuple{"size that wraps around", shard(8, UINT64_MAX - 4, 4, 4), "chunk 0 of the shard"},
        std::tuple{"half not there", shard(0, 4, UINT64_MAX, 4), "chunk 1 of the shard"},
        std::tuple{"chunk too short", shard(0, 3, 4, 4), "a chunk of 4 bytes is expected, found 3"},
        std::tuple{"chunk too long", shard(0, 4, 4, 5), "a chunk of 4 bytes is expected, found 5"}}) {
    expect_refused_store(kind, store_of_shard(sharded(), bytes), "c/0", reason);
  }
  Json summed = sharded();
  summed["codecs"][0]["configuration"]["index_codecs"].push_back("crc32c");
  expect_refused_store("checksum of the index", store_of_shard(summed, shard(0, 4, 4, 4) + "1234"), "c/0",
                       "the checksum is");
}

// Keys from consolidated metadata become paths of files.
TEST(ZarrMalformed, NamesStayInTheStore) {
  const std::string long_name(5000, 'a');
  for (const std::string& name :
       {std::string("../a"), std::string("/a"), std::string("a//b"), std::string("a/../../b"), std::string("."),
        std::string("a/."), std::string("a\nb"), std::string("a/"), long_name}) {
    const Json group = {{"zarr_format", 3},
                        {"node_type", "group"},
                        {"consolidated_metadata", {{"kind", "inline"}, {"metadata", {{name, good3}}}}}};
    expect_refused_store("version 3", {{"zarr.json", group.dump()}, {"a", "x"}}, "zarr.json",
                         "is not the name of an array");
    const Json flat = {{"metadata", {{name + "/.zarray", good2}}}};
    expect_refused_store("version 2", {{".zmetadata", flat.dump()}}, ".zmetadata", "is not the name of an array");
  }
  expect_refused_store("walked", {{".zgroup", "{}"}, {"a\x1b[2Jb/.zarray", good2.dump()}}, "",
                       "is not the name of an array");
}

TEST(ZarrMalformed, ConsolidatedMetadata) {
  const Json root = {{"zarr_format", 3}, {"node_type", "group"}};
  const auto v3 = [&](const Json& consolidated) {
    Json json = root;
    json["consolidated_metadata"] = consolidated;
    return Files{{"zarr.json", json.dump()}};
  };
  expect_refused_store("text", v3("x"), "zarr.json", "expected an object as 'consolidated_metadata'");
  expect_refused_store("no metadata", v3(Json::object()), "zarr.json", "expected an object as 'metadata'");
  expect_refused_store("node is text", v3({{"metadata", {{"a", "x"}}}}), "zarr.json",
                       "'a': the metadata must be a JSON object");
  expect_refused_store("node", v3({{"metadata", {{"a", Json::object()}}}}), "zarr.json", "'a': 'zarr_format'");
  expect_refused_store("version 2, no metadata", {{".zmetadata", "{}"}}, ".zmetadata",
                       "expected an object as 'metadata'");
  expect_refused_store("version 2, array is text", {{".zmetadata", R"({"metadata":{"a/.zarray":"x"}})"}}, ".zmetadata",
                       "'a': the metadata must be a JSON object");
  const Json attributes = {{"metadata", {{"a/.zarray", good2}, {"a/.zattrs", 1}}}};
  expect_refused_store("version 2, attributes", {{".zmetadata", attributes.dump()}}, ".zmetadata", "are no object");
}

TEST(ZarrMalformed, GroupsAreNotNestedForEver) {
  std::string folder;
  Files files{{".zgroup", "{}"}};
  for (int i = 0; i < 40; ++i) files.emplace((folder += "g/") + ".zgroup", "{}");
  const ScratchFolder scratch;
  write_files(scratch, files);
  expect_error(ErrorKind::data, "nested more than 32 deep", [&] { open_zarr(scratch.path("bad.zarr")); });
  std::filesystem::remove_all(scratch.path("bad.zarr/g"));
  std::filesystem::create_directory_symlink(".", scratch.path("bad.zarr/loop"));
  expect_error(ErrorKind::data, "nested more than 32 deep", [&] { open_zarr(scratch.path("bad.zarr")); });
}

// An array of a golden store alone: its metadata, and the bytes of its first chunk or shard.
struct Packed {
  std::string name;
  bool v3;
  Json metadata;
  std::string key, chunk;
};

std::vector<Packed> packed_arrays() {
  std::vector<Packed> arrays;
  const Json v2 = Json::parse(read_text(data_path("zarr/v2.zarr/.zmetadata")))["metadata"];
  for (const char* name : {"codecs/zlib", "codecs/gzip", "codecs/zstd", "codecs/zstd_sum", "codecs/lz4",
                           "codecs/blosc_blosclz_1", "codecs/blosc_lz4_2", "codecs/blosc_lz4hc_1",
                           "codecs/blosc_zlib_1", "codecs/blosc_zstd_1", "codecs/blosc_plain", "filters/shuffle"}) {
    const std::string key = v2[std::string(name) + "/.zarray"]["shape"].size() == 1 ? "0" : "0.0";
    const std::string path = data_path(std::string("zarr/v2.zarr/") + name + "/" + key);
    arrays.push_back({name, false, v2[std::string(name) + "/.zarray"], key, read_text(path)});
  }
  const Json v3 = Json::parse(read_text(data_path("zarr/v3.zarr/zarr.json")))["consolidated_metadata"]["metadata"];
  for (const char* name : {"codecs/crc32c", "codecs/gzip_crc32c", "codecs/crc32c_zstd", "codecs/shuffle_zlib",
                           "shards/blosc_crc", "shards/index_start"}) {
    const std::string path = data_path(std::string("zarr/v3.zarr/") + name + "/c/0/0");
    arrays.push_back({name, true, v3[name], "c/0/0", read_text(path)});
  }
  return arrays;
}

class PackedStore {
 public:
  explicit PackedStore(const Packed& array) : array_(array) { write(array.metadata, array.chunk); }

  void write(const Json& metadata, const std::string& chunk) const {
    folder_.write(array_.v3 ? "zarr.json" : ".zarray", metadata.dump());
    folder_.write(array_.key, chunk);
  }
  void read() const {
    const auto file = open_zarr(folder_.path());
    const GridVariable& data = file->variable("data");
    file->read(data, std::vector<int64_t>(data.shape.size(), 0), data.chunks);
  }
  std::string chunk_path() const { return folder_.path(array_.key); }

 private:
  const Packed& array_;
  ScratchFolder folder_;
};

TEST(ZarrMalformed, PiecesOfChunksAreRefused) {
  for (const Packed& array : packed_arrays()) {
    SCOPED_TRACE(array.name);
    const PackedStore store(array);
    store.read();
    // Of a shard the first chunk is read: it may be whole where others are not.
    const bool index_first = array.name == "shards/index_start";
    for (size_t length = 0; length < (index_first ? 68 : array.chunk.size()); ++length) {
      store.write(array.metadata, array.chunk.substr(0, length));
      expect_error(ErrorKind::data, store.chunk_path(), [&] { store.read(); });
    }
  }
}

TEST(ZarrMalformed, BytesAfterChunksAreRefused) {
  for (const Packed& array : packed_arrays()) {
    if (array.name.starts_with("shards/")) continue;
    SCOPED_TRACE(array.name);
    const PackedStore store(array);
    store.write(array.metadata, array.chunk + "x");
    expect_error(ErrorKind::data, store.chunk_path(), [&] { store.read(); });
  }
}

// What the headers of compressed data say of their size is compared with the metadata.
TEST(ZarrMalformed, ChunksOfAnotherSizeAreRefused) {
  for (const Packed& array : packed_arrays()) {
    if (array.name.starts_with("shards/")) continue;
    SCOPED_TRACE(array.name);
    const PackedStore store(array);
    for (const int change : {-1, 1}) {
      Json metadata = array.metadata;
      Json& length = array.v3 ? metadata["chunk_grid"]["configuration"]["chunk_shape"][0] : metadata["chunks"][0];
      length = length.get<int>() + change;
      store.write(metadata, array.chunk);
      expect_error(ErrorKind::data, store.chunk_path(), [&] { store.read(); });
    }
  }
}

TEST(ZarrMalformed, DamageIsSurvived) {
  for (const Packed& array : packed_arrays()) {
    SCOPED_TRACE(array.name);
    const PackedStore store(array);
    std::string chunk = array.chunk;
    for (char& byte : chunk) {
      const char before = byte;
      for (const int damage : {0x01, 0xff}) {
        byte = static_cast<char>(before ^ damage);
        store.write(array.metadata, chunk);
        try {
          store.read();
        } catch (const Error& error) {
          EXPECT_EQ(error.kind(), ErrorKind::data) << error.what();
        }
      }
      byte = before;
    }
  }
}

}  // namespace
}  // namespace convssm::io
