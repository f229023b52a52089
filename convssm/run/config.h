// A run in one file: `seed`, and the sections `model`, `data`, `train` and `evaluate`. Read strictly: a key that nobody
// knows is an error that names the nearest known one. Objects are assembled from it here and nowhere else.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>

#include "convssm/data/dataset.h"
#include "convssm/models/model.h"
#include "convssm/train/options.h"

namespace convssm::run {

struct Config {
  uint64_t seed = 1;  // of initial values and the order of clips
  nlohmann::json model = nlohmann::json::object(), data = nlohmann::json::object();
  nlohmann::json evaluate = nlohmann::json::object();  // read by the evaluation
  train::TrainOptions train;

  static Config from_json(const nlohmann::json& json);
  nlohmann::json to_json() const;  // with what was left to its default in `train`
};

// `data.seed` (default 1) makes the clips, so that other seeds of a run see the same data.
std::shared_ptr<const data::Dataset> make_dataset(const Config& config);
std::shared_ptr<models::Model> make_model(const Config& config, const data::FrameFormat& frames);

// The keys in which two configs differ, as "train.lr: 0.001 -> 0.0005".
std::vector<std::string> differences(const nlohmann::json& before, const nlohmann::json& after);

// Whether a run can go on after such a difference: in `train` and `evaluate`, not in model, data or seed.
bool may_change(const std::string& difference);

}  // namespace convssm::run
