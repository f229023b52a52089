// Every quantizer against loops written out here, gradients against finite differences, and what k-means, restarts and counts
// promise.
#include "convssm/nn/quantizer.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "convssm/nn/quantizer_kinds.h"
#include "tests/support.h"

namespace convssm::nn {
namespace {

using convssm::testing::distance;
using convssm::testing::expect_error;
using convssm::testing::gradient_error;
using convssm::testing::randn;
using nlohmann::json;

std::shared_ptr<Quantizer> quantizer_of(const json& options, uint64_t seed = 1) {
  auto made = make_quantizer(QuantizerOptions::from_json("quantizer", options), Stream(seed));
  made->to(at::kDouble);
  return made;
}

at::Tensor table_of(const Quantizer& quantizer) {
  for (const auto& item : quantizer.named_parameters()) return item.value();
  return quantizer.named_buffers()["embedding.weight"];
}

// The nearest row to every pixel of z by a loop.
std::vector<int64_t> naive_codes(const at::Tensor& z, const at::Tensor& table) {
  std::vector<int64_t> codes;
  const auto pixels = z.permute({0, 2, 3, 1}).reshape({-1, z.size(1)}).contiguous();
  for (int64_t i = 0; i < pixels.size(0); ++i) {
    int64_t best = 0;
    double least = INFINITY;
    for (int64_t k = 0; k < table.size(0); ++k) {
      double sum = 0;
      for (int64_t c = 0; c < z.size(1); ++c) {
        const double d = pixels[i][c].item<double>() - table[k][c].item<double>();
        sum += d * d;
      }
      if (sum < least) least = sum, best = k;
    }
    codes.push_back(best);
  }
  return codes;
}

std::vector<int64_t> listed(const at::Tensor& codes) {
  const at::Tensor flat = codes.contiguous().flatten();
  return {flat.data_ptr<int64_t>(), flat.data_ptr<int64_t>() + flat.numel()};
}

at::Tensor naive_rows(const at::Tensor& table, const std::vector<int64_t>& codes, const at::Tensor& z) {
  std::vector<at::Tensor> rows;
  for (const int64_t code : codes) rows.push_back(table[code]);
  return at::stack(rows).view({z.size(0), z.size(2), z.size(3), -1}).permute({0, 3, 1, 2});
}

TEST(Quantizer, GradientIsTheNearestRow) {
  for (const bool legacy : {false, true}) {
    auto q = quantizer_of({{"name", "gradient"}, {"size", 7}, {"features", 3}, {"beta", 0.4}, {"legacy_beta", legacy}});
    const at::Tensor table = table_of(*q);
    {
      torch::NoGradGuard no_grad;
      table.copy_(randn({7, 3}, 5));
    }
    const at::Tensor z = randn({2, 3, 4, 5}, 6);
    const Quantized found = q->forward(z, {});
    const auto codes = naive_codes(z, table);
    EXPECT_EQ(listed(found.codes), codes);
    const at::Tensor rows = naive_rows(table, codes, z);
    EXPECT_LT(distance(found.out, rows), 1e-12);
    EXPECT_LT(distance(q->embed(found.codes), rows), 1e-15);
    const double error = (rows - z).square().mean().item<double>();
    EXPECT_NEAR(found.loss.item<double>(), 1.4 * error, 1e-12);
    // Which of the two has beta: the gradients of z and of the table say so.
    at::Tensor x = z.clone().requires_grad_(true);
    const auto gradients = torch::autograd::grad({q->forward(x, {}).loss}, {x, table});
    const at::Tensor by_z = 2 * (x - rows).detach() / static_cast<double>(z.numel()) * (legacy ? 1.0 : 0.4);
    EXPECT_LT(distance(gradients[0], by_z), 1e-12);
    at::Tensor by_table = at::zeros({7, 3}, at::kDouble);
    const at::Tensor each =
        (2 * (rows - z) / static_cast<double>(z.numel()) * (legacy ? 0.4 : 1.0)).permute({0, 2, 3, 1});
    for (size_t i = 0; i < codes.size(); ++i) by_table[codes[i]] += each.reshape({-1, 3})[static_cast<int64_t>(i)];
    EXPECT_LT(distance(gradients[1], by_table), 1e-12);
  }
}

TEST(Quantizer, TheGradientGoesStraightThrough) {
  for (const char* name : {"gradient", "ema"}) {
    auto q = quantizer_of({{"name", name}, {"size", 5}, {"features", 2}});
    const at::Tensor z = randn({1, 2, 3, 3}, 3).requires_grad_(true), seed = randn({1, 2, 3, 3}, 4);
    const at::Tensor found = torch::autograd::grad({q->forward(z, {}).out}, {z}, {seed})[0];
    EXPECT_TRUE(found.equal(seed)) << name;
  }
}

// The update by loops, of a table whose first batch has been seen.
TEST(Quantizer, EmaFollowsTheMeans) {
  auto q = quantizer_of(
      {{"name", "ema"}, {"size", 6}, {"features", 2}, {"kmeans", 0}, {"restart", 0}, {"decay", 0.8}, {"beta", 0.3}});
  const int64_t n = 6;
  std::vector<double> counts(n, 1);
  at::Tensor table = table_of(*q).clone(), sums = table.clone();
  for (uint64_t step = 0; step < 4; ++step) {
    const at::Tensor z = randn({2, 2, 3, 3}, 10 + step);
    const auto codes = naive_codes(z, table);
    const at::Tensor rows = naive_rows(table, codes, z);
    const Quantized found = q->forward(z, {true, true, Stream(step)});
    EXPECT_EQ(listed(found.codes), codes);
    EXPECT_LT(distance(found.out, rows), 1e-12) << "what is put out is of the table before it moves";
    EXPECT_NEAR(found.loss.item<double>(), 0.3 * (rows - z).square().mean().item<double>(), 1e-12);
    const at::Tensor pixels = z.permute({0, 2, 3, 1}).reshape({-1, 2});
    double total = 0;
    for (int64_t k = 0; k < n; ++k) {
      double count = 0;
      at::Tensor sum = at::zeros({2}, at::kDouble);
      for (size_t i = 0; i < codes.size(); ++i) {
        if (codes[i] == k) count += 1, sum += pixels[static_cast<int64_t>(i)];
      }
      counts[k] = 0.8 * counts[k] + 0.2 * count;
      sums[k] = 0.8 * sums[k] + 0.2 * sum;
      total += counts[k];
    }
    for (int64_t k = 0; k < n; ++k) {
      table[k] = sums[k] / ((counts[k] + 1e-5) / (total + n * 1e-5) * total);
    }
    EXPECT_LT(distance(table_of(*q), table), 1e-12) << "step " << step;
  }
}

TEST(Quantizer, BuffersMoveOnlyWhereItLearns) {
  auto q = quantizer_of({{"name", "ema"}, {"size", 6}, {"features", 2}});
  std::vector<at::Tensor> before;
  for (const at::Tensor& buffer : q->buffers()) before.push_back(buffer.clone());
  q->forward(randn({1, 2, 4, 4}, 1), {});
  q->codes_of(randn({1, 2, 4, 4}, 2));
  for (size_t i = 0; i < before.size(); ++i) EXPECT_TRUE(q->buffers()[i].equal(before[i]));
  q->forward(randn({1, 2, 4, 4}, 1), {.learn = true});
  EXPECT_FALSE(table_of(*q).equal(before[1]) && q->buffers()[0].equal(before[0]));
}

// Four far clusters: k-means on the first batch finds their means, whatever the initial table.
TEST(Quantizer, KmeansStartsWhereTheFeaturesAre) {
  const at::Tensor corners = torch::tensor({{9.0, 9.0}, {9.0, -9.0}, {-9.0, 9.0}, {-9.0, -9.0}}, at::kDouble);
  at::Tensor rows = corners.repeat({16, 1}) + 0.1 * randn({64, 2}, 1);
  bool found_all = false;
  for (uint64_t seed = 0; seed < 8 && !found_all; ++seed) {  // Lloyd may begin with two rows of one cluster
    const at::Tensor centres = kmeans_rows(rows, 4, 10, Stream(seed));
    EXPECT_TRUE(centres.equal(kmeans_rows(rows, 4, 10, Stream(seed))));
    std::set<int64_t> seen;
    for (const int64_t k : listed(nearest_rows(corners, centres))) seen.insert(k);
    found_all = seen.size() == 4;
    if (!found_all) continue;
    const at::Tensor nearest = nearest_rows(rows, centres);
    for (int64_t k = 0; k < 4; ++k) EXPECT_LT(distance(centres[k], rows.index({nearest == k}).mean(0)), 1e-12);
  }
  EXPECT_TRUE(found_all);
  EXPECT_EQ(kmeans_rows(rows, 100, 3, Stream(1)).size(0), 100) << "more codes than rows";
  auto q = quantizer_of({{"name", "ema"}, {"size", 8}, {"features", 2}, {"restart", 0}});
  const at::Tensor z = rows.view({1, 8, 8, 2}).permute({0, 3, 1, 2});
  const double before = (q->forward(z, {}).out - z).square().mean().item<double>();
  q->forward(z, {.learn = true});
  EXPECT_LT((q->forward(z, {}).out - z).square().mean().item<double>(), 0.1 * before);
}

TEST(Quantizer, DeadCodesBeginAgainUnlessTheyMayNot) {
  const json options = {{"name", "ema"}, {"size", 16},   {"features", 2},
                        {"kmeans", 0},   {"decay", 0.5}, {"restart", 0.2}};
  const auto far_from_data = [](Quantizer& q) {
    int64_t far = 0;
    const at::Tensor table = table_of(q);
    for (int64_t k = 0; k < table.size(0); ++k) far += table[k].abs().max().item<double>() < 50;
    return far;
  };
  for (const bool restart : {true, false}) {
    auto q = quantizer_of(options);
    for (uint64_t step = 0; step < 12; ++step) {
      q->forward(100 + randn({1, 2, 8, 8}, step), {true, restart, Stream(3, "step", step)});
    }
    if (restart) {
      EXPECT_EQ(far_from_data(*q), 0) << "every code is where the features are";
      EXPECT_GT(q->used(), 0.9);
    } else {
      EXPECT_GT(far_from_data(*q), 10);
    }
  }
  auto once = quantizer_of(options), again = quantizer_of(options);
  for (auto* q : {once.get(), again.get()}) q->forward(100 + randn({1, 2, 8, 8}, 0), {true, true, Stream(9)});
  EXPECT_TRUE(table_of(*once).equal(table_of(*again))) << "a function of the stream";
}

TEST(Quantizer, CosineIsTheNearestAngle) {
  auto q = quantizer_of({{"name", "cosine"}, {"size", 9}, {"features", 4}, {"beta", 0.2}});
  const at::Tensor z = randn({1, 4, 3, 5}, 2), raw = table_of(*q).detach();
  const at::Tensor unit = z / z.norm(2, 1, true), rows = raw / raw.norm(2, 1, true);
  const auto codes = naive_codes(unit, rows);
  const Quantized found = q->forward(z, {});
  EXPECT_EQ(listed(found.codes), codes);
  const at::Tensor chosen = naive_rows(rows, codes, z);
  EXPECT_LT(distance(found.out, chosen), 1e-12);
  EXPECT_NEAR(found.loss.item<double>(), 0.5 * 1.2 * (chosen - unit).square().mean().item<double>(), 1e-12);
  EXPECT_LT(distance(q->forward(7 * z, {}).out, found.out), 1e-12) << "length does not matter";
  EXPECT_EQ(QuantizerOptions::from_json("q", {{"name", "cosine"}}).features, 32);
}

TEST(Quantizer, ANullVectorHasAGradient) {
  auto q = quantizer_of({{"name", "cosine"}, {"size", 9}, {"features", 4}});
  at::Tensor z = randn({1, 4, 3, 5}, 2);
  z.select(3, 0).zero_();
  z.requires_grad_(true);
  const Quantized found = q->forward(z, {});
  (found.out.sum() + found.loss).backward();
  EXPECT_TRUE(at::isfinite(z.grad()).all().item<bool>());
}

// The formula of the paper for one number at a time.
TEST(Quantizer, FsqRoundsEveryChannel) {
  const std::vector<int64_t> levels = {8, 5, 3, 2};
  auto q = quantizer_of({{"name", "fsq"}, {"levels", levels}});
  EXPECT_EQ(q->size(), 240);
  EXPECT_EQ(q->features(), 4);
  const at::Tensor z = 2 * randn({2, 4, 5, 3}, 8);
  const Quantized found = q->forward(z, {.learn = true});
  EXPECT_EQ(found.loss.item<double>(), 0);
  for (int64_t n = 0; n < 2; ++n) {
    for (int64_t y = 0; y < 5; ++y) {
      for (int64_t x = 0; x < 3; ++x) {
        int64_t code = 0, basis = 1;
        for (int64_t c = 0; c < 4; ++c) {
          const auto L = static_cast<double>(levels[c]);
          const double half = (L - 1) * (1 - 1e-3) / 2, offset = levels[c] % 2 == 0 ? 0.5 : 0;
          const double bounded = std::tanh(z[n][c][y][x].item<double>() + std::tan(offset / half)) * half - offset;
          const double digit = std::nearbyint(bounded);
          EXPECT_NEAR(found.out[n][c][y][x].item<double>(), digit / std::floor(L / 2), 1e-12);
          code += basis * static_cast<int64_t>(digit + std::floor(L / 2));
          basis *= levels[c];
        }
        EXPECT_EQ(found.codes[n][y][x].item<int64_t>(), code);
      }
    }
  }
  EXPECT_LT(distance(q->embed(found.codes).to(at::kDouble), found.out.detach()), 1e-6);
  const at::Tensor all = at::arange(240).view({1, 16, 15});
  const at::Tensor there = q->embed(all).to(at::kDouble);
  std::set<std::vector<double>> different;
  for (int64_t i = 0; i < 240; ++i) {
    const at::Tensor one = there.permute({0, 2, 3, 1}).reshape({240, 4})[i].contiguous();
    different.insert({one.data_ptr<double>(), one.data_ptr<double>() + 4});
  }
  EXPECT_EQ(different.size(), 240u);
  // Straight through the rounding alone: the slope of the bound stays.
  at::Tensor x = z.clone().requires_grad_(true);
  const at::Tensor slope = torch::autograd::grad({q->forward(x, {}).out.sum()}, {x})[0];
  const double half = 2 * (1 - 1e-3), t = std::tanh(z[0][1][0][0].item<double>());
  EXPECT_NEAR(slope[0][1][0][0].item<double>(), half * (1 - t * t) / 2, 1e-12);
}

// Mean and log variance by loops; the noise is that of the stream, value by value.
TEST(Quantizer, KlIsANormalLatent) {
  auto q = quantizer_of({{"name", "kl"}, {"features", 3}, {"beta", 0.5}});
  EXPECT_TRUE(q->continuous());
  EXPECT_EQ(q->size(), 0);
  EXPECT_EQ(q->features(), 3);
  EXPECT_EQ(q->in_features(), 6);
  at::Tensor z = randn({2, 6, 4, 5}, 6);
  z[0][3][0][0] = 25, z[1][5][3][4] = -40;  // beyond the cut
  const Stream random(9);
  Stream noise = random.split("latents");
  const Quantized mean = q->forward(z, {.random = random}), drawn = q->forward(z, {.random = random, .draw = true});
  double divergence = 0;
  for (int64_t n = 0; n < 2; ++n) {
    for (int64_t c = 0; c < 3; ++c) {
      for (int64_t y = 0; y < 4; ++y) {
        for (int64_t x = 0; x < 5; ++x) {
          const double m = z[n][c][y][x].item<double>(),
                       v = std::min(20.0, std::max(-30.0, z[n][3 + c][y][x].item<double>()));
          divergence += 0.5 * (m * m + std::exp(v) - 1 - v) / 2;
          EXPECT_EQ(mean.out[n][c][y][x].item<double>(), m);
          const double expected = m + std::exp(v / 2) * noise.normal();
          EXPECT_NEAR(drawn.out[n][c][y][x].item<double>(), expected, 1e-12 * (1 + std::abs(expected)));
        }
      }
    }
  }
  EXPECT_NEAR(drawn.divergence.item<double>(), divergence, 1e-9 * divergence);
  EXPECT_NEAR(drawn.loss.item<double>(), 0.5 * divergence, 1e-9 * divergence);
  EXPECT_FALSE(drawn.codes.defined());
  EXPECT_TRUE(q->codes_of(z).equal(mean.out));
  EXPECT_TRUE(q->embed(mean.out).equal(mean.out));
  at::Tensor small = 0.5 * randn({1, 6, 2, 2}, 7);
  const at::Tensor seed = randn({1, 3, 2, 2}, 8);
  const auto value = [&](const at::Tensor& at) {
    const Quantized out = q->forward(at, {.random = random, .draw = true});
    return (out.out * seed).sum() + out.loss;
  };
  at::Tensor by = small.clone().requires_grad_(true);
  const at::Tensor found = torch::autograd::grad({value(by)}, {by})[0];
  const at::Tensor numeric =
      convssm::testing::finite_difference([&] { return value(small).item<double>(); }, small, 1e-4);
  EXPECT_LT(distance(found, numeric), 1e-7);
}

TEST(Quantizer, LossesHaveTheirGradients) {
  for (const char* name : {"gradient", "cosine"}) {
    auto q = quantizer_of({{"name", name}, {"size", 4}, {"features", 3}});
    {
      torch::NoGradGuard no_grad;
      table_of(*q).copy_(3 * randn({4, 3}, 2));
    }
    at::Tensor z = randn({1, 3, 2, 2}, 5);
    // The stops of gradients make d loss / d (z, table) no derivative of the loss: that of each term with the other held.
    const at::Tensor held_z = z.clone(), held = table_of(*q).detach().clone();
    const auto unit = [&](const at::Tensor& x) { return std::string(name) == "cosine" ? x / x.norm(2, 1, true) : x; };
    const auto codes = naive_codes(unit(z), unit(held));
    at::Tensor by_z = z.clone().requires_grad_(true);
    const at::Tensor found = torch::autograd::grad({q->forward(by_z, {}).loss}, {by_z})[0];
    const double factor = std::string(name) == "cosine" ? 0.125 : 0.25;
    const auto term = [&] { return factor * (naive_rows(unit(held), codes, z) - unit(z)).square().mean(); };
    const at::Tensor numeric = convssm::testing::finite_difference([&] { return term().item<double>(); }, z, 1e-4);
    EXPECT_LT(distance(found, numeric), 1e-8) << name;
  }
}

TEST(Quantizer, CountsOfRecentUse) {
  EXPECT_NEAR(perplexity_of(torch::tensor({5.0, 5.0, 0.0, 0.0})), 2, 1e-12);
  EXPECT_EQ(perplexity_of(at::zeros({4})), 0);
  EXPECT_NEAR(perplexity_of(at::ones({64})), 64, 1e-9);
  auto q = quantizer_of({{"name", "fsq"}, {"levels", {4, 4}}});
  EXPECT_FALSE(q->seen_enough());
  const at::Tensor one = at::zeros({4, 2, 64, 64}, at::kDouble), all = q->embed(at::arange(16).view({1, 4, 4}));
  q->forward(at::atanh(all.to(at::kDouble) * 0.9).repeat({1, 1, 16, 16}), {.learn = true});
  const double varied = q->perplexity();
  EXPECT_GT(varied, 5);
  for (int i = 0; i < 40; ++i) q->forward(one, {.learn = true});
  EXPECT_TRUE(q->seen_enough());
  EXPECT_NEAR(q->perplexity(), 1, 0.05) << "the past fades";
  EXPECT_NEAR(q->used(), 1.0 / 16, 1e-12);
}

TEST(Quantizer, SaysWhatIsWrongWithOptions) {
  const auto with = [](const json& options) { QuantizerOptions::from_json("model.quantizer", options); };
  expect_error([&] { with({{"name", "emma"}}); }, {"emma", "ema"});
  expect_error([&] { with({{"name", "fsq"}, {"decay", 0.9}}); }, {"model.quantizer", "decay"});
  expect_error([&] { with({{"name", "fsq"}, {"levels", {8, 1}}}); }, {"levels"});
  expect_error([&] { with({{"name", "fsq"}, {"size", 7}}); }, {"follows from its levels", "1000", "7"});
  expect_error([&] { with({{"size", 1}}); }, {"size", "1"});
  expect_error([&] { with({{"decay", 1.0}}); }, {"decay", "[0,1)"});
  expect_error([&] { with({{"beta", -1}}); }, {"beta"});
  expect_error([&] { with({{"name", "kl"}, {"size", 16}}); }, {"model.quantizer", "size"});
  auto q = quantizer_of({{"name", "ema"}, {"size", 4}, {"features", 3}});
  expect_error([&] { q->forward(randn({1, 2, 2, 2}, 1), {}); }, {"3 channels", "got 2"});
  expect_error([&] { q->forward(at::full({1, 3, 2, 2}, NAN, at::kDouble), {.learn = true}); }, {"NaN"});
}

}  // namespace
}  // namespace convssm::nn
