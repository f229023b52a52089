// Each clip's numbers are drawn one after the other by its own stream, on the CPU: slower than one call for the batch, but
// the only order that does not know the batch.
#include "convssm/models/clip_random.h"

#include <ATen/ATen.h>

#include "convssm/base/random.h"
#include "convssm/ops/check.h"

namespace convssm::models {
namespace {

template <typename Draw>
at::Tensor draw(at::Tensor& position, at::IntArrayRef sizes, const Draw& number) {
  ops::require("clip_random", position.defined() && position.dim() == 2 && position.size(1) == 2,
               "the random position must be [B,2], got {}",
               position.defined() ? ops::shape_text(position.sizes()) : "none");
  const int64_t B = position.size(0);
  std::vector<int64_t> shape{B};
  shape.insert(shape.end(), sizes.begin(), sizes.end());
  at::Tensor values = at::empty(shape, at::kDouble);
  const at::Tensor rows = position.cpu().contiguous();
  double* out = values.data_ptr<double>();
  const int64_t each = B > 0 ? values.numel() / B : 0;
  for (int64_t b = 0; b < B; ++b) {
    const int64_t* row = rows.data_ptr<int64_t>() + 2 * b;
    Stream stream(static_cast<uint64_t>(row[0]), "future", static_cast<uint64_t>(row[1]));
    for (int64_t i = 0; i < each; ++i) *out++ = number(stream);
  }
  const at::Device device = position.device();
  position = (rows + at::tensor({0, 1}, at::kLong)).to(device);
  return values.to(device);
}

}  // namespace

at::Tensor first_position(const Seeds& seeds, int64_t clips) {
  ops::require("clip_random", seeds.empty() || static_cast<int64_t>(seeds.size()) == clips,
               "expected a seed for each of {} clips, got {}", clips, seeds.size());
  at::Tensor position = at::zeros({clips, 2}, at::kLong);
  for (size_t b = 0; b < seeds.size(); ++b) position.data_ptr<int64_t>()[2 * b] = static_cast<int64_t>(seeds[b]);
  return position;
}

at::Tensor reseeded_position(const at::Tensor& position, const Seeds& seeds, int64_t clips) {
  at::Tensor other = first_position(seeds, clips).to(position.device());
  other.select(1, 1).copy_(position.select(1, 1));
  return other;
}

at::Tensor draw_uniform(at::Tensor& position, at::IntArrayRef sizes) {
  return draw(position, sizes, [](Stream& stream) { return stream.uniform(); });
}

at::Tensor draw_normal(at::Tensor& position, at::IntArrayRef sizes) {
  return draw(position, sizes, [](Stream& stream) { return stream.normal(); });
}

at::Tensor choose_category(const at::Tensor& numbers, const at::Tensor& probabilities) {
  const at::Tensor ends = probabilities.to(at::kDouble).cumsum(-1);
  // Times their sum, which rounding keeps from being 1: then a category ends above the number, and one of 0 never does.
  const at::Tensor below = ends <= numbers.unsqueeze(-1) * ends.slice(-1, -1);
  return below.sum(-1).clamp_max(probabilities.size(-1) - 1);
}

at::Tensor draw_category(at::Tensor& position, const at::Tensor& probabilities) {
  const at::Tensor numbers = draw_uniform(position, probabilities.sizes().slice(1, probabilities.dim() - 2));
  return choose_category(numbers.to(probabilities.device()), probabilities);
}

}  // namespace convssm::models
