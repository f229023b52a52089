// The steps of a plan, each against plain tensor operations in float64; memory that steps share one after the other;
// doors, states and bad use. Sizes are odd, so that buffers do not fill their part of the arena, and batches of two, so
// that an offset that forgets the batch is seen. Under AddressSanitizer a step that leaves its buffers ends the test.
#include "convssm/nn/frame_plan.h"

#include "tests/nn/plain.h"

namespace convssm::nn::testing {
namespace {

constexpr int64_t B = 2, H = 5, W = 7;

using Build = std::function<Buffer(FramePlan&, const std::vector<Buffer>&)>;

at::Tensor floats(at::IntArrayRef shape, uint64_t seed, double scale = 1) {
  return (randn(shape, seed) * scale).to(at::kFloat);
}
at::Tensor exact(const at::Tensor& x) { return x.to(at::kDouble); }

// What `build` makes of these inputs [B,C,H,W], when they are buffers between other ones.
at::Tensor result(const std::vector<at::Tensor>& inputs, const Build& build) {
  FramePlan plan({.batch = B});
  std::vector<Buffer> buffers;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const at::Tensor& x = inputs[i];
    const Buffer door = plan.state("in" + std::to_string(i), x.size(1), x.size(2), x.size(3));
    buffers.push_back(plan.activate(door, ops::Activation::identity));
    plan.doors().at("in" + std::to_string(i)).copy_(x);
  }
  const Buffer y = build(plan, buffers);
  plan.copy(y, plan.state("out", y.channels, y.height, y.width));
  plan.finish();
  for (int k = 0; k < 2; ++k) plan.run();  // the second time on used memory
  return plan.doors().at("out").clone();
}

TEST(FramePlan, Convolutions) {
  for (const auto& [in, out, k] : {std::array<int64_t, 3>{1, 3, 3},
                                   {5, 9, 1},
                                   {3, 4, 5},
                                   {6, 6, 2},
                                   {16, 32, 3},
                                   {32, 16, 3}}) {  // the last two by Winograd's algorithm
    const at::Tensor x = floats({B, in, H, W}, 1), add = floats({B, out, H, W}, 2);
    const at::Tensor w = floats({out, in, k, k}, 3, 0.2), bias = floats({out}, 4);
    const at::Tensor plain = conv(exact(x), exact(w), {}), biased = conv(exact(x), exact(w), exact(bias));
    EXPECT_LT(distance(result({x}, [&](auto& p, const auto& in_) { return p.conv(in_[0], w, {}); }), plain), 2e-5);
    const auto whole = [&](FramePlan& p, const std::vector<Buffer>& in_) {
      return p.conv(in_[0], w, bias, {.add = in_[1], .activation = ops::Activation::gelu});
    };
    EXPECT_LT(distance(result({x, add}, whole), activated(biased + exact(add), ops::Activation::gelu)), 2e-5);
    if (k > 1) continue;
    const at::Tensor matrix = w.view({out, in});
    EXPECT_LT(distance(result({x}, [&](auto& p, const auto& in_) { return p.conv(in_[0], matrix, bias); }), biased),
              2e-5);
  }
}

TEST(FramePlan, DepthwiseConvolutions) {
  for (const auto& [C, kh, kw] : {std::array<int64_t, 3>{1, 3, 3}, {6, 1, 1}, {9, 7, 7}, {5, 1, 13}, {35, 9, 1}}) {
    const at::Tensor x = floats({B, C, H, W}, 1), w = floats({C, 1, kh, kw}, 2), bias = floats({C}, 3);
    const at::Tensor padded = at::constant_pad_nd(exact(x), {kw / 2, kw / 2, kh / 2, kh / 2});
    at::Tensor sum = at::zeros({B, C, H, W}, at::kDouble);
    for (int64_t tap = 0; tap < kh * kw; ++tap) {
      const at::Tensor weight = exact(w).select(2, tap / kw).select(2, tap % kw).view({1, C, 1, 1});
      sum += weight * padded.narrow(2, tap / kw, H).narrow(3, tap % kw, W);
    }
    EXPECT_LT(distance(result({x}, [&](auto& p, const auto& in) { return p.depthwise(in[0], w, {}); }), sum), 2e-5);
    const auto biased = [&](FramePlan& p, const std::vector<Buffer>& in) { return p.depthwise(in[0], w, bias); };
    EXPECT_LT(distance(result({x}, biased), sum + exact(bias).view({1, C, 1, 1})), 2e-5);
  }
  FramePlan plan({.batch = B});
  const Buffer x = plan.state("x", 6, H, W);
  expect_error([&] { plan.depthwise(x, at::ones({6, 1, 2, 2}), {}); }, {"[FramePlan]", "odd", "[6,1,2,2]"});
  expect_error([&] { plan.depthwise(x, at::ones({5, 1, 3, 3}), {}); }, {"[6,1,kh,kw]", "[5,1,3,3]"});
}

TEST(FramePlan, StatesBeginAtTheirFirstValue) {
  FramePlan plan({.batch = B});
  const at::Tensor first = floats({3}, 1), whole = first.view({1, 3, 1, 1}).expand({B, 3, H, W});
  plan.set_scope("core.");
  plan.state("x", 3, H, W, first);
  plan.state("zero", 3, H, W);
  EXPECT_EQ(distance(plan.doors().at("core.x"), whole), 0);
  for (const std::string& name : plan.states()) plan.doors().at(name).fill_(7);
  for (const std::string& name : plan.states()) plan.begin(name);
  EXPECT_EQ(distance(plan.doors().at("core.x"), whole), 0);
  EXPECT_EQ(max_abs(plan.doors().at("core.zero")), 0);
  expect_error([&] { plan.state("y", 4, H, W, first); }, {"first", "[4]", "[3]"});
}

TEST(FramePlan, Norms) {
  const int64_t C = 6;
  const at::Tensor x = floats({B, C, H, W}, 1, 2) + 1, y = floats({B, C, H, W}, 2), w = floats({C}, 3),
                   b = floats({C}, 4);
  for (const int64_t groups : {1, 2, 3, 6}) {
    const at::Tensor expected = activated(group_norm(exact(x), groups, exact(w), exact(b)), ops::Activation::elu);
    const auto build = [&](FramePlan& p, const std::vector<Buffer>& in) {
      return p.group_norm(in[0], groups, w, b, ops::Activation::elu);
    };
    EXPECT_LT(distance(result({x}, build), expected), 1e-5) << groups;
  }
  const auto own = [&](FramePlan& p, const std::vector<Buffer>& in) { return p.layer_norm(in[0], w, b); };
  EXPECT_LT(distance(result({x}, own), layer_norm(exact(x), exact(w), exact(b))), 2e-5);
  const auto sum = [&](FramePlan& p, const std::vector<Buffer>& in) { return p.add_layer_norm(in[0], in[1], w, b); };
  EXPECT_LT(distance(result({x, y}, sum), layer_norm(exact(x) + exact(y), exact(w), exact(b))), 2e-5);
}

TEST(FramePlan, ElementwiseSteps) {
  const at::Tensor x = floats({B, 3, H, W}, 1, 2), y = floats({B, 3, H, W}, 2);
  const auto swish = ops::Activation::swish;
  EXPECT_LT(distance(result({x}, [&](auto& p, const auto& in) { return p.activate(in[0], swish); }),
                     activated(exact(x), swish)),
            1e-5);
  EXPECT_LT(distance(result({x, y}, [&](auto& p, const auto& in) { return p.add(in[0], in[1], swish); }),
                     activated(exact(x) + exact(y), swish)),
            1e-5);
  EXPECT_LT(distance(result({x, y}, [&](auto& p, const auto& in) { return p.gate(in[0], in[1]); }),
                     exact(x) * at::sigmoid(exact(y))),
            1e-5);
}

TEST(FramePlan, SqueezeAndExcite) {
  const at::Tensor x = floats({B, 6, H, W}, 1), down = floats({4, 6}, 2), down_bias = floats({4}, 3),
                   up = floats({6, 4}, 4), up_bias = floats({6}, 5);
  const auto build = [&](FramePlan& p, const std::vector<Buffer>& in) {
    p.squeeze_excite(in[0], down, down_bias, up, up_bias);
    return in[0];
  };
  const at::Tensor hidden = at::relu(dense(exact(x).mean({2, 3}), exact(down), exact(down_bias)));
  const at::Tensor gate = at::sigmoid(dense(hidden, exact(up), exact(up_bias)));
  EXPECT_LT(distance(result({x}, build), exact(x) * gate.unsqueeze(-1).unsqueeze(-1)), 1e-5);
}

TEST(FramePlan, ChosenRowsAreAdded) {
  const at::Tensor x = floats({B, 3, H, W}, 1), table = floats({4, 3}, 2);
  for (const auto& [first, second] : {std::pair{0, 2}, {-1, 1}}) {
    const auto build = [&](FramePlan& p, const std::vector<Buffer>& in) {
      const at::Tensor choice = p.door("choice", {B}, at::kLong);
      choice[0] = first;
      choice[1] = second;
      p.add_row(in[0], table, choice);
      return in[0];
    };
    const at::Tensor rows = at::stack({table[first < 0 ? 3 : first], table[second]});
    EXPECT_LT(distance(result({x}, build), x + rows.unsqueeze(-1).unsqueeze(-1)), 1e-6);
  }
  FramePlan plan({.batch = 1});
  const at::Tensor choice = plan.door("choice", {1}, at::kLong);
  plan.add_row(plan.state("x", 3, 2, 2), table, choice);
  plan.finish();
  choice.fill_(3);  // the last row is for no action
  expect_error([&] { plan.run(); }, {"below", "3"});
}

TEST(FramePlan, Resolutions) {
  const at::Tensor x = floats({B, 3, 6, 10}, 1);
  EXPECT_LT(
      distance(result({x}, [](auto& p, const auto& in) { return p.pool2(in[0]); }), at::avg_pool2d(exact(x), 2, 2)),
      1e-6);
  EXPECT_EQ(distance(result({x}, [](auto& p, const auto& in) { return p.double_size(in[0]); }),
                     x.repeat_interleave(2, 2).repeat_interleave(2, 3)),
            0);
}

// Frames that are no multiple of the scale are continued by their last row and column, and cropped again.
TEST(FramePlan, FramesComeInAndGoOut) {
  for (const int64_t C : {1, 3}) {
    FramePlan plan({.batch = B});
    const at::Tensor in = plan.door("frame", {B, C, H, W}), out = plan.door("next", {B, C, H, W});
    const Buffer x = plan.from_frame(in, 8, 8);
    plan.copy(x, plan.state("whole", C, 8, 8));
    plan.to_frame(x, out);
    plan.finish();
    in.copy_(floats({B, C, H, W}, 1));
    plan.run();
    const at::Tensor padded = at::replication_pad2d(in, {0, 8 - W, 0, 8 - H});
    EXPECT_EQ(distance(plan.doors().at("whole"), padded), 0);
    EXPECT_LT(distance(out, at::tanh(exact(in))), 1e-6);
  }
}

}  // namespace
}  // namespace convssm::nn::testing
