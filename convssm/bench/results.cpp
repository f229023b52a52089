// Files of several runs are merged row by row, the later one winning, so that a single group can be measured again
// without the others.
#include "convssm/bench/results.h"

#include <algorithm>
#include <fstream>

#include "convssm/base/atomic_file.h"
#include "convssm/base/error.h"
#include "convssm/base/threads.h"
#include "convssm/base/version.h"
#include "convssm/ops/isa.h"

namespace convssm::bench {
namespace {

nlohmann::json to_json(const Row& row) {
  return {{"name", row.name},   {"value", row.value},   {"unit", row.unit}, {"reference", row.reference},
          {"ratio", row.ratio}, {"spread", row.spread}, {"what", row.what}};
}

Row from_json(const nlohmann::json& json) {
  return {json.at("name"),  json.at("value"),  json.at("unit"), json.at("reference"),
          json.at("ratio"), json.at("spread"), json.at("what")};
}

std::string processor_name() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);) {
    const size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown processor";
}

void put(std::vector<Row>& rows, Row row) {
  const auto same = std::find_if(rows.begin(), rows.end(), [&](const Row& other) { return other.name == row.name; });
  if (same == rows.end()) {
    rows.push_back(std::move(row));
  } else {
    *same = std::move(row);
  }
}

void read_into(Results& results, const std::string& path) {
  std::ifstream in(path);
  if (!in) fail_io(fmt::format("cannot open {}", path));
  try {
    nlohmann::json json = nlohmann::json::parse(in);
    for (const auto& row : json.at("rows")) put(results.rows, from_json(row));
    json.erase("rows");
    results.about.update(json);
  } catch (const nlohmann::json::exception& error) {
    fail(ErrorKind::data, "{} is not a file of `convssm bench --json`: {}", path, error.what());
  }
}

}  // namespace

const Row* Results::find(const std::string& name) const {
  const auto found = std::find_if(rows.begin(), rows.end(), [&](const Row& row) { return row.name == name; });
  return found == rows.end() ? nullptr : &*found;
}

std::vector<Row> Results::starting_with(const std::string& prefix) const {
  std::vector<Row> found;
  for (const Row& row : rows) {
    if (row.name.starts_with(prefix)) found.push_back(row);
  }
  return found;
}

nlohmann::json describe_machine(int rounds) {
  return {{"version", kVersion},
          {"machine", processor_name()},
          {"threads", threads()},
          {"isa", ops::isa_name()},
          {"rounds", rounds}};
}

void write_results(const std::string& path, const Results& results) {
  nlohmann::json all = results.about;
  all["rows"] = nlohmann::json::array();
  for (const Row& row : results.rows) all["rows"].push_back(to_json(row));
  replace_file(path, all.dump(2) + "\n");
}

Results read_results(const std::vector<std::string>& paths) {
  Results results;
  for (const std::string& path : paths) read_into(results, path);
  return results;
}

}  // namespace convssm::bench
