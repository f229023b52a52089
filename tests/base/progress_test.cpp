#include "convssm/base/progress.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "scratch_folder.h"

namespace convssm {
namespace {

// A progress line whose time and output belong to the test.
struct Recorder {
  explicit Recorder(ProgressStyle style, int64_t total, int width = 100, int64_t start = 0) {
    ProgressOptions options;
    options.start = start;
    options.out = file;
    options.clock = [this] { return now; };
    options.style = style;
    options.width = width;
    progress = std::make_unique<Progress>("train", total, options);
  }
  ~Recorder() {
    progress.reset();
    fclose(file);
  }
  std::string text() const { return read_text(folder.path("out")); }
  std::vector<std::string> split(char separator) const {
    std::istringstream in(text());
    std::vector<std::string> found;
    for (std::string line; std::getline(in, line, separator);) found.push_back(line);
    return found;
  }

  ScratchFolder folder;
  std::FILE* file = fopen(folder.path("out").c_str(), "w");
  double now = 1000;
  std::unique_ptr<Progress> progress;
};

TEST(Progress, PlainShortWorkPrintsOnlyItsLastLine) {
  Recorder r(ProgressStyle::plain, 10);
  for (int i = 1; i <= 10; ++i) r.now += 0.15, r.progress->update(i, "loss 0.5");
  EXPECT_EQ(r.text(), "");
  r.progress.reset();
  EXPECT_EQ(r.text(), "train: 10 in 1.5s, 6.7/s, loss 0.5\n");
}

TEST(Progress, PlainLinesComeFirstAfterTwoSecondsThenEveryFive) {
  Recorder r(ProgressStyle::plain, 1000);
  for (int i = 1; i <= 200; ++i) r.now += 0.1, r.progress->update(i, "loss 1.25");
  const auto lines = r.split('\n');
  ASSERT_EQ(lines.size(), 4u);  // near 2, 7, 12 and 17 s
  EXPECT_EQ(lines[0].substr(0, 10), "train: 2%,");
  EXPECT_NE(lines[0].find("10.0/s, 1m 38s left, loss 1.25"), std::string::npos) << lines[0];
  EXPECT_EQ(r.text().find('\x1b'), std::string::npos);
  EXPECT_EQ(r.text().find('\r'), std::string::npos);
}

TEST(Progress, PlainLinesOfALongRunBecomeRare) {
  Recorder r(ProgressStyle::plain, 86400);
  for (int i = 1; i <= 86400; ++i) r.now += 1, r.progress->update(i);
  EXPECT_LT(r.split('\n').size(), 400u);
  EXPECT_GT(r.split('\n').size(), 100u);
}

TEST(Progress, TerminalRedrawsAtMostTenTimesASecond) {
  Recorder r(ProgressStyle::terminal, 1000);
  for (int i = 1; i <= 1000; ++i) r.now += 0.001, r.progress->update(i);
  EXPECT_LE(r.split('\r').size(), 12u);
  EXPECT_EQ(r.text().find('\n'), std::string::npos);
  r.progress->finish();
  EXPECT_EQ(r.text().back(), '\n');
}

TEST(Progress, TerminalLineHasBarRateAndTimeLeft) {
  Recorder r(ProgressStyle::terminal, 100);
  r.now += 10;
  r.progress->update(25, "loss 0.123");
  EXPECT_EQ(r.text(), "\rtrain  25% [######------------------] 25/100, 2.5/s, 30s left, loss 0.123\x1b[K");
}

TEST(Progress, TerminalLineNeverReachesTheLastColumn) {
  for (int width = 1; width <= 120; ++width) {
    Recorder r(ProgressStyle::terminal, 100, width);
    r.now += 10;
    r.progress->update(25, "loss 0.123");
    const std::string drawn = r.text();
    EXPECT_LT(static_cast<int>(drawn.size()) - 4, width) << drawn;  // without \r and ESC[K
  }
}

TEST(Progress, UnknownTotalCounts) {
  Recorder r(ProgressStyle::terminal, 0);
  r.now += 2;
  r.progress->update(30);
  EXPECT_EQ(r.text(), "\rtrain  30, 15.0/s\x1b[K");
  r.progress->finish();
  EXPECT_EQ(r.text(), "\rtrain  30, 15.0/s\x1b[K\rtrain: 30 in 2.0s, 15.0/s\x1b[K\n");
}

TEST(Progress, ResumedWorkDoesNotCountForTheRate) {
  Recorder r(ProgressStyle::terminal, 1000, 100, 500);
  r.now += 10;
  r.progress->update(600);
  EXPECT_NE(r.text().find("600/1000, 10.0/s, 40s left"), std::string::npos) << r.text();
}

TEST(Progress, StoppedEarlySaysWhere) {
  Recorder r(ProgressStyle::plain, 100);
  r.now += 1;
  r.progress->update(40);
  r.progress->finish();
  EXPECT_EQ(r.text(), "train: stopped at 40/100 after 1.0s, 40.0/s\n");
}

TEST(Progress, NothingWithoutAnUpdateAndOnlyOneLastLine) {
  Recorder silent(ProgressStyle::plain, 100);
  silent.progress.reset();
  EXPECT_EQ(silent.text(), "");
  Recorder once(ProgressStyle::plain, 1);
  once.progress->update(1);
  once.progress->finish();
  once.progress->finish();
  once.progress->update(2);
  once.progress.reset();
  EXPECT_EQ(once.split('\n').size(), 1u);
}

TEST(Progress, FormatDuration) {
  EXPECT_EQ(format_duration(0), "0.0s");
  EXPECT_EQ(format_duration(9.94), "9.9s");
  EXPECT_EQ(format_duration(9.96), "10s");
  EXPECT_EQ(format_duration(59.4), "59s");
  EXPECT_EQ(format_duration(59.6), "1m 00s");
  EXPECT_EQ(format_duration(65), "1m 05s");
  EXPECT_EQ(format_duration(3599.6), "1h 00m");
  EXPECT_EQ(format_duration(2 * 3600 + 3 * 60), "2h 03m");
  EXPECT_EQ(format_duration(3 * 86400 + 4 * 3600), "3d 04h");
  EXPECT_EQ(format_duration(-1), "?");
  EXPECT_EQ(format_duration(std::nan("")), "?");
  EXPECT_EQ(format_duration(INFINITY), "?");
}

TEST(Progress, FormatRate) {
  EXPECT_EQ(format_rate(12.34), "12.3/s");
  EXPECT_EQ(format_rate(1250), "1.25k/s");
  EXPECT_EQ(format_rate(2.5e6), "2.50M/s");
  EXPECT_EQ(format_rate(0.25), "0.25/s");
  EXPECT_EQ(format_rate(0.05), "3.0/min");
  EXPECT_EQ(format_rate(1.0 / 3600), "1.0/h");
  EXPECT_EQ(format_rate(0), "0.00/s");
  EXPECT_EQ(format_rate(NAN), "?");
}

TEST(Progress, FitColumns) {
  EXPECT_EQ(fit_columns("abc", 2), "ab");
  EXPECT_EQ(fit_columns("abc", 0), "");
  EXPECT_EQ(fit_columns("a\nb\tc", 9), "a b c");
  EXPECT_EQ(fit_columns("\xc3\xa4\xc3\xb6\xc3\xbc", 2), "\xc3\xa4\xc3\xb6");  // two of three umlauts
}

}  // namespace
}  // namespace convssm
