// The stand-in for a GPU does what a GPU would: it computes, it refuses mixtures, and its memory cannot be read.
#include "other_device.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "tests/support.h"

namespace convssm::testing {
namespace {

TEST(OtherDevice, ComputesWhatTheCpuDoes) {
  const at::Tensor x = randn({3, 4}, 1), y = randn({4, 2}, 2);
  const int64_t before = operations_on_other_device();
  const at::Tensor z = at::gelu(at::matmul(x.to(other_device()), y.to(other_device()))).slice(0, 1).t();
  EXPECT_EQ(z.device(), other_device());
  EXPECT_GT(operations_on_other_device(), before);
  EXPECT_TRUE(z.cpu().equal(at::gelu(at::matmul(x, y)).slice(0, 1).t()));
}

TEST(OtherDevice, DifferentiatesWhatTheCpuDoes) {
  if (const auto why = obstacle_to_gradients(); !why.empty()) GTEST_SKIP() << why;
  const auto gradient = [](at::Device device) {
    at::Tensor x = randn({2, 3, 5, 5}, 3).to(device).requires_grad_();
    const at::Tensor w = randn({4, 3, 3, 3}, 4).to(device);
    at::tanh(at::conv2d(x, w)).square().sum().backward();
    return x.grad().cpu();
  };
  EXPECT_LT(distance(gradient(other_device()), gradient(at::kCPU)), 1e-12);
}

TEST(OtherDevice, RefusesTensorsOfTheCpu) {
  const at::Tensor x = randn({3}, 1), y = x.to(other_device());
  EXPECT_THROW(x + y, c10::Error);
  EXPECT_THROW(at::where(x > 0, y, y), c10::Error);
  EXPECT_THROW(y.index({at::tensor({0, 1})}), c10::Error);
  EXPECT_NO_THROW(y + at::scalar_tensor(1.0)) << "a number may be mixed in, as on a GPU";
}

TEST(OtherDeviceDeathTest, ShowsNoReadableMemory) {
  const at::Tensor x = randn({3}, 1).to(other_device());
  EXPECT_DEATH(static_cast<void>(*static_cast<volatile double*>(x.data_ptr())), "");
}

}  // namespace
}  // namespace convssm::testing
