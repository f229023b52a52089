// The page of results, a page with marks `<!-- results NAME -->` (report/marked_page.h). Blocks: machine, table, seeds,
// curves, strips, ablations, sweep, rates, rows, timing, and short for the README.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "convssm/report/record.h"

namespace convssm::report {

struct ResultsPageOptions {
  std::string pictures;                                                         // their folder; "": beside the page
  std::vector<std::string> strip_rows = {"convs5", "convlstm", "transformer"};  // all if there is none of these
  int64_t clip = 0;                                                             // of the strips
};

// Fills the page `path` in its place and writes the pictures of its blocks, results_<name>.png; the names of the files
// that were written. Blocks without records stay as they are. Error(data) for a block that is not known.
std::vector<std::string> update_results_page(const std::string& path, const std::vector<Record>& records,
                                             const ResultsPageOptions& options);

}  // namespace convssm::report
