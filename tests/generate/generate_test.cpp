// Generation frame by frame: where frames go, how contexts are read, states in files, constant memory.
#include "convssm/generate/generate.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "convssm/base/memory.h"
#include "convssm/data/recording.h"
#include "convssm/generate/rollout.h"
#include "convssm/generate/state_file.h"
#include "convssm/io/npy.h"
#include "convssm/io/npz.h"
#include "convssm/io/png.h"
#include "convssm/io/tensor.h"
#include "convssm/models/registry.h"
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
  return randn({count, format.depth(), format.height, format.width}, 1).tanh().to(at::kFloat);
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
    EXPECT_EQ(data::open_recording(path, {})->info().frames, 3) << ending;
  }
  write_all(scratch.path("short.png"), video, kBytes, 40);
  EXPECT_EQ(io::read_png(scratch.path("short.png")).width, 2 * 4 + 2);  // the first and the third frame
  EXPECT_EQ(io::read_png(scratch.path("short.png")).height, 6);
}

TEST(FrameSink, Names) {
  EXPECT_EQ(numbered_path("a/b.c/future.npy", 3), "a/b.c/future-3.npy");
  EXPECT_EQ(numbered_path("x.gif", 0), "x-0.gif");
  const ScratchFolder pictures;
  for (const bool named : {false, true}) {
    data::FrameFormat format(3, 8, 8);
    if (named) format.channels[0].name = "t2m", format.channels[1].name = "u", format.channels[2].name = "v";
    const auto sink = open_sink(pictures.path("p.png"), format, {.frames = 1});
    sink->write(at::zeros({3, 8, 8}));
    sink->close();
    EXPECT_EQ(io::read_png(pictures.path("p.png")).channels, named ? 1 : 3) << "three variables are no colours";
  }
  expect_error([] { open_sink("x.flv", kBytes, {.frames = 1}); }, {"x.flv", ".gif"});
}

TEST(Generate, IsTheRolloutAndCanStopAndGoOn) {
  const ScratchFolder scratch;
  const auto model = make_model();
  const at::Tensor context = frames(3, kBytes).unsqueeze(0);
  Predictor plain(*model, {.compile = false}), predictor(*model);
  plain.start({context});
  const at::Tensor expected = rollout(plain, {}, 6);
  std::vector<std::unique_ptr<FrameSink>> sinks;
  sinks.push_back(open_sink(scratch.path("a.npy"), kBytes, {.frames = 6}));
  predictor.start({context});
  const GenerateResult first = generate(predictor, {}, 6, sinks, [](int64_t k) { return k < 4; });
  sinks[0]->close();
  EXPECT_EQ(first.frames, 4);
  EXPECT_TRUE(at::equal(io::to_tensor(io::read_npy(scratch.path("a.npy"))),
                        data::in_units(expected[0].slice(0, 0, 4), kBytes)));
  save_state(scratch.path("s"), {first.state}, {"abc", "average"});
  Predictor later(*model);
  later.start(load_state(scratch.path("s"), {"abc", "average"}).state);
  EXPECT_LT(distance(rollout(later, {}, 2), expected.slice(1, 4)), 1e-5);
  expect_error([&] { load_state(scratch.path("s"), {"def", "average"}); }, {"another model", "abc", "def"});
  expect_error([&] { load_state(scratch.path("s"), {"abc", "trained"}); }, {"average", "trained", "--without-average"});
  io::write_safetensors(scratch.path("old"), {}, {{"kind", "convssm state"}, {"model", "abc"}});
  EXPECT_NO_THROW(load_state(scratch.path("old"), {"abc", "trained"}));
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
  Predictor predictor(*model);
  predictor.start({frames(3, large).unsqueeze(0)});
  generate(predictor, {}, 2000, sinks, watch);
  sinks[0]->close();
  EXPECT_LT(current_rss(), early + (uint64_t{2} << 20));
  EXPECT_EQ(io::read_npy_info(scratch.path("long.npy")).shape[0], 2000);
}

}  // namespace
}  // namespace convssm::generate
