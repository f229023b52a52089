// The JSON file is what makes a checkpoint exist: it is written after the tensors and removed before them.
#include "convssm/run/checkpoint.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "convssm/base/atomic_file.h"
#include "convssm/base/error.h"
#include "convssm/base/folder.h"
#include "convssm/base/json.h"
#include "convssm/base/log.h"
#include "convssm/base/read_file.h"
#include "convssm/io/checksum.h"

namespace convssm::run {
namespace {

namespace fs = std::filesystem;

std::string base_path(const std::string& folder, int64_t step) { return fmt::format("{}/step-{:06}", folder, step); }

// step-000500.json -> 500; -1 if the name is of another form.
int64_t step_of(const fs::path& file, std::string_view ending) {
  const std::string name = file.filename().string();
  if (!name.starts_with("step-") || !name.ends_with(ending)) return -1;
  int64_t step = -1;
  const char* end = name.data() + name.size() - ending.size();
  const auto [stop, error] = std::from_chars(name.data() + 5, end, step);
  return error == std::errc() && stop == end ? step : -1;
}

// What is wrong with a checkpoint; "" if nothing is. Fills `record`.
std::string examine(const std::string& folder, int64_t step, CheckpointRecord& record) {
  const std::string base = base_path(folder, step);
  try {
    const auto json = parse_json(read_file(base + ".json"), base + ".json");
    record = {step, base + ".safetensors", json.at("extras")};
    if (json.at("format") != 1) return fmt::format("has format {}, this program knows 1", json.at("format").dump());
    const std::string found = io::file_checksum(record.tensors);
    if (found != json.at("checksum")) return "does not have its checksum: it was damaged after it was written";
  } catch (const nlohmann::json::exception&) {
    return "has no readable description (" + base + ".json)";
  } catch (const Error& error) {
    return fmt::format("cannot be read ({})", error.what());
  }
  return "";
}

}  // namespace

void write_checkpoint(const std::string& folder, int64_t step, const std::vector<io::LazyArray>& tensors,
                      const io::Metadata& metadata, const nlohmann::json& extras) {
  make_folder(folder);
  const std::string base = base_path(folder, step);
  io::stream_safetensors(base + ".safetensors", tensors, metadata);
  const nlohmann::json json = {
      {"format", 1}, {"step", step}, {"checksum", io::file_checksum(base + ".safetensors")}, {"extras", extras}};
  try {
    replace_file(base + ".json", json.dump(1) + "\n");
  } catch (const Error&) {
    std::error_code ignored;              // half a checkpoint would fill the disk for nothing
    fs::remove(base + ".json", ignored);  // it may be there, where only the folder could not be written
    fs::remove(base + ".safetensors", ignored);
    throw;
  }
}

std::vector<int64_t> checkpoint_steps(const std::string& folder) {
  std::vector<int64_t> steps;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    if (const int64_t step = step_of(entry.path(), ".json"); step >= 0) steps.push_back(step);
  }
  std::sort(steps.begin(), steps.end());
  return steps;
}

CheckpointRecord find_checkpoint(const std::string& folder, int64_t step) {
  std::vector<int64_t> steps = checkpoint_steps(folder);
  if (step >= 0) {
    const bool there = std::find(steps.begin(), steps.end(), step) != steps.end();
    if (!there)
      fail(ErrorKind::data, "no checkpoint of step {} in {}; there are {}", step, folder, fmt::join(steps, ", "));
    steps = {step};
  }
  while (!steps.empty()) {
    CheckpointRecord record;
    const std::string problem = examine(folder, steps.back(), record);
    if (problem.empty()) return record;
    if (step >= 0) fail(ErrorKind::data, "the checkpoint of step {} in {} {}", step, folder, problem);
    log_warning("the checkpoint {}.safetensors {}; looking for the one before it", base_path(folder, steps.back()),
                problem);
    steps.pop_back();
  }
  fail(ErrorKind::data, "no usable checkpoint in {}; a run saves its first one after train.save_interval steps",
       folder);
}

void set_aside_checkpoints_after(const std::string& folder, int64_t step) {
  for (const int64_t later : checkpoint_steps(folder)) {
    if (later <= step) continue;
    const std::string json = base_path(folder, later) + ".json";
    std::error_code ignored;  // it would be passed over again
    fs::rename(json, json + ".bad", ignored);
    log_warning("{} is not used again (now {}.bad)", json, json);
  }
}

void remove_halves(const std::string& folder) {
  std::error_code error;
  std::vector<fs::path> halves;
  // Only what is surely alone: a disk that does not answer says nothing.
  const auto missing = [](const fs::path& path) {
    std::error_code ignored;
    return fs::status(path, ignored).type() == fs::file_type::not_found;
  };
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const fs::path json = fs::path(entry.path()).replace_extension(".json");
    const fs::path tensors = fs::path(entry.path()).replace_extension(".safetensors");
    if (step_of(entry.path(), ".json") >= 0 && missing(tensors)) halves.push_back(entry.path());
    if (step_of(entry.path(), ".safetensors") < 0) continue;
    if (missing(json) && missing(json.string() + ".bad")) halves.push_back(entry.path());
  }
  for (const fs::path& half : halves) fs::remove(half, error);  // what cannot be removed is only in the way
}

void prune_checkpoints(const std::string& folder, int64_t keep_last, int64_t keep_every) {
  std::vector<int64_t> steps = checkpoint_steps(folder);
  const int64_t old = static_cast<int64_t>(steps.size()) - keep_last;
  for (int64_t i = 0; i < old; ++i) {
    if (keep_every > 0 && steps[i] % keep_every == 0) continue;
    std::error_code ignored;  // what cannot be removed is only in the way
    fs::remove(base_path(folder, steps[i]) + ".json", ignored);
    fs::remove(base_path(folder, steps[i]) + ".safetensors", ignored);
  }
}

}  // namespace convssm::run
