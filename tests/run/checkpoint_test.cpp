// Checkpoints and model files: what is written is read back, damage is found, the one before is used.
#include "convssm/run/checkpoint.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <torch/torch.h>

#include <filesystem>
#include <fstream>

#include "convssm/io/tensor.h"
#include "convssm/models/registry.h"
#include "convssm/run/model_file.h"
#include "tests/base/scratch_folder.h"
#include "tests/support.h"

namespace convssm::run {
namespace {

using testing::expect_error;

const nlohmann::json kOptions = {{"name", "pixel"},
                                 {"core", {{"name", "convs5"}, {"features", 8}, {"state_size", 8}}},
                                 {"encoder", {{"depths", {4, 8}}}},
                                 {"decoder", {{"depths", {4, 8}}}}};
const data::FrameFormat kFrames{1, 8, 8};

void write(const std::string& folder, int64_t step) {
  write_checkpoint(folder, step, {io::lazy_array("x", at::full({1}, static_cast<float>(step)))}, {{"a", "b"}},
                   {{"note", step}});
}

void flip_a_byte(const std::string& path) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(-1, std::ios::end);
  const char last = static_cast<char>(file.get());
  file.seekp(-1, std::ios::end);
  file.put(static_cast<char>(last ^ 1));
}

TEST(Checkpoint, TheNewestGoodOneIsFound) {
  const ScratchFolder scratch;
  const std::string folder = scratch.path("checkpoints");
  for (const int64_t step : {5, 10, 1500000}) write(folder, step);
  EXPECT_EQ(checkpoint_steps(folder), (std::vector<int64_t>{5, 10, 1500000}));
  CheckpointRecord record = find_checkpoint(folder);
  EXPECT_EQ(record.step, 1500000);
  EXPECT_EQ(record.extras["note"], 1500000);
  flip_a_byte(record.tensors);
  ::testing::internal::CaptureStderr();
  record = find_checkpoint(folder);
  const std::string warning = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(warning.find("step-1500000.safetensors"), std::string::npos) << warning;
  EXPECT_NE(warning.find("checksum"), std::string::npos) << warning;
  EXPECT_EQ(record.step, 10);
  std::ofstream(folder + "/step-000010.json") << "{";
  std::filesystem::remove(folder + "/step-000005.safetensors");
  expect_error([&] { find_checkpoint(folder); }, {"no usable checkpoint", folder});
  expect_error([&] { find_checkpoint(folder, 7); }, {"7", "5, 10, 1500000"});
}

TEST(Checkpoint, PruningKeepsTheNewestAndTheRoundOnes) {
  const ScratchFolder scratch;
  const std::string folder = scratch.path("c");
  for (int64_t step = 10; step <= 100; step += 10) write(folder, step);
  prune_checkpoints(folder, 2, 40);
  EXPECT_EQ(checkpoint_steps(folder), (std::vector<int64_t>{40, 80, 90, 100}));
  EXPECT_FALSE(std::filesystem::exists(folder + "/step-000010.safetensors"));
  prune_checkpoints(folder, 1, 0);
  EXPECT_EQ(checkpoint_steps(folder), (std::vector<int64_t>{100}));
}

TEST(Checkpoint, HalvesAreRemoved) {
  const ScratchFolder scratch;
  const std::string folder = scratch.path("c");
  for (const int64_t step : {10, 20, 30}) write(folder, step);
  std::filesystem::remove(folder + "/step-000010.json");  // a kill in the middle of pruning
  set_aside_checkpoints_after(folder, 20);
  remove_halves(folder);
  EXPECT_FALSE(std::filesystem::exists(folder + "/step-000010.safetensors"));
  EXPECT_TRUE(std::filesystem::exists(folder + "/step-000020.safetensors"));
  EXPECT_TRUE(std::filesystem::exists(folder + "/step-000030.safetensors"));  // .bad, for people to look at
  std::filesystem::rename(folder + "/step-000020.safetensors", folder + "/step-20.safetensors");  // of other programs
  std::filesystem::rename(folder + "/step-000020.json", folder + "/step-20.json");
  std::filesystem::create_symlink("step-000050.json", folder + "/step-000050.json");  // cannot be looked at: a loop
  std::filesystem::copy_file(folder + "/step-20.safetensors", folder + "/step-000050.safetensors");
  remove_halves(folder);
  EXPECT_TRUE(std::filesystem::exists(folder + "/step-20.safetensors"));
  EXPECT_TRUE(std::filesystem::exists(folder + "/step-000050.safetensors"));
  std::filesystem::remove(folder + "/step-000050.json");
  std::filesystem::rename(folder + "/step-000050.safetensors", folder + "/step-000060.safetensors");
  std::filesystem::copy_file(folder + "/step-20.json", folder + "/step-000070.json");  // without tensors
  remove_halves(folder);
  EXPECT_FALSE(std::filesystem::exists(folder + "/step-000060.safetensors"));
  EXPECT_FALSE(std::filesystem::exists(folder + "/step-000070.json"));
  std::filesystem::create_directory(folder + "/step-000040.json");
  EXPECT_THROW(write(folder, 40), Error);
  EXPECT_FALSE(std::filesystem::exists(folder + "/step-000040.safetensors"));
}

TEST(Checkpoint, WhatIsNoFileIsPassedOver) {
  const ScratchFolder scratch;
  const std::string folder = scratch.path("c");
  write(folder, 10);
  std::filesystem::create_directory(folder + "/step-000020.json");
  ASSERT_EQ(mkfifo((folder + "/step-000030.json").c_str(), 0600), 0);
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(find_checkpoint(folder).step, 10);
  const std::string warning = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(warning.find("not a regular file"), std::string::npos) << warning;
}

TEST(ModelFile, ReadsBackTheSameModel) {
  const ScratchFolder scratch;
  const auto model = models::make_model(kOptions, {1, 8, 8});
  save_model(scratch.path("m.safetensors"), *model, {kOptions, kFrames, {{"seed", 1}}, 7});
  const LoadedModel loaded = load_model(scratch.path("m.safetensors"));
  EXPECT_EQ(loaded.recipe.step, 7);
  EXPECT_EQ(loaded.recipe.frames.to_json(), kFrames.to_json());
  EXPECT_FALSE(loaded.model->is_training());
  for (size_t i = 0; i < model->parameters().size(); ++i) {
    EXPECT_TRUE(model->parameters()[i].equal(loaded.model->parameters()[i]));
  }
}

TEST(ModelFile, SaysWhatIsWrong) {
  const ScratchFolder scratch;
  const auto model = models::make_model(kOptions, {1, 8, 8});
  expect_error([&] { load_model(scratch.path("none")); }, {"no such run or model"});
  expect_error([&] { load_model(scratch.path("")); }, {"holds no model", "checkpoints", "model.safetensors"});
  io::stream_safetensors(scratch.path("bare.safetensors"), model_arrays(*model));
  expect_error([&] { load_model(scratch.path("bare.safetensors")); }, {"not a model of convssm", "header"});
  nlohmann::json wider = kOptions;
  wider["core"]["features"] = 12;
  save_model(scratch.path("other.safetensors"), *model, {wider, kFrames, {}, 0});
  expect_error([&] { load_model(scratch.path("other.safetensors")); }, {"shape", "another model"});
  io::Metadata future = recipe_metadata({kOptions, kFrames, {}, 0});
  future["format"] = "3";
  io::stream_safetensors(scratch.path("future.safetensors"), model_arrays(*model), future);
  expect_error([&] { load_model(scratch.path("future.safetensors")); }, {"format 3", "knows 1 and 2"});
}

// Readers of format 1 know one range for all channels, and refuse what they cannot read by its format.
TEST(ModelFile, HasTheOldestFormatThatCanSayIt) {
  const ScratchFolder scratch;
  data::FrameFormat named(1, 8, 8);
  named.channels[0].name = "radar";
  for (const data::FrameFormat& frames : {data::FrameFormat(1, 8, 8, -1.5, 2.5), named}) {
    const bool old = frames.channels[0].name.empty();
    const io::Metadata metadata = recipe_metadata({kOptions, frames, {}, 0});
    EXPECT_EQ(metadata.at("format"), old ? "1" : "2");
    EXPECT_EQ(nlohmann::json::parse(metadata.at("frames"))["channels"].is_number(), old);
    save_model(scratch.path("m.safetensors"), *models::make_model(kOptions, frames), {kOptions, frames, {}, 0});
    EXPECT_EQ(load_model(scratch.path("m.safetensors")).recipe.frames.channels, frames.channels);
  }
}

TEST(ModelFile, SaysWhichWeightsItGives) {
  const ScratchFolder scratch;
  const auto model = models::make_model(kOptions, kFrames);
  const std::string checkpoint = scratch.path("c.safetensors"), plain = scratch.path("p.safetensors");
  std::vector<io::LazyArray> arrays = model_arrays(*model);
  save_model(plain, *model, {kOptions, kFrames, {}, 0});
  EXPECT_EQ(load_model(plain).recipe.weights, "trained");
  const auto first = model->named_parameters()[0];
  arrays.push_back(io::lazy_array("average." + first.key(), at::zeros_like(first.value())));
  io::stream_safetensors(checkpoint, arrays, recipe_metadata({kOptions, kFrames, {}, 0}));
  EXPECT_EQ(load_model(checkpoint, {.averaged = false}).recipe.weights, "trained");
  const LoadedModel averaged = load_model(checkpoint);
  EXPECT_EQ(averaged.recipe.weights, "average");
  save_model(plain, *averaged.model, averaged.recipe);  // has only these, and says so
  EXPECT_EQ(load_model(plain, {.averaged = false}).recipe.weights, "average");
}

}  // namespace
}  // namespace convssm::run
