// A run as a row of results: what a run folder says without its checkpoints, and `record.json` beside it,
//   {"row": "convs5", "label": "ConvS5", "part": "table", "place": 3, "of": "convs5", "lr": 0.001,
//    "commands": ["convssm train ..."], "commit": "28edc9c", "machine": "2 cores", "threads": 1}
// and in a sweep {"validation": {"psnr_f01": 17.5}} or {"diverged": true}.
// All of it may be missing: any run folder is a row of the table under its name.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace convssm::report {

struct Record {
  std::string folder;          // its path
  std::string row, label;      // the name to choose it by, and the one to show
  std::string part = "table";  // table, or of the row `of` a seed, an ablation, a sweep, a rate; model: none of these
  std::string of;              // the row it belongs to
  double place = 0;            // rows ascend by it
  nlohmann::json about, status, metrics;  // record.json, status.json, metrics.json; {} if missing
  nlohmann::json data;                    // what it was scored on, or else trained on: a section `data`; {} if missing
  std::optional<int64_t> scored_step, newest_step;  // of the scores, and of the checkpoints
  std::optional<double> parameters, lr, seed;
  std::optional<double> training_minutes;   // of all its frames at the median speed of its log
  std::optional<double> frames_per_second;  // of generation, by speed.json
  std::optional<double> validation_psnr, validation_loss;
  bool diverged = false;

  bool evaluated() const;  // has scores
  bool stale() const;      // which are older than the newest checkpoint
};

// The record of a run folder. A missing or damaged part is left out.
Record read_record(const std::string& folder);

// All of it as one object; what is missing is null.
nlohmann::json to_json(const Record& record);

// Those of run folders, and of folders that hold run folders, by place. Error(usage) for a path without any.
std::vector<Record> read_records(const std::vector<std::string>& paths);

// Those of the rows named, with their seeds; all if none is. Error(usage) for a name that no row has.
std::vector<Record> only_rows(const std::vector<Record>& records, const std::vector<std::string>& names);

}  // namespace convssm::report
