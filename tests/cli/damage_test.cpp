// Damaged and hostile models and states through the program: an error that says so, never a crash or silently other numbers.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "convssm/io/npy.h"
#include "convssm/io/safetensors.h"
#include "exported_run.h"

namespace convssm {
namespace {

namespace fs = std::filesystem;

class Damage : public ExportedRun {
 protected:
  static void SetUpTestSuite() {
    ExportedRun::SetUpTestSuite();
    const Outcome made = run("generate " + path("small") + " --context " + path("small/context.npy") +
                             " --frames 2 --save-state " + path("good.state"));
    ASSERT_EQ(made.code, 0) << made.err;
  }

  static void expect_refused(const std::string& arguments, const std::vector<std::string>& parts) {
    ExportedRun::expect_refused("generate " + arguments + " --frames 2 --force --out " + path("x.npy"), 3, parts);
  }
};

void flip(const std::string& file, uint64_t from_end) {
  std::fstream bytes(file, std::ios::in | std::ios::out | std::ios::binary);
  bytes.seekg(-static_cast<std::streamoff>(from_end), std::ios::end);
  const int old = bytes.get();
  bytes.seekp(-static_cast<std::streamoff>(from_end), std::ios::end);
  bytes.put(static_cast<char>(old ^ 1));
}

TEST_F(Damage, AStateWithoutClipsOrTensorsIsRefused) {
  const io::SafetensorsFile good(path("good.state"));
  io::Metadata about = good.metadata();
  about.erase("xxh64");
  std::vector<io::NamedArray> arrays;
  for (const std::string& name : good.names()) {
    arrays.push_back({name, name == "frame" ? io::Array(io::DType::f32, {0, 1, 12, 12}) : good.read(name)});
  }
  io::write_safetensors(path("empty.state"), arrays, about);
  expect_refused(path("small") + " --state " + path("empty.state"), {"at least one clip", "[0,1,12,12]"});
  io::write_safetensors(path("none.state"), std::vector<io::NamedArray>{}, about);
  expect_refused(path("small") + " --state " + path("none.state"), {"no frame"});
}

TEST_F(Damage, AChangedStateIsRefused) {
  const std::string state = path("changed.state");
  const uint64_t size = fs::file_size(path("good.state"));
  for (const uint64_t from_end : {uint64_t{1}, size / 3, size / 2}) {
    fs::copy_file(path("good.state"), state, fs::copy_options::overwrite_existing);
    flip(state, from_end);
    expect_refused(path("small") + " --state " + state, {"changed.state", "checksum", "damaged"});
  }
}

TEST_F(Damage, ChangedWeightsAreRefused) {
  fs::create_directory(path("other"));
  for (const char* name : {"model.safetensors", "export.json", "context.npy"}) {
    fs::copy_file(path("small/") + name, path("other/") + name);
  }
  const std::string context = " --context " + path("small/context.npy"), alone = path("alone.safetensors");
  flip(path("other/model.safetensors"), 100);
  fs::copy_file(path("other/model.safetensors"), alone);
  for (const std::string& model : {path("other"), path("other/model.safetensors"), alone}) {
    expect_refused(model + context, {"safetensors", "checksum", "damaged"});
  }
}

// Files of version 0.1 hold no checksum, but export.json beside them does.
TEST_F(Damage, WhatExportJsonSaysHolds) {
  const io::SafetensorsFile good(path("small/model.safetensors"));
  io::Metadata about = good.metadata();
  about.erase("xxh64");
  std::vector<io::NamedArray> arrays;
  for (const std::string& name : good.names()) arrays.push_back({name, good.read(name)});
  fs::create_directory(path("plain"));
  io::write_safetensors(path("plain/model.safetensors"), arrays, about);
  const std::string made = "generate " + path("plain") + " --context " + path("small/context.npy") +
                           " --frames 2 --force --out " + path("plain.npy");
  const Outcome unknown = run(made);
  EXPECT_EQ(unknown.code, 0) << unknown.err;
  fs::copy_file(path("small/export.json"), path("plain/export.json"));
  expect_refused(path("plain") + " --context " + path("small/context.npy"), {"export.json", "checksum"});
}

TEST_F(Damage, NestedMetadataIsRefused) {
  const io::SafetensorsFile good(path("small/model.safetensors"));
  for (const char* key : {"model", "frames", "config", "format"}) {
    io::Metadata about = good.metadata();
    about.erase("xxh64");
    about[key] = std::string(1'000'000, '[') + std::string(1'000'000, ']');
    io::write_safetensors(path("nested.safetensors"), std::vector<io::NamedArray>{}, about);
    expect_refused(path("nested.safetensors") + " --context " + path("small/context.npy"),
                   {"nested.safetensors", key, "100 levels"});
  }
}

TEST_F(Damage, NestedJsonOfARunIsNoCrash) {
  const std::string nested = std::string(1'000'000, '[') + std::string(1'000'000, ']');
  fs::copy(path("run"), path("hostile"), fs::copy_options::recursive);
  for (const char* name : {"log.jsonl", "metrics.json", "status.json"}) write_text(path("hostile/") + name, nested);
  EXPECT_EQ(run("results " + path("hostile")).code, 3);  // no run has scores
  const Outcome exported = run("export " + path("hostile") + " --out " + path("exported"));
  EXPECT_EQ(exported.code, 0) << exported.err;
  expect_contains(exported.err + exported.out, "metrics.json is damaged");
  EXPECT_LT(fs::file_size(path("exported/log.jsonl")), 3'000'000u);
  write_text(path("hostile/checkpoints/step-000012.json"), "{\"extras\": " + nested + "}");
  const Outcome resumed = run("train --run " + path("hostile") + " --resume");
  EXPECT_EQ(resumed.code, 0) << resumed.err;
  expect_contains(resumed.err, "100 levels");
  expect_contains(resumed.err, "going on from step 8");
}

}  // namespace
}  // namespace convssm
