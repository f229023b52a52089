// The curves of the page, from the rows of the group `scaling`.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "convssm/bench/results.h"
#include "convssm/report/chart.h"

namespace convssm::bench {

// Each with the end of its file's name; only those with rows.
std::vector<std::pair<std::string, report::Chart>> page_charts(const Results& results);

}  // namespace convssm::bench
