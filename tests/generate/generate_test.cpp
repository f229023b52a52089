// Generation frame by frame: where frames go, how contexts are read, states in files, constant memory.
#include "convssm/generate/generate.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "convssm/base/memory.h"
#include "convssm/generate/context.h"
#include "convssm/generate/state_file.h"
#include "convssm/io/npy.h"
#include "convssm/io/npz.h"
#include "convssm/io/png.h"
#include "convssm/io/tensor.h"
#include "convssm/io/video_writer.h"
#include "convssm/models/registry.h"
#include "convssm/models/rollout.h"
#include "tests/base/scratch_folder.h"
#include "tests/support.h"

namespace convssm::generate {
namespace {

using testing::distance;
using testing::expect_error;
using testing::randn;

const data::FrameFormat kBytes{1, 6, 4, 0, 255};
const data::FrameFormat kKelvin{2, 6, 4, 250, 310};

std::shared_ptr<models::Model> make_model(int64_t channels = 1) {
  return models::make_model({{"encoder", {{"depths", {4, 8}}}},
                             {"decoder", {{"depths", {4, 8}}}},
                             {"core", {{"name", "convs5"}, {"features", 8}, {"state_size", 8}}}},
                            {channels, 6, 4});
}

at::Tensor frames(int64_t count, const data::FrameFormat& format) {
  return randn({count, format.channels, format.height, format.width}, 1).tanh().to(at::kFloat);
}

void write_all(const std::string& path, const at::Tensor& video, const data::FrameFormat& format, int64_t announced) {
  const auto sink = open_sink(path, format, {.frames = announced});
  for (int64_t k = 0; k < video.size(0); ++k) sink->write(video[k]);
  EXPECT_FALSE(std::filesystem::exists(path));
  sink->close();
}

TEST(FrameSink, BytesAreRoundedAndOtherUnitsKept) {
  const ScratchFolder scratch;
  const at::Tensor bytes = frames(5, kBytes), kelvin = frames(5, kKelvin);
  write_all(scratch.path("b.npy"), bytes, kBytes, 5);
  const at::Tensor b = io::to_tensor(io::read_npy(scratch.path("b.npy")));
  EXPECT_EQ(b.scalar_type(), at::kByte);
  EXPECT_LE(distance(b.permute({0, 3, 1, 2}).to(at::kDouble), (bytes.to(at::kDouble) + 1) * 127.5), 0.5 + 1e-9);
  write_all(scratch.path("k.NPZ"), kelvin, kKelvin, 5);  // an ending in capitals is the same ending
  const at::Tensor k = io::to_tensor(io::NpzFile(scratch.path("k.NPZ")).read("video"));
  EXPECT_LT(distance(k.permute({0, 3, 1, 2}).to(at::kDouble), 280 + 30 * kelvin.to(at::kDouble)), 1e-4);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(scratch.path()), {}), 2);
}

TEST(FrameSink, FewerFramesThanAnnouncedAreKept) {
  const ScratchFolder scratch;
  const at::Tensor video = frames(3, kBytes);
  for (const char* ending : {".npy", ".npz", ".gif", ".mp4"}) {
    const std::string path = scratch.path(std::string("short") + ending);
    write_all(path, video, kBytes, 1000000);
    EXPECT_EQ(io::read_video(path).shape()[0], 3) << ending;
  }
  write_all(scratch.path("short.png"), video, kBytes, 40);
  EXPECT_EQ(io::read_png(scratch.path("short.png")).width, 2 * 4 + 2);  // the first and the third frame
  EXPECT_EQ(io::read_png(scratch.path("short.png")).height, 6);
}

TEST(FrameSink, Names) {
  EXPECT_EQ(numbered_path("a/b.c/future.npy", 3), "a/b.c/future-3.npy");
  EXPECT_EQ(numbered_path("x.gif", 0), "x-0.gif");
  expect_error([] { open_sink("x.avi", kBytes, {.frames = 1}); }, {"x.avi", ".gif"});
}

