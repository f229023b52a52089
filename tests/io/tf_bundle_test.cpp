// TensorFlow bundles: those that the small writer of table_parts.h makes, and the index of a published checkpoint.
#include "convssm/io/tf_bundle.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "../base/scratch_folder.h"
#include "malformed.h"
#include "samples.h"
#include "table_parts.h"

namespace convssm::io {
namespace {

std::vector<NamedArray> many_arrays() {
  std::vector<NamedArray> arrays;
  const DType dtypes[] = {DType::f32, DType::f64, DType::i32, DType::i64};
  for (int i = 0; i < 40; ++i) {
    arrays.push_back({fmt::format("net/layer_{:02}/weights", i), sample(dtypes[i % 4], {i % 5, 2, 3})});
  }
  arrays.push_back({"net/scalar", sample(DType::f32, {})});
  return arrays;
}

TfBundle open_bundle(const BundleBytes& bundle) {
  return TfBundle(memory_source("b.index", as_bytes(bundle.index)), memory_source("b.data", as_bytes(bundle.data)));
}

TEST(TfBundle, ReadsBackForAnyLayoutOfTheTable) {
  const auto arrays = many_arrays();
  for (const size_t per_block : {1, 3, 100}) {
    for (const size_t interval : {1, 2, 16}) {
      const BundleBytes bytes = make_bundle(arrays, per_block, interval);
      const TfBundle bundle = open_bundle(bytes);
      ASSERT_EQ(bundle.names().size(), arrays.size());
      for (size_t i = 0; i < arrays.size(); ++i) {
        EXPECT_EQ(bundle.names()[i], arrays[i].name);
        EXPECT_TRUE(bundle.contains(arrays[i].name));
        EXPECT_EQ(bundle.info(arrays[i].name).shape, arrays[i].array.shape());
        expect_equal(bundle.read(arrays[i].name), arrays[i].array);
      }
    }
  }
}

TEST(TfBundle, MissingNamesAndFiles) {
  const ScratchFolder folder;
  const BundleBytes bytes = make_bundle({{"first/w", sample(DType::f32, {4})}}, 4, 4);
  expect_error(ErrorKind::io, "model.ckpt.index", [&] { TfBundle bundle(folder.path("model.ckpt")); });
  folder.write("model.ckpt.index", bytes.index);
  expect_error(ErrorKind::io, "model.ckpt.data-00000-of-00001", [&] { TfBundle bundle(folder.path("model.ckpt")); });
  folder.write("model.ckpt.data-00000-of-00001", bytes.data.substr(1));
  expect_error(ErrorKind::data, "model.ckpt.data-00000-of-00001", [&] { TfBundle bundle(folder.path("model.ckpt")); });
  folder.write("model.ckpt.data-00000-of-00001", bytes.data);
  const TfBundle bundle(folder.path("model.ckpt"));
  expect_equal(bundle.read("first/w"), sample(DType::f32, {4}));
  EXPECT_FALSE(bundle.contains("first/v"));
  expect_error(ErrorKind::data, "first/w", [&] { bundle.read("first/v"); });
}

TEST(TfBundle, OtherTypesAndSlicesAreRefusedOneByOne) {
  const std::string sliced = bundle_entry(1, {1}, 0, 4, 0) + message_field(7, "");
  const std::string index = make_table({{"", bundle_header()},
                                        {"_CHECKPOINTABLE_OBJECT_GRAPH", bundle_entry(7, {}, 0, 4, 0)},
                                        {"half", bundle_entry(19, {2}, 0, 4, 0)},
                                        {"sliced", sliced},
                                        {"w", bundle_entry(1, {1}, 0, 4, masked_crc32c("1234"))}},
                                       2, 2);
  const BundleBytes bytes{index, "1234"};
  const TfBundle bundle = open_bundle(bytes);
  EXPECT_EQ(bundle.names(), std::vector<std::string>{"w"});
  EXPECT_EQ(bundle.refused().size(), 3u);
  EXPECT_FALSE(bundle.contains("half"));
  expect_error(ErrorKind::data, "DT_STRING", [&] { bundle.read("_CHECKPOINTABLE_OBJECT_GRAPH"); });
  expect_error(ErrorKind::data, "DT_HALF", [&] { bundle.info("half"); });
  expect_error(ErrorKind::data, "in slices", [&] { bundle.read("sliced"); });
  EXPECT_EQ(bundle.read("w").element_count(), 1u);
}

TEST(TfBundle, AChangedByteOfTheDataIsFound) {
  BundleBytes bytes = make_bundle({{"a", sample(DType::f32, {4})}, {"b", sample(DType::f32, {4})}}, 4, 4);
  bytes.data[20] ^= 1;
  const TfBundle bundle = open_bundle(bytes);
  expect_equal(bundle.read("a"), sample(DType::f32, {4}));
  const std::string expected = fmt::format("expected {:08x}", bundle.info("b").masked_crc);
  expect_error(ErrorKind::data, "the checksum of 'b' is ", [&] { bundle.read("b"); });
  expect_error(ErrorKind::data, expected, [&] { bundle.read("b"); });
}

// The index of the I3D network as TensorFlow wrote it, and what TensorFlow reads in it.
TEST(TfBundle, AgreesWithTensorFlow) {
  const std::string folder = CONVSSM_SOURCE_DIR "/../shared/assets/i3d/";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "needs the files of " << folder;
  const auto manifest = nlohmann::json::parse(read_text(folder + "rgb_scratch_manifest.json"));
  const ScratchFolder scratch;
  scratch.write("i3d.index", read_text(folder + "rgb_scratch.model.ckpt.index"));
  scratch.write("i3d.data-00000-of-00001", "");
  std::filesystem::resize_file(scratch.path("i3d.data-00000-of-00001"), 50'818'176);  // a hole: zeros
  const TfBundle bundle(scratch.path("i3d"));
  ASSERT_EQ(bundle.names().size(), manifest.size());
  EXPECT_TRUE(bundle.refused().empty());
  for (size_t i = 0; i < manifest.size(); ++i) {
    const auto& expected = manifest[i];
    EXPECT_EQ(bundle.names()[i], expected["name"]);
    const TfTensorInfo& info = bundle.info(expected["name"]);
    EXPECT_EQ(info.dtype, DType::f32);
    EXPECT_EQ(expected["dtype"], 1);
    EXPECT_EQ(info.shape, expected["shape"].get<std::vector<int64_t>>());
    EXPECT_EQ(info.offset, expected["offset"]);
    EXPECT_EQ(info.size, expected["size"]);
    EXPECT_EQ(info.masked_crc, expected["crc32c_masked"]);
  }
  expect_error(ErrorKind::data, "checksum", [&] { bundle.read(bundle.names()[3]); });
  std::filesystem::resize_file(scratch.path("i3d.data-00000-of-00001"), 50'818'175);
  expect_error(ErrorKind::data, "cut short", [&] { TfBundle cut(scratch.path("i3d")); });
}

}  // namespace
}  // namespace convssm::io
