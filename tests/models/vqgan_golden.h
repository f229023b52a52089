// The small VQ-GAN of tests/golden/vqgan.npz (tools/golden/make_vqgan.py) and the formula of its parameters; vqgan_kl.npz is the
// same around a normal latent.
#pragma once

#include <torch/torch.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "convssm/io/npz.h"
#include "convssm/io/tensor.h"

namespace convssm::testing {

// A parameter by its name in the public layout: around 1 and 0 for norms, else of variance 1 / fan_in.
inline at::Tensor vqgan_value(const std::string& name, const std::vector<int64_t>& shape, double fan_in) {
  int64_t seed = 0;
  for (size_t i = 0; i < name.size(); ++i) seed += static_cast<int64_t>(i + 1) * name[i];
  seed %= 65521;
  at::Tensor values = at::empty(shape, at::kFloat);
  for (int64_t k = 0; k < values.numel(); ++k) {
    const double u = static_cast<double>((k * 7919 + seed * 104729 + (k * k) % 1013) % 10007) / 10007.0 - 0.5;
    const double around = name.ends_with("weight") ? 1 : 0;
    values.data_ptr<float>()[k] = static_cast<float>(fan_in > 0 ? u * std::sqrt(12.0 / fan_in) : around + 0.4 * u);
  }
  return values;
}

struct VqGanGolden {
  explicit VqGanGolden(const std::string& name = "vqgan.npz")
      : file((std::filesystem::path(CONVSSM_SOURCE_DIR) / "tests" / "golden" / name).string()) {}

  io::NpzFile file;
  nlohmann::json model = {{"name", "vqgan"},
                          {"features", 32},
                          {"multipliers", {1, 2}},
                          {"blocks", 1},
                          {"attention", {8}},
                          {"latent", 24},
                          {"perceptual", "none"},
                          {"quantizer", {{"name", "gradient"}, {"size", 50}, {"features", 20}}},
                          {"discriminator", {{"features", 8}, {"layers", 2}}}};

  at::Tensor read(const std::string& name) const { return io::to_tensor(file.read(name)); }

  // All parameters of the public layout, "encoder.conv_in.weight" and so on, without those of the discriminator.
  io::NamedTensors state() const {
    const auto text = file.read("names");
    const auto bytes = text.values<uint8_t>();
    std::istringstream lines(std::string(bytes.begin(), bytes.end()));
    io::NamedTensors all;
    std::map<std::string, double> fans;
    for (std::string line; std::getline(lines, line);) {
      std::istringstream words(line);
      std::string name;
      words >> name;
      std::vector<int64_t> shape;
      for (int64_t size = 0; words >> size;) shape.push_back(size);
      double fan = 0;
      const std::string owner = name.substr(0, name.rfind('.'));
      if (shape.size() == 4) fan = fans[owner] = static_cast<double>(shape[1] * shape[2] * shape[3]);
      if (shape.size() == 1 && fans.contains(owner)) fan = 3 * fans[owner];
      if (shape.size() == 2) fan = 0.5 * static_cast<double>(shape[1]);
      all.emplace_back(name, vqgan_value(name, shape, fan));
    }
    return all;
  }

  // Discriminator parameters too, by the names of the model.
  static at::Tensor of_discriminator(const std::string& name, const at::Tensor& like) {
    const bool conv = name.find("conv") != std::string::npos;
    if (!conv) return vqgan_value(name, like.sizes().vec(), 0);
    static const std::map<char, int64_t> inputs = {{'0', 3}, {'1', 8}, {'2', 16}, {'3', 32}};
    const int64_t fan = inputs.at(name[name.find("conv") + 4]) * 16;
    return vqgan_value(name, like.sizes().vec(), static_cast<double>(name.ends_with("bias") ? 3 * fan : fan));
  }
};

}  // namespace convssm::testing
