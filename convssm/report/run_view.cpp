// Reading never throws for what a run folder may lack: a page is wanted most when a run went wrong. Whatever is missing
// or damaged becomes a note. Image sizes are read from the first bytes, without decoding.
#include "convssm/report/run_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>

#include "convssm/base/error.h"
#include "convssm/base/json.h"
#include "convssm/base/read_file.h"
#include "convssm/io/yaml.h"

namespace convssm::report {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

bool is_file(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

json read_object(const fs::path& path, const std::string& what, std::vector<std::string>& notes) {
  const std::string name = path.filename().string();
  if (!is_file(path)) {
    notes.push_back(fmt::format("No {}: {}.", name, what));
    return json::object();
  }
  const json value = try_read_json(path.string()).value_or(json());
  if (value.is_object()) return value;
  notes.push_back(fmt::format("{} is damaged (not a JSON object) and was left out.", name));
  return json::object();
}

std::string read_config(const fs::path& path, std::vector<std::string>& notes) {
  if (!is_file(path)) {
    notes.push_back("No config.yaml: the settings of the run are not known.");
    return "";
  }
  return try_read_file(path).value_or("");
}

struct File {
  fs::path path;
  fs::file_time_type time;
};

bool is_strip_of_step(const std::string& name) { return name.starts_with("step-") && name.ends_with(".png"); }

// What tells most comes first: all clips of the evaluation in motion, then as strips, then how training got there.
int rank_of(const fs::path& path) {
  const std::string name = path.filename().string();
  if (name == "evaluate.gif") return 0;
  if (name.starts_with("evaluate")) return name.starts_with("evaluate-setting-") ? 2 : 1;
  return is_strip_of_step(name) ? 4 : 3;
}

// The strip of a training step shows clips that its animation shows too.
bool is_shown_by(const std::string& name, const std::vector<Sample>& shown) {
  const std::string moving = name.substr(0, name.size() - 4) + ".gif";
  return is_strip_of_step(name) &&
         std::ranges::any_of(shown, [&](const Sample& other) { return other.name == moving; });
}

std::vector<File> best_first(const fs::path& folder) {
  std::vector<File> files;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    const std::string extension = it->path().extension().string();
    if ((extension == ".gif" || extension == ".png") && is_file(it->path())) {
      std::error_code ignored;
      files.push_back({it->path(), fs::last_write_time(it->path(), ignored)});
    }
  }
  std::sort(files.begin(), files.end(), [](const File& a, const File& b) {
    const int rank_a = rank_of(a.path), rank_b = rank_of(b.path);
    if (rank_a != rank_b) return rank_a < rank_b;
    if (rank_a <= 2) return a.path.filename() < b.path.filename();
    return a.time != b.time ? a.time > b.time : a.path.filename() > b.path.filename();
  });
  return files;
}

// From the head of the file; false if it is neither PNG nor GIF.
bool read_head(Sample& sample) {
  const auto byte = [&](size_t i) { return static_cast<int64_t>(static_cast<unsigned char>(sample.bytes[i])); };
  const auto starts_with = [&](std::string_view magic) { return std::string_view(sample.bytes).starts_with(magic); };
  if (starts_with("\x89PNG\r\n\x1a\n") && sample.bytes.size() >= 24) {
    sample.type = "image/png";
    sample.width = byte(16) << 24 | byte(17) << 16 | byte(18) << 8 | byte(19);
    sample.height = byte(20) << 24 | byte(21) << 16 | byte(22) << 8 | byte(23);
  } else if ((starts_with("GIF89a") || starts_with("GIF87a")) && sample.bytes.size() >= 10) {
    sample.type = "image/gif";
    sample.width = byte(6) | byte(7) << 8;
    sample.height = byte(8) | byte(9) << 8;
  }
  return sample.width > 0 && sample.height > 0;
}

Samples read_samples(const fs::path& folder, uint64_t room, std::vector<std::string>& notes) {
  Samples out;
  for (const File& file : best_first(folder)) {
    if (is_shown_by(file.path.filename().string(), out.shown)) continue;
    std::error_code error;
    const uint64_t size = fs::file_size(file.path, error);
    if (!error && size > room) {
      ++out.left_out;
      continue;
    }
    Sample sample{file.path.filename().string(), "", error ? "" : try_read_file(file.path).value_or(""), 0, 0};
    if (!read_head(sample)) {
      notes.push_back(fmt::format("samples/{} is not an image and was left out.", sample.name));
      continue;
    }
    room -= std::min<uint64_t>(room, sample.bytes.size());
    out.shown.push_back(std::move(sample));
  }
  if (out.shown.empty() && out.left_out == 0) notes.push_back("No samples yet: images in samples/ appear here.");
  return out;
}

// Of checkpoints/step-N.json.
std::optional<int64_t> newest_checkpoint(const fs::path& folder) {
  std::optional<int64_t> newest;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    int64_t step = 0;
    constexpr std::string_view head = "step-", tail = ".json";
    if (!name.starts_with(head) || !name.ends_with(tail)) continue;
    const char *first = name.data() + head.size(), *last = name.data() + name.size() - tail.size();
    const auto parsed = std::from_chars(first, last, step);
    if (parsed.ec == std::errc() && parsed.ptr == last) newest = std::max(newest.value_or(step), step);
  }
  return newest;
}

}  // namespace

