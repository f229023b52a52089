#include "convssm/metrics/weights_import.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <vector>

#include "convssm/base/error.h"
#include "convssm/base/folder.h"
#include "convssm/io/safetensors.h"
#include "convssm/io/tf_bundle.h"
#include "convssm/io/torch_file.h"
#include "convssm/metrics/i3d_layout.h"
#include "convssm/metrics/lpips.h"

namespace convssm::metrics {
namespace {

namespace fs = std::filesystem;
using Tensors = std::vector<io::NamedArray>;

// Any file with names() and read().
template <typename File>
Tensors read_all(const File& file) {
  Tensors all;
  for (const std::string& name : file.names()) all.push_back({name, file.read(name)});
  return all;
}

Tensors read_state(const std::string& path) {
  return fs::path(path).extension() == ".safetensors" ? read_all(io::SafetensorsFile(path))
                                                      : read_all(io::TorchFile(path));
}

// model.ckpt.index and model.ckpt.data-00000-of-00001 -> model.ckpt
std::string bundle_prefix(const std::string& path) {
  for (const char* part : {".index", ".data-", ".meta"}) {
    if (const size_t at = path.rfind(part); at != std::string::npos) return path.substr(0, at);
  }
  return path;
}

// The tensors of the network alone; the checkpoint may hold more.
Tensors read_i3d(const std::string& prefix) {
  const io::TfBundle bundle(bundle_prefix(prefix));
  Tensors all;
  for (const auto& [name, shape] : i3d_tensors()) all.push_back({name, bundle.read(name)});
  return all;
}

// "features.0.weight" -> "0.weight"; the classifier is left out. A file of the features alone is taken as it is.
Tensors features_of(const Tensors& state) {
  const std::string prefix = "features.";
  Tensors features;
  for (const auto& [name, array] : state) {
    if (name.starts_with(prefix)) features.push_back({name.substr(prefix.size()), array});
  }
  return features.empty() ? state : features;
}

// Loading it as the metric would is the check. The other half of LPIPS is not needed for that.
void check(const std::string& name, const std::string& path) {
  static const std::map<std::string, LpipsBackbone> backbones = {
      {"squeezenet", LpipsBackbone::squeeze}, {"alexnet", LpipsBackbone::alex}, {"vgg16", LpipsBackbone::vgg}};
  static const std::map<std::string, LpipsBackbone> heads = {{"lpips_squeeze", LpipsBackbone::squeeze},
                                                             {"lpips_alex", LpipsBackbone::alex},
                                                             {"lpips_vgg", LpipsBackbone::vgg}};
  if (name == "i3d") {
    I3dWeights weights(path);
  } else if (const auto found = backbones.find(name); found != backbones.end()) {
    LpipsNetwork network(found->second, path);
  } else {
    const WeightFile file(heads.at(name), path);
    for (const auto& [tensor, shape] : lpips_head_tensors(heads.at(name))) file.read(tensor, shape);
  }
}

}  // namespace

ImportedWeights import_weights(const std::string& name, const std::string& from, const WeightFolder& folder) {
  ImportedWeights result{folder.path(name)};
  const bool is_network = name == "squeezenet" || name == "alexnet" || name == "vgg16";
  const Tensors tensors = name == "i3d" ? read_i3d(from)
                          : is_network  ? features_of(read_state(from))
                                        : read_state(from);
  make_folder(folder.folder());
  const std::string candidate = result.path + ".new";
  io::write_safetensors(candidate, tensors, {{"source", fs::path(from).filename().string()}});
  try {
    check(name, candidate);
  } catch (const Error& error) {
    fs::remove(candidate);
    fail(ErrorKind::data, "'{}' does not hold the weights '{}': {}", from, name, error.what());
  }
  fs::rename(candidate, result.path);
  result.tensors = tensors.size();
  for (const auto& tensor : tensors) result.bytes += tensor.array.byte_count();
  return result;
}

}  // namespace convssm::metrics
