#include "convssm/ops/packed_weights.h"

#include <ATen/ATen.h>
#include <c10/core/StorageImpl.h>

#include <algorithm>
#include <list>
#include <mutex>

#include "convssm/ops/winograd.h"

namespace convssm::ops {
namespace {

constexpr size_t kMostKept = 256;  // convolutions of a large model

struct Kept {
  c10::weak_intrusive_ptr<c10::StorageImpl> storage;
  void* data;
  int64_t version;
  std::vector<int64_t> sizes, strides;
  int64_t panel;  // of the instruction set it was packed for
  at::Tensor packed;
};

struct Cache {
  std::mutex mutex;
  std::list<Kept> all;  // last used first
};

Cache& cache() {
  static Cache one;
  return one;
}

at::Tensor pack(const at::Tensor& taps) {
  const int64_t in = taps.size(2), out = taps.size(3);
  at::Tensor packed = at::empty({static_cast<int64_t>(winograd_packed_size(in, out))}, taps.options());
  winograd_pack(taps.data_ptr<float>(), in, out, packed.data_ptr<float>());
  return packed;
}

bool same(const Kept& kept, const at::Tensor& weight) {
  return kept.data == weight.data_ptr() && kept.version == weight._version() && weight.sizes() == kept.sizes &&
         weight.strides() == kept.strides && kept.panel == winograd_panel();
}

}  // namespace

at::Tensor pack_for_forward(const at::Tensor& weight) {
  return pack(weight.detach().permute({2, 3, 1, 0}).contiguous());
}

at::Tensor pack_for_input_gradient(const at::Tensor& weight) {
  return pack(weight.detach().flip({2, 3}).permute({2, 3, 0, 1}).contiguous());
}

void forget_pack(const at::Tensor& weight) {
  const std::lock_guard lock(cache().mutex);
  cache().all.remove_if([&](const Kept& kept) { return kept.data == weight.data_ptr() || kept.storage.expired(); });
}

at::Tensor kept_pack(const at::Tensor& weight) {
  if (weight.is_inference()) return pack_for_forward(weight);  // knows no versions
  const std::lock_guard lock(cache().mutex);
  std::list<Kept>& all = cache().all;
  all.remove_if([](const Kept& kept) { return kept.storage.expired(); });
  const auto found = std::find_if(all.begin(), all.end(), [&](const Kept& kept) { return same(kept, weight); });
  if (found != all.end()) {
    all.splice(all.begin(), all, found);
    return found->packed;
  }
  Kept kept{c10::weak_intrusive_ptr<c10::StorageImpl>(
                c10::intrusive_ptr<c10::StorageImpl>::reclaim_copy(weight.storage().unsafeGetStorageImpl())),
            weight.data_ptr(),
            static_cast<int64_t>(weight._version()),
            weight.sizes().vec(),
            weight.strides().vec(),
            winograd_panel(),
            pack_for_forward(weight)};
  all.push_front(std::move(kept));
  if (all.size() > kMostKept) all.pop_back();
  return all.front().packed;
}

}  // namespace convssm::ops
