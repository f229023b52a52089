// Every model in pretrained/ of the source tree: small, whole, and ready to generate, or a tokenizer to encode, without its data.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "../base/scratch_folder.h"
#include "convssm/io/checksum.h"
#include "convssm/io/npy.h"
#include "convssm/io/safetensors.h"
#include "program.h"

namespace convssm {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMostBytes = 8'000'000;

std::vector<std::string> pretrained_folders() {
  std::vector<std::string> folders;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(CONVSSM_SOURCE_DIR "/pretrained", none)) {
    if (entry.is_directory()) folders.push_back(entry.path().string());
  }
  return folders;
}

void expect_generates(const std::string& model, const std::string& folder, const std::string& out) {
  const Outcome made = run("generate " + model + " --context " + folder + "/context.npy --frames 5 --out " + out);
  ASSERT_EQ(made.code, 0) << made.err;
  EXPECT_EQ(io::read_npy(out).shape()[0], 5);
}

void expect_encodes(const std::string& model, const std::string& out) {
  const Outcome made = run("data encode " + model + " --clips 1 --frames 4 --out " + out);
  ASSERT_EQ(made.code, 0) << made.err;
}

TEST(Pretrained, EveryModelIsSmallWholeAndRuns) {
  ASSERT_FALSE(pretrained_folders().empty());
  const ScratchFolder scratch;
  for (const std::string& folder : pretrained_folders()) {
    SCOPED_TRACE(folder);
    for (const char* name :
         {"model.safetensors", "config.yaml", "export.json", "log.jsonl", "status.json", "metrics.json", "README.md"}) {
      EXPECT_TRUE(fs::exists(folder + "/" + name)) << name;
    }
    const std::string weights = folder + "/model.safetensors", name = fs::path(folder).filename().string();
    ASSERT_TRUE(fs::exists(weights));
    EXPECT_LE(fs::file_size(weights), kMostBytes);
    const io::SafetensorsFile file(weights);
    for (const std::string& tensor : file.names()) EXPECT_TRUE(tensor.starts_with("model.")) << tensor;
    const auto record = nlohmann::json::parse(read_all(folder + "/export.json"), nullptr, false);
    EXPECT_EQ(record["weights"]["checksum"], io::file_checksum(weights));
    expect_contains(read_all(folder + "/README.md"), record["weights"]["checksum"]);
    if (!fs::exists(folder + "/context.npy")) {
      expect_encodes(folder, scratch.path(name + "-a"));
      expect_encodes(weights, scratch.path(name + "-b"));
      EXPECT_EQ(read_all(scratch.path(name + "-a/train/00/clip-000000.npz")),
                read_all(scratch.path(name + "-b/train/00/clip-000000.npz")));
      continue;
    }
    expect_generates(folder, folder, scratch.path(name + "-a.npy"));
    expect_generates(weights, folder, scratch.path(name + "-b.npy"));
    EXPECT_EQ(read_all(scratch.path(name + "-a.npy")), read_all(scratch.path(name + "-b.npy")));
  }
}

// tests/cli/data: a state that version 0.1 saved after 40 forecasts, and the 20 frames that it generated from there. Other
// instruction sets round differently.
TEST(Pretrained, AStateOfVersion01GoesOn) {
  const ScratchFolder scratch;
  const std::string data = CONVSSM_SOURCE_DIR "/tests/cli/data/", out = scratch.path("future.npy");
  const Outcome made = run("generate " CONVSSM_SOURCE_DIR "/pretrained/moving-digits-convs5 --state " + data +
                           "state_0_1.safetensors --frames 20 --out " + out);
  ASSERT_EQ(made.code, 0) << made.err;
  const io::Array found = io::read_npy(out), expected = io::read_npy(data + "state_0_1_future.npy");
  ASSERT_EQ(found.shape(), expected.shape());
  int largest = 0;
  for (size_t i = 0; i < found.values<uint8_t>().size(); ++i) {
    largest = std::max(largest, std::abs(found.values<uint8_t>()[i] - expected.values<uint8_t>()[i]));
  }
  EXPECT_LE(largest, 2);
}

// From the build folder, without being told where.
TEST(Pretrained, TheDemoFindsIts) { expect_contains(run("demo --help").out, "pretrained/moving-digits-convs5"); }

}  // namespace
}  // namespace convssm
