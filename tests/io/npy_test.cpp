#include "convssm/io/npy.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "../base/scratch_folder.h"
#include "convssm/io/npy_header.h"
#include "malformed.h"
#include "samples.h"

namespace convssm::io {
namespace {

Array read_bytes(const std::string& bytes) { return read_npy(*make_reader(memory_source("memory", as_bytes(bytes)))); }

std::string npy(const std::string& header, const std::string& data = "", char version = 1) {
  const uint32_t length = static_cast<uint32_t>(header.size());
  const std::string size(reinterpret_cast<const char*>(&length), version == 1 ? 2 : 4);
  return "\x93NUMPY" + std::string{version, '\0'} + size + header + data;
}

TEST(Npy, EveryTypeSurvives) {
  const ScratchFolder folder;
  for (const auto& [name, array] : samples_without(DType::bf16)) {
    SCOPED_TRACE(name);
    write_npy(folder.path("a.npy"), array);
    expect_equal(read_npy(folder.path("a.npy")), array);
    EXPECT_EQ(read_npy_info(folder.path("a.npy")).shape, array.shape());
    EXPECT_EQ(read_npy_info(folder.path("a.npy")).dtype, array.dtype());
  }
}

TEST(Npy, EveryShapeSurvives) {
  const ScratchFolder folder;
  const std::vector<int64_t> many(64, 1);
  for (const auto& shape : {std::vector<int64_t>{}, {0}, {5}, {3, 0, 2}, {1, 1, 7}, {2, 3, 4, 5}, many}) {
    write_npy(folder.path("a.npy"), sample(DType::f32, shape));
    expect_equal(read_npy(folder.path("a.npy")), sample(DType::f32, shape));
  }
}

TEST(Npy, HeaderIsAsNumpyWritesIt) {
  const std::string header = npy_header(Array(DType::f32, {3, 4}));
  EXPECT_EQ(header.size() % 64, 0u);
  EXPECT_EQ(header.substr(0, 10), std::string("\x93NUMPY\x01\x00\x76\x00", 10));
  EXPECT_EQ(header.find("{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }"), 10u);
  EXPECT_EQ(header.back(), '\n');
  EXPECT_NE(npy_header(Array(DType::bool8, {3})).find("'|b1', 'fortran_order': False, 'shape': (3,), }"),
            std::string::npos);
  EXPECT_NE(npy_header(Array(DType::c128, {})).find("'<c16', 'fortran_order': False, 'shape': (), }"),
            std::string::npos);
}

TEST(Npy, RefusesToWrite) {
  const ScratchFolder folder;
  const auto path = folder.path("a.npy");
  expect_error(ErrorKind::usage, "NumPy has no type for bf16: convert",
               [&] { write_npy(path, Array(DType::bf16, {1})); });
  const std::vector<int64_t> many(65, 1);
  expect_error(ErrorKind::usage, "allows 64 dimensions", [&] { write_npy(path, Array(DType::f32, many)); });
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(Npy, ReadsEveryTypeOfNumpyInBothByteOrders) {
  for (const std::string& code : numpy_codes) {
    expect_counted_code(code, read_npy(data_path("little_" + code + ".npy")));
    if (code.substr(1) != "1") expect_counted_code(code, read_npy(data_path("big_" + code + ".npy")));
  }
}

TEST(Npy, ReadsFortranOrder) {
  const Array array = read_npy(data_path("fortran_f4.npy"));
  EXPECT_EQ(array.shape(), (std::vector<int64_t>{2, 3, 4}));
  expect_counted<float>(array);
  const Array big = read_npy(data_path("fortran_big_c16.npy"));
  EXPECT_EQ(big.shape(), (std::vector<int64_t>{3, 2, 1, 2}));
  expect_counted<std::complex<double>>(big);
}

TEST(Npy, ReadsScalarsEmptyArraysAndAllVersions) {
  EXPECT_EQ(read_npy(data_path("scalar.npy")).values<double>()[0], 2.5);
  EXPECT_TRUE(read_npy(data_path("scalar.npy")).shape().empty());
  EXPECT_EQ(read_npy(data_path("empty.npy")).shape(), (std::vector<int64_t>{3, 0, 2}));
  expect_counted<int64_t>(read_npy(data_path("vector.npy")));
  expect_counted_code("f4", read_npy(data_path("version_2.npy")));
  expect_counted_code("f4", read_npy(data_path("version_3.npy")));
}

TEST(Npy, ReadsOtherSpellingsOfTheHeader) {
  for (const char* header : {
           "{'descr': '<u2', 'fortran_order': False, 'shape': (2,), }\n",
           "{'descr':'<u2','fortran_order':False,'shape':(2,)}",
           "{\"shape\": (2L,), \"descr\": \"=u2\", \"fortran_order\": True}   \n",
           "  { 'shape' : ( 2 , ) , 'fortran_order' : False , 'descr' : '<u2' , } \n",
       }) {
    EXPECT_EQ(read_bytes(npy(header, std::string("\x01\0\x02\0", 4))).values<uint16_t>()[1], 2) << header;
  }
  EXPECT_EQ(read_bytes(npy("{'descr': '|u1', 'fortran_order': False, 'shape': (1, 2,)}", "ab")).shape().size(), 2u);
  EXPECT_EQ(read_bytes(npy("{'descr': '|b1', 'fortran_order': False, 'shape': ()}", "\x07")).bytes()[0], std::byte{1});
}

TEST(Npy, SaysWhatToDoAboutTypesItDoesNotRead) {
  const auto refuse = [](const std::string& name, const std::string& part) {
    expect_error(ErrorKind::data, part, [&] { read_npy(data_path(name)); });
  };
  refuse("structured.npy", "structured dtype is not supported; save each field: np.save(path, arr['field'])");
  refuse("text.npy", "'<U3' holds text; save numbers instead: np.save(path, arr.astype('float32'))");
  refuse("bytes.npy", "'|S3' holds text");
  refuse("dates.npy", "'<M8[D]' is not supported; save numbers instead");
  refuse("raw.npy", "'|V2' holds raw bytes, perhaps bfloat16");
  refuse("long_double.npy", "'<f16' is not supported");
  refuse("objects.npy", "holds Python objects, which are not read as loading them can run code");
}

// Beyond 2 GiB, without writing as much: the data is a hole in the file.
TEST(Npy, SizesBeyondTwoGigabytes) {
  const ScratchFolder folder;
  const std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (1000000, 1250), }";
  folder.write("large", npy(header));
  const auto size = static_cast<off_t>(npy(header).size()) + 5000000000;
  ASSERT_EQ(truncate(folder.path("large").c_str(), size), 0);
  EXPECT_EQ(read_npy_info(folder.path("large")).shape[0], 1000000);
  ASSERT_EQ(truncate(folder.path("large").c_str(), size - 1), 0);
  reset_largest_allocation();
  expect_error(ErrorKind::data, "needs 5000000000 bytes of data, found 4999999999",
               [&] { read_npy(folder.path("large")); });
  EXPECT_LT(largest_allocation(), 1u << 20);
}

}  // namespace
}  // namespace convssm::io
