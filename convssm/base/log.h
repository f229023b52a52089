// Lines for the person at the terminal, on stderr so that stdout stays a result:
//   log_info("read 300 clips");   log_warning("the clip has {} frames, {} are used", 120, 100);
#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <string_view>
#include <utility>

namespace convssm {

enum class LogLevel { info, warning, error };

// One line: "warning: ..." and "error: ..." are marked, info is not. On a terminal it replaces a progress line.
void write_log(LogLevel level, std::string_view message, std::FILE* out = stderr);

template <typename... Args>
void log_info(fmt::format_string<Args...> text, Args&&... args) {
  write_log(LogLevel::info, fmt::format(text, std::forward<Args>(args)...));
}

template <typename... Args>
void log_warning(fmt::format_string<Args...> text, Args&&... args) {
  write_log(LogLevel::warning, fmt::format(text, std::forward<Args>(args)...));
}

template <typename... Args>
void log_error(fmt::format_string<Args...> text, Args&&... args) {
  write_log(LogLevel::error, fmt::format(text, std::forward<Args>(args)...));
}

}  // namespace convssm
