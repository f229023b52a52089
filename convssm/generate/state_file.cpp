// A safetensors file with the names of the state and, in its header, whose state it is.
#include "convssm/generate/state_file.h"

#include <ATen/ATen.h>

#include "convssm/base/error.h"
#include "convssm/io/safetensors.h"
#include "convssm/io/tensor.h"

namespace convssm::generate {

void save_state(const std::string& path, const models::State& state, const StateOwner& owner) {
  std::vector<io::NamedArray> arrays;
  for (const auto& [name, value] : state.items()) arrays.push_back({name, io::to_array(value)});
  io::Metadata about{{"kind", "convssm state"}, {"model", owner.checksum}, {"weights", owner.weights}};
  if (!owner.frames.empty()) about["frames"] = owner.frames;
  io::write_safetensors(path, arrays, about, io::Stamp::checksum);
}

models::State load_state(const std::string& path, const StateOwner& owner) {
  const io::SafetensorsFile file(path);
  const auto kind = file.metadata().find("kind"), model = file.metadata().find("model"),
             weights = file.metadata().find("weights"), frames = file.metadata().find("frames");
  if (kind == file.metadata().end() || kind->second != "convssm state" || model == file.metadata().end()) {
    fail(ErrorKind::data, "{} is not a saved state; --save-state writes one", path);
  }
  if (model->second != owner.checksum) {
    fail(ErrorKind::data, "{} was saved by another model (checksum {}, this one has {})", path, model->second,
         owner.checksum);
  }
  if (weights != file.metadata().end() && weights->second != owner.weights) {
    fail(ErrorKind::data, "{} was saved with the {} weights, these are the {} ones; --without-average chooses", path,
         weights->second, owner.weights);
  }
  if (frames != file.metadata().end() && !owner.frames.empty() && frames->second != owner.frames) {
    fail(ErrorKind::data, "{} was saved with frames of {}, the model runs on {}; give --size {}", path, frames->second,
         owner.frames, frames->second);
  }
  file.verify();
  models::State state;
  for (const std::string& name : file.names()) state.set(name, io::to_tensor(file.read(name)));
  return state;
}

}  // namespace convssm::generate
