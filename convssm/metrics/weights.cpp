// The files are not part of this project: their licences are their owners'. An error therefore ends with the commands
// that fetch and import what is missing.
#include "convssm/metrics/weights.h"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>

#include "convssm/base/error.h"
#include "convssm/base/nearest.h"
#include "convssm/io/checksum.h"

namespace convssm::metrics {
namespace {

namespace fs = std::filesystem;

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string usual_folder() {
  if (const std::string chosen = variable("CONVSSM_WEIGHTS"); !chosen.empty()) return chosen;
  const std::string data = variable("XDG_DATA_HOME"), home = variable("HOME");
  if (!data.empty()) return data + "/convssm/weights";
  return (home.empty() ? "." : home + "/.local/share") + std::string("/convssm/weights");
}

WeightInfo backbone(const char* name, const char* file, const char* title, const char* source) {
  return {name,
          file,
          fmt::format("{} of torchvision, trained on ImageNet: the convolutions", title),
          {fmt::format("download https://download.pytorch.org/models/{}", source),
           fmt::format("convssm weights import {} {}", name, source)}};
}

WeightInfo heads(const char* backbone) {
  const std::string name = fmt::format("lpips_{}", backbone);
  return {name,
          fmt::format("{}.linear.v0_1.safetensors", name),
          "the linear heads of LPIPS v0.1 on this network",
          {"git clone https://github.com/richzhang/PerceptualSimilarity",
           fmt::format("convssm weights import {} PerceptualSimilarity/lpips/weights/v0.1/{}.pth", name, backbone)}};
}

}  // namespace

const std::vector<WeightInfo>& all_weights() {
  static const std::vector<WeightInfo> files{
      backbone("squeezenet", "squeezenet1_1.features.safetensors", "SqueezeNet 1.1", "squeezenet1_1-b8a52dc0.pth"),
      backbone("alexnet", "alexnet.features.safetensors", "AlexNet", "alexnet-owt-7be5be79.pth"),
      backbone("vgg16", "vgg16.features.safetensors", "VGG16", "vgg16-397923af.pth"),
      heads("squeeze"),
      heads("alex"),
      heads("vgg"),
      {"i3d",
       "i3d_rgb_scratch.safetensors",
       "I3D RGB, trained from scratch on Kinetics-400 (not rgb_imagenet)",
       {"git clone https://github.com/google-deepmind/kinetics-i3d",
        "convssm weights import i3d kinetics-i3d/data/checkpoints/rgb_scratch/model.ckpt"}},
  };
  return files;
}

const WeightInfo& find_weights(const std::string& name) {
  std::vector<std::string> known;
  for (const WeightInfo& file : all_weights()) {
    if (file.name == name) return file;
    known.push_back(file.name);
  }
  fail_unknown("unknown weights", name, known);
}

WeightFolder::WeightFolder(const std::string& folder) : folder_(folder.empty() ? usual_folder() : folder) {}

std::string WeightFolder::path(const std::string& name) const { return folder_ + "/" + find_weights(name).file; }

bool WeightFolder::has(const std::string& name) const {
  std::error_code error;
  return fs::exists(path(name), error);
}

std::string WeightFolder::existing(const std::string& name) const {
  if (!has(name)) fail(ErrorKind::data, "{}", missing_text(name));
  return path(name);
}

std::string WeightFolder::checksum(const std::string& name) const { return io::file_checksum(path(name)); }

std::string WeightFolder::missing_text(const std::string& name) const {
  const WeightInfo& file = find_weights(name);
  std::string text = fmt::format("there is no {} in {} ({}). To get it:", file.file, folder_, file.what);
  for (const std::string& step : file.steps) text += "\n    " + step;
  return text;
}

}  // namespace convssm::metrics
