// What the quantizers share: options, counts of use, the nearest row. Distances are one product with the table, in blocks of
// rows so that memory is bounded whatever the table.
#include "convssm/nn/quantizer.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "convssm/base/bounds.h"
#include "convssm/base/nearest.h"
#include "convssm/base/option_reader.h"
#include "convssm/nn/quantizer_kinds.h"
#include "convssm/ops/check.h"
#include "convssm/ops/dense.h"
#include "convssm/ops/device.h"
#include "convssm/ops/nearest_kernels.h"

namespace convssm::nn {
namespace {

constexpr double kWindow = 65536;              // codes that recent use means
constexpr int64_t kScores = int64_t{4} << 20;  // distances in memory at once
constexpr int64_t most_codes = int64_t{1} << 20;
constexpr QuantizerKind all_kinds[] = {QuantizerKind::gradient, QuantizerKind::ema, QuantizerKind::cosine,
                                       QuantizerKind::fsq, QuantizerKind::kl};

void check_options(const char* owner, const QuantizerOptions& o) {
  if (o.kind != QuantizerKind::kl) require_between(owner, "size", o.size, 2, most_codes);
  require_between(owner, "features", o.features, 1, 1 << 16);
  ops::require(owner, std::isfinite(o.beta) && o.beta >= 0, "beta must be 0 or positive, got {}", o.beta);
  ops::require(owner, o.decay >= 0 && o.decay < 1, "decay must be in [0,1), got {}", o.decay);
  require_between(owner, "kmeans", o.kmeans, 0, 1000);
  ops::require(owner, o.restart >= 0 && o.restart < 1, "restart must be in [0,1), got {}", o.restart);
}

// The features of fsq are its levels, and its codes their product.
void read_levels(const char* owner, const nlohmann::json& json, QuantizerOptions& o) {
  ops::require(owner, !o.levels.empty(), "levels must be a list such as [8,5,5,5], got []");
  int64_t product = 1;
  for (const int64_t levels : o.levels) {
    require_between(owner, "levels", levels, 2, 1024);
    product = std::min(product * levels, most_codes + 1);
  }
  const auto given = [&](const char* key, int64_t found, int64_t expected) {
    ops::require(owner, !json.contains(key) || found == expected, "{} of fsq follows from its levels and is {}, got {}",
                 key, expected, found);
  };
  given("size", o.size, product);
  given("features", o.features, static_cast<int64_t>(o.levels.size()));
  o.size = product;
  o.features = static_cast<int64_t>(o.levels.size());
}

// Rows go to threads; a row's choice does not depend on those beside it.
at::Tensor nearest_by_kernel(const at::Tensor& x, const at::Tensor& table, const at::Tensor& bias) {
  const int64_t C = x.size(1);
  at::Tensor chosen = at::empty({x.size(0)}, at::kLong);
  at::parallel_for(0, x.size(0), 64, [&](int64_t begin, int64_t end) {
    std::vector<float> scratch(static_cast<size_t>(ops::nearest_scratch(end - begin, C)));
    ops::nearest_rows({end - begin, table.size(0), C, x.data_ptr<float>() + begin * C, table.data_ptr<float>(),
                       bias.data_ptr<float>(), chosen.data_ptr<int64_t>() + begin, scratch.data()});
  });
  return chosen;
}

}  // namespace

const char* name(QuantizerKind kind) {
  switch (kind) {
    case QuantizerKind::gradient:
      return "gradient";
    case QuantizerKind::ema:
      return "ema";
    case QuantizerKind::cosine:
      return "cosine";
    case QuantizerKind::fsq:
      return "fsq";
    default:
      return "kl";
  }
}

QuantizerKind parse_quantizer_kind(const std::string& text) {
  std::vector<std::string> known;
  for (const QuantizerKind kind : all_kinds) {
    if (text == name(kind)) return kind;
    known.push_back(name(kind));
  }
  fail_unknown("unknown quantizer", text, known);
}

QuantizerOptions QuantizerOptions::from_json(const char* owner, const nlohmann::json& json) {
  QuantizerOptions o;
  OptionReader read(owner, json);
  read("name", [&](const std::string& text) { o.kind = parse_quantizer_kind(text); });
  if (o.kind == QuantizerKind::cosine) o.features = 32;
  if (o.kind == QuantizerKind::kl) {
    o.size = 0, o.features = 4, o.beta = 1e-6;
  } else {
    read("size", o.size);
  }
  read("features", o.features);
  if (o.kind != QuantizerKind::fsq) read("beta", o.beta);
  if (o.kind == QuantizerKind::gradient) read("legacy_beta", o.legacy_beta);
  if (o.kind == QuantizerKind::ema) {
    read("decay", o.decay);
    read("kmeans", o.kmeans);
    read("restart", o.restart);
  }
  if (o.kind == QuantizerKind::fsq) read("levels", o.levels);
  read.finish();
  if (o.kind == QuantizerKind::fsq) read_levels(owner, json, o);
  check_options(owner, o);
  return o;
}

bool codes_may_restart(int64_t step, int64_t steps) {
  return static_cast<double>(step) < 0.9 * static_cast<double>(steps);
}

Quantizer::Quantizer(const QuantizerOptions& options) : options_(options) {
  check_options("Quantizer", options);
  usage_ = register_buffer("usage", at::zeros({options.size}));
}

void Quantizer::check(const at::Tensor& z) const {
  ops::require_dims("Quantizer", "z", z, 4, "[N,C,h,w]");
  ops::require("Quantizer", z.size(1) == in_features(), "z must have {} channels, got {}", in_features(), z.size(1));
}

void Quantizer::count(const at::Tensor& codes) {
  const at::NoGradGuard no_grad;
  const double fade = std::exp(-static_cast<double>(codes.numel()) / kWindow);
  usage_.mul_(fade).add_(at::bincount(codes.flatten(), {}, size()).to(usage_.scalar_type()));
}

double Quantizer::perplexity() const { return perplexity_of(usage_); }

// One use counts for about the window; several of them somewhat longer.
double Quantizer::used() const { return (usage_ > std::exp(-1.0)).to(at::kDouble).mean().item<double>(); }

// What a window of codes adds up to while the oldest fade.
bool Quantizer::seen_enough() const { return usage_.sum().item<double>() >= (1 - std::exp(-1.0)) * kWindow; }

std::shared_ptr<Quantizer> make_quantizer(const QuantizerOptions& o, const Stream& stream) {
  switch (o.kind) {
    case QuantizerKind::gradient:
      return std::make_shared<GradientQuantizer>(o, stream);
    case QuantizerKind::ema:
      return std::make_shared<EmaQuantizer>(o, stream);
    case QuantizerKind::cosine:
      return std::make_shared<CosineQuantizer>(o, stream);
    case QuantizerKind::fsq:
      return std::make_shared<FsqQuantizer>(o);
    default:
      return std::make_shared<KlBottleneck>(o);
  }
}

// |x - e|^2 is least where x e - |e|^2 / 2 is most.
at::Tensor nearest_rows(const at::Tensor& x, const at::Tensor& table) {
  const at::NoGradGuard no_grad;
  const at::Tensor bias = table.square().sum(1) * -0.5;
  if (ops::takes_kernels(x) && x.scalar_type() == at::kFloat && table.scalar_type() == at::kFloat) {
    return nearest_by_kernel(x.contiguous(), table.contiguous(), bias);
  }
  const int64_t rows = x.size(0), at_once = std::max<int64_t>(1, kScores / table.size(0));
  std::vector<at::Tensor> chosen;
  for (int64_t first = 0; first < rows; first += at_once) {
    const int64_t count = std::min(at_once, rows - first);
    chosen.push_back(ops::dense(x.narrow(0, first, count), table, bias).argmax(1));
  }
  return chosen.size() == 1 ? chosen[0] : at::cat(chosen);
}

at::Tensor kmeans_rows(const at::Tensor& x, int64_t count, int64_t iterations, Stream random) {
  const at::NoGradGuard no_grad;
  const int64_t rows = x.size(0);
  std::vector<int64_t> order(static_cast<size_t>(std::max(rows, count)));
  for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int64_t>(i) % rows;
  for (int64_t i = 0; i < std::min(count, rows); ++i) {
    std::swap(order[static_cast<size_t>(i)],
              order[static_cast<size_t>(i) + random.below(static_cast<uint64_t>(rows - i))]);
  }
  order.resize(static_cast<size_t>(count));
  at::Tensor centres = x.index_select(0, at::tensor(order, at::kLong).to(x.device()));
  for (int64_t i = 0; i < iterations; ++i) {
    const at::Tensor nearest = nearest_rows(x, centres), counts = at::bincount(nearest, {}, count);
    const at::Tensor sums = at::zeros_like(centres).index_add_(0, nearest, x);
    const at::Tensor means = sums / counts.clamp_min(1).to(x.scalar_type()).unsqueeze(1);
    centres = at::where((counts > 0).unsqueeze(1), means, centres);
  }
  return centres;
}

double perplexity_of(const at::Tensor& counts) {
  const at::Tensor n = counts.to(at::kDouble);
  const double total = n.sum().item<double>();
  if (total <= 0) return 0;
  const at::Tensor p = n / total;
  return std::exp(-(p * p.clamp_min(1e-300).log()).sum().item<double>());
}

}  // namespace convssm::nn
