// The golden files of tools/golden/make_cwvae.py, and the model with their parameters and their noise.
#pragma once

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "convssm/io/npz.h"
#include "convssm/io/tensor.h"
#include "convssm/models/cwvae/cwvae.h"
#include "tests/models/golden_parameters.h"

namespace convssm::testing {

// Whose forecasts take the given numbers, for each level [ticks,B,s], instead of drawn ones.
class GivenNoiseCwvae : public models::Cwvae {
 public:
  using Cwvae::Cwvae;
  std::vector<at::Tensor> noise;
  std::vector<int64_t> frames;  // of a tick of each level

 protected:
  at::Tensor tick_noise(const at::Tensor&, int64_t level, int64_t frame) const override {
    const size_t l = static_cast<size_t>(level);
    EXPECT_EQ(frame % frames[l], 0) << "a tick begins with its window";
    return noise[l][frame / frames[l]];
  }
};

struct CwvaeGolden {
  io::NpzFile file;
  nlohmann::json section;
  std::shared_ptr<GivenNoiseCwvae> model;
  std::vector<at::Tensor> noise;

  // In float64; `more` are further options.
  explicit CwvaeGolden(const std::string& name, const nlohmann::json& more = nlohmann::json::object())
      : file((std::filesystem::path(CONVSSM_SOURCE_DIR) / "tests" / "golden" / (name + ".npz")).string()) {
    const auto text = file.read("config");
    const auto bytes = text.values<uint8_t>();
    const auto config = nlohmann::json::parse(bytes.begin(), bytes.end());
    section = config["model"];
    section.update(more);
    models::CwvaeOptions o = models::CwvaeOptions::from_json(section);
    const nlohmann::json& frames = config["frames"];
    o.frames.channels = frames[0], o.frames.height = frames[1], o.frames.width = frames[2];
    model = std::make_shared<GivenNoiseCwvae>(o);
    for (int64_t l = 0; l < o.hierarchy.levels; ++l) {
      noise.push_back(read("noise" + std::to_string(l)).to(at::kDouble));
      model->frames.push_back(o.hierarchy.frames_of(l));
    }
    model->noise = noise;
    load_golden_parameters(*model, file);
  }

  at::Tensor read(const std::string& name) const { return io::to_tensor(file.read(name)); }
  double number(const std::string& name) const { return read(name).item<double>(); }
  bool on_codes() const { return section.contains("codebook"); }

  models::Clips clips() const {
    models::Clips clips;
    if (on_codes()) {
      clips.codes = read("codes");
    } else {
      clips.video = read("video").to(at::kDouble);
    }
    clips.actions = read("actions");
    return clips;
  }
};

}  // namespace convssm::testing
