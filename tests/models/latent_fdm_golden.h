// The golden files of tools/golden/make_latent_fdm.py, the model with their parameters and their noise, and a continuous tokenizer
// whose latents can be followed.
#pragma once

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "convssm/io/npz.h"
#include "convssm/io/tensor.h"
#include "convssm/models/latent_fdm/latent_fdm.h"
#include "convssm/models/registry.h"
#include "tests/models/golden_parameters.h"
#include "tests/support.h"

namespace convssm::testing {

// Squares of 2x2 pixels become channels, times 3: frames of one channel have latents of four, with a spread of their own.
class SquareTokenizer : public models::Model, public models::Tokenizer {
 public:
  explicit SquareTokenizer(const data::FrameFormat& frames) : frames_(frames) {
    gain_ = register_parameter("gain", at::full({1}, 3.0));
  }
  models::LossOutput loss(const data::Clips&, const models::LossContext&, const models::State& = {}) override {
    return {gain_.sum(), {}, {}};
  }
  models::Tokenizer* as_tokenizer() override { return this; }
  std::string description() const override { return "squares"; }
  bool continuous() const override { return true; }
  at::Tensor encode(const at::Tensor& video) override { return at::pixel_unshuffle(video, 2) * gain_; }
  at::Tensor decode(const at::Tensor& latents) override { return at::pixel_shuffle(latents / gain_, 2).tanh(); }
  models::CodeFormat codes() const override { return {0, frames_.height / 2, frames_.width / 2}; }
  at::Tensor embed(const at::Tensor& codes) override { return codes; }
  int64_t features() const override { return 4; }

 private:
  data::FrameFormat frames_;
  at::Tensor gain_;
};

// The section of such a tokenizer in a model.
inline nlohmann::json squares(int64_t height, int64_t width) {
  static const bool known = [] {
    models::register_model({"squares", "", [](const nlohmann::json&, const data::FrameFormat& frames) {
                              return std::make_shared<SquareTokenizer>(frames);
                            }});
    return true;
  }();
  EXPECT_TRUE(known);
  return {{"name", "squares"}, {"frames", {{"channels", 1}, {"height", height}, {"width", width}}}};
}

// Whose forecasts take the given numbers, [frames,steps+1,C,H,W], of every clip instead of drawn ones.
class GivenNoiseFdm : public models::LatentFdm {
 public:
  using LatentFdm::LatentFdm;
  at::Tensor noise;

 protected:
  at::Tensor frame_noise(const at::Tensor& random, int64_t frame, int64_t step) const override {
    return noise[frame][step].unsqueeze(0).expand({random.size(0), -1, -1, -1});
  }
};

struct FdmGolden {
  io::NpzFile file;
  nlohmann::json section;
  std::shared_ptr<GivenNoiseFdm> model;

  // In float64; `sampling` are further options of that group.
  explicit FdmGolden(const std::string& name, const nlohmann::json& sampling = nlohmann::json::object())
      : file((std::filesystem::path(CONVSSM_SOURCE_DIR) / "tests" / "golden" / (name + ".npz")).string()) {
    const auto text = file.read("config");
    const auto bytes = text.values<uint8_t>();
    const auto config = nlohmann::json::parse(bytes.begin(), bytes.end());
    section = config["model"];
    section["sampling"].update(sampling);
    models::LatentFdmOptions o = models::LatentFdmOptions::from_json(section);
    const nlohmann::json& frames = config["frames"];
    o.frames = {frames[0].get<int64_t>(), frames[1].get<int64_t>(), frames[2].get<int64_t>()};
    model = std::make_shared<GivenNoiseFdm>(o);
    model->noise = read("future_noise").to(at::kDouble);
    load_golden_parameters(*model, file);
  }

  at::Tensor read(const std::string& name) const { return io::to_tensor(file.read(name)); }
  double number(const std::string& name) const { return read(name).item<double>(); }
  bool has_actions() const { return section.at("actions").get<int64_t>() > 0; }

  models::Clips clips() const {
    models::Clips clips{read("video").to(at::kDouble)};
    if (has_actions()) clips.actions = read("actions");
    return clips;
  }

  models::FdmExample example() const {
    const at::Tensor given = read("observed").to(at::kBool), latent = read("latent").to(at::kBool);
    return {read("clip"),  read("numbers"),
            given,         (given | latent).logical_not(),
            read("steps"), read("noise").to(at::kDouble)};
  }
};

// A model of the registry whose parameters are none of them zero, in float64.
inline std::shared_ptr<models::Model> stirred_fdm(const nlohmann::json& section, const data::FrameFormat& frames) {
  const auto model = models::make_model(section, frames);
  torch::NoGradGuard no_grad;
  uint64_t seed = 0;
  for (auto& item : model->named_parameters()) {
    if (item.key().find("tokenizer") != std::string::npos) continue;
    item.value().add_(0.1 * randn(item.value().sizes(), ++seed).to(at::kFloat));
  }
  model->to(at::kDouble);
  model->eval();
  return model;
}

}  // namespace convssm::testing
