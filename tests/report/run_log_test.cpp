// Reading log.jsonl: fields, validations, damaged and cut-off lines, values that are not numbers, resumed runs.
#include "convssm/report/run_log.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/report/fake_run.h"

namespace convssm::report {
namespace {

RunLog read(const std::string& text) {
  const ScratchFolder folder;
  folder.write("log.jsonl", text);
  return read_log(folder.path("log.jsonl"));
}

const std::vector<Point>& training(const RunLog& log, const std::string& name) {
  const Curve* curve = RunLog::find(log.training, name);
  if (curve == nullptr) throw std::runtime_error("no curve " + name);
  return curve->points;
}

const std::vector<Point>& validation(const RunLog& log, const std::string& name) {
  const Curve* curve = RunLog::find(log.validation, name);
  if (curve == nullptr) throw std::runtime_error("no curve " + name);
  return curve->points;
}

TEST(RunLog, HoldsACurveForEachField) {
  const RunLog log = read(whole_log());
  EXPECT_EQ(log.lines, 110u);
  EXPECT_EQ(log.bad_lines, 0u);
  ASSERT_EQ(training(log, "loss").size(), 100u);
  EXPECT_EQ(training(log, "loss")[1].x, 20);
  EXPECT_EQ(training(log, "loss")[1].y, 5);
  EXPECT_EQ(training(log, "l1").size(), 100u);
  ASSERT_EQ(validation(log, "psnr_f01").size(), 10u);
  EXPECT_EQ(validation(log, "psnr_f01")[9].y, 25);
  EXPECT_EQ(validation(log, "copy_last.psnr_f01").size(), 10u);
  EXPECT_EQ(RunLog::find(log.training, "step"), nullptr);
  EXPECT_EQ(RunLog::find(log.training, "psnr_f01"), nullptr);
}

TEST(RunLog, ALastLineThatIsCutOffIsIgnored) {
  const std::string whole = training_line(10, 1) + training_line(20, 2);
  for (size_t cut = 1; cut < 20; ++cut) {
    const RunLog log = read(whole.substr(0, whole.size() - 1 - cut));
    EXPECT_EQ(log.lines, 1u);
    EXPECT_EQ(log.bad_lines, 0u);
  }
  EXPECT_EQ(read(whole.substr(0, whole.size() - 1)).lines, 2u);  // only the end of the line is missing
}

TEST(RunLog, DamagedLinesAreCountedAndLeftOut) {
  const RunLog log =
      read(training_line(10, 1) + "rubbish\n[1,2]\n{\"loss\":3}\n\n{\"step\":\"x\"}\n" + training_line(20, 2));
  EXPECT_EQ(log.lines, 2u);
  EXPECT_EQ(log.bad_lines, 4u);
  EXPECT_EQ(training(log, "loss").size(), 2u);
}

TEST(RunLog, WhatIsNotANumberIsAGap) {
  const RunLog log = read(
      "{\"step\":1,\"loss\":null}\n{\"step\":2,\"loss\":NaN,\"note\":\"NaN \\\" "
      "inf\"}\n{\"step\":3,\"loss\":-Infinity}\n"
      "{\"step\":4,\"loss\":nan,\"l1\":inf}\n{\"step\":5,\"loss\":7}\n");
  EXPECT_EQ(log.bad_lines, 0u);
  const auto& loss = training(log, "loss");
  ASSERT_EQ(loss.size(), 5u);
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(std::isnan(loss[i].y));
  EXPECT_EQ(loss[4].y, 7);
}

TEST(RunLog, AResumedRunReplacesWhatItDoesAgain) {
  const RunLog log =
      read(training_line(10, 1) + training_line(20, 2) + validation_line(20, 5) + training_line(30, 3) +
           validation_line(30, 6) + training_line(20, 20) + validation_line(20, 50) + training_line(30, 30));
  const auto& loss = training(log, "loss");
  ASSERT_EQ(loss.size(), 3u);
  EXPECT_EQ(loss[0].y, 1);
  EXPECT_EQ(loss[1].y, 20);
  EXPECT_EQ(loss[2].y, 30);
  ASSERT_EQ(validation(log, "psnr_f01").size(), 1u);
  EXPECT_EQ(validation(log, "psnr_f01")[0].y, 50);
}

TEST(RunLog, AStepMayBeSpreadOverLines) {
  const RunLog log = read("{\"step\":1,\"loss\":3}\n{\"step\":1,\"lr\":0.5}\n{\"step\":1,\"loss\":4}\n");
  ASSERT_EQ(training(log, "loss").size(), 1u);
  EXPECT_EQ(training(log, "loss")[0].y, 4);
  EXPECT_EQ(training(log, "lr").size(), 1u);
}

TEST(RunLog, NestedValidationFieldsAreNamedByTheirPath) {
  const RunLog log = read("{\"step\":1,\"validation\":{\"copy_last\":{\"psnr_f01\":3},\"x\":\"text\"}}\n");
  EXPECT_EQ(validation(log, "copy_last.psnr_f01")[0].y, 3);
  EXPECT_EQ(log.validation.size(), 1u);
}

TEST(RunLog, AMissingOrEmptyFileIsAnEmptyLog) {
  EXPECT_EQ(read_log("/nonexistent/log.jsonl").lines, 0u);
  EXPECT_EQ(read("").lines, 0u);
}

}  // namespace
}  // namespace convssm::report
