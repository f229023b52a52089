// The parameters have the same names in both, behind "autoencoder." here. Nothing of the file is run (io/torch_file.h).
#include "convssm/run/import_vqgan.h"

#include <ATen/ATen.h>

#include <filesystem>
#include <map>

#include "convssm/base/atomic_file.h"
#include "convssm/base/error.h"
#include "convssm/base/folder.h"
#include "convssm/io/safetensors.h"
#include "convssm/io/tensor.h"
#include "convssm/io/torch_file.h"
#include "convssm/io/yaml.h"
#include "convssm/models/registry.h"
#include "convssm/ops/check.h"
#include "convssm/run/config.h"
#include "convssm/run/model_file.h"

namespace convssm::run {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// The tensors of a file by name, without those of the training's losses.
struct VqGanState {
  std::string from;
  std::map<std::string, at::Tensor> tensors;
  size_t left_out = 0;

  bool has(const std::string& name) const { return tensors.contains(name); }

  const at::Tensor& get(const std::string& name, int64_t dims) const {
    const auto found = tensors.find(name);
    if (found == tensors.end())
      fail(ErrorKind::data, "'{}' is no VQ-GAN of the public layout: it has no {}", from, name);
    if (found->second.dim() != dims) {
      fail(ErrorKind::data, "'{}': {} must have {} dimensions, got {}", from, name, dims,
           ops::shape_text(found->second.sizes()));
    }
    return found->second;
  }
};

template <typename File>
VqGanState read_state(const File& file, const std::string& from) {
  VqGanState state{from, {}, 0};
  for (const std::string& name : file.names()) {
    if (name.starts_with("loss.")) {
      ++state.left_out;
      continue;
    }
    const at::Tensor values = io::to_tensor(file.read(name));
    if (!values.is_floating_point()) fail(ErrorKind::data, "'{}': {} must hold floats", from, name);
    state.tensors.emplace(name, values.to(at::kFloat));
  }
  return state;
}

// What network it is, by the tensors that there are.
json describe_network(const VqGanState& state, int64_t height) {
  const int64_t features = state.get("encoder.conv_in.weight", 4).size(0);
  const auto level = [](size_t i) { return fmt::format("encoder.down.{}.", i); };
  std::vector<int64_t> multipliers, attention;
  for (size_t i = 0; state.has(level(i) + "block.0.conv1.weight"); ++i) {
    const int64_t wide = state.get(level(i) + "block.0.conv1.weight", 4).size(0);
    if (features == 0 || wide % features != 0) {
      fail(ErrorKind::data, "'{}': level {} has {} channels, which are no multiple of the first {}", state.from, i,
           wide, features);
    }
    multipliers.push_back(wide / features);
    if (state.has(level(i) + "attn.0.q.weight")) attention.push_back(height >> i);
  }
  int64_t blocks = 0;
  while (state.has(fmt::format("encoder.down.0.block.{}.conv1.weight", blocks))) ++blocks;
  const at::Tensor& table = state.get("quantize.embedding.weight", 2);
  return {{"name", "vqgan"},
          {"features", features},
          {"multipliers", multipliers},
          {"blocks", blocks},
          {"attention", attention},
          {"latent", state.get("encoder.conv_out.weight", 4).size(0)},
          {"quantizer", {{"name", "gradient"}, {"size", table.size(0)}, {"features", table.size(1)}}},
          {"discriminator", {{"weight", 0}}}};
}

void fill(models::Model& model, VqGanState& state) {
  const at::NoGradGuard no_grad;
  const std::string prefix = "autoencoder.";
  for (auto& item : model.named_parameters()) {
    const std::string name = item.key().substr(prefix.size());
    const at::Tensor& values = state.get(name, item.value().dim());
    if (values.sizes() != item.value().sizes()) {
      fail(ErrorKind::data, "'{}': {} must be {}, got {}", state.from, name, ops::shape_text(item.value().sizes()),
           ops::shape_text(values.sizes()));
    }
    if (!at::isfinite(values).all().item<bool>())
      fail(ErrorKind::data, "'{}': NaN or infinity in {}", state.from, name);
    item.value().copy_(values);
    state.tensors.erase(name);
  }
  if (state.tensors.empty()) return;
  fail(ErrorKind::data, "'{}' has {} tensors that the layout does not know, the first is {}: another network",
       state.from, state.tensors.size(), state.tensors.begin()->first);
}

}  // namespace

ImportedVqGan import_vqgan(const VqGanImport& import) {
  if (import.height <= 0 || import.width <= 0)
    fail(ErrorKind::usage, "the size of the frames is not in the file; give it, as --size 64x64");
  ImportedVqGan result{import.out + "/model.safetensors", {}, 0, 0, ""};
  if (fs::exists(result.path)) fail(ErrorKind::usage, "{} is there already; give another folder", result.path);
  const bool safe = fs::path(import.from).extension() == ".safetensors";
  VqGanState state = safe ? read_state(io::SafetensorsFile(import.from), import.from)
                          : read_state(io::TorchFile(import.from), import.from);
  const json options = describe_network(state, import.height);
  const data::FrameFormat frames(state.get("encoder.conv_in.weight", 4).size(1), import.height, import.width);
  const Config config = Config::from_json({{"model", options}, {"data", {{"name", "folder"}, {"path", "."}}}});
  const auto model = make_model(config, frames);
  result.tensors = state.tensors.size();
  result.left_out = state.left_out;
  result.model = config.model;
  result.description = model->description();
  fill(*model, state);
  make_folder(import.out);
  save_model(result.path, *model, {config.model, frames, config.to_json(), 0});
  replace_file(import.out + "/config.yaml", io::to_yaml(config.to_json()));
  return result;
}

}  // namespace convssm::run
