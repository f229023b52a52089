// A run in its folder: it learns, it is a function of its config, it goes on exactly, it survives bad steps.
#include "convssm/run/training_run.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <filesystem>
#include <fstream>

#include "convssm/io/npy.h"
#include "convssm/run/checkpoint.h"
#include "tests/base/scratch_folder.h"
#include "tests/run/log_scores.h"
#include "tests/support.h"

namespace convssm::run {
namespace {

namespace fs = std::filesystem;
using testing::expect_error;

nlohmann::json tiny() {
  const nlohmann::json coder = {{"depths", {4, 8}}};
  return {{"model",
           {{"encoder", coder},
            {"decoder", coder},
            {"core", {{"name", "convs5"}, {"features", 8}, {"state_size", 8}, {"layers", 1}}}}},
          {"data", {{"name", "moving-mnist"}, {"digits", 1}, {"image_size", 12}, {"digit_size", 8}, {"clips", 20}}},
          {"train",
           {{"steps", 12},
            {"batch", 2},
            {"frames", 6},
            {"warmup", 2},
            {"log_interval", 3},
            {"save_interval", 5},
            {"sample_interval", 6},
            {"sample_clips", 2},
            {"workers", 2}}}};
}

std::string read_text_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

train::Outcome train_run(const nlohmann::json& json, const std::string& run, bool resume = false) {
  RunFolder folder(run);
  TrainingRun training(Config::from_json(json), folder, resume);
  const StopRequest stop;
  return training.run(stop);
}

TEST(TrainingRun, LeavesACompleteRunFolder) {
  const ScratchFolder scratch;
  const std::string run = scratch.path("run");
  EXPECT_EQ(train_run(tiny(), run), train::Outcome::finished);
  for (const char* file : {"config.yaml", "log.jsonl", "status.json", "checkpoints/step-000012.safetensors",
                           "checkpoints/step-000012.json", "samples/step-000006.gif", "samples/step-000012.png"}) {
    EXPECT_TRUE(fs::exists(run + "/" + file)) << file;
  }
  EXPECT_FALSE(fs::is_empty(run + "/tensorboard"));
  const auto lines = testing::log_scores(run);
  ASSERT_EQ(lines.size(), 6u);  // four intervals, two validations
  EXPECT_GT(lines[0]["loss"].get<double>(), lines[4]["loss"].get<double>());
  EXPECT_TRUE(lines[2]["validation"].contains("copy_last.psnr_f01"));
  EXPECT_EQ(nlohmann::json::parse(read_text_file(run + "/status.json"))["state"], "finished");
}

TEST(TrainingRun, StoppedAndResumedEndsWithTheSameBits) {
  const ScratchFolder scratch;
  const std::string whole = scratch.path("whole"), parts = scratch.path("parts");
  nlohmann::json config = tiny();
  config["train"]["self_feed"] = 0.8;
  train_run(config, whole);
  train_run(config, parts);
  // As if the process had died after step 7: the checkpoint of step 5 is the newest, the log is longer and cut off.
  for (const char* step : {"010", "012"}) {
    fs::remove(parts + "/checkpoints/step-000" + step + ".json");
    fs::remove(parts + "/checkpoints/step-000" + step + ".safetensors");
  }
  std::ofstream(parts + "/log.jsonl", std::ios::app) << "{\"step\": 7, \"lo";
  train_run(config, parts, true);
  EXPECT_EQ(testing::log_scores(parts), testing::log_scores(whole));
  const char* last = "/checkpoints/step-000012.safetensors";
  EXPECT_EQ(read_text_file(parts + last), read_text_file(whole + last));
}

TEST(TrainingRun, NeitherWorkersNorMicroBatchesChangeTheResult) {
  const ScratchFolder scratch;
  nlohmann::json json = tiny();
  train_run(json, scratch.path("a"));
  json["train"]["workers"] = 0;
  train_run(json, scratch.path("b"));
  EXPECT_EQ(testing::log_scores(scratch.path("a")), testing::log_scores(scratch.path("b")));
  json["train"]["accumulate"] = 2;
  json["train"]["chunk_frames"] = 2;
  train_run(json, scratch.path("c"));
  const double plain = testing::log_scores(scratch.path("a")).back()["validation"]["psnr_f01"];
  EXPECT_NEAR(testing::log_scores(scratch.path("c")).back()["validation"]["psnr_f01"].get<double>(), plain, 1e-2);
}

// Pieces round differently, so a run that goes on must not choose anew because less memory is free.
TEST(TrainingRun, ARunGoesOnWithThePiecesItChose) {
  const ScratchFolder scratch;
  const std::string whole = scratch.path("whole"), parts = scratch.path("parts");
  nlohmann::json json = tiny();
  json["train"].update({{"frames", 12}, {"sample_frames", 4}, {"recompute", true}, {"chunk_frames", 4}});
  train_run(json, whole);
  train_run(json, parts);
  for (const char* step : {"010", "012"}) fs::remove(parts + "/checkpoints/step-000" + step + ".json");
  json["train"]["chunk_frames"] = "auto";  // the whole clip would fit
  train_run(json, parts, true);
  const char* last = "/checkpoints/step-000012.safetensors";
  const io::SafetensorsFile a(whole + last), b(parts + last);
  for (const std::string& name : a.names()) {
    EXPECT_TRUE(std::ranges::equal(a.read(name).bytes(), b.read(name).bytes())) << name;
  }
}

TEST(TrainingRun, StopsAfterFiveBadStepsWithTheLastGoodCheckpoint) {
  const ScratchFolder scratch;
  nlohmann::json json = tiny();
  json["train"].update({{"lr", 1e30}, {"warmup", 0}, {"save_interval", 1}, {"sample_interval", 0}, {"keep_last", 9}});
  const std::string run = scratch.path("run");
  try {
    train_run(json, run);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::numeric);
    const std::string text = error.what();
    for (const char* part : {"5 steps in a row", "no good checkpoint", "train.lr"}) {
      EXPECT_NE(text.find(part), std::string::npos) << part << " not in " << text;
    }
  }
  EXPECT_EQ(nlohmann::json::parse(read_text_file(run + "/status.json"))["state"], "failed");
  // The first update was a wreck: no checkpoint is offered, those that were saved are out of use.
  EXPECT_TRUE(checkpoint_steps(run + "/checkpoints").empty());
  EXPECT_TRUE(fs::exists(run + "/checkpoints/step-000001.json.bad"));
}

// A hook spoils the gradient of one step.
TEST(TrainingRun, ASkippedStepLeavesParametersAndMomentsAlone) {
  const ScratchFolder scratch;
  nlohmann::json json = tiny();
  json["train"].update({{"save_interval", 1}, {"keep_last", 99}, {"sample_interval", 0}, {"log_interval", 1}});
  const std::string run = scratch.path("run");
  RunFolder folder(run);
  TrainingRun training(Config::from_json(json), folder, false);
  int calls = 0;
  std::vector<at::Tensor> before, after;
  training.model().parameters()[3].register_hook([&](const at::Tensor& g) {
    ++calls;
    if (calls == 6 || calls == 7) {
      for (const auto& p : training.model().parameters()) (calls == 6 ? before : after).push_back(p.detach().clone());
    }
    return calls == 6 ? at::full_like(g, NAN) : g;
  });
  ::testing::internal::CaptureStderr();
  const StopRequest stop;
  EXPECT_EQ(training.run(stop), train::Outcome::finished);
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("gradient of '" + training.model().named_parameters()[3].key()), std::string::npos) << said;
  ASSERT_EQ(before.size(), after.size());
  for (size_t i = 0; i < before.size(); ++i) EXPECT_TRUE(before[i].equal(after[i])) << i;
  const auto lines = testing::log_scores(run);
  ASSERT_EQ(lines.size(), 12u);
  EXPECT_EQ(lines[5]["skipped"], 1);
  EXPECT_FALSE(lines[5].contains("loss"));
  EXPECT_TRUE(lines[6].contains("loss"));
  const io::SafetensorsFile next(run + "/checkpoints/step-000007.safetensors");
  EXPECT_EQ(next.read("optimizer.updates").values<int64_t>()[0], 6);
}

