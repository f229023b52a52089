// The models that the bench measures, from the configs of the project: those of the paper's size (configs/moving_mnist)
// and those for two cores (configs/mini).
//   BenchModel convs5 = make_bench_model("paper", "convs5");   convs5.model->loss({convs5.clip(9)}, {});
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "convssm/models/registry.h"
#include "convssm/run/config.h"

namespace convssm::bench {

// The config `name` of a size: "paper" (configs/moving_mnist, the rows of 300 frames), or a folder: "mini", "maze", "tokenizer".
run::Config bench_config(const std::string& size, const std::string& name);

struct BenchModel {
  std::string name;  // "convs5", "transformer_recompute", ...
  std::shared_ptr<models::Model> model;
  data::FrameFormat format;
  run::Config config;

  at::Tensor clip(int64_t frames) const;  // [1,frames,C,H,W], the same at every call
};

// Beside the names of cores: convssm_random, the ConvS5 with a random state matrix, and transformer_recompute, which
// computes everything anew for every frame, as the paper measured it.
BenchModel make_bench_model(const std::string& size, const std::string& name);

// A model with everything that the paper's cost table is about. The Transformer comes twice.
const std::vector<std::string>& paper_names();

// "ConvS5" for "convs5", as a person writes it.
std::string display_name(const std::string& name);

}  // namespace convssm::bench
