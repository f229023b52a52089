// Records of runs that never were, for the tests of results: two models, a second seed, an ablation, a sweep, another
// learning rate, a model with other data.
#pragma once

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>

#include "convssm/io/png.h"
#include "tests/base/scratch_folder.h"

namespace convssm::report {

struct FakeRun {
  std::string row;
  nlohmann::json record = nlohmann::json::object();
  double psnr = 20, lpips = 0.1;  // at 2 frames; 1 dB less and 0.1 more at 4 frames
  int seed = 1;
};

inline nlohmann::json fake_metrics(const FakeRun& run) {
  const auto value = [](double mean) { return nlohmann::json{{"mean", mean}, {"std", 0.5}}; };
  nlohmann::json horizons = nlohmann::json::array();
  for (const int frames : {2, 4}) {
    const double later = frames == 2 ? 0 : 1;
    horizons.push_back(
        {{"frames", frames},
         {"rows",
          {{{"name", "core"}, {"psnr_f01", value(run.psnr - later)}, {"lpips_alex", value(run.lpips + later / 10)}},
           {{"name", "copy last frame"}, {"psnr_f01", value(15)}, {"lpips_alex", value(0.5)}},
           {{"name", "blank frame"}, {"psnr_f01", value(17)}, {"lpips_alex", value(0.9)}}}}});
  }
  const nlohmann::json frames = {1, 2, 3, 4};
  return {{"protocol",
           {{"model", "core"},
            {"samples", 32},
            {"context", 10},
            {"metrics", {{"lpips_alex", {{"weights", {{"alexnet", "12ab"}}}}}}}}},
          {"horizons", horizons},
          {"curves",
           {{"frames", frames},
            {"psnr_f01",
             {{"core", {run.psnr + 1, run.psnr, run.psnr - 1, run.psnr - 2}},
              {"copy last frame", {18, 16, 15, 15}},
              {"blank frame", {17, 17, 17, 17}}}}}}};
}

// A strip of 4 moments in tiles of 8x8: truth black, forecast white.
inline io::Image fake_strip(uint8_t truth = 0) {
  io::Image image{4 * 10 - 2, 2 * 10 - 2, 1, {}};
  image.pixels.assign(static_cast<size_t>(image.width * image.height), 70);  // the gaps
  for (int64_t y = 0; y < image.height; ++y) {
    for (int64_t x = 0; x < image.width; ++x) {
      if (x % 10 < 8 && y % 10 < 8) image.pixels[static_cast<size_t>(y * image.width + x)] = y < 8 ? truth : 255;
    }
  }
  return image;
}

// 100 steps of 3 clips of 40 frames: 10 minutes at the median of 20 frames/s.
inline void write_fake_run(const ScratchFolder& folder, const FakeRun& run) {
  const std::string place = "results/" + run.row + "/";
  folder.write(place + "config.yaml",
               fmt::format("seed: {}\ntrain: {{steps: 100, batch: 3, frames: 40, lr: 0.002}}\n", run.seed));
  folder.write(place + "log.jsonl",
               "{\"step\":10,\"frames_per_second\":1}\n{\"step\":20,\"frames_per_second\":20}\n"
               "{\"step\":30,\"frames_per_second\":21}\n");
  folder.write(place + "status.json",
               R"({"state":"finished","step":100,"steps":100,"parameters":158675,"version":"0.1"})");
  folder.write(place + "metrics.json", fake_metrics(run).dump());
  folder.write(place + "samples/none.txt", "");
  io::write_png(folder.path(place + "samples/evaluate-strip-0.png"), fake_strip());
  if (!run.record.empty()) folder.write(place + "record.json", run.record.dump());
}

inline nlohmann::json fake_record(const std::string& row, const std::string& label, const std::string& part, int place,
                                  const std::string& of) {
  return {
      {"row", row},       {"label", label},         {"part", part}, {"place", place}, {"of", of},
      {"commit", "abc1"}, {"machine", "A Machine"}, {"threads", 1}, {"lr", 0.001},    {"commands", {"train " + row}}};
}

inline void write_fake_results(const ScratchFolder& folder) {
  write_fake_run(folder, {"convs5", fake_record("convs5", "ConvS5", "table", 1, "convs5"), 20, 0.1});
  write_fake_run(folder, {"convs5_seed2", fake_record("convs5_seed2", "ConvS5", "seed", 2, "convs5"), 21, 0.2, 2});
  write_fake_run(folder, {"a_lstm", fake_record("a_lstm", "ConvLSTM", "table", 3, "a_lstm"), 20.25, 0.05});
  write_fake_run(folder, {"no_gelu", fake_record("no_gelu", "without GELU", "ablation", 4, "convs5"), 19, 0.3});
  nlohmann::json rate = fake_record("a_lstm_slow", "ConvLSTM, lr 1e-4", "rate", 5, "a_lstm");
  rate["lr"] = 1e-4;
  write_fake_run(folder, {"a_lstm_slow", rate, 18, 0.4});
  write_fake_run(folder, {"pretrained", fake_record("pretrained", "of drawn digits", "model", 6, "convs5"), 30, 0.01});
  folder.write("results/convs5/speed.json", R"({"frames_per_second": 812.4, "rounds": [812.4], "frames": 300})");
  nlohmann::json diverged = fake_record("s3", "s3", "sweep", 9, "convs5");
  diverged["lr"] = 0.01, diverged["diverged"] = true;
  folder.write("results/s3/record.json", diverged.dump());
  for (const auto& [name, lr, psnr] : {std::tuple("s1", 0.001, 19.5), std::tuple("s2", 0.004, 18.25)}) {
    nlohmann::json record = fake_record(name, name, "sweep", 9, "convs5");
    record["lr"] = lr;
    record["validation"] = {{"psnr_f01", psnr}, {"loss", 0.5}};
    folder.write(fmt::format("results/{}/record.json", name), record.dump());
    nlohmann::json metrics = fake_metrics({name, record, psnr});
    metrics["protocol"]["samples"] = 8;  // scored otherwise than the rows of the table
    folder.write(fmt::format("results/{}/metrics.json", name), metrics.dump());
  }
}

}  // namespace convssm::report