// Nine grey clips; clip `bad` has a pixel that is not a number.
void write_recordings(const ScratchFolder& scratch, int bad) {
  fs::create_directories(scratch.path("data"));
  for (int i = 0; i < 9; ++i) {
    io::Array clip(io::DType::f32, {6, 12, 12});
    std::fill(clip.values<float>().begin(), clip.values<float>().end(), 0.5f);
    if (i == bad) clip.values<float>()[7] = NAN;
    io::write_npy(scratch.path("data/" + std::to_string(i) + ".npy"), clip);
  }
}

TEST(TrainingRun, ARunGoesOnOnlyWithTheSameMeaningOfValues) {
  const ScratchFolder scratch;
  write_recordings(scratch, -1);
  nlohmann::json json = tiny();
  json["data"] = {{"name", "folder"}, {"path", scratch.path("data")}, {"low", 0}, {"high", 1}};
  json["train"].update({{"steps", 1}, {"warmup", 0}, {"sample_interval", 0}});
  train_run(json, scratch.path("run"));
  json["data"]["high"] = 2;
  expect_error([&] { train_run(json, scratch.path("run"), true); }, {"0 to 1", "0 to 2", "data.high=1"});
}

// A clip that was good when training began and cannot be read after some steps.
TEST(TrainingRun, AnErrorInTheDataDoesNotLoseTheStepsBefore) {
  const ScratchFolder scratch;
  const std::string run = scratch.path("run");
  write_recordings(scratch, -1);
  nlohmann::json json = tiny();
  json["data"] = {{"name", "folder"}, {"path", scratch.path("data")}, {"low", 0},
                  {"high", 1},        {"test_fraction", 0},           {"valid_fraction", 0}};
  json["train"].update({{"batch", 1}, {"save_interval", 0}, {"sample_interval", 0}});
  RunFolder folder(run);
  TrainingRun training(Config::from_json(json), folder, false);
  write_recordings(scratch, 3);
  expect_error([&] { training.run(StopRequest()); }, {"3.npy"});
  const auto status = nlohmann::json::parse(read_text_file(run + "/status.json"));
  EXPECT_EQ(status["state"], "failed");
  EXPECT_GT(status["step"], 0);
  EXPECT_EQ(checkpoint_steps(run + "/checkpoints"), std::vector<int64_t>{status["step"]});
}

