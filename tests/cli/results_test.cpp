// convssm results: what a user types, sees and gets as files.
#include <gtest/gtest.h>

#include "../report/fake_records.h"
#include "program.h"

namespace convssm {
namespace {

struct ResultsCommand : testing::Test {
  ScratchFolder folder;
  Outcome results(const std::string& arguments) const {
    return run("results '" + folder.path("results") + "' " + arguments);
  }
};

TEST_F(ResultsCommand, PrintsATable) {
  report::write_fake_results(folder);
  folder.write("results/new/config.yaml", "seed: 1\n");
  const Outcome outcome = results("");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  for (const char* part : {"ConvS5, seed 2", "without GELU", "2 frames ahead", "copy last frame", "812"}) {
    expect_contains(outcome.out, part);
  }
  expect_contains(outcome.err, "left out: new has no metrics.json; run convssm evaluate");
  EXPECT_EQ(outcome.err.find("warning"), std::string::npos) << outcome.err;
}

TEST_F(ResultsCommand, DrawsAndWritesWhatItKnows) {
  report::write_fake_results(folder);
  const std::string at = "'" + folder.path() + "/";
  const Outcome outcome =
      results("--chart " + at + "chart.png' --strips " + at + "strips.png' --json " + at + "runs.json'");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  for (const char* file : {"chart.png", "strips.png"}) EXPECT_GT(io::read_png(folder.path(file)).width, 0) << file;
  const auto runs = nlohmann::json::parse(read_text(folder.path("runs.json")));
  ASSERT_EQ(runs.size(), 9u);
  EXPECT_EQ(runs[0].at("label"), "ConvS5");
}

TEST_F(ResultsCommand, MistakesSayWhatToDo) {
  report::write_fake_results(folder);
  const Outcome row = results("--only convs6");
  EXPECT_EQ(row.code, 2);
  expect_contains(row.err, "did you mean 'convs5'?");
  const Outcome metric = results("--chart x.png --metric psnr");
  EXPECT_EQ(metric.code, 2);
  expect_contains(metric.err, "unknown metric 'psnr'");
  const Outcome curve = results("--chart x.png --metric lpips_alex");
  EXPECT_EQ(curve.code, 3);
  expect_contains(curve.err, "no run has a curve of lpips_alex");
  const Outcome clip = results("--strips x.png --clip 7");
  EXPECT_EQ(clip.code, 3);
  expect_contains(clip.err, "evaluate-strip-7.png");
  const Outcome kind = results("--chart x.jpg");
  EXPECT_EQ(kind.code, 2);
  expect_contains(kind.err, "'x.jpg'");
  EXPECT_EQ(kind.out, "");  // before the table
  const Outcome alone = results("--only no_gelu --chart '" + folder.path("alone.png") + "'");
  EXPECT_EQ(alone.code, 0) << alone.err;
  const Outcome pretrained = results("--only pretrained");
  expect_contains(pretrained.out, "of drawn digits");
  EXPECT_EQ(pretrained.err.find("left out"), std::string::npos) << pretrained.err;
  expect_contains(results("").err, "left out: pretrained, scored on other data");
  EXPECT_EQ(run("results /nowhere").code, 2);
  EXPECT_EQ(run("results").code, 2);
}

}  // namespace
}  // namespace convssm
