// Packing is paid once per weight tensor and not once per frame. An entry is known by address, version counter, shape
// and strides, and a weak pointer tells when its storage died: addresses are used again. Training changes the weights
// at every step and bypasses the cache.
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

at::Tensor pack(const WinogradWeights& weights, int64_t in, int64_t out, const at::Tensor& like) {
  at::Tensor packed = at::empty({static_cast<int64_t>(winograd_packed_size(in, out))}, like.options());
  winograd_pack(weights, in, out, packed.data_ptr<float>());
  return packed;
}

// With the taps of a kernel evenly apart, as all the usual layouts have them.
at::Tensor even_taps(const at::Tensor& weight) {
  return weight.stride(2) == 3 * weight.stride(3) ? weight : weight.contiguous();
}

bool same(const Kept& kept, const at::Tensor& weight) {
  return kept.data == weight.data_ptr() && kept.version == weight._version() && weight.sizes() == kept.sizes &&
         weight.strides() == kept.strides && kept.panel == winograd_panel();
}

}  // namespace

at::Tensor pack_for_forward(const at::Tensor& weight) {
  const at::Tensor w = even_taps(weight);
  return pack({w.data_ptr<float>(), w.stride(0), w.stride(1), w.stride(3)}, w.size(1), w.size(0), w);
}

at::Tensor pack_for_input_gradient(const at::Tensor& weight) {
  const at::Tensor w = even_taps(weight);
  return pack({w.data_ptr<float>(), w.stride(1), w.stride(0), w.stride(3), true}, w.size(0), w.size(1), w);
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
