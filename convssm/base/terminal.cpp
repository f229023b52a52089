// isatty alone is not enough: an editor's or CI's terminal with TERM=dumb shows control sequences as garbage.
#include "convssm/base/terminal.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>

namespace convssm {

std::string printable(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]),
               next = static_cast<unsigned char>(i + 1 < text.size() ? text[i + 1] : 0);
    const bool control = (c < 0x20 && c != '\n' && c != '\t') || c == 0x7f;
    const bool wide_control = c == 0xc2 && next >= 0x80 && next < 0xa0;  // U+0080 to U+009F, which some terminals obey
    if (control || wide_control)
      out += fmt::format("\\x{:02x}", c);
    else
      out += text[i];
    if (wide_control) out += fmt::format("\\x{:02x}", next), ++i;
  }
  return out;
}

bool is_terminal(std::FILE* out) {
  const char* kind = std::getenv("TERM");
  return isatty(fileno(out)) == 1 && kind != nullptr && std::string_view(kind) != "dumb";
}

bool wants_color(std::FILE* out) {
  const char* refusal = std::getenv("NO_COLOR");
  return is_terminal(out) && (refusal == nullptr || *refusal == '\0');
}

int terminal_width(std::FILE* out) {
  winsize size{};
  if (ioctl(fileno(out), TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  const char* columns = std::getenv("COLUMNS");
  const int width = columns == nullptr ? 0 : std::atoi(columns);
  return width > 0 ? width : 80;
}

}  // namespace convssm
