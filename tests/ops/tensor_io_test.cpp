// Between files and tensors. With the tests of ops/ because it needs libtorch, which the io tests do not link.
#include <gtest/gtest.h>
#include <torch/torch.h>
#include <unistd.h>

#include <filesystem>

#include "convssm/base/error.h"
#include "convssm/io/tensor.h"

namespace convssm::io {
namespace {

TEST(TensorIo, EveryTypeComesBack) {
  for (const auto type : {at::kBool, at::kByte, at::kChar, at::kShort, at::kInt, at::kLong, at::kHalf, at::kBFloat16,
                          at::kFloat, at::kDouble, at::kComplexFloat, at::kComplexDouble}) {
    const at::Tensor x = (at::rand({3, 4}) * 5).to(type);
    const at::Tensor y = to_tensor(to_array(x));
    EXPECT_EQ(y.scalar_type(), type);
    EXPECT_TRUE(at::equal(x, y)) << type;
  }
}

TEST(TensorIo, ScalarsEmptyStridedAndConjugated) {
  EXPECT_TRUE(at::equal(to_tensor(to_array(at::full({}, 2.5))), at::full({}, 2.5)));
  EXPECT_EQ(to_tensor(to_array(at::empty({0, 3}))).sizes(), at::IntArrayRef({0, 3}));
  const at::Tensor x = at::rand({4, 6}).t().slice(0, 1, 5);
  EXPECT_TRUE(at::equal(to_tensor(to_array(x)), x));
  const at::Tensor z = at::randn({3}, at::kComplexFloat);
  EXPECT_TRUE(at::equal(to_tensor(to_array(z.conj())), z.conj().resolve_conj()));
}

TEST(TensorIo, ATensorSharesAndKeepsTheArray) {
  at::Tensor x;
  {
    const Array array = make_array<float>({2}, {1, 2});
    x = to_tensor(array);
    EXPECT_EQ(x.data_ptr(), static_cast<const void*>(array.bytes().data()));
  }
  EXPECT_EQ(x[1].item<float>(), 2);
}

TEST(TensorIo, TypesThatLibtorchLacksAreRefused) {
  try {
    to_tensor(Array(DType::u32, {2}));
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("u32"), std::string::npos);
  }
}

TEST(TensorIo, FilesOfNamedTensorsKeepTheirOrder) {
  const auto path = std::filesystem::temp_directory_path() / ("convssm_tensors_" + std::to_string(getpid()));
  save_tensors(path.string(), {{"z", at::ones({2})}, {"a", at::zeros({1, 3}, at::kDouble)}});
  const NamedTensors loaded = load_tensors(path.string());
  std::filesystem::remove(path);
  ASSERT_EQ(loaded.size(), 2u);
  EXPECT_EQ(loaded[0].first, "z");
  EXPECT_TRUE(at::equal(loaded[1].second, at::zeros({1, 3}, at::kDouble)));
}

}  // namespace
}  // namespace convssm::io
