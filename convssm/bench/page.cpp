#include "convssm/bench/page.h"

#include <filesystem>
#include <fstream>
#include <iterator>

#include "convssm/base/atomic_file.h"
#include "convssm/base/error.h"
#include "convssm/bench/page_charts.h"
#include "convssm/report/picture.h"

namespace convssm::bench {
namespace {

constexpr std::string_view kBegin = "<!-- bench ", kBeginEnd = " -->\n", kEnd = "<!-- end -->";

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

std::string read_page(const std::string& path) {
  std::ifstream in(path);
  if (!in) fail_io(fmt::format("cannot open the page {}; it is filled in its place and must be there", path));
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

std::string fill_page(const std::string& text, const Results& results, const std::string& stem) {
  std::string out;
  size_t place = 0;
  for (size_t begin = 0; (begin = text.find(kBegin, place)) != std::string::npos;) {
    const size_t name_end = text.find(kBeginEnd, begin), end = text.find(kEnd, begin);
    if (name_end == std::string::npos || end == std::string::npos || end < name_end) {
      fail(ErrorKind::data, "the page has a block without '{}' behind it: {}", kEnd,
           text.substr(begin, text.find('\n', begin) - begin));
    }
    const std::string name = text.substr(begin + kBegin.size(), name_end - begin - kBegin.size());
    const size_t content = name_end + kBeginEnd.size();
    const std::string made = block(name, results, stem);
    out += text.substr(place, content - place);
    out += made.empty() ? text.substr(content, end - content) : made;
    place = end;
  }
  return out + text.substr(place);
}

std::vector<std::string> update_page(const std::string& path, const Results& results) {
  const std::filesystem::path page(path);
  const std::string filled = fill_page(read_page(path), results, page.stem().string());
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
