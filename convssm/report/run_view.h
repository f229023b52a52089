// A run folder as the report sees it: read only, and so that a missing or damaged part never stops the others.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "convssm/report/run_log.h"

namespace convssm::report {

struct Sample {
  std::string name;  // of the file
  std::string type;  // "image/gif" or "image/png"
  std::string bytes;
  int64_t width = 0, height = 0;
};

struct Samples {
  std::vector<Sample> shown;  // of the evaluation, then of training, newest first
  size_t left_out = 0;        // beyond the limit of bytes
};

struct RunView {
  std::string name;                // of the folder
  std::string path;                // to it, as it was given
  nlohmann::json status, metrics;  // {} if missing
  std::string config;
  RunLog log;
  Samples samples;
  std::optional<int64_t> newest_step;  // of the checkpoints; without any, the last step of the run
  std::vector<std::string> notes;      // what is missing or damaged, for the reader of the page
};

// `sample_bytes`: how much of images is taken in, before their encoding as text.
RunView read_run_view(const std::string& path, uint64_t sample_bytes);

// The values of its config.yaml; {} if it is damaged.
nlohmann::json parsed_config(const RunView& run);

// Whether the model of a config needs actions for its forecasts.
bool learned_from_actions(const nlohmann::json& config);

// The step of the checkpoint that was scored, if metrics.json says so.
std::optional<int64_t> scored_step(const nlohmann::json& metrics);

// A field of an object, if it is there and of that kind.
std::optional<double> number_at(const nlohmann::json& object, const char* key);
std::string text_at(const nlohmann::json& object, const char* key);

}  // namespace convssm::report
