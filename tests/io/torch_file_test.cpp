// Files that PyTorch wrote (tests/io/data/make_torch_data.py), and archives as newer versions write them.
#include "convssm/io/torch_file.h"

#include <gtest/gtest.h>

#include "malformed.h"
#include "pickle_parts.h"
#include "samples.h"

namespace convssm::io {
namespace {

using Shape = std::vector<int64_t>;

TorchFile open_bytes(const std::string& bytes) { return TorchFile(memory_source("made.pth", as_bytes(bytes))); }

void expect_floats(const TorchFile& file, const std::string& name, const Shape& shape,
                   const std::vector<float>& values) {
  SCOPED_TRACE(name);
  const Array array = file.read(name);
  EXPECT_EQ(array.shape(), shape);
  EXPECT_TRUE(std::ranges::equal(array.values<float>(), values));
}

TEST(TorchFile, AllTypes) {
  const TorchFile file(data_path("torch_types.pth"));
  EXPECT_EQ(file.names(), (std::vector<std::string>{"b1", "u1", "i1", "i2", "i4", "i8", "f2", "bf16", "f4", "f8"}));
  for (const std::string& name : file.names()) {
    if (name != "bf16") expect_counted_code(name, file.read(name));
  }
  const std::vector<BFloat16> expected = {{0xc000}, {0xbf80}, {0x0000}, {0x3f80}, {0x4000}, {0x4040}};  // -2 ... 3
  EXPECT_TRUE(std::ranges::equal(file.read("bf16").values<BFloat16>(), expected));
}

TEST(TorchFile, ViewsOfOneStorage) {
  const TorchFile file(data_path("torch_views.pth"));
  std::vector<float> base(24), transposed, permuted;
  for (size_t i = 0; i < 24; ++i) base[i] = static_cast<float>(i);
  for (size_t j = 0; j < 6; ++j)
    for (size_t i = 0; i < 4; ++i) transposed.push_back(base[i * 6 + j]);
  for (size_t k = 0; k < 4; ++k)
    for (size_t i = 0; i < 2; ++i)
      for (size_t j = 0; j < 3; ++j) permuted.push_back(base[i * 12 + j * 4 + k]);
  expect_floats(file, "base", {24}, base);
  expect_floats(file, "transposed", {6, 4}, transposed);
  expect_floats(file, "window", {2, 3}, {8, 9, 10, 14, 15, 16});
  expect_floats(file, "steps", {5}, {1, 6, 11, 16, 21});
  expect_floats(file, "permuted", {4, 2, 3}, permuted);
  expect_floats(file, "expanded", {2, 3}, {3, 3, 3, 3, 3, 3});
  expect_floats(file, "element", {}, {7});
  expect_floats(file, "none", {0}, {});
  expect_floats(file, "lone", {1, 2}, {4, 5});
  EXPECT_EQ(file.info("transposed").strides, (Shape{1, 6}));
  EXPECT_EQ(file.info("window").offset, 8);
  EXPECT_EQ(file.info("window").storage, file.info("base").storage);
}

TEST(TorchFile, StateDictsPlainAndNested) {
  for (const std::string name : {"torch_module.pth", "torch_checkpoint.pth"}) {
    SCOPED_TRACE(name);
    const TorchFile file(data_path(name));
    EXPECT_EQ(file.names(), (std::vector<std::string>{"0.weight", "0.bias", "1.weight", "1.bias", "1.running_mean",
                                                      "1.running_var", "1.num_batches_tracked"}));
    expect_floats(file, "0.weight", {3, 2}, {0, 1, 2, 3, 4, 5});
    expect_floats(file, "1.running_var", {3}, {1, 1, 1});
    EXPECT_EQ(file.read("1.num_batches_tracked").values<int64_t>()[0], 7);
    EXPECT_EQ(file.read("1.num_batches_tracked").shape(), Shape{});
  }
  expect_floats(TorchFile(data_path("torch_parameters.pth")), "w", {2}, {1, 2});
  expect_floats(TorchFile(data_path("torch_protocol_4.pth")), "w", {2, 3}, {-2, -1, 0, 1, 2, 3});
}

TEST(TorchFile, MissingNames) {
  const TorchFile file(data_path("torch_module.pth"));
  EXPECT_TRUE(file.contains("0.bias"));
  EXPECT_FALSE(file.contains("0.bia"));
  expect_error(ErrorKind::data, "0.bias", [&] { file.read("0.bia"); });
  expect_error(ErrorKind::io, "no_such.pth", [] { TorchFile missing("no_such.pth"); });
}

TEST(TorchFile, MembersOfNewerVersions) {
  const std::string pickle = dict_of(tensor_of(storage_of("FloatStorage", "0", 4), 0, {4}, {1}));
  const ZipContent content = {{"weights/data.pkl", pickle},
                              {"weights/.format_version", "1"},
                              {"weights/.storage_alignment", "64"},
                              {"weights/byteorder", "little"},
                              {"weights/data/0", std::string(16, '\0')},
                              {"weights/version", "3\n"},
                              {"weights/.data/serialization_id", "0123456789"}};
  const std::string bytes = zip_of(content);
  expect_floats(open_bytes(bytes), "w", {4}, {0, 0, 0, 0});
}

TEST(TorchFile, AnyStrideOfALengthOfOne) {
  const std::string storage = storage_of("ByteStorage", "0", 16);
  const std::string bytes =
      torch_zip(dict_of(tensor_of(storage, 1, {1, 2, 1, 2, 1}, {INT64_MAX, 8, INT64_MAX, 2, INT64_MAX})));
  const Array array = open_bytes(bytes).read("w");
  EXPECT_TRUE(std::ranges::equal(array.values<uint8_t>(), std::vector<uint8_t>{'1', '3', '9', 'b'}));
}

TEST(TorchFile, EmptyDicts) {
  const std::string bytes = torch_zip(pickle_of("}"));
  EXPECT_TRUE(open_bytes(bytes).names().empty());
}

}  // namespace
}  // namespace convssm::io
