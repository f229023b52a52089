// Caches grow a frame at a time, by one copy: beside the steps of a frame, each of which reads all of them, it is little.
#include "convssm/models/perceiver_ar/past.h"

#include <ATen/ATen.h>

#include <algorithm>

namespace convssm::models::perceiver_ar {

int64_t Sight::first_latent(int64_t p) const {
  const int64_t half = latents / 2;
  return std::max<int64_t>((p / half - 1) * half, 0);
}

int64_t Sight::first_input(int64_t latent) const { return std::max<int64_t>(latent + latents - context, 0); }

void KeyCache::reserve(int64_t begin, int64_t end, int64_t more) {
  begin = std::max(begin, first_), end = std::max(std::min(end, first_ + count_), begin);
  const KeysValues old = kept_;
  const auto moved = [&](const at::Tensor& x) {
    at::Tensor y = at::empty({x.size(0), x.size(1), end - begin + more, x.size(3)}, x.options());
    if (end > begin) y.narrow(2, 0, end - begin).copy_(x.narrow(2, begin - first_, end - begin));
    return y;
  };
  kept_ = {moved(old.keys), moved(old.values)};
  first_ = begin, count_ = end - begin;
}

void KeyCache::append(const KeysValues& more) {
  const int64_t m = more.keys.size(2);
  kept_.keys.narrow(2, count_, m).copy_(more.keys);
  kept_.values.narrow(2, count_, m).copy_(more.values);
  count_ += m;
}

KeysValues KeyCache::from(int64_t position) const {
  const int64_t skipped = position - first_;
  return {kept_.keys.narrow(2, skipped, count_ - skipped), kept_.values.narrow(2, skipped, count_ - skipped)};
}

}  // namespace convssm::models::perceiver_ar
