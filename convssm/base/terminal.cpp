// isatty alone is not enough: an editor's or CI's terminal with TERM=dumb shows control sequences as garbage.
#include "convssm/base/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <string_view>

namespace convssm {

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
