// A '|' or a line break inside a cell would end it, so both are replaced.
#include "convssm/report/markdown.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace convssm::report {

std::string markdown_row(const Cells& cells) { return fmt::format("| {} |\n", fmt::join(cells, " | ")); }

std::string markdown_head(const Cells& cells, bool last_is_text) {
  std::string line = "|---|";
  for (size_t i = 1; i < cells.size(); ++i) line += last_is_text && i + 1 == cells.size() ? "---|" : "---:|";
  return markdown_row(cells) + line + "\n";
}

std::string markdown_text(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '|') out += '\\';
    out += c == '\n' ? ' ' : c;
  }
  return out;
}

}  // namespace convssm::report