json parsed_config(const RunView& run) {
  try {
    const json config = io::parse_yaml(run.config, "config.yaml");
    return config.is_object() ? config : json::object();
  } catch (const Error&) {
    return json::object();
  }
}

bool learned_from_actions(const json& config) {
  const json model = config.is_object() && config.contains("model") ? config["model"] : json();
  return number_at(model, "actions").value_or(1) > 1 || number_at(model, "action_values").value_or(0) > 0;
}

std::optional<int64_t> scored_step(const json& metrics) {
  const json::json_pointer where("/protocol/checkpoint");
  const auto found = metrics.contains(where) ? number_at(metrics[where], "step") : std::nullopt;
  return found ? std::optional<int64_t>(std::llround(*found)) : std::nullopt;
}

RunView read_run_view(const std::string& path, uint64_t sample_bytes) {
  const fs::path folder = fs::absolute(path).lexically_normal();
  std::error_code error;
  if (!fs::is_directory(folder, error)) {
    fail(ErrorKind::io, "[report] expected a run folder, but {} is not a folder; give the folder that train made",
         path);
  }
  RunView run;
  run.path = path;
  run.name = (folder.has_filename() ? folder : folder.parent_path()).filename().string();
  run.status = read_object(folder / "status.json", "the state of the run is not known", run.notes);
  run.newest_step = newest_checkpoint(folder / "checkpoints");
  if (const auto step = number_at(run.status, "step"); step && !run.newest_step) run.newest_step = std::llround(*step);
  if (is_file(folder / "log.jsonl"))
    run.log = read_log((folder / "log.jsonl").string());
  else
    run.notes.push_back("No log.jsonl: curves appear with the first logged step.");
  if (run.log.bad_lines > 0) {
    run.notes.push_back(fmt::format("{} lines of log.jsonl are damaged and were left out.", run.log.bad_lines));
  }
  run.metrics = read_object(folder / "metrics.json", "run an evaluation to see how far the forecasts hold", run.notes);
  run.samples = read_samples(folder / "samples", sample_bytes, run.notes);
  run.config = read_config(folder / "config.yaml", run.notes);
  return run;
}

std::optional<double> number_at(const json& object, const char* key) {
  if (!object.is_object() || !object.contains(key) || !object[key].is_number()) return std::nullopt;
  return object[key].get<double>();
}

std::string text_at(const json& object, const char* key) {
  if (!object.is_object() || !object.contains(key) || !object[key].is_string()) return "";
  return object[key].get<std::string>();
}

}  // namespace convssm::report
