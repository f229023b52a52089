// demo as a process, on a model and data so small that it takes seconds.
#include <gtest/gtest.h>

#include <filesystem>

#include "../base/scratch_folder.h"
#include "convssm/io/gif.h"
#include "convssm/io/npy.h"
#include "convssm/io/png.h"
#include "program.h"
#include "tiny_run.h"

namespace convssm {
namespace {

constexpr const char* kTiny =
    " data.image_size=12 data.digit_size=8 model.encoder.depths=[4,8] model.decoder.depths=[4,8] model.core.features=8"
    " model.core.state_size=8 model.core.layers=1 train.steps=3 train.batch=1 train.frames=6 train.warmup=1"
    " train.sample_frames=4 train.sample_context=3 evaluate.samples=2 evaluate.horizons=[4] evaluate.context=2 "
    "--frames 7";
constexpr int64_t kPanel = 36, kGap = 2;  // pixels of a frame, enlarged

Outcome demo(const std::string& out, const std::string& pretrained) {
  return run("demo --out " + out + " --pretrained " + pretrained + kTiny);
}

TEST(Demo, ShowsThePretrainedModelBesideTheNewOne) {
  const ScratchFolder scratch;
  write_text(scratch.path("tiny.yaml"), tiny_config());
  ASSERT_EQ(run("train " + scratch.path("tiny.yaml") + " --run " + scratch.path("run")).code, 0);
  ASSERT_EQ(run("export " + scratch.path("run") + " --out " + scratch.path("small")).code, 0);
  const Outcome outcome = demo(scratch.path("out"), scratch.path("small"));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  expect_contains(outcome.out, "truth | pretrained | just trained: 7 frames after the same 3");
  const io::Array gif = io::read_gif(scratch.path("out/future.gif"));
  EXPECT_EQ(gif.shape()[0], 3 + 7);
  EXPECT_EQ(gif.shape()[2], 3 * kPanel + 2 * kGap);
  EXPECT_EQ(io::read_png(scratch.path("out/future.png")).height, 3 * 24 + 2 * kGap);
  EXPECT_EQ(io::read_npy(scratch.path("out/pretrained.npy")).shape(), (std::vector<int64_t>{10, 12, 12, 1}));
  EXPECT_NE(read_all(scratch.path("out/pretrained.npy")), read_all(scratch.path("out/trained.npy")));
}

TEST(Demo, ShowsTheNewOneAloneAndSaysWhy) {
  const ScratchFolder scratch;
  const Outcome outcome = demo(scratch.path("out"), "''");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  expect_contains(outcome.err, "no pretrained model");
  expect_contains(outcome.out, "truth | just trained: 7 frames after the same 2");
  expect_contains(outcome.out, " serve " CONVSSM_SOURCE_DIR "/pretrained/maze-convs5\n");
  EXPECT_EQ(io::read_gif(scratch.path("out/future.gif")).shape()[2], 2 * kPanel + kGap);
  const std::string config = read_all(scratch.path("out/demo.yaml"));
  const Outcome other = run("demo --out " + scratch.path("out"));  // without the small model of before
  EXPECT_EQ(other.code, 2);
  EXPECT_EQ(read_all(scratch.path("out/demo.yaml")), config);
  expect_contains(other.err, "name another --out");
}

TEST(Demo, DoesNotTrainBeforeItSaysThatTheModelIsMissing) {
  const ScratchFolder scratch;
  const Outcome outcome = demo(scratch.path("out"), scratch.path("nowhere"));
  EXPECT_NE(outcome.code, 0);
  expect_contains(outcome.err, scratch.path("nowhere"));
  EXPECT_FALSE(std::filesystem::exists(scratch.path("out/checkpoints")));
}

}  // namespace
}  // namespace convssm
