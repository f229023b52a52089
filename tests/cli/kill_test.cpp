// Training killed at random points, which are counted in its system calls on files: a busy machine changes nothing. The seed
// is printed; CONVSSM_TEST_SEED gives the same points again.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <random>

#include "../base/scratch_folder.h"
#include "../run/log_scores.h"
#include "file_calls.h"
#include "program.h"
#include "tiny_run.h"

namespace convssm {
namespace {

unsigned chosen_seed() {
  const char* given = std::getenv("CONVSSM_TEST_SEED");
  const unsigned seed = given ? static_cast<unsigned>(std::strtoul(given, nullptr, 10)) : std::random_device{}();
  std::printf("CONVSSM_TEST_SEED=%u\n", seed);
  return seed;
}

size_t count_of(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

FileRun train_to_point(const std::vector<std::string>& words, const std::string& log, const FilePoint& point) {
  std::fflush(nullptr);
  return run_to_point([&] { become_program(words); }, log, point);
}

void expect_the_same_bits_after_kills(const std::string& config) {
  const ScratchFolder scratch;
  write_text(scratch.path("tiny.yaml"), config);
  const auto train = [&](const std::string& folder, const FilePoint& point) {
    return train_to_point({"train", scratch.path("tiny.yaml"), "train.steps=60", "train.save_interval=3",
                           "train.sample_interval=20", "--run", scratch.path(folder), "--resume"},
                          scratch.path(folder + ".log"), point);
  };
  const FileRun whole = train("whole", {});
  ASSERT_EQ(whole.code, 0) << read_all(scratch.path("whole.log"));
  ASSERT_GT(whole.calls, 100);

  std::mt19937 random(chosen_seed());
  // A quarter of a run at a time: ten of them end it more often than not, so that later kills come at all its ages.
  std::uniform_int_distribution<long> call(1, whole.calls / 4);
  int killed = 0;
  for (int i = 0; i < 10; ++i) {
    const long point = call(random);
    const FileRun part = train("killed", {.call = point});
    killed += part.code == 128 + SIGKILL ? 1 : 0;
    EXPECT_TRUE(part.code == 0 || part.code == 128 + SIGKILL) << part.code << "\n"
                                                              << read_all(scratch.path("killed.log"));
    std::printf("killed at call %ld: ended with %d after %ld\n", point, part.code, part.calls);
  }
  EXPECT_GE(killed, 3);
  EXPECT_GE(count_of(read_all(scratch.path("killed.log")), "going on from step"), 3u);
  ASSERT_EQ(train("killed", {}).code, 0) << read_all(scratch.path("killed.log"));
  const std::string newest = "/checkpoints/step-000060.safetensors";
  EXPECT_EQ(testing::log_scores(scratch.path("killed")), testing::log_scores(scratch.path("whole")));
  EXPECT_EQ(read_all(scratch.path("killed") + newest), read_all(scratch.path("whole") + newest));
}

TEST(KilledTraining, AtTenRandomPointsEndsWithTheSameBits) { expect_the_same_bits_after_kills(tiny_config()); }

TEST(KilledTraining, OfATokenizerEndsWithTheSameBits) { expect_the_same_bits_after_kills(tiny_tokenizer()); }

TEST(KilledTraining, OfAContinuousTokenizerEndsWithTheSameBits) {
  expect_the_same_bits_after_kills(tiny_tokenizer("{name: kl, features: 2}"));
}

TEST(KilledTraining, OfAModelThatDrawsEndsWithTheSameBits) { expect_the_same_bits_after_kills(tiny_cwvae()); }

TEST(KilledTraining, OfWindowsAndDropoutEndsWithTheSameBits) {
  const ScratchFolder scratch;
  write_text(scratch.path("tokenizer.yaml"), tiny_tokenizer());
  const FileRun tokenizer = train_to_point(
      {"train", scratch.path("tokenizer.yaml"), "--run", scratch.path("tokenizer")}, scratch.path("tokenizer.log"), {});
  ASSERT_EQ(tokenizer.code, 0) << read_all(scratch.path("tokenizer.log"));
  expect_the_same_bits_after_kills(tiny_perceiver_ar(scratch.path("tokenizer")));
}

// Recordings of 40, 22 and 31 frames of 12 x 12 bytes, walked by two rows.
TEST(KilledTraining, ThatCarriesItsStateEndsWithTheSameBits) {
  const ScratchFolder recordings;
  std::mt19937 random(5);
  for (const int frames : {40, 22, 31}) {
    const std::string shape = "(" + std::to_string(frames) + ", 12, 12)";
    std::string header = "{'descr': '|u1', 'fortran_order': False, 'shape': " + shape + ", }";
    header.resize(117, ' ');
    std::string bytes = "\x93NUMPY\x01";
    bytes += std::string(1, '\0') + std::string{'v', '\0'} + header + "\n";
    for (int i = 0; i < frames * 144; ++i) bytes += static_cast<char>(random() % 256);
    recordings.write("train/" + std::to_string(frames) + ".npy", bytes);
    recordings.write("valid/" + std::to_string(frames) + ".npy", bytes);
  }
  expect_the_same_bits_after_kills(
      "model: {encoder: {depths: [4, 8]}, decoder: {depths: [4, 8]}, core: {name: convlstm, features: 8}}\n"
      "data: {name: folder, path: " +
      recordings.path() +
      "}\n"
      "train: {steps: 12, batch: 2, frames: 6, warmup: 2, log_interval: 3, carry_state: true, self_feed: 0.3,\n"
      "        sample_context: 3, sample_frames: 3, sample_clips: 2}\n");
}

TEST(KilledTraining, OfADiffusionEndsWithTheSameBits) { expect_the_same_bits_after_kills(tiny_latent_fdm()); }

TEST(KilledTraining, OfAModelWithBatchNormEndsWithTheSameBits) { expect_the_same_bits_after_kills(tiny_fitvid()); }

// A disk that is full from some call on, and free again: nothing that was there is lost.
TEST(KilledTraining, AFullDiskAtAnyPointIsSurvived) {
#if !defined(__x86_64__)
  GTEST_SKIP() << "calls are made to fail on x86-64";
#endif
  const ScratchFolder scratch;
  write_text(scratch.path("tiny.yaml"), tiny_config());
  const auto train = [&](const std::string& folder, const FilePoint& point) {
    return train_to_point({"train", scratch.path("tiny.yaml"), "--run", scratch.path(folder), "--resume"},
                          scratch.path(folder + ".log"), point);
  };
  const FileRun whole = train("whole", {});
  ASSERT_EQ(whole.code, 0) << read_all(scratch.path("whole.log"));
  std::mt19937 random(chosen_seed());
  std::uniform_int_distribution<long> call(1, whole.calls);
  for (int i = 0; i < 4; ++i) {
    const std::string folder = "full-" + std::to_string(i);
    const long point = call(random);
    const FileRun part = train(folder, {.call = point, .error = ENOSPC, .to_the_end = true});
    EXPECT_TRUE(part.code == 0 || part.code == 4) << "full at call " << point << ": " << part.code << "\n"
                                                  << read_all(scratch.path(folder + ".log"));
    ASSERT_EQ(train(folder, {}).code, 0) << "full at call " << point << "\n" << read_all(scratch.path(folder + ".log"));
    const std::string newest = "/checkpoints/step-000012.safetensors";
    EXPECT_EQ(read_all(scratch.path(folder) + newest), read_all(scratch.path("whole") + newest)) << point;
  }
}

}  // namespace
}  // namespace convssm
