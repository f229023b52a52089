// Files that would make the program wait, fill the memory or go on with damaged data: through the commands that read them.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <map>

#include "convssm/io/npy.h"
#include "convssm/io/npz.h"
#include "convssm/io/safetensors.h"
#include "exported_run.h"

namespace convssm {
namespace {

namespace fs = std::filesystem;

class Hostile : public ExportedRun {
 protected:
  // The exported model with another description, or with NaN in its last layer, as a file of its own.
  static std::string changed_model(const std::string& name, const io::Metadata& changes, bool nan = false) {
    const io::SafetensorsFile good(path("small/model.safetensors"));
    io::Metadata about = good.metadata();
    about.erase("xxh64");
    for (const auto& [key, value] : changes) about[key] = value;
    std::vector<io::NamedArray> arrays;
    for (const std::string& tensor : good.names()) {
      arrays.push_back({tensor, good.read(tensor)});
      if (nan && tensor.ends_with("decoder.last.weight")) std::ranges::fill(arrays.back().array.values<float>(), NAN);
    }
    io::write_safetensors(path(name), arrays, about);
    return path(name);
  }

  static std::string to_generate(const std::string& model, const std::string& context) {
    return "generate " + model + " --context " + context + " --frames 3 --force --out " + path("x.npy");
  }
};

TEST_F(Hostile, AbsurdModelsAreRefusedBeforeTheyAreBuilt) {
  const std::string config = "{\"encoder\":{\"depths\":[4,8]},\"decoder\":{\"depths\":[4,8]},\"core\":";
  const auto model = [&](const std::string& core) {  // of a key that is there twice the last value counts
    return changed_model("absurd.safetensors",
                         {{"model", config + "{\"name\":\"convs5\",\"features\":8,\"state_size\":8," + core + "}}"}});
  };
  const std::string context = path("small/context.npy");
  expect_refused(to_generate(model("\"layers\":2147483648"), context), 3,
                 {"absurd.safetensors", "layers", "1 to 1000"});
  expect_refused(to_generate(model("\"features\":20000"), context), 3, {"absurd.safetensors", "GiB"});
  expect_refused(to_generate(model("\"state_size\":1000000"), context), 3, {"absurd.safetensors"});
  for (const char* value : {"layers=1000000000", "kernel_b=1000000001", "features=4000000000000000000"}) {
    expect_refused("train " + path("tiny.yaml") + " model.core." + value + " --run " + path("never"), 2, {"error: ["});
  }
}

TEST_F(Hostile, ALogWithoutEndIsRefused) {
  fs::copy(path("run"), path("endless"), fs::copy_options::recursive);
  fs::remove(path("endless/log.jsonl"));
  ASSERT_EQ(symlink("/dev/zero", path("endless/log.jsonl").c_str()), 0);
  expect_refused("train --run " + path("endless") + " --resume train.steps=14", 4, {"log.jsonl", "not a regular file"});
  expect_refused("results " + path("endless"), 3, {"no run has scores"});
  expect_refused("export " + path("endless") + " --out " + path("endless.out"), 4, {"log.jsonl", "not a regular file"});
  fs::remove(path("endless/log.jsonl"));
  ASSERT_EQ(mkfifo(path("endless/checkpoints/step-000099.json").c_str(), 0600), 0);
  fs::create_directory(path("endless/checkpoints/step-000100.json"));
  expect_refused("train --run " + path("endless") + " --resume train.steps=13", 0, {"going on from step 12"});
}

TEST_F(Hostile, BombsAreRefusedUnlessTheLimitIsRaised) {
  io::Array zeros(io::DType::u8, {4000, 12, 12, 8});
  std::ranges::fill(zeros.bytes(), std::byte{0});
  io::write_npz(path("bomb.npz"), std::vector<io::NamedArray>{{"data", zeros}}, true);
  ASSERT_LT(fs::file_size(path("bomb.npz")), 100'000u);
  const std::string training = "train " + path("tiny.yaml") + " 'data={name: folder, path: " + path("bomb.npz") + "}' ";
  expect_refused(training + "--file-memory 1MiB --run " + path("bombed"), 3, {"bomb.npz", "--file-memory"});
  io::write_npy(path("long.npy"), io::Array(io::DType::u8, {4000, 12, 12}));
  expect_refused(to_generate(path("small"), path("long.npy")) + " --file-memory 1MiB", 3,
                 {"long.npy", "--context-frames", "--file-memory"});
  expect_refused("data inspect " + path("bomb.npz") + " --file-memory much", 2, {"--file-memory", "much"});
}

TEST_F(Hostile, AStoredArrayThatWasChangedIsRefused) {
  io::Array frames(io::DType::u8, {6, 20, 12, 12});
  std::ranges::fill(frames.bytes(), std::byte{50});
  io::write_npz(path("clips.npz"), std::vector<io::NamedArray>{{"data", frames}});
  const std::string training =
      "train " + path("tiny.yaml") + " 'data={name: folder, path: " + path("clips.npz") + "}' ";
  const std::vector<std::string> commands = {
      "data inspect " + path("clips.npz"), to_generate(path("small"), path("clips.npz")) + " --clip 0",
      training + "--run " + path("checked"), "compare " + path("clips.npz") + " " + path("clips.npz")};
  EXPECT_EQ(run(commands[0]).code, 0);
  std::string bytes = read_all(path("clips.npz"));
  bytes[bytes.size() / 2] ^= 1;
  write_text(path("clips.npz"), bytes);
  for (const std::string& command : commands) expect_refused(command, 3, {"clips.npz", "checksum", "damaged"});
}

// Half a KiB is all that a file may have: the nearest thing to a full disk.
TEST_F(Hostile, AnExportThatFailsLeavesTheOldOne) {
  fs::copy(path("run"), path("bare"), fs::copy_options::recursive);
  for (const char* name : {"log.jsonl", "status.json"}) fs::remove(path("bare/") + name);
  const std::string command = "export " + path("bare") + " --force --out " + path("kept");
  ASSERT_EQ(run("export " + path("run") + " --out " + path("kept")).code, 0);
  write_text(path("kept/notes.txt"), "mine");
  const auto content = [&] {
    std::map<std::string, std::string> files;
    for (const auto& entry : fs::directory_iterator(path("kept"))) {
      files[entry.path().filename().string()] = read_all(entry.path().string());
    }
    return files;
  };
  const auto before = content();
  const Outcome full = run(command, "trap '' XFSZ; ulimit -f 1;");
  EXPECT_EQ(full.code, 4) << full.err;
  expect_contains(full.err, "context.npy");
  EXPECT_EQ(content(), before);
  for (const auto& entry : fs::directory_iterator(scratch_->path())) {
    EXPECT_EQ(entry.path().string().find("staged"), std::string::npos) << entry.path();
  }
  const Outcome done = run(command);
  EXPECT_EQ(done.code, 0) << done.err;
  EXPECT_FALSE(content().contains("log.jsonl"));
  EXPECT_EQ(content()["notes.txt"], "mine");
  EXPECT_EQ(content()["README.md"], before.at("README.md"));
}

TEST_F(Hostile, NumbersThatAreNoneAreNamed) {
  const std::string nan = changed_model("nan.safetensors", {}, true);
  fs::remove(path("x.npy"));
  const Outcome outcome = run(to_generate(nan, path("small/context.npy")));
  EXPECT_EQ(outcome.code, 5) << outcome.err;
  expect_contains(outcome.err, "frame 0 holds NaN");
  EXPECT_EQ(outcome.err.find("were written"), std::string::npos) << outcome.err;
  EXPECT_FALSE(fs::exists(path("x.npy")));
  io::write_npy(path("nan.npy"), io::make_array({2, 8, 8}, std::vector<float>(128, NAN)));
  io::write_npy(path("half.npy"), io::make_array({2, 8, 8}, std::vector<float>(128, 0.5f)));
  expect_refused("compare " + path("half.npy") + " " + path("nan.npy"), 3, {"nan.npy", "holds NaN"});
}

}  // namespace
}  // namespace convssm
