// The golden files of tools/golden/make_fitvid.py, and the model with their parameters and their noise.
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
#include "convssm/models/fitvid/fitvid.h"
#include "tests/models/code_golden.h"

namespace convssm::testing {

// Whose forecasts take the given numbers, [T-1,B,z], instead of drawn ones.
class GivenNoiseFitVid : public models::FitVid {
 public:
  using FitVid::FitVid;
  at::Tensor noise;

 protected:
  at::Tensor latent_noise(const at::Tensor& random) const override {
    return noise[random.index({0, 1}).item<int64_t>() - 1];
  }
};

struct FitVidGolden {
  io::NpzFile file;
  nlohmann::json section;
  std::shared_ptr<GivenNoiseFitVid> model;
  models::FitVidDraws draws;

  // In float64; `more` are further options. With a tokenizer a model of codes makes frames.
  explicit FitVidGolden(const std::string& name, const nlohmann::json& more = nlohmann::json::object(),
                        bool tokenizer = false)
      : file((std::filesystem::path(CONVSSM_SOURCE_DIR) / "tests" / "golden" / (name + ".npz")).string()) {
    const auto text = file.read("config");
    const auto bytes = text.values<uint8_t>();
    const auto config = nlohmann::json::parse(bytes.begin(), bytes.end());
    section = config["model"];
    section.update(more);
    if (tokenizer) section = with_shades(section);
    models::FitVidOptions o = models::FitVidOptions::from_json(section);
    const nlohmann::json& frames = config["frames"];
    o.frames = {frames[0], frames[2], frames[3]};
    model = std::make_shared<GivenNoiseFitVid>(o);
    model->noise = read("noise").to(at::kDouble);
    draws = {model->noise, {}};
    const at::Tensor cuts = read("cuts");
    for (int64_t b = 0; b < cuts.size(0); ++b) draws.cuts.push_back(cuts[b].item<int64_t>());
    load();
  }

  void load() {
    torch::NoGradGuard no_grad;
    size_t parameters = 0, norms = 0;
    for (const auto& name : file.names()) parameters += name.starts_with("param."), norms += name.starts_with("norm.");
    EXPECT_EQ(model->named_parameters().size(), parameters);
    EXPECT_EQ(model->named_buffers().size(), 2 * norms);
    for (auto& item : model->named_parameters()) {
      const at::Tensor value = read("param." + (item.key() == "tokenizer.table" ? "codebook" : item.key()));
      EXPECT_EQ(value.sizes(), item.value().sizes()) << item.key();
      item.value().copy_(value);
    }
    model->to(at::kDouble);
    for (auto& item : model->named_buffers()) item.value().copy_(running(item.key(), false));
  }

  // What a buffer of the model is, before or after a step of training.
  at::Tensor running(const std::string& name, bool after) const {
    const size_t dot = name.rfind('.');
    return read("norm." + name.substr(0, dot))[(after ? 2 : 0) + (name.substr(dot) == ".variance" ? 1 : 0)];
  }

  at::Tensor read(const std::string& name) const { return io::to_tensor(file.read(name)); }
  double number(const std::string& name) const { return read(name).item<double>(); }
  bool on_codes() const { return section.contains("codebook") || section.contains("tokenizer"); }

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
