#include "convssm/metrics/feature_store.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <filesystem>
#include <span>

#include "convssm/base/error.h"
#include "convssm/base/folder.h"
#include "convssm/io/checksum.h"
#include "convssm/io/tensor.h"

namespace convssm::metrics {
namespace {

std::string checksum_of(const at::Tensor& clip) {
  io::Checksum sum;
  const std::string shape = fmt::format("{} {}", fmt::join(clip.sizes(), "x"), at::toString(clip.scalar_type()));
  const at::Tensor bytes = clip.contiguous();
  sum.add(std::as_bytes(std::span(shape)));
  sum.add({static_cast<const std::byte*>(bytes.data_ptr()), bytes.nbytes()});
  return sum.text();
}

}  // namespace

FeatureStore::FeatureStore(std::string folder, std::string network)
    : folder_(std::move(folder)), network_(std::move(network)) {}

at::Tensor FeatureStore::of(const at::Tensor& clip, const std::function<at::Tensor()>& compute) const {
  if (folder_.empty()) return compute();
  const std::string path = fmt::format("{}/{}-{}.safetensors", folder_, network_, checksum_of(clip));
  if (std::filesystem::exists(path)) {
    try {
      const io::NamedTensors kept = io::load_tensors(path);
      if (kept.size() == 1) return kept[0].second;
    } catch (const Error&) {  // made anew below
    }
  }
  make_folder(folder_);
  const at::Tensor features = compute();
  io::save_tensors(path, {{"features", features}});
  return features;
}

}  // namespace convssm::metrics
