// Codes of clips as files: those of the tokenizer, whole clips however they are cut, and gone on with after a stop.
#include "convssm/run/encode.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "convssm/models/registry.h"
#include "convssm/models/tokenizer.h"
#include "tests/base/scratch_folder.h"
#include "tests/support.h"

namespace convssm::run {
namespace {

using data::Split;

std::shared_ptr<models::Model> encode_model(const data::FrameFormat& frames) {
  return models::make_model({{"name", "vqgan"},
                             {"features", 4},
                             {"multipliers", {1, 2}},
                             {"blocks", 1},
                             {"attention", nlohmann::json::array()},
                             {"latent", 4},
                             {"groups", 2},
                             {"perceptual", "none"},
                             {"quantizer", {{"name", "gradient"}, {"size", 16}, {"features", 4}}},
                             {"discriminator", {{"features", 2}, {"layers", 1}}}},
                            frames);
}

std::shared_ptr<const data::Dataset> small_mazes() {
  return data::make_dataset({{"name", "maze"}, {"image_size", 12}, {"size", 3}, {"clips", 3}, {"test_clips", 2}}, 5);
}

TEST(Encode, FilesHoldTheCodesOfWholeClips) {
  const ScratchFolder scratch;
  const auto dataset = small_mazes();
  const auto model = encode_model(dataset->format());
  constexpr int64_t kEncoded = 70;  // more than are encoded at once
  int64_t frames = 0;
  for (const Split split : {Split::train, Split::test}) {
    const data::WriteOptions options{
        .out = scratch.path("codes"), .split = split, .clips = dataset->size(split), .frames = kEncoded};
    EXPECT_EQ(encode_clips(*model, *dataset, options, [&](int64_t n) { frames = n; }), options.clips);
    EXPECT_EQ(frames, kEncoded * static_cast<int64_t>(options.clips));
    EXPECT_EQ(count_encoded_frames(*dataset, options), frames);
  }
  const auto codes = data::make_dataset(
      {{"name", "folder"}, {"path", scratch.path("codes")}, {"valid_fraction", 0.0}, {"crop", "start"}}, 1);
  EXPECT_EQ(codes->codes().count, 16);
  EXPECT_EQ(codes->codes().height, 6);
  at::NoGradGuard no_grad;
  for (uint64_t i = 0; i < 2; ++i) {
    const data::Clips clip = dataset->clip(Split::test, i, kEncoded), read = codes->clip(Split::test, i, kEncoded);
    EXPECT_TRUE(read.codes.equal(model->as_tokenizer()->encode(clip.video)));
    EXPECT_TRUE(read.actions.equal(clip.actions));
    EXPECT_TRUE(read.revisit.equal(clip.revisit));
    EXPECT_FALSE(read.video.defined());
  }
}

TEST(Encode, GoesOnWhereItWasStopped) {
  const ScratchFolder scratch;
  const auto dataset = small_mazes();
  const auto model = encode_model(dataset->format());
  data::WriteOptions options{.out = scratch.path("codes"), .clips = 3, .frames = 5, .recipe = "a"};
  uint64_t asked = 0;
  options.stop = [&] { return asked++ == 1; };
  EXPECT_EQ(encode_clips(*model, *dataset, options, [](int64_t) {}), 1u);
  const std::string first = scratch.path("codes/" + data::clip_name(Split::train, 0));
  const auto time = std::filesystem::last_write_time(first);
  options.stop = {};
  testing::expect_error([&] { encode_clips(*model, *dataset, options, [](int64_t) {}); }, {"not empty", "--resume"});
  options.resume = true;
  EXPECT_EQ(encode_clips(*model, *dataset, options, [](int64_t) {}), 3u);
  EXPECT_EQ(std::filesystem::last_write_time(first), time);
  options.recipe = "another tokenizer";
  testing::expect_error([&] { encode_clips(*model, *dataset, options, [](int64_t) {}); }, {"another way"});
}

TEST(Encode, SaysWhatItCannotEncode) {
  const auto dataset = small_mazes();
  const auto model = encode_model(dataset->format());
  const data::WriteOptions endless{.out = "x", .clips = 3}, many{.out = "x", .clips = 4, .frames = 2};
  testing::expect_error([&] { encode_clips(*model, *dataset, endless, [](int64_t) {}); }, {"any length", "--frames"});
  testing::expect_error([&] { encode_clips(*model, *dataset, many, [](int64_t) {}); }, {"4 clips", "has 3"});
  const auto pixel = models::make_model({{"encoder", {{"depths", {4}}}},
                                         {"decoder", {{"depths", {4}}}},
                                         {"core", {{"name", "convs5"}, {"features", 4}, {"state_size", 4}}}},
                                        dataset->format());
  testing::expect_error([&] { encode_clips(*pixel, *dataset, many, [](int64_t) {}); }, {"a tokenizer is needed"});
}

}  // namespace
}  // namespace convssm::run
