// Tables of numbers as text, such as the actions beside a folder of frames: rows of as many numbers each, separated by
// commas, semicolons or tabs, with or without a line of names above them.
//   CsvTable table = read_csv("actions.csv");   table.values[row * table.width + column]
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace convssm::io {

struct CsvTable {
  std::vector<std::string> names;  // of the columns; empty if there is no line of names
  int64_t rows = 0, width = 0;
  std::vector<double> values;  // [rows, width]
  std::vector<bool> whole;     // of each column: every number of it is written without a point
};

// Empty lines and lines that begin with # are left out. FormatError that tells the line for a row that does not have as
// many numbers as the others; Error(io) if the file cannot be read.
CsvTable read_csv(const std::string& path);
CsvTable parse_csv(std::string_view text, const std::string& file);

}  // namespace convssm::io
