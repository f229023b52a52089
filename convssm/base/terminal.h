// What the other end of an output is: a terminal that can redraw a line, or a file or pipe that wants plain text.
#pragma once

#include <cstdio>
#include <string>
#include <string_view>

namespace convssm {

// The text with control characters as \x1b, but for the end of a line: what a file is named must not steer a terminal.
std::string printable(std::string_view text);

// A terminal that understands control sequences (TERM is not "dumb").
bool is_terminal(std::FILE* out);

// A terminal, and the user has not set NO_COLOR (https://no-color.org).
bool wants_color(std::FILE* out);

// Columns of the terminal behind `out`, else COLUMNS, else 80.
int terminal_width(std::FILE* out);

}  // namespace convssm
