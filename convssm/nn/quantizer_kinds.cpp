// Lookups are rows of tables: [N,C,h,w] is turned to rows [N*h*w,C] once, which channels_last memory already is.
#include "convssm/nn/quantizer_kinds.h"

#include <ATen/ATen.h>

#include <cmath>

#include "convssm/ops/check.h"
#include "convssm/ops/normal_numbers.h"
#include "convssm/ssm/initializers.h"

namespace convssm::nn {
namespace {

// A module that holds a table under the name that the public layout has: embedding.weight.
struct Embedding : torch::nn::Module {
  at::Tensor add(const at::Tensor& table, bool learned) {
    return learned ? register_parameter("weight", table) : register_buffer("weight", table);
  }
};

at::Tensor add_table(Quantizer& quantizer, const at::Tensor& table, bool learned) {
  return quantizer.register_module("embedding", std::make_shared<Embedding>())->add(table, learned);
}

at::Tensor rows_of(const at::Tensor& z) { return z.permute({0, 2, 3, 1}).reshape({-1, z.size(1)}); }

// Rows [N*h*w,C] as a map of channels_last memory.
at::Tensor map_of(const at::Tensor& rows, const at::Tensor& codes) {
  return rows.view({codes.size(0), codes.size(1), codes.size(2), rows.size(1)}).permute({0, 3, 1, 2});
}

at::Tensor look_up(const at::Tensor& table, const at::Tensor& codes) {
  return map_of(table.index_select(0, codes.flatten()), codes);
}

at::Tensor shaped(const at::Tensor& codes, const at::Tensor& z) {
  return codes.view({z.size(0), z.size(2), z.size(3)});
}

at::Tensor straight_through(const at::Tensor& z, const at::Tensor& q) { return z + (q - z).detach(); }

Quantized with_losses(const at::Tensor& out, const at::Tensor& codes, const at::Tensor& commitment,
                      const at::Tensor& table) {
  return {out, codes, table + commitment, commitment, table};
}

at::Tensor unit(const at::Tensor& x) { return x / x.square().sum(1, true).clamp_min(1e-12).sqrt(); }

at::Tensor uniform(at::IntArrayRef shape, double bound, Stream stream) {
  at::Tensor values = at::empty(shape, at::kFloat);
  float* data = values.data_ptr<float>();
  for (int64_t i = 0; i < values.numel(); ++i) data[i] = static_cast<float>(stream.uniform(-bound, bound));
  return values;
}

}  // namespace

GradientQuantizer::GradientQuantizer(const QuantizerOptions& o, const Stream& stream) : Quantizer(o) {
  const double bound = 1 / static_cast<double>(o.size);
  table_ = add_table(*this, uniform({o.size, o.features}, bound, stream.split("table")), true);
}

at::Tensor GradientQuantizer::codes_of(const at::Tensor& z) {
  check(z);
  return shaped(nearest_rows(rows_of(z.detach()), table_.detach()), z);
}

at::Tensor GradientQuantizer::embed(const at::Tensor& codes) { return look_up(table_, codes); }

Quantized GradientQuantizer::forward(const at::Tensor& z, const QuantizerUse& use) {
  const at::Tensor codes = codes_of(z), e = embed(codes);
  if (use.learn) count(codes);
  const at::Tensor table = (e - z.detach()).square().mean(), commitment = (e.detach() - z).square().mean();
  const double beta = options_.beta;
  return with_losses(straight_through(z, e), codes, options_.legacy_beta ? commitment : beta * commitment,
                     options_.legacy_beta ? beta * table : table);
}

EmaQuantizer::EmaQuantizer(const QuantizerOptions& o, const Stream& stream) : Quantizer(o) {
  Stream own = stream.split("table");
  table_ = add_table(*this, ssm::normal({o.size, o.features}, 1, own), false);
  counts_ = register_buffer("counts", at::ones({o.size}));
  sums_ = register_buffer("sums", table_.clone());
  begun_ = register_buffer("begun", at::zeros({1}));
}

at::Tensor EmaQuantizer::codes_of(const at::Tensor& z) {
  check(z);
  return shaped(nearest_rows(rows_of(z.detach()), table_), z);
}

at::Tensor EmaQuantizer::embed(const at::Tensor& codes) { return look_up(table_, codes); }

Quantized EmaQuantizer::forward(const at::Tensor& z, const QuantizerUse& use) {
  if (use.learn) {
    if (!at::isfinite(z).all().item<bool>())
      fail(ErrorKind::numeric, "[Quantizer] the encoder put out NaN or infinity: the table cannot follow");
    begin(rows_of(z.detach()), use);
  }
  const at::Tensor codes = codes_of(z), e = embed(codes);
  if (use.learn) {
    const at::NoGradGuard no_grad;
    count(codes);
    follow(rows_of(z.detach()), codes.flatten());
    if (use.restart && options_.restart > 0) begin_again(rows_of(z.detach()), use.random.split("restart"));
  }
  const at::Tensor commitment = options_.beta * (e - z).square().mean();
  return {straight_through(z, e), codes, commitment, commitment, {}};
}

// On the first batch: k-means puts the table where the features are.
void EmaQuantizer::begin(const at::Tensor& rows, const QuantizerUse& use) {
  if (begun_.item<double>() != 0) return;
  const at::NoGradGuard no_grad;
  begun_.fill_(1);
  if (options_.kmeans == 0) return;
  table_.copy_(kmeans_rows(rows, size(), options_.kmeans, use.random.split("k-means")));
  counts_.fill_(static_cast<double>(rows.size(0)) / static_cast<double>(size()));
  sums_.copy_(table_ * counts_.unsqueeze(1));
}

void EmaQuantizer::follow(const at::Tensor& rows, const at::Tensor& codes) {
  const double d = options_.decay, n = static_cast<double>(size());
  const at::Tensor sums = at::zeros_like(sums_).index_add_(0, codes, rows);
  counts_.mul_(d).add_(at::bincount(codes, {}, size()).to(counts_.scalar_type()), 1 - d);
  sums_.mul_(d).add_(sums, 1 - d);
  const at::Tensor total = counts_.sum(), smooth = (counts_ + 1e-5) / (total + n * 1e-5) * total;
  table_.copy_(sums_ / smooth.unsqueeze(1));
}

// Codes that are hardly used take the place of features of this batch, with the count of an equal part.
void EmaQuantizer::begin_again(const at::Tensor& rows, Stream random) {
  const double part = static_cast<double>(rows.size(0)) / static_cast<double>(size());
  const at::Tensor dead = at::nonzero(counts_ < options_.restart * part).flatten();
  if (dead.numel() == 0) return;
  std::vector<int64_t> chosen;
  for (int64_t i = 0; i < dead.numel(); ++i) {
    chosen.push_back(static_cast<int64_t>(random.below(static_cast<uint64_t>(rows.size(0)))));
  }
  const at::Tensor fresh = rows.index_select(0, at::tensor(chosen, at::kLong).to(rows.device()));
  table_.index_copy_(0, dead, fresh);
  sums_.index_copy_(0, dead, fresh * part);
  counts_.index_fill_(0, dead, part);
}

CosineQuantizer::CosineQuantizer(const QuantizerOptions& o, const Stream& stream) : Quantizer(o) {
  Stream own = stream.split("table");
  table_ = add_table(*this, ssm::normal({o.size, o.features}, 0.02, own), true);
}

at::Tensor CosineQuantizer::codes_of(const at::Tensor& z) {
  check(z);
  const at::NoGradGuard no_grad;
  return shaped(nearest_rows(rows_of(unit(z)), unit(table_)), z);
}

at::Tensor CosineQuantizer::embed(const at::Tensor& codes) { return look_up(unit(table_), codes); }

Quantized CosineQuantizer::forward(const at::Tensor& z, const QuantizerUse& use) {
  const at::Tensor codes = codes_of(z), c = embed(codes), u = unit(z);
  if (use.learn) count(codes);
  const at::Tensor table = (c - u.detach()).square().mean(), commitment = (c.detach() - u).square().mean();
  return with_losses(straight_through(u, c), codes, 0.5 * options_.beta * commitment, 0.5 * table);
}

FsqQuantizer::FsqQuantizer(const QuantizerOptions& o) : Quantizer(o) {
  double basis = 1;
  for (const int64_t count : o.levels) {
    const auto levels = static_cast<double>(count);
    half_.push_back((levels - 1) * (1 - 1e-3) / 2);
    offset_.push_back(count % 2 == 0 ? 0.5 : 0);
    shift_.push_back(std::tan(offset_.back() / half_.back()));
    width_.push_back(static_cast<double>(count / 2));
    basis_.push_back(basis);
    basis *= levels;
  }
}

at::Tensor FsqQuantizer::per_channel(const std::vector<double>& values, const at::Tensor& like) const {
  return at::tensor(values, at::kDouble).to(like.options()).view({1, -1, 1, 1});
}

at::Tensor FsqQuantizer::bounded(const at::Tensor& z) const {
  check(z);
  return at::tanh(z + per_channel(shift_, z)) * per_channel(half_, z) - per_channel(offset_, z);
}

at::Tensor FsqQuantizer::codes_of(const at::Tensor& z) {
  const at::NoGradGuard no_grad;
  const at::Tensor digits = bounded(z).round() + per_channel(width_, z);
  return (digits.to(at::kDouble) * per_channel(basis_, digits.to(at::kDouble))).sum(1).round().to(at::kLong);
}

at::Tensor FsqQuantizer::embed(const at::Tensor& codes) {
  std::vector<at::Tensor> channels;
  at::Tensor rest = codes;
  for (size_t i = 0; i < width_.size(); ++i) {
    const int64_t levels = options_.levels[i];
    channels.push_back((rest.remainder(levels) - static_cast<int64_t>(width_[i])).to(at::kFloat) / width_[i]);
    rest = at::div(rest, levels, "floor");
  }
  return at::stack(channels, 1);
}

Quantized FsqQuantizer::forward(const at::Tensor& z, const QuantizerUse& use) {
  const at::Tensor soft = bounded(z), codes = codes_of(z);
  if (use.learn) count(codes);
  return {straight_through(soft, soft.round()) / per_channel(width_, z), codes, at::zeros({}, z.options()), {}, {}};
}

at::Tensor KlBottleneck::codes_of(const at::Tensor& z) {
  check(z);
  return z.detach().narrow(1, 0, features());
}

Quantized KlBottleneck::forward(const at::Tensor& z, const QuantizerUse& use) {
  check(z);
  const at::Tensor mean = z.narrow(1, 0, features()), log_var = z.narrow(1, features(), features()).clamp(-30, 20);
  at::Tensor out = mean;
  if (use.draw) {
    const at::Tensor noise = ops::normal_numbers(mean.sizes(), use.random.split("latents"), mean.options());
    out = mean + (0.5 * log_var).exp() * noise;
  }
  const double frames = static_cast<double>(z.size(0));
  const at::Tensor divergence = 0.5 * (mean.square() + log_var.exp() - 1 - log_var).sum() / frames;
  return {out, {}, options_.beta * divergence, {}, {}, divergence};
}

}  // namespace convssm::nn
