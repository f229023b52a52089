// A tokenizer as a user meets it: trained, scored, counted.
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "../base/scratch_folder.h"
#include "program.h"
#include "tiny_run.h"

namespace convssm {
namespace {

TEST(TokenizerProgram, TrainsAndIsScored) {
  const ScratchFolder scratch;
  write_text(scratch.path("tokenizer.yaml"), tiny_tokenizer());
  const std::string run_folder = scratch.path("run");
  const Outcome trained = run("train " + scratch.path("tokenizer.yaml") + " --run " + run_folder);
  ASSERT_EQ(trained.code, 0) << trained.err;
  expect_contains(trained.err, "vqgan, 6 x 6 of 16 codes (ema)");
  EXPECT_TRUE(std::filesystem::exists(run_folder + "/samples/step-000012.png"));
  const std::string log = read_all(run_folder + "/log.jsonl");
  for (const char* part : {"\"l1\"", "\"codebook\"", "\"perplexity\"", "\"used\"", "\"gan\"", "\"weight\"",
                           "\"discriminator.loss\"", "\"psnr_f01\""}) {
    expect_contains(log, part);
  }
  const Outcome scored = run("evaluate " + run_folder);
  ASSERT_EQ(scored.code, 0) << scored.err;
  expect_contains(scored.out, "codes: 6 x 6 per frame");
  expect_contains(scored.out, "psnr_f01 +");
  const auto metrics = nlohmann::json::parse(read_all(run_folder + "/metrics.json"));
  EXPECT_EQ(metrics["protocol"]["task"], "reconstruct");
  EXPECT_EQ(metrics["codes"]["count"], 5 * 3 * 36);
  EXPECT_GT(metrics["codes"]["used"], 0);
  EXPECT_TRUE(metrics["horizons"][0]["rows"][0].contains("psnr_f01"));
  EXPECT_TRUE(std::filesystem::exists(run_folder + "/samples/evaluate-strip-1.png"));
  expect_contains(read_all(run_folder + "/report.html"), "reconstruction");
  const Outcome larger = run("evaluate " + run_folder + " data.image_size=18");
  EXPECT_EQ(larger.code, 2) << larger.err;
  expect_contains(larger.err, "expected frames of 12 x 12, which this model was trained on, got 18 x 18");
  expect_contains(larger.err, "fixed number of codes");
  const std::string encode = "data encode " + run_folder + " --frames 4 --out " + scratch.path("codes");
  const Outcome encoded = run(encode + " --clips 3 --test-clips 2");
  ASSERT_EQ(encoded.code, 0) << encoded.err;
  expect_contains(encoded.out, "train: codes of 3 clips");
  const Outcome looked = run("data inspect " + scratch.path("codes"));
  EXPECT_EQ(looked.code, 0) << looked.err;
  expect_contains(looked.out, "16 different ones");
  const Outcome exported = run("export " + run_folder + " --out " + scratch.path("small"));
  ASSERT_EQ(exported.code, 0) << exported.err;
  const std::string card = read_all(scratch.path("small/README.md"));
  expect_contains(card, "A tokenizer: it turns frames into a small grid and back");
  expect_contains(card, "model.tokenizer=small");
  EXPECT_EQ(card.find("generate"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(scratch.path("small/context.npy")));

  // A model of its codes goes without the folder of them: what they were encoded from can be made again.
  write_text(scratch.path("codes.yaml"),
             "model: {name: codes, tokenizer: " + scratch.path("small") +
                 ", encoder: {depths: [8]}, decoder: {depths: [8]}, core: {name: convs5, features: 8, state_size: 8}}\n"
                 "data: {name: folder, path: " +
                 scratch.path("codes") +
                 "}\ntrain: {steps: 2, batch: 1, frames: 4, warmup: 1, sample_interval: 0}\n"
                 "evaluate: {context: 2, horizons: [2]}\n");
  const Outcome fitted = run("train " + scratch.path("codes.yaml") + " --run " + scratch.path("model"));
  ASSERT_EQ(fitted.code, 0) << fitted.err;
  ASSERT_EQ(run("export " + scratch.path("model") + " --out " + scratch.path("whole")).code, 0);
  expect_contains(read_all(scratch.path("whole/config.yaml")), "name: moving-mnist");
  std::filesystem::remove_all(scratch.path("codes/test"));
  const Outcome again = run("evaluate " + scratch.path("whole") +
                            " evaluate.samples=2 evaluate.metrics=[psnr_f01] --out " + scratch.path("scores"));
  EXPECT_EQ(again.code, 0) << again.err;
  ASSERT_EQ(run(encode + " --clips 3 --test-clips 2 --resume").code, 0);

  const Outcome twice = run(encode + " --clips 3 --test-clips 2");
  EXPECT_EQ(twice.code, 4) << twice.err;
  expect_contains(twice.err, "--resume");
  const Outcome other = run(encode + " --clips 4 image_size=14 --resume");
  EXPECT_EQ(other.code, 3) << other.err;
  expect_contains(other.err, "frames of 12 x 12");
  const Outcome counted = run("models " + scratch.path("tokenizer.yaml"));
  EXPECT_EQ(counted.code, 0) << counted.err;
  expect_contains(counted.out, "vqgan");
  const Outcome generated = run("generate " + run_folder + " --context a.npy --out b.npy");
  EXPECT_EQ(generated.code, 2);
  expect_contains(generated.err, "makes no forecasts");
}

TEST(TokenizerProgram, AContinuousOneIsScoredAndHasNoCodes) {
  const ScratchFolder scratch;
  write_text(scratch.path("tokenizer.yaml"), tiny_tokenizer("{name: kl, features: 2}"));
  const std::string run_folder = scratch.path("run");
  const Outcome trained = run("train " + scratch.path("tokenizer.yaml") + " --run " + run_folder);
  ASSERT_EQ(trained.code, 0) << trained.err;
  expect_contains(trained.err, "vqgan, 6 x 6 of 2 numbers (kl)");
  expect_contains(read_all(run_folder + "/log.jsonl"), "\"kl\"");
  const Outcome scored = run("evaluate " + run_folder);
  ASSERT_EQ(scored.code, 0) << scored.err;
  expect_contains(scored.out, "latents: 6 x 6 of 2 numbers per frame");
  const Outcome encoded = run("data encode " + run_folder + " --frames 4 --clips 1 --out " + scratch.path("codes"));
  EXPECT_EQ(encoded.code, 2) << encoded.err;
  expect_contains(encoded.err, "tokenizer of codes is needed");
}

// Trained on its tokenizer, gone on with, generated with other options of drawing, counted.
TEST(TokenizerProgram, AModelOfCodesTrainsOnIt) {
  const ScratchFolder scratch;
  write_text(scratch.path("tokenizer.yaml"), tiny_tokenizer());
  const std::string tokenizer = scratch.path("tokenizer"), codes = scratch.path("codes");
  ASSERT_EQ(run("train " + scratch.path("tokenizer.yaml") + " --run " + tokenizer + " train.steps=2").code, 0);
  write_text(scratch.path("codes.yaml"),
             "model:\n"
             "  {name: codes, encoder: {depths: [4]}, decoder: {depths: [4], blocks: 1},\n"
             "   core: {name: convs5, features: 8, state_size: 8}}\n"
             "data: {name: moving-mnist, digits: 1, image_size: 12, digit_size: 8, clips: 50, test_clips: 6}\n"
             "train: {steps: 2, batch: 2, frames: 6, warmup: 1, log_interval: 1, sample_interval: 2}\n");
  const std::string train = "train " + scratch.path("codes.yaml") + " --run " + codes;
  const Outcome without = run(train);
  EXPECT_EQ(without.code, 2) << without.err;
  expect_contains(without.err, "runs/tokenizer");
  const Outcome trained = run(train + " model.tokenizer=" + tokenizer);
  ASSERT_EQ(trained.code, 0) << trained.err;
  expect_contains(trained.err, "code predictor, convs5 core, 6 x 6 of 16 codes");
  expect_contains(read_all(codes + "/log.jsonl"), "nats_per_code");
  std::filesystem::remove_all(tokenizer);  // its weights are in the model's file
  const Outcome longer = run("train --run " + codes + " --resume train.steps=3");
  EXPECT_EQ(longer.code, 0) << longer.err;
  const Outcome with_config = run(train + " --resume train.steps=4 model.tokenizer=" + tokenizer);
  EXPECT_EQ(with_config.code, 0) << with_config.err;
  const std::string clip = scratch.path("clip.npy");
  ASSERT_EQ(run("data make " + clip + " digits=1 image_size=12 digit_size=8 --split test --clips 1 --frames 4").code,
            0);
  const auto future = [&](const std::string& options) {
    const Outcome made = run("generate " + codes + " --context " + clip + " --frames 3 --force --out " +
                             scratch.path("future.npy") + " " + options);
    EXPECT_EQ(made.code, 0) << made.err;
    return read_all(scratch.path("future.npy"));
  };
  EXPECT_EQ(future("--seed 1"), future("--seed 1"));
  EXPECT_NE(future("--seed 1"), future("--seed 2"));
  EXPECT_EQ(future("--seed 1 model.top_k=1"), future("--seed 2 model.top_k=1"));
  const Outcome larger = run("generate " + codes + " --size 18 --context " + clip + " --frames 3 --out larger.npy");
  EXPECT_EQ(larger.code, 2) << larger.err;
  expect_contains(larger.err, "got 18 x 18: it sees them as a fixed number of codes of a tokenizer");
  const Outcome counted = run("models " + codes + "/config.yaml");
  EXPECT_EQ(counted.code, 0) << counted.err;
  expect_contains(counted.out, "convs5");
}

TEST(TokenizerProgram, ImportsAskForWhatTheFileDoesNotSay) {
  const Outcome nothing = run("weights import vqgan some.pth");
  EXPECT_EQ(nothing.code, 2);
  expect_contains(nothing.err, "--size 64x64 --out");
  for (const char* size : {"8y8", "0x4", "64x", "x64", "64x64x3"}) {
    const Outcome wrong = run(std::string("weights import vqgan some.pth --out somewhere --size ") + size);
    EXPECT_EQ(wrong.code, 2) << size;
    expect_contains(wrong.err, "as 64x64");
  }
  const Outcome absent = run("weights import vqgan some.pth --out somewhere --size 64x64");
  EXPECT_EQ(absent.code, 4) << absent.err;
}

}  // namespace
}  // namespace convssm
