// The page of measured numbers, a page with marks `<!-- bench NAME -->` (report/marked_page.h).
// Blocks: machine, claims, cost, peer, limit, conv, kernels, curves (with PNG files beside the page).
#pragma once

#include <string>
#include <vector>

#include "convssm/bench/results.h"

namespace convssm::bench {

// The text with each block that these results have rows for; the others stay as they are. `stem` begins the names of the
// pictures. Error(data) for a block that is not known or has no end.
std::string fill_page(const std::string& text, const Results& results, const std::string& stem);

// Fills the page `path` in its place and writes its pictures beside it; the names of the files that were written.
std::vector<std::string> update_page(const std::string& path, const Results& results);

// The content of a block, "" if its rows are missing.
std::string machine_block(const Results& results);
std::string claims_block(const Results& results);
std::string cost_block(const Results& results);
std::string peer_block(const Results& results);
std::string limit_block(const Results& results);
std::string conv_block(const Results& results);
std::string kernels_block(const Results& results);

}  // namespace convssm::bench
