#include "convssm/cli/findings.h"

#include <fmt/format.h>

#include <algorithm>

#include "convssm/base/terminal.h"

namespace convssm::cli {
namespace {

void print_finding(const Finding& finding, bool color, std::FILE* out) {
  const bool bad = !finding.advice.empty();
  const char* mark = !bad ? " " : color ? "\x1b[1;33m!\x1b[0m" : "!";
  fmt::print(out, "{} {:<14} {}\n", mark, finding.name, finding.value);
  if (bad) fmt::print(out, "  {:<14} -> {}\n", "", finding.advice);
}

}  // namespace

void print_findings(const std::vector<Finding>& findings, std::FILE* out) {
  const bool color = wants_color(out);
  std::string group;
  for (const Finding& finding : findings) {
    if (finding.group != group)
      fmt::print(out, "\n{}{}{}\n", color ? "\x1b[1m" : "", finding.group, color ? "\x1b[0m" : "");
    group = finding.group;
    print_finding(finding, color, out);
  }
  const auto bad = std::count_if(findings.begin(), findings.end(), [](const auto& f) { return !f.advice.empty(); });
  fmt::print(out, "\n{}\n", bad == 0 ? "Nothing to improve." : fmt::format("To improve: {}, marked with '!'.", bad));
}

nlohmann::json findings_json(const std::vector<Finding>& findings) {
  nlohmann::json list = nlohmann::json::array();
  for (const Finding& finding : findings) {
    nlohmann::json entry = {{"group", finding.group}, {"name", finding.name}, {"value", finding.value}};
    if (finding.number) entry["number"] = *finding.number;
    entry["ok"] = finding.advice.empty();
    if (!finding.advice.empty()) entry["advice"] = finding.advice;
    list.push_back(entry);
  }
  return list;
}

}  // namespace convssm::cli
