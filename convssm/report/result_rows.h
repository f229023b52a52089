// Rows and columns of results: a row is a model with its seeds, or a forecast without a model; a column is a number that
// each row may have. The table of the terminal is made of them.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "convssm/report/record.h"
#include "convssm/report/scores.h"

namespace convssm::report {

struct ResultRow {
  std::string label;
  std::string forecaster;            // of a trivial one in metrics.json
  std::vector<const Record*> seeds;  // the first is the row itself
  bool trivial = false;              // a forecast without a model
};

struct Column {
  std::string title;
  std::string group;                              // of columns that belong together: "50 frames ahead", or a setting
  std::function<double(const ResultRow&)> value;  // the mean over the seeds that have it, else not a number
  std::function<std::string(double)> text;
};

// The evaluated rows of a part with their seeds, in their order.
std::vector<ResultRow> model_rows(const std::vector<Record>& records, const std::string& part);

// Every evaluated run as a row of its own, those of a part together. Sweeps and other models, which are scored
// otherwise, only where there is nothing else.
std::vector<ResultRow> single_rows(const std::vector<Record>& records);

// What pictures show: the rows of the table, or all evaluated runs where there are none of these.
std::vector<ResultRow> drawn_rows(const std::vector<Record>& records);

// Rows whose scores are of the same data, in the order of their first ones. Only they can be compared.
struct DataGroup {
  std::string title;  // in what this data differs from that of the other groups; "" if there is one group
  std::vector<ResultRow> rows;
};
std::vector<DataGroup> data_groups(const std::vector<ResultRow>& rows);

// The forecasts without a model beside these, which are of the same data. What a tokenizer gives back is that of its model, a row
// for each that differs.
std::vector<ResultRow> trivial_rows(const std::vector<ResultRow>& models);

// Parameters, learning rate, minutes of training and frames/s of generation; those that no row has are left out.
std::vector<Column> cost_columns(const std::vector<ResultRow>& rows);

// The usual metrics at all horizons of all settings; those that no row has are left out.
std::vector<Column> score_columns(const std::vector<ResultRow>& rows);

}  // namespace convssm::report
