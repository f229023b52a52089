// The page of a run folder: what is shown, and that nothing in the folder can break it.
#include "convssm/report/report.h"

#include <gtest/gtest.h>

#include "convssm/base/error.h"
#include "convssm/report/run_view.h"
#include "convssm/report/sections.h"
#include "tests/report/fake_run.h"

namespace convssm::report {
namespace {

namespace fs = std::filesystem;

std::string page_of(const ScratchFolder& folder) {
  write_report(folder.path());
  return read_text(folder.path("report.html"));
}

void expect_parts(const std::string& page, const std::vector<std::string>& parts) {
  for (const std::string& part : parts) EXPECT_NE(page.find(part), std::string::npos) << part;
}

void expect_none(const std::string& page, const std::vector<std::string>& parts) {
  for (const std::string& part : parts) EXPECT_EQ(page.find(part), std::string::npos) << part;
}

TEST(Report, ShowsEverythingOfAWholeRun) {
  const ScratchFolder folder;
  write_whole_run(folder);
  const std::string page = page_of(folder);
  expect_parts(page, {"<title>pixel / convs5 on moving-mnist</title>", "badge finished", "step 1,000 of 4,000 (25%)",
                      "20.1M", "a &lt;note&gt;", "2 cores", "convssm 0.1"});
  expect_parts(page, {"id=\"chart-loss\"", "id=\"chart-parts\"", "id=\"chart-lr\"", "id=\"chart-grad-norm\"",
                      "id=\"chart-throughput\"", "id=\"validation-psnr_f01\"", "id=\"validation-ssim_gauss11\"",
                      "id=\"horizon-psnr_f01\"", "id=\"horizon-ssim_gauss11\"", "copy last"});
  expect_parts(page, {"<td rowspan=\"3\">400</td><td class=\"left\">convs5</td><td><b>22.78</b>", "14.10",
                      "<b>0.901</b>", "<b>22.78</b> <span class=\"soft\">± 0.05</span>",
                      "<th>PSNR ↑<br><span class=\"soft\">psnr_f01</span></th>", "<td>–</td></tr>",
                      "<td class=\"left\">&lt;b&gt;blank&lt;/b&gt;</td>", "context 100", "quantized yes",
                      "What the metrics are", "<b>psnr_f01</b>: peak &lt;ratio&gt;", "left out: fvd_i3d"});
  expect_parts(page, {"data:image/gif;base64,R0lGOD", "<figcaption>step 500</figcaption>", "evaluate strip 0",
                      "<details open><summary>config.yaml</summary>", "<span>truth</span><span>forecast</span>",
                      "/config.yaml --run", "convssm evaluate"});
  expect_none(page, {"Not in this report", "chart-skipped", "http-equiv=\"refresh\""});
}

// The chart of that id, "" if there is none.
std::string chart_of(const std::string& page, const std::string& id) {
  const size_t begin = page.find("id=\"" + id + "\"");
  return begin == std::string::npos ? "" : page.substr(begin, page.find("</figure>", begin) - begin);
}

TEST(Report, TheCurvesOfASecondPlayerStandBesideThoseOfTheFirst) {
  const ScratchFolder folder;
  std::string log;
  for (int step = 1; step < 5; ++step) {
    log += fmt::format(R"({{"step":{0},"loss":2,"fooled":1,"lr":1e-3,"grad_norm":2.5,"second.loss":3,"second.lr":{0},)"
                       R"("second.grad_norm":{0},"second.hit":0.5}})"
                       "\n",
                       step);
  }
  folder.write("log.jsonl", log);
  const std::string page = page_of(folder), parts = chart_of(page, "chart-parts");
  expect_parts(parts, {"fooled", "second.hit"});
  expect_none(parts, {"second.lr", "second.grad_norm", "second.loss"});
  expect_parts(chart_of(page, "chart-lr"), {"second.lr"});
  expect_parts(chart_of(page, "chart-grad-norm"), {"second.grad_norm"});
  expect_parts(chart_of(page, "chart-loss"), {"second.loss"});
}

TEST(Report, TheBestPictureComesFirst) {
  const ScratchFolder folder;
  write_whole_run(folder);
  for (const char* name : {"evaluate.gif", "evaluate-strip-1.gif", "step-000500.png", "step-000600.png", "own.gif"}) {
    folder.write(std::string("samples/") + name, tiny_gif());
  }
  const RunView run = read_run_view(folder.path(), 1000000);
  std::vector<std::string> names;
  for (const Sample& sample : run.samples.shown) names.push_back(sample.name);
  ASSERT_EQ(names.size(), 6u);  // the animation of step 500 shows what its strip does
  EXPECT_EQ((std::vector<std::string>(names.begin(), names.begin() + 3)),
            (std::vector<std::string>{"evaluate.gif", "evaluate-strip-0.gif", "evaluate-strip-1.gif"}));
  const std::string page = sample_images(run);
  EXPECT_LT(page.find("the first 100 frames are seen"), page.find("step 500"));
  size_t labelled = 0;
  for (size_t at = page.find("<span>truth</span>"); at != std::string::npos;
       at = page.find("<span>truth</span>", at + 1)) {
    ++labelled;
  }
  EXPECT_EQ(labelled, 5u) << "all but the picture that is not of the program";
}

// A path with a slash at its end, one that a shell would cut, and a model that needs actions.
TEST(Report, ItsCommandsRunAsTheyStand) {
  const ScratchFolder folder;
  write_whole_run(folder);
  folder.write("config.yaml", "model: {name: pixel, actions: 3}\ndata: {name: folder, path: some/robots/}\n");
  std::filesystem::create_directory_symlink(folder.path(), folder.path("it's & more"));
  write_report(folder.path("it's & more/"));
  const std::string page = read_text(folder.path("report.html"));
  expect_parts(page, {"more&#39;/config.yaml", "more-again&#39;", "--context clip.npz --actions plan.npy",
                      " on robots</title>"});
  expect_none(page, {"more/-again", "--frames 600"});
}

// What is shown is cut, what is read of it is not.
TEST(Report, OfALongConfigShowsTheBeginning) {
  const ScratchFolder folder;
  write_whole_run(folder);
  const std::string config = "data: {low: [" + std::string(200'000, '0') + "]}\nmodel: {actions: 3}\n";
  folder.write("config.yaml", config);
  expect_parts(page_of(folder), {"long: the rest is in config.yaml", "--actions plan.npy"});
}

TEST(Report, StaysBelowTwoMegabytes) {
  const ScratchFolder folder;
  write_whole_run(folder);
  for (int i = 0; i < 30; ++i) {
    folder.write(fmt::format("samples/step-{:06}.gif", i), tiny_gif(64, 64) + std::string(250000, 'x'));
  }
  EXPECT_LT(page_of(folder).size(), 2000000u);
}

TEST(Report, LoadsNothingFromElsewhere) {
  const ScratchFolder folder;
  write_whole_run(folder);
  expect_none(page_of(folder), {"http:", "https:", "src=\"//", "@import", "url("});
}

TEST(Report, EscapesWhatComesFromFiles) {
  const ScratchFolder folder;
  write_whole_run(folder);
  folder.write("status.json",
               R"({"state":"\"><script>x","model":"<img src=x>","machine":"<i>","note":"</div><script>"})");
  folder.write("log.jsonl", "{\"step\":1,\"a\\\"><script>b\":1}\n{\"step\":1,\"validation\":{\"<u>.\\\"><s>\":1}}\n");
  folder.write("samples/\"><script>.gif", tiny_gif());
  const std::string page = page_of(folder);
  expect_parts(page, {"# &lt;/script&gt;&lt;script&gt;alert(&quot;it&#39;s&quot;)&lt;/script&gt; &amp; more"});
  expect_none(page, {"<img src=x>", "<i>&", "\"><script>", "<u>", "<s>", "alert(\"", "</div><script>"});
  size_t scripts = 0;
  for (size_t at = page.find("<script"); at != std::string::npos; at = page.find("<script", at + 1)) ++scripts;
  EXPECT_EQ(scripts, 1u);
}

TEST(Report, OfAnEmptyFolderSaysWhatIsMissing) {
  const ScratchFolder folder;
  const std::string page = page_of(folder);
  expect_parts(page, {"Not in this report", "No log.jsonl", "No status.json", "No metrics.json", "No samples yet",
                      "No config.yaml", "</html>"});
  expect_none(page, {"<svg", "<table", "id=\"training\"", "id=\"samples\"", "class=\"badge"});
}

TEST(Report, OfARunningRunLoadsItselfAgain) {
  const ScratchFolder folder;
  write_whole_run(folder, "running");
  expect_parts(page_of(folder), {"<meta http-equiv=\"refresh\" content=\"10\">", "about 5m 00s left", "badge running"});
}

TEST(Report, SurvivesDamagedFiles) {
  const std::vector<std::string> damaged{"",
                                         "{",
                                         "[]",
                                         "null",
                                         "3",
                                         "{\"horizons\":3,\"curves\":[],\"protocol\":7}",
                                         R"({"horizons":[1,{"rows":[2,{"name":3,"psnr_f01":"x"}]},{"rows":{}}]})",
                                         R"({"curves":{"frames":["a",1],"psnr_f01":{"model":[null,"x"]},"y":[1]}})",
                                         R"({"curves":{"psnr_f01":{"model":[1,2,3]}}})",
                                         R"({"protocol":[]})",
                                         R"({"protocol":{"checkpoint":[]}})",
                                         R"({"state":3,"step":"x","steps":-1,"seconds":null,"model":[]})",
                                         R"({"state":"running","step":1e300,"steps":1e300,"seconds":1e308})"};
  for (const std::string& text : damaged) {
    const ScratchFolder folder;
    folder.write("status.json", text);
    folder.write("metrics.json", text);
    folder.write("log.jsonl", text + "\n");
    folder.write("config.yaml", "\xff\xfe\x01");
    folder.write("samples/empty.png", "");
    folder.write("samples/page.gif", "<html>");
    const std::string page = page_of(folder);
    expect_parts(page, {"</html>", "samples/empty.png is not an image", "samples/page.gif is not an image"});
    expect_none(page, {"<svg", "<table", "nan"});
  }
}

TEST(Report, ALossThatIsNotFiniteIsAGapAndCounted) {
  const ScratchFolder folder;
  folder.write("log.jsonl",
               training_line(1, 3) + "{\"step\":2,\"loss\":null}\n{\"step\":3,\"loss\":NaN}\n" + training_line(4, 2));
  const std::string page = page_of(folder);
  expect_parts(page, {"2 values not finite"});
  expect_none(page, {"nan ", "nan\"", " inf"});
}

TEST(Report, OfALongLogStaysSmall) {
  const ScratchFolder folder;
  std::string log;
  for (int step = 1; step <= 300000; ++step) {
    log += fmt::format("{{\"step\":{},\"loss\":{},\"grad_norm\":{}}}\n", step,
                       step == 200000 ? 77777.0 : 1.0 + step % 97, step % 89);
  }
  folder.write("log.jsonl", log);
  const std::string page = page_of(folder);
  EXPECT_LT(page.size(), 200000u);
  expect_parts(page, {"log scale", "100k", "300k", "10k"});  // the spike is on the axis
}

TEST(Report, TakesTheNewestSamplesThatFit) {
  const ScratchFolder folder;
  const auto now = fs::file_time_type::clock::now();
  for (int i = 0; i < 6; ++i) {
    const std::string name = fmt::format("samples/step-{:06d}.gif", i);
    folder.write(name, tiny_gif(64, 32) + std::string(1000, 'x'));
    fs::last_write_time(folder.path(name), now - std::chrono::hours(i));  // step 0 is the newest
  }
  const RunView run = read_run_view(folder.path(), 3500);
  ASSERT_EQ(run.samples.shown.size(), 3u);
  EXPECT_EQ(run.samples.left_out, 3u);
  EXPECT_EQ(run.samples.shown[0].name, "step-000000.gif");
  EXPECT_EQ(run.samples.shown[2].name, "step-000002.gif");
  EXPECT_EQ(run.samples.shown[0].width, 64);
  EXPECT_EQ(run.samples.shown[0].height, 32);
  const std::string html = sample_images(run);
  expect_parts(html, {"3 more in the folder samples/", "width=\"320\" height=\"160\""});
}

TEST(Report, OfEqualTimesTheLaterNameIsFirst) {
  const ScratchFolder folder;
  const auto now = fs::file_time_type::clock::now();
  for (const char* name : {"samples/step-000100.gif", "samples/step-000300.gif", "samples/step-000200.gif"}) {
    folder.write(name, tiny_gif());
    fs::last_write_time(folder.path(name), now);
  }
  const RunView run = read_run_view(folder.path(), 1000000);
  ASSERT_EQ(run.samples.shown.size(), 3u);
  EXPECT_EQ(run.samples.shown[0].name, "step-000300.gif");
  EXPECT_EQ(run.samples.shown[2].name, "step-000100.gif");
}

TEST(Report, NamesTheStepOfItsEvaluationAndOfOneThatIsNewer) {
  const ScratchFolder folder;
  write_whole_run(folder);
  nlohmann::json metrics = nlohmann::json::parse(kMetrics);
  metrics["protocol"]["checkpoint"] = {{"step", 1000}};
  folder.write("metrics.json", metrics.dump());
  expect_parts(page_of(folder), {"Scores of the checkpoint of step 1,000."});
  expect_none(page_of(folder), {"The newest is"});
  folder.write("checkpoints/step-2000.json", "{}");
  expect_parts(page_of(folder),
               {"step 1,000. The newest is that of step 2,000: run <code>convssm evaluate</code> again"});
}

TEST(Report, OneChunkOfClipsHasNoSpread) {
  const ScratchFolder folder;
  write_whole_run(folder);
  nlohmann::json metrics = nlohmann::json::parse(kMetrics);
  metrics["protocol"]["samples"] = 1, metrics["protocol"]["chunk"] = 256;
  folder.write("metrics.json", metrics.dump());
  expect_parts(page_of(folder), {"<b>22.78</b>"});
  expect_none(page_of(folder), {"±"});
}

TEST(Report, NeedsAFolder) {
  try {
    write_report("/nonexistent/run");
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::io);
    EXPECT_NE(std::string(error.what()).find("/nonexistent/run"), std::string::npos);
  }
}

TEST(Report, LeavesNothingButThePageBehind) {
  const ScratchFolder folder;
  write_whole_run(folder);
  const auto files = [&] { return std::distance(fs::directory_iterator(folder.path()), fs::directory_iterator()); };
  const auto before = files();
  write_report(folder.path() + "/");
  write_report(folder.path());
  EXPECT_EQ(files(), before + 1);
}

}  // namespace
}  // namespace convssm::report
