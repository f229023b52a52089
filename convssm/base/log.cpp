// On a terminal a progress line may stand where the message goes, so that line is erased first. Colour marks only the
// word "warning:" or "error:", and only where the user has not refused it.
#include "convssm/base/log.h"

#include <string>

#include "convssm/base/terminal.h"

namespace convssm {
namespace {

std::string mark(LogLevel level, bool color) {
  if (level == LogLevel::info) return "";
  const bool warning = level == LogLevel::warning;
  const std::string word = warning ? "warning:" : "error:";
  if (!color) return word + " ";
  return (warning ? "\x1b[1;33m" : "\x1b[1;31m") + word + "\x1b[0m ";
}

}  // namespace

// One fputs per line: lines of several threads do not mix.
void write_log(LogLevel level, std::string_view message, std::FILE* out) {
  std::string line = is_terminal(out) ? "\r\x1b[K" : "";
  line += mark(level, wants_color(out));
  line += printable(message);
  line += '\n';
  std::fputs(line.c_str(), out);
  std::fflush(out);
}

}  // namespace convssm
