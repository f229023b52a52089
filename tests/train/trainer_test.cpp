// The training loop: it learns, it is a function of its config, it goes on exactly, it survives bad steps.
#include "convssm/train/trainer.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <filesystem>
#include <fstream>

#include "convssm/io/npy.h"
#include "convssm/models/checkpoint.h"
#include "convssm/ops/memory_meter.h"
#include "convssm/train/memory_estimate.h"
#include "convssm/train/preflight.h"
#include "tests/base/scratch_folder.h"
#include "tests/support.h"

namespace convssm::train {
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

// The log without what a clock decides.
std::vector<nlohmann::json> scores(const std::string& run) {
  std::vector<nlohmann::json> lines;
  std::ifstream in(run + "/log.jsonl");
  for (std::string line; std::getline(in, line);) {
    lines.push_back(nlohmann::json::parse(line));
    lines.back().erase("seconds");
    lines.back().erase("frames_per_second");
  }
  return lines;
}

Outcome train(const nlohmann::json& json, const std::string& run, bool resume = false) {
  RunFolder folder(run);
  Trainer trainer(Config::from_json(json), folder, resume);
  const StopRequest stop;
  return trainer.run(stop);
}

TEST(Trainer, LeavesACompleteRunFolder) {
  const ScratchFolder scratch;
  const std::string run = scratch.path("run");
  EXPECT_EQ(train(tiny(), run), Outcome::finished);
  for (const char* file : {"config.yaml", "log.jsonl", "status.json", "checkpoints/step-000012.safetensors",
                           "checkpoints/step-000012.json", "samples/step-000006.gif", "samples/step-000012.png"}) {
    EXPECT_TRUE(fs::exists(run + "/" + file)) << file;
  }
  EXPECT_FALSE(fs::is_empty(run + "/tensorboard"));
  const auto lines = scores(run);
  ASSERT_EQ(lines.size(), 6u);  // four intervals, two validations
  EXPECT_GT(lines[0]["loss"].get<double>(), lines[4]["loss"].get<double>());
  EXPECT_TRUE(lines[2]["validation"].contains("copy_last.psnr_f01"));
  EXPECT_EQ(nlohmann::json::parse(read_text_file(run + "/status.json"))["state"], "finished");
}

TEST(Trainer, StoppedAndResumedEndsWithTheSameBits) {
  const ScratchFolder scratch;
  const std::string whole = scratch.path("whole"), parts = scratch.path("parts");
  nlohmann::json config = tiny();
  config["train"]["self_feed"] = 0.8;
  train(config, whole);
  train(config, parts);
  // As if the process had died after step 7: the checkpoint of step 5 is the newest, the log is longer and cut off.
  for (const char* step : {"010", "012"}) {
    fs::remove(parts + "/checkpoints/step-000" + step + ".json");
    fs::remove(parts + "/checkpoints/step-000" + step + ".safetensors");
  }
  std::ofstream(parts + "/log.jsonl", std::ios::app) << "{\"step\": 7, \"lo";
  train(config, parts, true);
  EXPECT_EQ(scores(parts), scores(whole));
  const char* last = "/checkpoints/step-000012.safetensors";
  EXPECT_EQ(read_text_file(parts + last), read_text_file(whole + last));
}

TEST(Trainer, NeitherWorkersNorPartsChangeTheResult) {
  const ScratchFolder scratch;
  nlohmann::json json = tiny();
  train(json, scratch.path("a"));
  json["train"]["workers"] = 0;
  train(json, scratch.path("b"));
  EXPECT_EQ(scores(scratch.path("a")), scores(scratch.path("b")));
  json["train"]["accumulate"] = 2;
  json["train"]["chunk_frames"] = 2;
  train(json, scratch.path("c"));
  const double plain = scores(scratch.path("a")).back()["validation"]["psnr_f01"];
  EXPECT_NEAR(scores(scratch.path("c")).back()["validation"]["psnr_f01"].get<double>(), plain, 1e-2);
}

// Pieces round differently, so a run that goes on must not choose anew because less memory is free.
TEST(Trainer, ARunGoesOnWithThePiecesItChose) {
  const ScratchFolder scratch;
  const std::string whole = scratch.path("whole"), parts = scratch.path("parts");
  nlohmann::json json = tiny();
  json["train"].update({{"frames", 12}, {"sample_frames", 4}, {"recompute", true}, {"chunk_frames", 4}});
  train(json, whole);
  train(json, parts);
  for (const char* step : {"010", "012"}) fs::remove(parts + "/checkpoints/step-000" + step + ".json");
  json["train"]["chunk_frames"] = "auto";  // the whole clip would fit
  train(json, parts, true);
  const char* last = "/checkpoints/step-000012.safetensors";
  const io::SafetensorsFile a(whole + last), b(parts + last);
  for (const std::string& name : a.names()) {
    EXPECT_TRUE(std::ranges::equal(a.read(name).bytes(), b.read(name).bytes())) << name;
  }
}

TEST(Trainer, ChoosesPiecesByTheMemoryAllowed) {
  nlohmann::json json = tiny();
  json["train"].update({{"frames", 41}, {"workers", 0}});
  Config config = Config::from_json(json);
  const auto frames = make_dataset(config)->format();
  const auto model = make_model(config, frames);
  EXPECT_EQ(plan_step(config, *model, frames, 0), 0);
  EXPECT_EQ(plan_step(config, *model, frames, 0, 9), 9);
  const MemoryEstimate estimate = estimate_memory(*model, 1, 12, 12);
  TrainOptions ten = config.train;
  ten.chunk_frames = 10;
  config.train.memory = fmt::format("{}KiB", estimate.total(ten) / 1024 + 1);
  EXPECT_EQ(plan_step(config, *model, frames, 0), 10);
  config.model["core"]["dropout"] = 0.1;  // no pieces then: the whole clip is too much
  expect_error([&] { plan_step(config, *model, frames, 0); }, {"train.memory allows only", "Use a smaller model"});
}

TEST(Trainer, StopsAfterFiveBadStepsWithTheLastGoodCheckpoint) {
  const ScratchFolder scratch;
  nlohmann::json json = tiny();
  json["train"].update({{"lr", 1e30}, {"warmup", 0}, {"save_interval", 1}, {"sample_interval", 0}, {"keep_last", 9}});
  const std::string run = scratch.path("run");
  try {
    train(json, run);
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
  EXPECT_TRUE(models::checkpoint_steps(run + "/checkpoints").empty());
  EXPECT_TRUE(fs::exists(run + "/checkpoints/step-000001.json.bad"));
}

// A hook spoils the gradient of one step.
TEST(Trainer, ASkippedStepLeavesParametersAndMomentsAlone) {
  const ScratchFolder scratch;
  nlohmann::json json = tiny();
  json["train"].update({{"save_interval", 1}, {"keep_last", 99}, {"sample_interval", 0}, {"log_interval", 1}});
  const std::string run = scratch.path("run");
  RunFolder folder(run);
  Trainer trainer(Config::from_json(json), folder, false);
  int calls = 0;
  std::vector<at::Tensor> before, after;
  trainer.model().parameters()[3].register_hook([&](const at::Tensor& g) {
    ++calls;
    if (calls == 6 || calls == 7) {
      for (const auto& p : trainer.model().parameters()) (calls == 6 ? before : after).push_back(p.detach().clone());
    }
    return calls == 6 ? at::full_like(g, NAN) : g;
  });
  ::testing::internal::CaptureStderr();
  const StopRequest stop;
  EXPECT_EQ(trainer.run(stop), Outcome::finished);
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("gradient of '" + trainer.model().named_parameters()[3].key()), std::string::npos) << said;
  ASSERT_EQ(before.size(), after.size());
  for (size_t i = 0; i < before.size(); ++i) EXPECT_TRUE(before[i].equal(after[i])) << i;
  const auto lines = scores(run);
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

TEST(Trainer, ARunGoesOnOnlyWithTheSameMeaningOfValues) {
  const ScratchFolder scratch;
  write_recordings(scratch, -1);
  nlohmann::json json = tiny();
  json["data"] = {{"name", "folder"}, {"path", scratch.path("data")}, {"low", 0}, {"high", 1}};
  json["train"].update({{"steps", 1}, {"warmup", 0}, {"sample_interval", 0}});
  train(json, scratch.path("run"));
  json["data"]["high"] = 2;
  expect_error([&] { train(json, scratch.path("run"), true); }, {"0 to 1", "0 to 2", "data.high=1"});
}

// A clip that cannot be read, after some steps.
TEST(Trainer, AnErrorInTheDataDoesNotLoseTheStepsBefore) {
  const ScratchFolder scratch;
  const std::string run = scratch.path("run");
  write_recordings(scratch, 3);
  nlohmann::json json = tiny();
  json["data"] = {{"name", "folder"}, {"path", scratch.path("data")}, {"low", 0}, {"high", 1}, {"test_fraction", 0}};
  json["train"].update({{"batch", 1}, {"save_interval", 0}, {"sample_interval", 0}});
  expect_error([&] { train(json, run); }, {"3.npy"});
  const auto status = nlohmann::json::parse(read_text_file(run + "/status.json"));
  EXPECT_EQ(status["state"], "failed");
  EXPECT_GT(status["step"], 0);
  EXPECT_EQ(models::checkpoint_steps(run + "/checkpoints"), std::vector<int64_t>{status["step"]});
}

TEST(Trainer, RefusesWhatCannotWork) {
  const ScratchFolder scratch;
  const std::string run = scratch.path("run");
  nlohmann::json json = tiny();
  json["train"]["steps"] = 1, json["train"]["warmup"] = 0;
  train(json, run);
  expect_error([&] { train(json, run); }, {"holds a run already", "--resume"});
  {
    RunFolder first(scratch.path("locked"));
    expect_error([&] { RunFolder second(scratch.path("locked")); }, {"another process", "process"});
  }
  nlohmann::json wide = tiny();
  wide["model"]["core"]["features"] = 12;
  expect_error([&] { train(wide, run, true); }, {"shape", "another model"});
  nlohmann::json dropout = tiny();
  dropout["model"]["core"]["dropout"] = 0.1;
  dropout["train"]["chunk_frames"] = 2;
  expect_error([&] { train(dropout, scratch.path("dropout")); }, {"dropout must be 0", "0.1"});
  nlohmann::json growing = tiny();
  growing["model"]["core"] = {{"name", "transformer"}, {"features", 8}, {"heads", 2}, {"out_features", 8}};
  growing["train"]["chunk_frames"] = 2;
  expect_error([&] { train(growing, scratch.path("growing")); }, {"chunk_frames", "does not grow", "window"});
  nlohmann::json huge = tiny();
  huge["train"]["frames"] = 100000000;
  expect_error([&] { train(huge, scratch.path("huge")); }, {"available", "train.frames"});
}

TEST(MemoryEstimate, IsCloseToWhatAStepTakes) {
  nlohmann::json json = tiny();
  json["data"].update({{"image_size", 32}, {"digit_size", 16}});
  json["model"]["core"]["features"] = 32;
  const Config config = Config::from_json(json);
  const auto model = make_model(config, make_dataset(config)->format());
  const MemoryEstimate estimate = estimate_memory(*model, 1, 32, 32);
  TrainOptions o;
  o.batch = 3, o.frames = 17;
  ops::MemoryMeter meter;
  add_gradients(*model, {at::zeros({3, 17, 1, 32, 32}), {}, {}}, 0);
  const double ratio = static_cast<double>(estimate.total(o)) / static_cast<double>(meter.peak());
  EXPECT_GT(ratio, 1.0);
  EXPECT_LT(ratio, 1.5);
}

TEST(MemoryEstimate, KnowsThatRecomputingKeepsLess) {
  const Config config = Config::from_json(tiny());
  const auto model = make_model(config, make_dataset(config)->format());
  const auto per_frame = [&](bool recompute) { return estimate_memory(*model, 1, 12, 12, recompute).per_frame; };
  EXPECT_LT(static_cast<double>(per_frame(true)), 0.8 * static_cast<double>(per_frame(false)));
}

// Against trying every length.
TEST(MemoryEstimate, ChoosesTheLargestPiecesThatFit) {
  const MemoryEstimate estimate{.fixed = 1000, .per_frame = 100, .state = 900, .pixels = 1, .program = 50};
  TrainOptions o;
  o.batch = 2, o.frames = 101;
  const auto total = [&](int64_t chunk) {
    TrainOptions with = o;
    with.chunk_frames = chunk;
    return estimate.total(with);
  };
  uint64_t least = total(1);
  for (int64_t c = 1; c <= 100; ++c) least = std::min(least, total(c));
  for (uint64_t budget = least; budget < total(0); budget += 97) {
    int64_t largest = 0;
    for (int64_t c = 1; c < 100; ++c) largest = total(c) <= budget ? c : largest;
    const int64_t pieces = (100 + largest - 1) / largest, even = (100 + pieces - 1) / pieces;
    EXPECT_EQ(choose_chunk(estimate, o, budget), total(even) <= budget ? even : largest) << budget;
  }
  EXPECT_EQ(choose_chunk(estimate, o, total(0)), 0);
  EXPECT_EQ(total(choose_chunk(estimate, o, least - 1)), least);
}

TEST(MemoryEstimate, AdviceIsTheLeastChangeThatFits) {
  constexpr uint64_t mega = 1 << 20;
  const MemoryEstimate estimate{.fixed = 10 * mega, .per_frame = mega};
  TrainOptions o;
  o.batch = 4, o.frames = 1001;
  const auto advice = [&](uint64_t available, const std::vector<std::string>& parts) {
    expect_error([&] { check_memory(estimate, o, true, available); }, parts);
  };
  EXPECT_NE(check_memory(estimate, o, true, 8000 * mega).find("4 clips x 1000 frames"), std::string::npos);
  advice(2000 * mega, {"only 2.0 GiB available", "the same gradients: train.accumulate=4"});
  advice(400 * mega, {"train.accumulate=4 train.chunk_frames=250"});
  advice(11 * mega, {"Use a smaller model"});
  expect_error([&] { check_memory(estimate, o, false, 400 * mega); }, {"Use a smaller model", "train.recompute=true"});
  o.memory = "400MiB";
  advice(8000 * mega, {"train.memory allows only 400.0 MiB", "train.accumulate=4 train.chunk_frames=250"});
}

}  // namespace
}  // namespace convssm::train
