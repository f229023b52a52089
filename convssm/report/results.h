// Runs side by side: as a table for a terminal, as curves over the horizon.
#pragma once

#include <string>
#include <vector>

#include "convssm/report/chart.h"
#include "convssm/report/record.h"
#include "convssm/report/result_rows.h"

namespace convssm::report {

// All evaluated runs and the forecasts without a model, for a terminal, a table for each data; "" if there is none.
std::string results_text(const std::vector<Record>& records);

// In what evaluations on the same data differ from most of the others, a line each: such scores cannot be compared. Does not
// depend on the order of the records.
std::vector<std::string> protocol_differences(const std::vector<Record>& records);

// A metric over the horizon of the setting of this name, or of the first that has it: a line for each row, the mean over its
// seeds, and the forecasts without a model. Error(usage) for a name that no row has.
Chart horizon_chart(const std::vector<Record>& records, const std::string& metric, const std::string& setting = "");

}  // namespace convssm::report
