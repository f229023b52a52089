// The golden files of tools/golden/make_perceiver_ar.py, and the model with their parameters and their numbers for draws. Its
// tokenizer shows every code as a shade of a pixel, so futures can be read as codes.
#pragma once

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "convssm/models/clip_random.h"
#include "convssm/models/perceiver_ar/perceiver_ar.h"
#include "tests/models/code_golden.h"

namespace convssm::testing {

// Draws by the given numbers [B,codes], the first of which is for code `first`, and keeps the logits.
class GivenNumbersPerceiver : public models::PerceiverAr {
 public:
  explicit GivenNumbersPerceiver(const models::PerceiverArOptions& o) : PerceiverAr(o), sampling_(o.sampling) {}
  at::Tensor numbers;
  int64_t first = 0;
  mutable std::vector<at::Tensor> logits;

 protected:
  at::Tensor draw_code(const at::Tensor&, int64_t number, const at::Tensor& said) const override {
    logits.push_back(said);
    return models::choose_category(numbers.select(1, number - first), models::code_probabilities(said, sampling_));
  }

 private:
  models::SamplingOptions sampling_;
};

struct PerceiverGolden {
  io::NpzFile file;
  nlohmann::json section;
  std::shared_ptr<GivenNumbersPerceiver> model;

  // In float64; `more` are further options.
  explicit PerceiverGolden(const std::string& name, const nlohmann::json& more = nlohmann::json::object())
      : file((std::filesystem::path(CONVSSM_SOURCE_DIR) / "tests" / "golden" / (name + ".npz")).string()) {
    const auto text = file.read("config");
    const auto bytes = text.values<uint8_t>();
    section = nlohmann::json::parse(bytes.begin(), bytes.end());
    section.update(more);
    model = std::make_shared<GivenNumbersPerceiver>(models::PerceiverArOptions::from_json(with_shades(section)));
    model->numbers = read("uniforms");
    model->first = context() * model_grid();
    load_parameters();
    model->eval();
  }

  void load_parameters() {
    torch::NoGradGuard no_grad;
    size_t in_file = 0, taken = 0;
    for (const auto& name : file.names()) in_file += name.starts_with("param.");
    for (auto& item : model->named_parameters()) {
      if (item.key() == "tokenizer.table") continue;
      const at::Tensor value = read("param." + item.key());
      EXPECT_EQ(value.sizes(), item.value().sizes()) << item.key();
      item.value().copy_(value);
      ++taken;
    }
    EXPECT_EQ(taken, in_file);
    model->to(at::kDouble);
  }

  at::Tensor read(const std::string& name) const { return io::to_tensor(file.read(name)); }
  double number(const std::string& name) const { return read(name).item<double>(); }
  int64_t context() const { return read("context").item<int64_t>(); }
  int64_t model_grid() const {
    const nlohmann::json& grid = section.at("codebook");
    return grid.at("height").get<int64_t>() * grid.at("width").get<int64_t>();
  }

  // With the actions of these frames.
  models::Clips clips() const {
    models::Clips clips;
    clips.codes = read("codes");
    clips.actions = read("actions").slice(1, 0, clips.codes.size(1)).contiguous();
    return clips;
  }
  at::Tensor frames_of(const at::Tensor& codes) const { return model->as_tokenizer()->decode(codes); }
};

}  // namespace convssm::testing
