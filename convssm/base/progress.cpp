// Redraws are limited by time, not by count: a step may take a microsecond or a minute. The terminal's line stays one
// column short of its width, since a full line would wrap and could not be redrawn. The rate leaves out what was done
// before this run (a resumed training), which took no time here.
#include "convssm/base/progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include "convssm/base/terminal.h"

namespace convssm {
namespace {

constexpr double kRedrawSeconds = 0.1;      // a terminal: at most 10 times a second
constexpr double kFirstPlainSeconds = 2.0;  // a log: nothing but the last line for what is over by then
constexpr double kPlainSeconds = 5.0;

double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::string bar(double fraction, int columns) {
  const int filled = static_cast<int>(std::lround(std::clamp(fraction, 0.0, 1.0) * columns));
  return std::string(static_cast<size_t>(filled), '#') + std::string(static_cast<size_t>(columns - filled), '-');
}

std::string two_units(int64_t seconds, int64_t large, const char* large_name, int64_t small, const char* small_name) {
  return fmt::format("{}{} {:02}{}", seconds / large, large_name, seconds % large / small, small_name);
}

}  // namespace

Progress::Progress(std::string name, int64_t total, ProgressOptions options)
    : name_(std::move(name)),
      total_(std::max<int64_t>(0, total)),
      start_(options.start),
      out_(options.out),
      clock_(options.clock ? std::move(options.clock) : steady_seconds),
      terminal_(options.style == ProgressStyle::automatic ? is_terminal(out_)
                                                          : options.style == ProgressStyle::terminal),
      color_(wants_color(out_)),
      width_(options.width),
      begin_(clock_()),
      next_draw_(terminal_ ? 0 : kFirstPlainSeconds),
      done_(options.start) {}

Progress::~Progress() { finish(); }

void Progress::update(int64_t done, std::string_view note) {
  if (finished_) return;
  done_ = done;
  note_ = note;
  updated_ = true;
  const double seconds = elapsed();
  if (seconds < next_draw_) return;
  draw(terminal_ ? terminal_line(seconds) : plain_line(seconds));
  // Lines in a log become rarer, so that a run of a day leaves hundreds of lines and not thousands.
  next_draw_ = seconds + (terminal_ ? kRedrawSeconds : std::max(kPlainSeconds, seconds / 50));
}

void Progress::finish() {
  if (finished_) return;
  finished_ = true;
  if (!updated_) return;
  draw(last_line(elapsed()));
  if (terminal_) std::fputc('\n', out_);
  std::fflush(out_);
}

double Progress::rate_after(double seconds) const {
  return seconds > 0 ? static_cast<double>(done_ - start_) / seconds : 0;
}

// "420/1000, 12.3/s, 47s left, loss 0.123"
std::string Progress::numbers(double seconds) const {
  std::string text = total_ > 0 ? fmt::format("{}/{}", done_, total_) : fmt::format("{}", done_);
  const double rate = rate_after(seconds);
  if (rate > 0) text += ", " + format_rate(rate);
  if (rate > 0 && total_ > done_) {
    text += ", " + format_duration(static_cast<double>(total_ - done_) / rate) + " left";
  }
  return note_.empty() ? text : text + ", " + note_;
}

// The bar gets what the numbers leave of the line, and goes first when that is too little.
std::string Progress::terminal_line(double seconds) const {
  const int columns = (width_ > 0 ? width_ : terminal_width(out_)) - 1;
  const std::string text = numbers(seconds);
  if (total_ == 0) return fit_columns(name_ + "  " + text, columns);
  const double fraction = static_cast<double>(done_) / static_cast<double>(total_);
  const std::string head = fmt::format("{} {:3.0f}% ", name_, std::floor(100 * fraction));
  const int room = std::min(24, columns - static_cast<int>(head.size() + text.size()) - 3);
  if (room < 5) return fit_columns(head + " " + text, columns);
  const std::string drawn = bar(fraction, room);
  const std::string shown = color_ ? "\x1b[36m" + drawn + "\x1b[0m" : drawn;
  return head + "[" + shown + "] " + fit_columns(text, columns);
}

std::string Progress::plain_line(double seconds) const {
  if (total_ == 0) return fit_columns(name_ + ": " + numbers(seconds), 1000);
  const double percent = std::floor(100 * static_cast<double>(done_) / static_cast<double>(total_));
  return fit_columns(fmt::format("{}: {:.0f}%, {}", name_, percent, numbers(seconds)), 1000);
}

// "train: 1000 in 1m 05s, 15.4/s, loss 0.123", or "stopped at 420/1000 after ..."
std::string Progress::last_line(double seconds) const {
  std::string text = name_ + ": ";
  if (total_ > done_) text += fmt::format("stopped at {}/{} after {}", done_, total_, format_duration(seconds));
  if (total_ <= done_) text += fmt::format("{} in {}", done_, format_duration(seconds));
  const double rate = rate_after(seconds);
  if (rate > 0) text += ", " + format_rate(rate);
  if (!note_.empty()) text += ", " + note_;
  return fit_columns(text, 1000);
}

void Progress::draw(const std::string& line) const {
  const std::string text = terminal_ ? "\r" + line + "\x1b[K" : line + "\n";
  std::fputs(text.c_str(), out_);
  std::fflush(out_);
}

std::string format_duration(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0 || seconds > 1e11) return "?";
  if (seconds < 9.95) return fmt::format("{:.1f}s", seconds);
  const int64_t whole = std::llround(seconds);
  if (whole < 60) return fmt::format("{}s", whole);
  if (whole < 3600) return two_units(whole, 60, "m", 1, "s");
  if (whole < 86400) return two_units(whole, 3600, "h", 60, "m");
  return two_units(whole, 86400, "d", 3600, "h");
}

std::string format_rate(double per_second) {
  if (!std::isfinite(per_second) || per_second < 0) return "?";
  if (per_second >= 1e6) return fmt::format("{:.2f}M/s", per_second / 1e6);
  if (per_second >= 1e3) return fmt::format("{:.2f}k/s", per_second / 1e3);
  if (per_second >= 1) return fmt::format("{:.1f}/s", per_second);
  if (per_second >= 0.1 || per_second == 0) return fmt::format("{:.2f}/s", per_second);
  if (per_second >= 1.0 / 60) return fmt::format("{:.1f}/min", per_second * 60);
  return fmt::format("{:.1f}/h", per_second * 3600);
}

std::string fit_columns(std::string_view text, int width) {
  std::string kept;
  int columns = 0;
  for (const char c : text) {
    const bool continuation = (static_cast<unsigned char>(c) & 0xc0) == 0x80;
    if (!continuation && ++columns > width) break;
    kept += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return kept;
}

}  // namespace convssm
