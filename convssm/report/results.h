// Runs side by side: as a table for a terminal, as tables and lists of a page, as curves over the horizon.
// Every function gives "" where the records have nothing for it.
#pragma once

#include <string>
#include <vector>

#include "convssm/report/chart.h"
#include "convssm/report/record.h"
#include "convssm/report/result_rows.h"

namespace convssm::report {

// All evaluated runs and the forecasts without a model, for a terminal.
std::string results_text(const std::vector<Record>& records);

// In what the evaluations differ, a line each: such scores cannot be compared.
std::vector<std::string> protocol_differences(const std::vector<Record>& records);

// Of a page, in Markdown.
std::string about_block(const std::vector<Record>& records);  // machine, program, clips, weights of metrics
std::string table_block(const std::vector<Record>& records);  // costs, then a table for each horizon; mean over seeds
std::string short_block(const std::vector<Record>& records);  // the scores alone, in one table
std::string seeds_block(const std::vector<Record>& records);  // the scores of each seed
std::string ablations_block(const std::vector<Record>& records);  // sizes, training time and scores
std::string sweep_block(const std::vector<Record>& records);      // scores of short runs by learning rate
std::string rates_block(const std::vector<Record>& records);      // rows of the table beside runs with other rates

// All rows but those of the sweep, with links to their records, relative to `folder`, and the commands that made them.
std::string rows_block(const std::vector<Record>& records, const std::string& folder);

// A metric over the horizon: a line for each row, the mean over its seeds, and the forecasts without a model.
Chart horizon_chart(const std::vector<Record>& records, const std::string& metric);

}  // namespace convssm::report