TEST(Context, ReadsClipsOfAllKinds) {
  const ScratchFolder scratch;
  const at::Tensor video = frames(3, kKelvin);
  const auto sink = open_sink(scratch.path("k.npy"), kKelvin, {.frames = 3});
  for (int64_t k = 0; k < 3; ++k) sink->write(video[k]);
  sink->close();
  const Context whole = read_context(scratch.path("k.npy"), kKelvin, {});
  EXPECT_EQ(whole.video.sizes(), (std::vector<int64_t>{1, 3, 2, 6, 4}));
  EXPECT_LT(distance(whole.video[0], video), 1e-5);
  const Context part = read_context(scratch.path("k.npy"), kKelvin, {.frames = 2});
  EXPECT_TRUE(part.video.equal(whole.video.slice(1, 0, 2)));

  const at::Tensor actions = at::arange(6, at::kLong).view({2, 3}), clips = at::zeros({2, 3, 6, 4, 1}, at::kByte);
  const std::vector<io::NamedArray> arrays = {{"data", io::to_array(clips)}, {"actions", io::to_array(actions)}};
  io::write_npz(scratch.path("a.npz"), arrays);
  const Context second = read_context(scratch.path("a.npz"), kBytes, {.clip = 1});
  EXPECT_EQ(second.video.size(0), 1);
  EXPECT_TRUE(second.actions.equal(actions.slice(0, 1)));
  EXPECT_EQ(second.video.max().item<float>(), -1);

  const auto gif = open_sink(scratch.path("g.gif"), kBytes, {.frames = 4});
  for (int64_t k = 0; k < 4; ++k) gif->write(frames(4, kBytes)[k]);
  gif->close();
  const Context moving = read_context(scratch.path("g.gif"), kBytes, {.frames = 3});
  EXPECT_LT(distance(moving.video[0], frames(4, kBytes).slice(0, 0, 3)), 1.0 / 255 + 1e-6);
}

TEST(Generate, IsTheRolloutAndCanStopAndGoOn) {
  const ScratchFolder scratch;
  const auto model = make_model();
  const at::Tensor context = frames(3, kBytes).unsqueeze(0);
  const at::Tensor expected = models::rollout(*model, context, {}, 6);
  std::vector<std::unique_ptr<FrameSink>> none;
  const GenerateResult first =
      generate(*model, model->start(context, {}), {}, 6, none, [](int64_t k) { return k < 4; });
  EXPECT_EQ(first.frames, 4);
  EXPECT_LT(distance(first.state.get("frame"), expected.select(1, 3)), 1e-5);
  save_state(scratch.path("s"), first.state, "abc");
  const GenerateResult rest = generate(*model, load_state(scratch.path("s"), "abc"), {}, 2, none);
  EXPECT_LT(distance(rest.state.get("frame"), expected.select(1, 5)), 1e-5);
  expect_error([&] { load_state(scratch.path("s"), "def"); }, {"another model", "abc", "def"});
}

TEST(Generate, MemoryDoesNotGrow) {
  const ScratchFolder scratch;
  const data::FrameFormat large{1, 64, 64, 0, 255};  // all frames would take 8 MB
  const auto model = models::make_model({{"encoder", {{"depths", {2, 2}}}},
                                         {"decoder", {{"depths", {2, 2}}}},
                                         {"core", {{"name", "convs5"}, {"features", 2}, {"state_size", 2}}}},
                                        {1, 64, 64});
  std::vector<std::unique_ptr<FrameSink>> sinks;
  sinks.push_back(open_sink(scratch.path("long.npy"), large, {.frames = 2000}));
  uint64_t early = 0;
  const auto watch = [&](int64_t k) {
    if (k == 500) early = current_rss();
    return true;
  };
  generate(*model, model->start(frames(3, large).unsqueeze(0), {}), {}, 2000, sinks, watch);
  sinks[0]->close();
  EXPECT_LT(current_rss(), early + (uint64_t{2} << 20));
  EXPECT_EQ(io::read_npy_info(scratch.path("long.npy")).shape[0], 2000);
}

}  // namespace
}  // namespace convssm::generate
