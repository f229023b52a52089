// Training time is computed from the median speed and not from the clock, which includes pauses and other people's
// load. record.json overrides what the folder says by itself; folders are sorted, so that rows keep their order.
#include "convssm/report/record.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>

#include "convssm/base/error.h"
#include "convssm/base/json.h"
#include "convssm/base/nearest.h"
#include "convssm/report/run_view.h"
#include "convssm/report/scores.h"

namespace convssm::report {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

json read_json(const fs::path& path) {
  const json value = try_read_json(path.string()).value_or(json());
  return value.is_object() ? value : json::object();
}

json object_at(const json& object, const char* key) {
  return object.is_object() && object.contains(key) && object[key].is_object() ? object[key] : json::object();
}

std::optional<double> first_of(std::optional<double> a, std::optional<double> b) { return a ? a : b; }

// A machine that did other things for a while disturbs the time of a run, but hardly its median speed.
std::optional<double> median(const Curve* curve) {
  std::vector<double> values;
  for (const Point& point : curve != nullptr ? curve->points : std::vector<Point>{}) {
    if (std::isfinite(point.y) && point.y > 0) values.push_back(point.y);
  }
  if (values.empty()) return std::nullopt;
  std::sort(values.begin(), values.end());
  return (values[(values.size() - 1) / 2] + values[values.size() / 2]) / 2;
}

std::optional<double> last(const Curve* curve) {
  if (curve == nullptr || curve->points.empty() || !std::isfinite(curve->points.back().y)) return std::nullopt;
  return curve->points.back().y;
}

std::optional<double> training_minutes(const RunView& run, const json& train) {
  const auto steps = first_of(number_at(run.status, "step"), number_at(train, "steps"));
  const auto batch = number_at(train, "batch"), frames = number_at(train, "frames");
  const auto speed = median(RunLog::find(run.log.training, "frames_per_second"));
  if (!steps || !batch || !frames || !speed) return std::nullopt;
  return *steps * *batch * *frames / *speed / 60;
}

void name(Record& record, const std::string& folder_name) {
  const auto text = [&](const char* key, const std::string& otherwise) {
    const std::string found = text_at(record.about, key);
    return found.empty() ? otherwise : found;
  };
  record.row = text("row", folder_name);
  record.label = text("label", record.row);
  record.part = text("part", "table");
  record.of = text("of", record.row);
  record.place = number_at(record.about, "place").value_or(std::numeric_limits<double>::infinity());
}

bool is_run_folder(const fs::path& path) {
  for (const char* file : {"config.yaml", "metrics.json", "record.json"}) {
    if (fs::is_regular_file(path / file)) return true;
  }
  return false;
}

std::vector<fs::path> run_folders(const fs::path& path) {
  if (!fs::is_directory(path)) {
    fail(ErrorKind::usage, "[results] expected a run folder or a folder of run folders, but {} is not a folder",
         path.string());
  }
  if (is_run_folder(path)) return {path};
  std::vector<fs::path> found;
  for (const auto& entry : fs::directory_iterator(path)) {
    if (entry.is_directory() && is_run_folder(entry.path())) found.push_back(entry.path());
  }
  if (found.empty()) {
    fail(ErrorKind::usage, "[results] {} holds no run: expected config.yaml or metrics.json in it or in its folders",
         path.string());
  }
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace

bool Record::evaluated() const {
  return std::ranges::any_of(scored_settings(metrics), [](const ScoredSetting& setting) {
    const json& scores = *setting.scores;
    return scores.is_object() && scores.contains("horizons") && scores["horizons"].is_array() &&
           !scores["horizons"].empty();
  });
}

bool Record::stale() const { return evaluated() && scored_step && newest_step && *scored_step < *newest_step; }

Record read_record(const std::string& folder) {
  const RunView run = read_run_view(folder, 0);
  const json config = parsed_config(run), train = object_at(config, "train");
  Record record;
  record.folder = folder;
  record.about = read_json(fs::path(folder) / "record.json");
  record.status = run.status;
  record.metrics = run.metrics;
  record.scored_step = scored_step(run.metrics);
  record.newest_step = run.newest_step;
  record.data = object_at(object_at(run.metrics, "protocol"), "data");
  if (record.data.empty()) record.data = object_at(config, "data");
  name(record, run.name);
  record.parameters = number_at(run.status, "parameters");
  record.lr = first_of(number_at(record.about, "lr"), number_at(train, "lr"));
  record.seed = number_at(config, "seed");
  record.training_minutes = training_minutes(run, train);
  record.frames_per_second = number_at(read_json(fs::path(folder) / "speed.json"), "frames_per_second");
  const json validation = object_at(record.about, "validation");
  const auto score = [&](const char* key) {
    return first_of(number_at(validation, key), last(RunLog::find(run.log.validation, key)));
  };
  record.validation_psnr = score("psnr_f01");
  record.validation_loss = score("loss");
  record.diverged = record.about.value("diverged", json()) == true;
  return record;
}

json to_json(const Record& record) {
  const auto number = [](const std::optional<double>& value) { return value ? json(*value) : json(); };
  return {{"folder", record.folder},
          {"row", record.row},
          {"label", record.label},
          {"part", record.part},
          {"of", record.of},
          {"parameters", number(record.parameters)},
          {"lr", number(record.lr)},
          {"seed", number(record.seed)},
          {"training_minutes", number(record.training_minutes)},
          {"frames_per_second", number(record.frames_per_second)},
          {"validation_psnr", number(record.validation_psnr)},
          {"validation_loss", number(record.validation_loss)},
          {"diverged", record.diverged},
          {"data", record.data},
          {"scored_step", record.scored_step ? json(*record.scored_step) : json()},
          {"newest_step", record.newest_step ? json(*record.newest_step) : json()},
          {"record", record.about},
          {"status", record.status},
          {"metrics", record.metrics}};
}

std::vector<Record> read_records(const std::vector<std::string>& paths) {
  std::vector<Record> records;
  for (const std::string& path : paths) {
    for (const fs::path& folder : run_folders(path)) records.push_back(read_record(folder.string()));
  }
  std::stable_sort(records.begin(), records.end(), [](const Record& a, const Record& b) { return a.place < b.place; });
  return records;
}

std::vector<Record> only_rows(const std::vector<Record>& records, const std::vector<std::string>& names) {
  std::vector<std::string> known;
  for (const Record& record : records) known.push_back(record.row);
  for (const std::string& name : names) {
    if (std::find(known.begin(), known.end(), name) == known.end()) fail_unknown("[results] unknown row", name, known);
  }
  std::vector<Record> chosen;
  const auto named = [&](const std::string& row) { return std::find(names.begin(), names.end(), row) != names.end(); };
  std::copy_if(records.begin(), records.end(), std::back_inserter(chosen), [&](const Record& record) {
    return names.empty() || named(record.row) || (record.part == "seed" && named(record.of));
  });
  return chosen;
}

}  // namespace convssm::report
