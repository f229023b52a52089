// The rows of a run of the bench, as a file: {"version", "machine", "threads", "isa", "rounds", "rows"}.
#pragma once

#include <string>
#include <vector>

#include "bench/harness.h"

namespace convssm::bench {

void write_rows(const std::string& path, const std::vector<Row>& rows, int rounds);

}  // namespace convssm::bench
