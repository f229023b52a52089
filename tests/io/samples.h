// Arrays to write and read back, and a folder of files that NumPy and safetensors wrote.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <complex>
#include <cstdint>
#include <string>
#include <vector>

#include "convssm/io/array.h"

namespace convssm::io {

inline std::string data_path(const std::string& name) {
  return std::string(CONVSSM_SOURCE_DIR) + "/tests/io/data/" + name;
}

// An array whose bytes count upwards; bools alternate.
inline Array sample(DType dtype, std::vector<int64_t> shape) {
  Array array(dtype, std::move(shape));
  int next = 0;
  for (std::byte& byte : array.bytes()) byte = static_cast<std::byte>(dtype == DType::bool8 ? next++ % 2 : next++);
  return array;
}

inline void expect_equal(const Array& a, const Array& b) {
  EXPECT_EQ(a.dtype(), b.dtype());
  EXPECT_EQ(a.shape(), b.shape());
  EXPECT_TRUE(std::ranges::equal(a.bytes(), b.bytes()));
}

// One array of every type.
inline std::vector<NamedArray> samples_without(DType missing) {
  std::vector<NamedArray> arrays;
  for (const DType dtype : all_dtypes) {
    if (dtype != missing) arrays.push_back({std::string(dtype_name(dtype)), sample(dtype, {2, 3})});
  }
  return arrays;
}

// What tests/io/data/make_data.py calls counted(): values from 0, or from -2 if signed, and value + (value + 10)i.
template <typename T>
void expect_counted(const Array& array) {
  const bool sign = std::is_signed_v<T> || !std::is_integral_v<T>;
  const auto values = array.values<T>();
  for (size_t i = 0; i < values.size(); ++i) {
    const int number = static_cast<int>(i) - (sign ? 2 : 0);
    if constexpr (std::is_same_v<T, bool>)
      EXPECT_EQ(values[i], i % 2 == 1);
    else if constexpr (std::is_same_v<T, std::complex<float>> || std::is_same_v<T, std::complex<double>>)
      EXPECT_EQ(values[i],
                T(static_cast<typename T::value_type>(number), static_cast<typename T::value_type>(number + 10)));
    else
      EXPECT_EQ(values[i], static_cast<T>(number));
  }
}

// The file of NumPy's type code `code` (b1, u1, ... c16) holds these 2 x 3 values.
inline void expect_counted_code(const std::string& code, const Array& array) {
  SCOPED_TRACE(code);
  EXPECT_EQ(array.shape(), (std::vector<int64_t>{2, 3}));
  if (code == "b1")
    expect_counted<bool>(array);
  else if (code == "u1")
    expect_counted<uint8_t>(array);
  else if (code == "i1")
    expect_counted<int8_t>(array);
  else if (code == "u2")
    expect_counted<uint16_t>(array);
  else if (code == "i2")
    expect_counted<int16_t>(array);
  else if (code == "u4")
    expect_counted<uint32_t>(array);
  else if (code == "i4")
    expect_counted<int32_t>(array);
  else if (code == "u8")
    expect_counted<uint64_t>(array);
  else if (code == "i8")
    expect_counted<int64_t>(array);
  else if (code == "f4")
    expect_counted<float>(array);
  else if (code == "f8")
    expect_counted<double>(array);
  else if (code == "c8")
    expect_counted<std::complex<float>>(array);
  else if (code == "c16")
    expect_counted<std::complex<double>>(array);
  else {
    ASSERT_EQ(code, "f2");
    const std::vector<Float16> halves = {{0xc000}, {0xbc00}, {0x0000}, {0x3c00}, {0x4000}, {0x4200}};  // -2 ... 3
    EXPECT_TRUE(std::ranges::equal(array.values<Float16>(), halves));
  }
}

inline const std::vector<std::string> numpy_codes = {"b1", "u1", "i1", "u2", "i2", "u4", "i4",
                                                     "u8", "i8", "f2", "f4", "f8", "c8", "c16"};

}  // namespace convssm::io
