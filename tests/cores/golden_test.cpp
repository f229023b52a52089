// All cores against the NumPy oracle (tools/golden): every file of tests/golden that holds a core is one case.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "convssm/cores/frame_core.h"
#include "convssm/cores/registry.h"
#include "convssm/io/npz.h"
#include "convssm/io/tensor.h"
#include "convssm/ssm/discretize.h"
#include "convssm/ssm/hippo.h"
#include "tests/support.h"

namespace convssm::cores {
namespace {

const std::filesystem::path kFolder = std::filesystem::path(CONVSSM_SOURCE_DIR) / "tests" / "golden";

std::vector<std::string> core_cases() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder)) {
    const std::string name = entry.path().stem().string();
    if (name.starts_with("frame_")) names.push_back(name);
    for (const CoreInfo& core : all_cores()) {
      if (name.starts_with(core.name + std::string("_"))) names.push_back(name);
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

struct Golden {
  io::NpzFile file;
  nlohmann::json config;
  std::shared_ptr<Core> core;

  explicit Golden(const std::string& name) : file((kFolder / (name + ".npz")).string()) {
    const auto text = file.read("config");
    const auto bytes = text.values<uint8_t>();
    config = nlohmann::json::parse(bytes.begin(), bytes.end());
    if (config.contains("frame")) {
      const auto& frame = config["frame"];
      core = make_frame_core(config.at("core"), config.at("options"), {frame[0], frame[1], frame[2]}, 0);
    } else {
      core = make_core(config.at("core"), config.at("options"));
    }
    load_parameters();
  }

  at::Tensor read(const std::string& name) const {
    return file.contains(name) ? io::to_tensor(file.read(name)) : at::Tensor();
  }

  void load_parameters() {
    torch::NoGradGuard no_grad;
    size_t in_file = 0;
    for (const auto& name : file.names()) in_file += name.starts_with("param.") || name.starts_with("buffer.");
    EXPECT_EQ(core->named_parameters().size() + core->named_buffers().size(), in_file);
    for (auto& item : core->named_parameters()) item.value().copy_(io::to_tensor(file.read("param." + item.key())));
    for (auto& item : core->named_buffers()) item.value().copy_(io::to_tensor(file.read("buffer." + item.key())));
  }

  Timing timing() const { return {read("dt"), read("resets"), config.value("step_rescale", 1.0)}; }

  State state(const std::string& prefix) const {
    State state;
    for (const auto& name : file.names()) {
      if (name.starts_with(prefix)) state.set(name.substr(prefix.size()), read(name));
    }
    return state;
  }
};

double relative(const at::Tensor& found, const at::Tensor& expected) {
  if (expected.numel() == 0) return found.sizes() == expected.sizes() ? 0 : 1;
  return testing::distance(found.to(at::kDouble), expected.to(at::kDouble)) / testing::max_abs(expected);
}

class GoldenCore : public ::testing::TestWithParam<std::string> {};

TEST_P(GoldenCore, ForwardInFloat32) {
  Golden golden(GetParam());
  const CoreOutput out = golden.core->forward(golden.read("x"), golden.state("x0."), golden.timing());
  EXPECT_LT(relative(out.y, golden.read("y")), 1e-5);
  for (const auto& [name, expected] : golden.state("xL.").items()) {
    EXPECT_LT(relative(out.state.get(name), expected), 1e-5) << name;
  }
}

// In float64 only the rounding of the stored result is left.
TEST_P(GoldenCore, ForwardInFloat64) {
  Golden golden(GetParam());
  golden.core->to(at::kDouble);
  State start;
  for (const auto& [name, value] : golden.state("x0.").items())
    start.set(name, value.is_floating_point() ? value.to(at::kDouble) : value);
  const CoreOutput out = golden.core->forward(golden.read("x").to(at::kDouble), start, golden.timing());
  EXPECT_LT(relative(out.y, golden.read("y")), 1e-7);
  for (const auto& [name, expected] : golden.state("xL.").items()) {
    EXPECT_LT(relative(out.state.get(name), expected), 1e-7) << name;
  }
}

TEST_P(GoldenCore, ParameterCount) {
  Golden golden(GetParam());
  int64_t count = 0;
  for (const auto& p : golden.core->parameters()) count += p.numel();
  EXPECT_EQ(count, golden.read("parameter_count").item<int64_t>());
}

INSTANTIATE_TEST_SUITE_P(All, GoldenCore, ::testing::ValuesIn(core_cases()), [](const auto& i) { return i.param; });

TEST(Golden, HippoEigenvalues) {
  const io::NpzFile file((kFolder / "hippo.npz").string());
  ASSERT_GE(file.names().size(), 6u);
  for (const auto& name : file.names()) {
    const at::Tensor expected = io::to_tensor(file.read(name));
    const auto spectrum = ssm::hippo_spectrum(std::stoll(name.substr(1)), 1);
    EXPECT_LT(testing::distance(at::imag(spectrum.lambda), expected), 1e-9) << name;
  }
}

TEST(Golden, Discretizations) {
  const io::NpzFile file((kFolder / "discretize.npz").string());
  const auto read = [&](const std::string& name) { return io::to_tensor(file.read(name)); };
  const at::Tensor lambda = at::complex(read("lambda_re"), read("lambda_im"));
  for (const std::string method : {"zoh", "bilinear", "euler"}) {
    const auto found = ssm::discretize(lambda, read("delta"), ssm::parse_discretization(method));
    const at::Tensor a = at::complex(read(method + "_a_re"), read(method + "_a_im"));
    const at::Tensor gamma = at::complex(read(method + "_gamma_re"), read(method + "_gamma_im"));
    // Rounding of the angle Im(lambda) delta is the limit: eps |z|, relative to the scale of each result.
    const at::Tensor z = (lambda * read("delta")).abs();
    const at::Tensor slack = 1e-15 * (8 + z);
    EXPECT_TRUE(((found.lambda_bar - a).abs() <= slack * (1 + a.abs())).all().item<bool>()) << method;
    const at::Tensor scale = at::max(gamma.abs(), at::min(read("delta"), 1 / lambda.abs()));
    EXPECT_TRUE(((found.gamma - gamma).abs() <= slack * scale).all().item<bool>()) << method;
  }
}

}  // namespace
}  // namespace convssm::cores