// Names of files need not be text.
TEST(Recorder, WritesAStatusWhateverTheErrorSays) {
  const ScratchFolder scratch;
  RunFolder folder(scratch.path("run"));
  const Config config = Config::from_json(tiny());
  const auto dataset = make_dataset(config);
  const auto model = make_model(config, dataset->format());
  Recorder recorder(folder, config, *model, dataset->format(), {});
  recorder.status("failed", 3, 1.5, "cannot read caf\xe9.npy");
  const auto status = nlohmann::json::parse(read_text_file(folder.path("status.json")));
  EXPECT_EQ(status["state"], "failed");
  EXPECT_TRUE(status["note"].get<std::string>().starts_with("cannot read caf"));
}

TEST(TrainingRun, RefusesWhatCannotWork) {
  const ScratchFolder scratch;
  const std::string run = scratch.path("run");
  nlohmann::json json = tiny();
  json["train"]["steps"] = 1, json["train"]["warmup"] = 0;
  train_run(json, run);
  expect_error([&] { train_run(json, run); }, {"holds a run already", "--resume"});
  {
    RunFolder first(scratch.path("locked"));
    expect_error([&] { RunFolder second(scratch.path("locked")); }, {"another process", "process"});
  }
  nlohmann::json wide = tiny();
  wide["model"]["core"]["features"] = 12;
  expect_error([&] { train_run(wide, run, true); }, {"shape", "another model"});
  nlohmann::json dropout = tiny();
  dropout["model"]["core"]["dropout"] = 0.1;
  dropout["train"]["chunk_frames"] = 2;
  expect_error([&] { train_run(dropout, scratch.path("dropout")); }, {"chunk_frames", "dropout", "must be 0"});
  nlohmann::json growing = tiny();
  growing["model"]["core"] = {{"name", "transformer"}, {"features", 8}, {"heads", 2}, {"out_features", 8}};
  growing["train"]["chunk_frames"] = 2;
  expect_error([&] { train_run(growing, scratch.path("growing")); }, {"chunk_frames", "does not grow", "window"});
  nlohmann::json huge = tiny();
  huge["train"]["frames"] = 100000000;
  expect_error([&] { train_run(huge, scratch.path("huge")); }, {"available", "train.frames"});
}

}  // namespace
}  // namespace convssm::run
