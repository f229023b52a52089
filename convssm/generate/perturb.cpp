#include "convssm/generate/perturb.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "convssm/models/waiting_state.h"
#include "convssm/ops/check.h"
#include "convssm/ops/normal_numbers.h"

namespace convssm::generate {

models::State perturbed(const models::State& state, const std::vector<double>& sizes, const models::Seeds& seeds) {
  const auto clips = std::ssize(sizes);
  ops::require("perturb", std::ssize(seeds) == clips, "expected a seed for each of {} clips, got {}", clips,
               seeds.size());
  models::State changed;
  bool any = false;
  for (const auto& [name, value] : state.items()) {
    const bool remembered =
        name.starts_with(models::kCorePrefix) && value.is_floating_point() && value.dim() > 1 && value.size(0) == clips;
    any = any || remembered;
    at::Tensor noisy = remembered ? value.clone() : value;
    for (int64_t i = 0; remembered && i < clips; ++i) {
      const double size = sizes[static_cast<size_t>(i)];
      if (size == 0) continue;
      at::Tensor row = noisy[i];
      const at::Tensor noise =
          ops::normal_numbers(row.sizes(), Stream(seeds[static_cast<size_t>(i)], "perturb: " + name), row.options());
      row.add_(noise * (row.square().mean().sqrt() * size));
    }
    changed.set(name, noisy);
  }
  ops::require(
      "perturb", any || std::ranges::all_of(sizes, [](double size) { return size == 0; }),
      "this model keeps no state of a core for its clips, or has seen one frame alone: it cannot be perturbed");
  return changed;
}

}  // namespace convssm::generate
