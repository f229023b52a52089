// Each block of the page is a function of the rows; a block whose rows were not measured stays as it is.
#include "convssm/bench/page.h"

#include <filesystem>

#include "convssm/base/atomic_file.h"
#include "convssm/base/error.h"
#include "convssm/bench/page_charts.h"
#include "convssm/report/marked_page.h"
#include "convssm/report/picture.h"

namespace convssm::bench {
namespace {

std::string curves_block(const Results& results, const std::string& stem) {
  std::string out;
  for (const auto& [name, chart] : page_charts(results)) {
    out += fmt::format("![{}]({}_{}.png)\n\n", chart.title, stem, name);
  }
  if (!out.empty()) out.pop_back();
  return out;
}

std::string block(const std::string& name, const Results& results, const std::string& stem) {
  if (name == "machine") return machine_block(results);
  if (name == "claims") return claims_block(results);
  if (name == "cost") return cost_block(results);
  if (name == "peer") return peer_block(results);
  if (name == "limit") return limit_block(results);
  if (name == "conv") return conv_block(results);
  if (name == "kernels") return kernels_block(results);
  if (name == "curves") return curves_block(results, stem);
  fail(ErrorKind::data,
       "the page has a block 'bench {}', known are machine, claims, cost, peer, limit, conv, kernels and curves", name);
}

}  // namespace

std::string fill_page(const std::string& text, const Results& results, const std::string& stem) {
  return report::fill_blocks(text, "bench", [&](const std::string& name) { return block(name, results, stem); });
}

std::vector<std::string> update_page(const std::string& path, const Results& results) {
  const std::filesystem::path page(path);
  const std::string filled = fill_page(report::read_page(path), results, page.stem().string());
  std::vector<std::string> written;
  for (const auto& [name, chart] : page_charts(results)) {
    written.push_back((page.parent_path() / fmt::format("{}_{}.png", page.stem().string(), name)).string());
    report::write_chart_png(written.back(), chart);
  }
  replace_file(path, filled);
  written.push_back(path);
  return written;
}

}  // namespace convssm::bench
