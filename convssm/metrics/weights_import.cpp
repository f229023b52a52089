// Only the tensors that a metric reads are taken, each checked by name, type and shape, so that a file of another
// network is refused here and not at the first evaluation. What is written is safetensors whatever came in.
#include "convssm/metrics/weights_import.h"

#include <ATen/ATen.h>

#include <filesystem>
#include <map>
#include <utility>
#include <vector>

#include "convssm/base/error.h"
#include "convssm/base/folder.h"
#include "convssm/io/safetensors.h"
#include "convssm/io/tensor.h"
#include "convssm/io/tf_bundle.h"
#include "convssm/io/torch_file.h"
#include "convssm/metrics/i3d_layout.h"
#include "convssm/metrics/lpips_backbones.h"
#include "convssm/ops/check.h"

namespace convssm::metrics {
namespace {

namespace fs = std::filesystem;
using Tensors = std::vector<io::NamedArray>;
using Shapes = std::vector<std::pair<std::string, std::vector<int64_t>>>;

// The tensors of the weights of this name.
Shapes tensors_of(const std::string& name) {
  static const std::map<std::string, LpipsBackbone> networks = {
      {"squeezenet", LpipsBackbone::squeeze}, {"alexnet", LpipsBackbone::alex}, {"vgg16", LpipsBackbone::vgg}};
  if (name == "i3d") return i3d_tensors();
  if (const auto found = networks.find(name); found != networks.end()) return lpips_network_tensors(found->second);
  for (const auto& [network, backbone] : networks) {
    if (name == lpips_name(backbone)) return lpips_head_tensors(backbone);
  }
  fail(ErrorKind::usage, "the weights '{}' cannot be imported", name);
}

// model.ckpt.index and model.ckpt.data-00000-of-00001 -> model.ckpt
std::string bundle_prefix(const std::string& path) {
  const std::string file = fs::path(path).filename().string();
  for (const char* part : {".index", ".data-", ".meta"}) {
    if (const size_t at = file.rfind(part); at != std::string::npos) {
      return path.substr(0, path.size() - file.size() + at);
    }
  }
  return path;
}

// The wanted tensors and no other, each by its name or behind "features.", as torchvision's whole networks have it.
template <typename File>
Tensors read_wanted(const File& file, const Shapes& wanted, const std::string& name, const std::string& from) {
  Tensors all;
  for (const auto& [tensor, shape] : wanted) {
    const auto refuse = [&, &t = tensor, &s = shape](const std::string& found) {
      fail(ErrorKind::data, "'{}' does not hold the weights '{}': {} must be f32 {}, got {}", from, name, t,
           ops::shape_text(s), found);
    };
    const std::string own = file.contains("features." + tensor) ? "features." + tensor : tensor;
    if (!file.contains(own)) refuse("no such tensor");
    const auto& info = file.info(own);
    if (info.dtype != io::DType::f32 || info.shape != shape) {
      refuse(fmt::format("{} {}", io::dtype_name(info.dtype), ops::shape_text(info.shape)));
    }
    all.push_back({tensor, file.read(own)});
    if (!at::isfinite(io::to_tensor(all.back().array)).all().item<bool>()) refuse("NaN or infinity in it");
  }
  return all;
}

Tensors read_tensors(const std::string& name, const std::string& from) {
  const Shapes wanted = tensors_of(name);
  if (name == "i3d") return read_wanted(io::TfBundle(bundle_prefix(from)), wanted, name, from);
  if (fs::path(from).extension() == ".safetensors") {
    return read_wanted(io::SafetensorsFile(from), wanted, name, from);
  }
  return read_wanted(io::TorchFile(from), wanted, name, from);
}

}  // namespace

ImportedWeights import_weights(const std::string& name, const std::string& from, const WeightFolder& folder) {
  ImportedWeights result{folder.path(name)};
  const Tensors tensors = read_tensors(name, from);
  make_folder(folder.folder());
  io::write_safetensors(result.path, tensors, {{"source", fs::path(from).filename().string()}});
  result.tensors = tensors.size();
  for (const auto& tensor : tensors) result.bytes += tensor.array.byte_count();
  return result;
}

}  // namespace convssm::metrics
