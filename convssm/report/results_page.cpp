// All blocks and pictures are made before anything is written: an error leaves the old page and its pictures as they
// were.
#include "convssm/report/results_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "convssm/base/atomic_file.h"
#include "convssm/base/error.h"
#include "convssm/base/folder.h"
#include "convssm/base/read_file.h"
#include "convssm/report/marked_page.h"
#include "convssm/report/picture.h"
#include "convssm/report/plot.h"
#include "convssm/report/results.h"
#include "convssm/report/strips.h"
#include "convssm/report/timing.h"

namespace convssm::report {
namespace {

namespace fs = std::filesystem;

fs::path folder_of(const fs::path& file) { return file.has_parent_path() ? file.parent_path() : fs::path("."); }

class ResultsPage {
 public:
  ResultsPage(const std::string& path, const std::vector<Record>& records, const ResultsPageOptions& options)
      : records_(records), options_(options), folder_(folder_of(path)) {
    pictures_ = options.pictures.empty() ? folder_ : fs::path(options.pictures);
  }

  std::string block(const std::string& name) {
    if (name == "machine") return about_block(records_);
    if (name == "table") return table_block(records_);
    if (name == "short") return short_block(records_);
    if (name == "seeds") return seeds_block(records_);
    if (name == "ablations") return ablations_block(records_);
    if (name == "sweep") return sweep_block(records_);
    if (name == "rates") return rates_block(records_);
    if (name == "rows") return rows_block(records_, folder_.string());
    if (name == "curves") return curves();
    if (name == "strips") return strips();
    if (name == "timing") return timing();
    fail(ErrorKind::data,
         "the page has a block 'results {}', known are machine, table, short, seeds, ablations, sweep, rates, rows, "
         "curves, strips and timing",
         name);
  }

  // After all blocks are made: a page with an error writes nothing.
  std::vector<std::string> write_pictures() const {
    std::vector<std::string> written;
    if (!made_.empty()) make_folder(pictures_.string());
    for (const auto& [path, bytes] : made_) {
      replace_file(path, bytes);
      written.push_back(path);
    }
    return written;
  }

 private:
  // The reference to a picture, which is written later.
  std::string picture(const std::string& name, const std::string& title, const std::string& bytes) {
    const fs::path file = pictures_ / fmt::format("results_{}.png", name);
    made_.emplace_back(file.string(), bytes);
    return fmt::format("![{}]({})\n", title, fs::proximate(file, folder_).generic_string());
  }

  std::string curves() {
    std::string out;
    for (const std::string& metric : row_metrics(model_rows(records_, "table"))) {
      const Chart chart = horizon_chart(records_, metric);
      if (!has_points(chart)) continue;  // some metrics are of whole clips
      const std::string name = metric.substr(0, metric.find('_'));
      out += (out.empty() ? "" : "\n") + picture(name, chart.title, io::encode_png(chart_image(chart)));
    }
    return out;
  }

  std::string strips() {
    std::vector<const Record*> chosen, all;
    const auto& names = options_.strip_rows;
    for (const ResultRow& row : model_rows(records_, "table")) {
      const Record* record = row.seeds[0];
      if (!fs::is_regular_file(strip_path(*record, options_.clip))) continue;
      all.push_back(record);
      if (std::find(names.begin(), names.end(), record->row) != names.end()) chosen.push_back(record);
    }
    if (all.empty()) return "";
    const io::Image image = strips_image(chosen.empty() ? all : chosen, options_.clip);
    return picture("strips", "truth above, forecasts below it", io::encode_png(image));
  }

  std::string timing() {
    for (const Record& record : records_) {
      const auto timing = nlohmann::json::parse(read_file(record.folder + "/timing.json").value_or(""), nullptr, false);
      std::string out = is_timing(timing) ? timing_markdown(timing) : "";
      for (const char* name : {"timing_rates", "timing_dropped"}) {
        const std::string file = fmt::format("{}/{}.png", record.folder, name);
        if (!fs::is_regular_file(file)) continue;
        const char* title = std::string_view(name) == "timing_rates" ? "other frame rates" : "dropped frames";
        out += (out.empty() ? "" : "\n") + picture(name, title, io::encode_png(io::read_png(file)));
      }
      if (!out.empty()) return out;
    }
    return "";
  }

  const std::vector<Record>& records_;
  const ResultsPageOptions& options_;
  fs::path folder_, pictures_;
  std::vector<std::pair<std::string, std::string>> made_;  // path, bytes
};

}  // namespace

std::vector<std::string> update_results_page(const std::string& path, const std::vector<Record>& records,
                                             const ResultsPageOptions& options) {
  ResultsPage page(path, records, options);
  int64_t blocks = 0;
  const std::string filled = fill_blocks(read_page(path), "results", [&](const std::string& name) {
    ++blocks;
    return page.block(name);
  });
  if (blocks == 0) {
    fail(ErrorKind::data,
         "[results] {} has no block; put '<!-- results table -->' and '<!-- end -->' where one is wanted", path);
  }
  auto written = page.write_pictures();
  replace_file(path, filled);
  written.push_back(path);
  return written;
}

}  // namespace convssm::report
