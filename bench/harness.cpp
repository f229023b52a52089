// Subject and reference take turns and the ratio is taken within each round, so that a slow phase of the machine hits
// both. Medians and quartiles, since times have a long tail to one side.
#include "bench/harness.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <chrono>
#include <cstring>

#include "convssm/base/error.h"

namespace convssm::bench {

double milliseconds(const std::function<void()>& action) {
  const auto start = std::chrono::steady_clock::now();
  action();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

double quantile(std::vector<double> values, double q) {
  std::sort(values.begin(), values.end());
  const double place = q * static_cast<double>(values.size() - 1);
  const auto below = static_cast<size_t>(place);
  const size_t above = std::min(below + 1, values.size() - 1);
  const double part = place - static_cast<double>(below);
  return values[below] * (1 - part) + values[above] * part;
}

Row compare(const std::string& name, const std::string& what, int rounds, const std::function<void()>& subject,
            const std::function<void()>& reference) {
  if (rounds < 1) fail(ErrorKind::usage, "[bench] rounds must be positive, got {}", rounds);
  subject();
  reference();
  std::vector<double> subject_times, reference_times, ratios;
  for (int round = 0; round < rounds; ++round) {
    subject_times.push_back(milliseconds(subject));
    reference_times.push_back(milliseconds(reference));
    ratios.push_back(reference_times.back() / subject_times.back());
  }
  return {name,
          quantile(subject_times, 0.5),
          "ms",
          quantile(reference_times, 0.5),
          quantile(ratios, 0.5),
          (quantile(ratios, 0.75) - quantile(ratios, 0.25)) / 2,
          what};
}

Row single(const std::string& name, double value, const std::string& unit, const std::string& what) {
  return {name, value, unit, 0, 0, 0, what};
}

Row per_second(Row row, double count, const std::string& unit) {
  row.value = 1000 * count / row.value;
  row.reference = row.reference > 0 ? 1000 * count / row.reference : 0;
  row.unit = unit;
  return row;
}

bool Settings::wants(const std::string& model) const {
  return models.empty() || std::find(models.begin(), models.end(), model) != models.end();
}

void copy_bytes(void* to, const void* from, int64_t bytes, double times) {
  const int64_t parts = at::get_num_threads();
  at::parallel_for(0, parts, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t first = bytes / parts * i, last = i + 1 == parts ? bytes : bytes / parts * (i + 1);
      for (double left = times; left > 0; left -= 1) {
        const auto size = static_cast<size_t>(static_cast<double>(last - first) * std::min(left, 1.0));
        std::memcpy(static_cast<char*>(to) + first, static_cast<const char*>(from) + first, size);
      }
    }
  });
}

const std::vector<Group>& all_groups() {
  static const std::vector<Group> groups{
      {"scan", "the scan against copying the same bytes and against the tree in tensor operations", bench_scan},
      {"layer", "one ConvS5 layer against its convolutions alone", bench_layer},
      {"memory", "fresh tensors and page faults against libtorch's default allocator", bench_memory},
      {"conv", "3x3 convolutions by Winograd's algorithm against direct ones", bench_conv},
      {"metrics", "LPIPS, SSIM and I3D against the same work in PyTorch", bench_metrics},
      {"peer", "training and generation of ConvS5 against the same model in PyTorch", bench_peer},
      {"worlds", "frames a second of the worlds that render themselves", bench_worlds},
      {"fields", "windows of NetCDF, Zarr and GRIB files (--files) against xarray and h5py", bench_fields, false},
      {"limit", "ConvS5 models against their convolutions alone", bench_limit},
      {"cost", "the paper's cost table: every model at the paper's size, about 6 minutes", bench_cost, false},
      {"tokenizer", "encoding, decoding and training of the VQ-GAN against PyTorch", bench_tokenizer, false},
      {"codes", "training and generation of TECO against PyTorch, and by length", bench_codes, false},
      {"models", "every kind of model at laptop size: training, generation and states", bench_models, false},
      {"scaling", "time and memory over the number of frames, about 6 minutes", bench_scaling, false},
      {"complexity", "the paper's complexity table: training and generation to 5,000 frames, about 7 minutes",
       bench_complexity, false},
  };
  return groups;
}

}  // namespace convssm::bench
