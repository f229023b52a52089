// The places are the first of a shuffled list.
#include "convssm/models/teco/mask_schedule.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include "convssm/base/nearest.h"
#include "convssm/ops/check.h"

namespace convssm::models {

void MaskSchedule::check() const {
  const std::vector<std::string> known = {"cosine", "uniform", "pow", "log", "exp"};
  if (std::ranges::find(known, name) == known.end()) fail_unknown("[model] maskgit.schedule: unknown", name, known);
  ops::require("model", power > 0, "maskgit.power must be positive, got {}", power);
}

int64_t MaskSchedule::hidden(double u, int64_t tokens) const {
  const double bits = std::log2(static_cast<double>(std::max<int64_t>(tokens, 2)));
  double share = std::cos(std::numbers::pi * u / 2);
  if (name == "uniform") share = 1 - u;
  if (name == "pow") share = 1 - std::pow(u, power);
  if (name == "log") share = -std::log2(std::max(u, 1e-300)) / bits;
  if (name == "exp") share = 1 - std::exp2(-bits * (1 - u));
  share = std::clamp(share, 1e-6, 1.0);
  return std::max<int64_t>(1, static_cast<int64_t>(share * static_cast<double>(tokens)));
}

at::Tensor draw_masks(const MaskSchedule& schedule, int64_t frames, int64_t h, int64_t w, Stream random) {
  const int64_t n = h * w;
  at::Tensor masks = at::zeros({frames, h, w}, at::kBool);
  bool* row = masks.data_ptr<bool>();
  std::vector<int64_t> places(static_cast<size_t>(n));
  for (int64_t f = 0; f < frames; ++f, row += n) {
    const int64_t hidden = schedule.hidden(random.uniform(), n);
    std::iota(places.begin(), places.end(), 0);
    for (int64_t i = 0; i < hidden; ++i) {
      const auto other = i + static_cast<int64_t>(random.below(static_cast<uint64_t>(n - i)));
      std::swap(places[static_cast<size_t>(i)], places[static_cast<size_t>(other)]);
      row[places[static_cast<size_t>(i)]] = true;
    }
  }
  return masks;
}

}  // namespace convssm::models
