// A safetensors file with the names of the state and, in its header, whose state it is and where and when its last frames were.
// `place.measured` [futures,C,H,W] stands beside the tensors of the state, which have no such name.
#include "convssm/generate/state_file.h"

#include <ATen/ATen.h>

#include <nlohmann/json.hpp>

#include "convssm/base/error.h"
#include "convssm/base/json.h"
#include "convssm/io/safetensors.h"
#include "convssm/io/tensor.h"
#include "convssm/ops/check.h"

namespace convssm::generate {
namespace {

using nlohmann::json;

constexpr const char *kPlace = "place", *kMeasured = "place.measured";

json axis_json(const data::Axis& axis) { return {{"name", axis.name}, {"units", axis.units}, {"values", axis.values}}; }

data::Axis axis_from(const json& axis) {
  return {axis.at("name").get<std::string>(), axis.at("units").get<std::string>(),
          axis.at("values").get<std::vector<double>>()};
}

// The futures of one state are on one grid.
json places_json(const std::vector<data::FieldPlace>& places) {
  const data::Axes& axes = places[0].axes;
  json times = json::array();
  for (const data::FieldPlace& place : places) times.push_back(place.times.empty() ? json() : json(place.times.back()));
  return {{"rows", axis_json(axes.rows)}, {"columns", axis_json(axes.columns)},
          {"calendar", axes.calendar},    {"step", axes.step},
          {"months", axes.months},        {"times", times}};
}

std::vector<data::FieldPlace> places_from(const json& about, const at::Tensor& measured, const std::string& path) {
  std::vector<data::FieldPlace> places;
  try {
    const data::Axes axes{axis_from(about.at("rows")), axis_from(about.at("columns")),
                          about.at("calendar").get<std::string>(), about.at("step").get<double>(),
                          about.at("months").get<int64_t>()};
    for (const json& time : about.at("times")) {
      places.push_back({axes, {}});
      if (!time.is_null()) places.back().times = {time.get<double>()};
    }
  } catch (const json::exception& error) {
    fail(ErrorKind::data, "{} does not describe the place of its state: {}", path, error.what());
  }
  if (!measured.defined()) return places;
  if (measured.dim() != 4 || measured.size(0) != std::ssize(places)) {
    fail(ErrorKind::data, "{}: its {} must be [{},C,H,W], got {}", path, kMeasured, places.size(),
         ops::shape_text(measured.sizes()));
  }
  for (size_t i = 0; i < places.size(); ++i) places[i].measured = measured[static_cast<int64_t>(i)].to(at::kBool);
  return places;
}

}  // namespace

void save_state(const std::string& path, const SavedState& saved, const StateOwner& owner) {
  std::vector<io::NamedArray> arrays;
  for (const auto& [name, value] : saved.state.items()) arrays.push_back({name, io::to_array(value)});
  io::Metadata about{{"kind", "convssm state"}, {"model", owner.checksum}, {"weights", owner.weights}};
  if (!owner.frames.empty()) about["frames"] = owner.frames;
  if (!saved.places.empty()) {
    about[kPlace] = places_json(saved.places).dump();
    std::vector<at::Tensor> measured;
    for (const data::FieldPlace& place : saved.places) {
      if (place.measured.defined()) measured.push_back(place.measured.to(at::kByte));
    }
    if (measured.size() == saved.places.size()) arrays.push_back({kMeasured, io::to_array(at::stack(measured))});
  }
  io::write_safetensors(path, arrays, about, io::Stamp::checksum);
}

SavedState load_state(const std::string& path, const StateOwner& owner) {
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
  SavedState saved;
  at::Tensor measured;
  for (const std::string& name : file.names()) {
    const at::Tensor value = io::to_tensor(file.read(name));
    if (name == kMeasured) {
      measured = value;
    } else {
      saved.state.set(name, value);
    }
  }
  const auto place = file.metadata().find(kPlace);
  if (place == file.metadata().end()) return saved;
  saved.places = places_from(parse_json(place->second, path), measured, path);
  return saved;
}

}  // namespace convssm::generate
