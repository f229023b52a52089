// Parameters of a model from a golden file, `param.<name>` for every one of them and no others.
#pragma once

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "convssm/io/npz.h"
#include "convssm/io/tensor.h"
#include "convssm/models/model.h"

namespace convssm::testing {

// The model is in float64 then.
inline void load_golden_parameters(models::Model& model, const io::NpzFile& file) {
  torch::NoGradGuard no_grad;
  size_t in_file = 0;
  for (const auto& name : file.names()) in_file += name.starts_with("param.");
  EXPECT_EQ(model.named_parameters().size(), in_file);
  for (auto& item : model.named_parameters()) {
    const at::Tensor value = io::to_tensor(file.read("param." + item.key()));
    EXPECT_EQ(value.sizes(), item.value().sizes()) << item.key();
    item.value().copy_(value);
  }
  model.to(at::kDouble);
}

}  // namespace convssm::testing
