// A progress line with rate and time left, on stderr.
//   Progress progress("train", steps);
//   for (...) progress.update(done, fmt::format("loss {:.3f}", loss));
// On a terminal one line is redrawn; elsewhere plain lines appear now and then. Use from one thread at a time.
#pragma once

#include <cstdint>
#include <cstdio>
#include <functional>
#include <string>
#include <string_view>

namespace convssm {

enum class ProgressStyle { automatic, terminal, plain };

struct ProgressOptions {
  int64_t start = 0;              // already done before this run: counts for the bar, not for the rate
  std::FILE* out = stderr;        // where it is drawn
  std::function<double()> clock;  // seconds from any fixed point; by default a steady clock
  ProgressStyle style = ProgressStyle::automatic;
  int width = 0;  // columns; 0 asks the terminal
};

class Progress {
 public:
  explicit Progress(std::string name, int64_t total = 0, ProgressOptions options = {});  // total 0: unknown
  ~Progress();                                                                           // finish()
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // `done` so far, with a short note such as the loss. Cheap enough for every step.
  void update(int64_t done, std::string_view note = "");

  // The last line, once. Nothing if there never was an update.
  void finish();

 private:
  double elapsed() const { return clock_() - begin_; }
  double rate_after(double seconds) const;
  std::string numbers(double seconds) const;
  std::string terminal_line(double seconds) const;
  std::string plain_line(double seconds) const;
  std::string last_line(double seconds) const;
  void draw(const std::string& line) const;

  std::string name_;
  int64_t total_;
  int64_t start_;
  std::FILE* out_;
  std::function<double()> clock_;
  bool terminal_;
  bool color_;
  int width_;
  double begin_;
  double next_draw_;
  int64_t done_ = 0;
  std::string note_;
  bool updated_ = false;
  bool finished_ = false;
};

// "42s", "1m 05s", "2h 03m", "3d 04h"; "?" for what is not a time.
std::string format_duration(double seconds);

// "12.3/s", "1.25k/s", "0.25/s", "3.0/min", "1.2/h"
std::string format_rate(double per_second);

// At most `width` columns of UTF-8 text, cut at the end of a character; control characters become spaces.
std::string fit_columns(std::string_view text, int width);

}  // namespace convssm
