// What the tests of models of codes share: a tokenizer whose codes are shades of grey, the golden files of
// tools/golden/make_codes.py, and derivatives of every parameter.
#pragma once

#include <torch/torch.h>

#include <cmath>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "convssm/io/npz.h"
#include "convssm/io/tensor.h"
#include "convssm/models/codes/code_predictor.h"
#include "convssm/models/registry.h"
#include "convssm/models/teco/teco.h"
#include "tests/support.h"

namespace convssm::testing {

// Frames of one channel, a pixel for each code: what is forecast can be read as codes, and every code be shown.
class ShadeTokenizer : public models::Model, public models::Tokenizer {
 public:
  ShadeTokenizer(int64_t count, int64_t features, const data::FrameFormat& frames) : count_(count), frames_(frames) {
    table_ = register_parameter("table", randn({count, features}, 3).to(at::kFloat));
  }
  models::LossOutput loss(const data::Clips&, const models::LossContext&, const models::State& = {}) override {
    return {table_.sum(), {}, {}};
  }
  models::Tokenizer* as_tokenizer() override { return this; }
  std::string description() const override { return "shades"; }
  at::Tensor encode(const at::Tensor& video) override {
    return ((video.squeeze(2) + 1) * (static_cast<double>(count_ - 1) / 2)).round().to(at::kLong);
  }
  at::Tensor decode(const at::Tensor& codes) override {
    return (codes.to(table_.scalar_type()) * (2 / static_cast<double>(count_ - 1)) - 1).unsqueeze(2);
  }
  models::CodeFormat codes() const override { return {count_, frames_.height, frames_.width}; }
  at::Tensor embed(const at::Tensor& codes) override { return at::embedding(table_, codes).permute({0, 3, 1, 2}); }
  int64_t features() const override { return table_.size(1); }

 private:
  int64_t count_;
  data::FrameFormat frames_;
  at::Tensor table_;
};

// The section of such a tokenizer in a model of codes.
inline nlohmann::json shades(int64_t count, int64_t height, int64_t width, int64_t features) {
  static const bool known = [] {
    models::register_model({"shades", "", [](const nlohmann::json& o, const data::FrameFormat& frames) {
                              return std::make_shared<ShadeTokenizer>(o.at("count"), o.at("features"), frames);
                            }});
    return true;
  }();
  EXPECT_TRUE(known);
  return {{"name", "shades"},
          {"count", count},
          {"features", features},
          {"frames", {{"channels", 1}, {"height", height}, {"width", width}}}};
}

// A `model` section with this tokenizer in place of a table of its own.
inline nlohmann::json with_shades(nlohmann::json model) {
  const nlohmann::json& c = model.at("codebook");
  model["tokenizer"] = shades(c.at("count"), c.at("height"), c.at("width"), c.at("features"));
  model.erase("codebook");
  return model;
}

struct CodeGolden {
  io::NpzFile file;
  nlohmann::json variants;

  explicit CodeGolden(const std::string& name)
      : file((std::filesystem::path(CONVSSM_SOURCE_DIR) / "tests" / "golden" / (name + ".npz")).string()) {
    const auto text = file.read("variants");
    const auto bytes = text.values<uint8_t>();
    variants = nlohmann::json::parse(bytes.begin(), bytes.end());
  }

  at::Tensor read(const std::string& name) const { return io::to_tensor(file.read(name)); }
  double number(const std::string& name) const { return read(name).item<double>(); }
  at::Tensor actions() const { return read("actions"); }
  data::Clips clips() const {
    data::Clips clips;
    clips.codes = read("codes");
    clips.actions = actions().slice(1, 0, clips.codes.size(1)).contiguous();
    return clips;
  }
  models::Choices choices(const std::string& variant) const {
    return {variants[variant]["frames"].get<std::vector<int64_t>>(),
            read(variant + ".hidden").to(at::kBool).flatten(0, 1)};
  }

  // In float64, with a table of its own or with a tokenizer.
  std::shared_ptr<models::Model> model(const std::string& variant, bool tokenizer = false) const {
    const nlohmann::json& section = variants[variant]["model"];
    const auto made = models::make_model(tokenizer ? with_shades(section) : section, {1, 1, 1});
    torch::NoGradGuard no_grad;
    size_t in_file = 0;
    for (const auto& name : file.names()) in_file += name.starts_with("param.");
    EXPECT_EQ(made->named_parameters().size(), in_file);
    for (auto& item : made->named_parameters()) {
      item.value().copy_(read("param." + (item.key() == "tokenizer.table" ? "codebook" : item.key())));
    }
    made->to(at::kDouble);
    return made;
  }
};

inline models::LossOutput loss_with(models::Model& model, const data::Clips& clips, const models::Choices& choices) {
  if (auto* teco = dynamic_cast<models::Teco*>(&model)) return teco->loss_of(clips, choices);
  return dynamic_cast<models::CodePredictor&>(model).loss_of(clips, choices);
}

// The part of a loss by its name.
inline at::Tensor part_of(const models::LossOutput& out, const std::string& name) {
  for (const auto& [key, value] : out.parts)
    if (key == name) return value;
  return out.loss;
}

// The derivative of f in a random direction of `parameter` by a central difference, against the gradient's. In small steps:
// elu has no second derivative at 0.
inline void expect_gradient(const std::string& name, at::Tensor parameter, const at::Tensor& gradient,
                            const std::function<double()>& f) {
  torch::NoGradGuard no_grad;
  ASSERT_TRUE(gradient.defined()) << name << " has no gradient";
  const at::Tensor centre = parameter.detach().clone();
  at::Tensor direction = randn(parameter.sizes(), 7);
  direction /= direction.norm();
  const double h = 1e-5;
  const auto at = [&](double offset) {
    parameter.copy_(centre + offset * direction);
    return f();
  };
  const double numeric = (at(h) - at(-h)) / (2 * h);
  parameter.copy_(centre);
  EXPECT_NEAR((gradient * direction).sum().item<double>(), numeric, 1e-6 * std::max(1.0, std::abs(numeric))) << name;
}

// The gradients of a loss of float64 with respect to every parameter, along a random direction each, against differences of
// fourth order in steps of h. `near` is what is allowed for small and, times them, for large ones.
inline void expect_gradients(models::Model& model, const std::function<at::Tensor()>& loss, double h, double near) {
  loss().backward();
  uint64_t seed = 0;
  for (auto& item : model.named_parameters()) {
    torch::NoGradGuard no_grad;
    at::Tensor p = item.value();
    ASSERT_TRUE(p.grad().defined()) << item.key();
    const at::Tensor before = p.clone(), v = randn(p.sizes(), ++seed);
    const auto at = [&](double step) {
      p.copy_(before + step * v);
      return loss().item<double>();
    };
    const double numeric = (8 * (at(h) - at(-h)) - (at(2 * h) - at(-2 * h))) / (12 * h);
    p.copy_(before);
    EXPECT_NEAR((p.grad() * v).sum().item<double>(), numeric, near * (1 + std::abs(numeric))) << item.key();
  }
}

// Codes [B,T,h,w] of no meaning.
inline at::Tensor some_codes(at::IntArrayRef shape, int64_t count, uint64_t seed) {
  Stream stream(seed, "codes");
  at::Tensor codes = at::empty(shape, at::kLong);
  for (int64_t i = 0; i < codes.numel(); ++i) {
    codes.data_ptr<int64_t>()[i] = static_cast<int64_t>(stream.below(static_cast<uint64_t>(count)));
  }
  return codes;
}

}  // namespace convssm::testing
