#include "convssm/io/safetensors.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "../base/scratch_folder.h"
#include "malformed.h"
#include "samples.h"

namespace convssm::io {
namespace {

std::string with_length(const std::string& header, const std::string& data = "") {
  const uint64_t length = header.size();
  return std::string(reinterpret_cast<const char*>(&length), 8) + header + data;
}

SafetensorsFile open_bytes(const std::string& bytes) {
  return SafetensorsFile(memory_source("memory", as_bytes(bytes)));
}

TEST(Safetensors, EveryTypeSurvives) {
  const ScratchFolder folder;
  const auto arrays = samples_without(DType::c128);
  write_safetensors(folder.path("a.safetensors"), arrays,
                    {{"format", "pt"},
                     {"note",
                      "\"quotes\", \n and gr\xc3\xb6\xc3\x9f"
                      "e"}});
  const SafetensorsFile file(folder.path("a.safetensors"));
  ASSERT_EQ(file.names().size(), arrays.size());
  for (size_t i = 0; i < arrays.size(); ++i) {
    EXPECT_EQ(file.names()[i], arrays[i].name);
    expect_equal(file.read(arrays[i].name), arrays[i].array);
  }
  EXPECT_EQ(file.metadata().at("note"),
            "\"quotes\", \n and gr\xc3\xb6\xc3\x9f"
            "e");
  EXPECT_EQ(file.metadata().size(), 2u);
}

TEST(Safetensors, EdgeCasesSurvive) {
  const ScratchFolder folder;
  const std::vector<NamedArray> arrays = {{"scalar", sample(DType::f64, {})},
                                          {"empty", sample(DType::f32, {3, 0, 2})},
                                          {"", sample(DType::u8, {1})},
                                          {"also empty", sample(DType::i8, {0})},
                                          {"quote\"\\\n\xe2\x82\xac", sample(DType::bf16, {2, 1, 2})}};
  write_safetensors(folder.path("a"), arrays);
  const SafetensorsFile file(folder.path("a"));
  for (const auto& [name, array] : arrays) expect_equal(file.read(name), array);
  EXPECT_TRUE(file.contains(""));
  EXPECT_FALSE(file.contains("b"));
  write_safetensors(folder.path("none"), {});
  EXPECT_TRUE(SafetensorsFile(folder.path("none")).names().empty());
}

TEST(Safetensors, StreamedArraysAreTheSameFileAndOneAtATime) {
  const ScratchFolder folder;
  const auto arrays = samples_without(DType::c128);
  write_safetensors(folder.path("whole"), arrays, {{"a", "b"}});
  std::vector<std::weak_ptr<std::byte[]>> made;
  std::vector<LazyArray> lazy;
  for (const auto& [name, array] : arrays) {
    const auto make = [&made, source = array] {
      for (const auto& before : made) EXPECT_TRUE(before.expired());
      Array copy(source.dtype(), source.shape());
      std::ranges::copy(source.bytes(), copy.bytes().begin());
      made.push_back(copy.storage());
      return copy;
    };
    lazy.push_back({name, {array.dtype(), array.shape()}, make});
  }
  stream_safetensors(folder.path("streamed"), lazy, {{"a", "b"}});
  EXPECT_EQ(read_text(folder.path("streamed")), read_text(folder.path("whole")));
}

TEST(Safetensors, AStreamedArrayOfAnotherShapeLeavesNoFile) {
  const ScratchFolder folder;
  const std::vector<LazyArray> lazy = {{"a", {DType::f32, {2}}, [] { return make_array<float>({3}, {1, 2, 3}); }}};
  expect_error(ErrorKind::usage, "announced as f32 [2], but f32 [3]",
               [&] { stream_safetensors(folder.path("a"), lazy); });
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(Safetensors, DataBeginsAtAMultipleOfEight) {
  const ScratchFolder folder;
  for (const char* name : {"a", "ab", "abc", "abcd", "abcde"}) {
    const std::vector<NamedArray> arrays = {{name, sample(DType::u8, {3})}};
    write_safetensors(folder.path("a"), arrays);
    EXPECT_EQ((std::filesystem::file_size(folder.path("a")) - 3) % 8, 0u);
  }
}

TEST(Safetensors, ReadsWhatThePythonPackageWrites) {
  const SafetensorsFile file(data_path("python.safetensors"));
  EXPECT_EQ(file.names().size(), 15u);
  for (const std::string& code : numpy_codes) {
    if (code != "c16") expect_counted_code(code, file.read(code));
  }
  EXPECT_EQ(file.read("scalar").values<float>()[0], 2.5f);
  EXPECT_EQ(file.info("empty").shape, (std::vector<int64_t>{3, 0}));
  EXPECT_EQ(file.metadata(), (Metadata{{"format", "np"},
                                       {"gr\xc3\xb6\xc3\x9f"
                                        "e",
                                        "1 \"m\"\n"}}));
  EXPECT_TRUE(SafetensorsFile(data_path("none.safetensors")).names().empty());
}

TEST(Safetensors, BoolsOtherThanOneAreTrue) {
  const std::string bytes = with_length(R"({"a":{"dtype":"BOOL","shape":[2],"data_offsets":[0,2]}})", "\x02\xff");
  EXPECT_TRUE(open_bytes(bytes).read("a").values<bool>()[0]);
  EXPECT_EQ(open_bytes(bytes).read("a").bytes()[1], std::byte{1});
}

TEST(Safetensors, AMissingNameIsAnswered) {
  const SafetensorsFile file(data_path("python.safetensors"));
  expect_error(ErrorKind::data, "python.safetensors: holds no array 'scaler'; did you mean 'scalar'?",
               [&] { file.read("scaler"); });
}

TEST(Safetensors, RefusesToWrite) {
  const ScratchFolder folder;
  const auto refuse = [&](const std::string& part, std::vector<NamedArray> arrays, const Metadata& metadata = {}) {
    expect_error(ErrorKind::usage, part, [&] { write_safetensors(folder.path("a"), arrays, metadata); });
  };
  const Array array = sample(DType::u8, {1});
  refuse("two tensors are named 'a'", {{"a", array}, {"a", array}});
  refuse("c128, which the format does not have: convert it to c64", {{"a", sample(DType::c128, {1})}});
  refuse("'__metadata__'", {{"__metadata__", array}});
  refuse("is not UTF-8", {{"\xff", array}});
  refuse("metadata 'k' is not UTF-8", {}, {{"k", "\xff"}});
  refuse("above the format's limit", {}, {{"k", std::string(100'000'000, 'x')}});
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  expect_error(ErrorKind::io, "cannot create", [] { write_safetensors("/nowhere/a", {}); });
}

// Every byte of a stamped file counts, those of the header too.
TEST(Safetensors, AStampTellsOfEveryChange) {
  const ScratchFolder folder;
  const std::string path = folder.path("a");
  const std::vector<NamedArray> arrays = {{"x", sample(DType::f32, {3, 4})}, {"xxh64", sample(DType::u8, {5})}};
  const Metadata metadata = {{"k", R"("xxh64":"0000000000000000")"}};
  write_safetensors(path, arrays, metadata, Stamp::checksum);
  const std::string good = read_text(path);
  SafetensorsFile(path).verify();
  EXPECT_EQ(SafetensorsFile(path).metadata().at("k"), metadata.at("k"));
  for (size_t i = 0; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ 1);
    folder.write("a", bad);
    try {
      const SafetensorsFile file(path);
      if (!file.metadata().contains("xxh64")) continue;  // the name itself was changed: a file without a stamp
      file.verify();
      ADD_FAILURE() << "byte " << i;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::data);
    }
  }
  write_safetensors(path, arrays, metadata);
  SafetensorsFile(path).verify();  // has none
}

// Beyond 2 GiB, without writing as much: the first tensor is a hole in the file.
TEST(Safetensors, ReadsBeyondTwoGigabytes) {
  const ScratchFolder folder;
  const std::string path = folder.path("large");
  const std::string bytes =
      with_length(R"({"hole":{"dtype":"U8","shape":[5000000000],"data_offsets":[0,5000000000]},)"
                  R"("after":{"dtype":"I32","shape":[2],"data_offsets":[5000000000,5000000008]}})");
  folder.write("large", bytes);
  ASSERT_EQ(truncate(path.c_str(), static_cast<off_t>(bytes.size() + 5000000000)), 0);
  const int32_t values[] = {42, -42};
  std::ofstream(path, std::ios::app | std::ios::binary).write(reinterpret_cast<const char*>(values), sizeof values);
  const SafetensorsFile file(path);
  EXPECT_EQ(file.read("after").values<int32_t>()[0], 42);
  EXPECT_EQ(file.read("after").values<int32_t>()[1], -42);
  EXPECT_EQ(file.info("hole").end, 5000000000u);
}

}  // namespace
}  // namespace convssm::io
