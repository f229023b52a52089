// With what is known of the machine, so that a file says by itself what its numbers are of.
#include "bench/results.h"

#include <fstream>
#include <nlohmann/json.hpp>

#include "convssm/base/atomic_file.h"
#include "convssm/base/threads.h"
#include "convssm/base/version.h"
#include "convssm/ops/isa.h"

namespace convssm::bench {
namespace {

nlohmann::json to_json(const Row& row) {
  return {{"name", row.name},   {"value", row.value},   {"unit", row.unit}, {"reference", row.reference},
          {"ratio", row.ratio}, {"spread", row.spread}, {"what", row.what}};
}

std::string processor_name() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);) {
    const size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown processor";
}

nlohmann::json describe_machine(int rounds) {
  return {{"version", kVersion},
          {"machine", processor_name()},
          {"threads", threads()},
          {"isa", ops::isa_name()},
          {"rounds", rounds}};
}

}  // namespace

void write_rows(const std::string& path, const std::vector<Row>& rows, int rounds) {
  nlohmann::json all = describe_machine(rounds);
  all["rows"] = nlohmann::json::array();
  for (const Row& row : rows) all["rows"].push_back(to_json(row));
  replace_file(path, all.dump(2) + "\n");
}

}  // namespace convssm::bench
