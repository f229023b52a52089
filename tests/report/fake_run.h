// A run folder with everything in it, for the tests of the report.
#pragma once

#include <fmt/format.h>

#include <string>

#include "tests/base/scratch_folder.h"

namespace convssm::report {

// A GIF of one white pixel, and the head of it for another size.
inline std::string tiny_gif(int width = 1, int height = 1) {
  const auto size = [](int value) {
    return std::string{static_cast<char>(value & 255), static_cast<char>(value >> 8)};
  };
  return "GIF89a" + size(width) + size(height) + std::string("\x80\0\0\xff\xff\xff\0\0\0", 9) +
         std::string("\x2c\0\0\0\0\x01\0\x01\0\0\x02\x02\x44\x01\0\x3b", 16);
}

inline std::string training_line(int step, double loss) {
  return fmt::format(
      R"({{"step":{},"loss":{},"l1":{},"lr":1e-3,"grad_norm":2.5,"frames_per_second":123.4,"seconds":{},"skipped":0}})"
      "\n",
      step, loss, loss / 2, step * 0.1);
}

inline std::string validation_line(int step, double psnr) {
  return fmt::format(
      R"({{"step":{},"validation":{{"loss":0.5,"psnr_f01":{},"ssim_gauss11":0.8,"copy_last.psnr_f01":14.5}}}})"
      "\n",
      step, psnr);
}

inline std::string whole_log() {
  std::string log;
  for (int step = 10; step <= 1000; step += 10) {
    log += training_line(step, 100.0 / step);
    if (step % 100 == 0) log += validation_line(step, 15 + step / 100.0);
  }
  return log;
}

inline std::string status(const std::string& state) {
  return R"({"state":")" + state +
         R"(","step":1000,"steps":4000,"seconds":100,"parameters":20100000,"model":"pixel / convs5",)"
         R"("data":"moving-mnist","machine":"2 cores","version":"0.1","note":"a <note>"})";
}

inline const char* const kMetrics = R"({
  "protocol": {"model": "convs5", "context": 100, "samples": 1024, "quantized": true,
               "metrics": {"psnr_f01": {"definition": "peak <ratio>", "weights": {"a": "12ab"}}, "other": 3},
               "left_out": ["fvd_i3d: no weights", 7]},
  "horizons": [{"frames": 400, "rows": [
      {"name": "convs5", "psnr_f01": {"mean": 22.784, "std": 0.051}, "ssim_gauss11": {"mean": 0.9012, "std": 0.002}},
      {"name": "copy last frame", "psnr_f01": {"mean": 14.1, "std": 0.05}, "ssim_gauss11": {"mean": 0.7, "std": null}},
      {"name": "<b>blank</b>", "psnr_f01": {"mean": null, "std": 0.05}}]}],
  "curves": {"frames": [1, 2, 3, 4],
             "psnr_f01": {"convs5": [30, 25, 22, 21], "copy last frame": [24, 18, null, 14]},
             "ssim_gauss11": {"convs5": [0.99, 0.97, 0.95, 0.94]}}})";

inline void write_whole_run(const ScratchFolder& folder, const std::string& state = "finished") {
  folder.write("config.yaml", "# </script><script>alert(\"it's\")</script> & more\ntrain:\n  lr: 1e-3\n");
  folder.write("log.jsonl", whole_log());
  folder.write("status.json", status(state));
  folder.write("metrics.json", kMetrics);
  folder.write("samples/step-000500.gif", tiny_gif());
  folder.write("samples/evaluate-strip-0.gif", tiny_gif());
}

}  // namespace convssm::report
