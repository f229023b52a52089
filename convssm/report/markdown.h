// Tables of Markdown.
#pragma once

#include <string>
#include <vector>

namespace convssm::report {

using Cells = std::vector<std::string>;

std::string markdown_row(const Cells& cells);

// Words on the left, numbers on the right.
std::string markdown_head(const Cells& cells, bool last_is_text = false);

// Text that does not end its cell.
std::string markdown_text(const std::string& text);

}  // namespace convssm::report
