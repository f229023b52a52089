// Four arrays are read and three written; a chain of tensor operations would pass over them a dozen times. The bias
// corrections of m and v are folded into two scalars. square_sum, for clipping by the norm, adds fixed blocks in a
// fixed order, so that a run does not depend on the number of threads.
#include "convssm/ops/adamw.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>

#include "convssm/ops/check.h"
#include "convssm/ops/device.h"

namespace convssm::ops {
namespace {

constexpr int64_t kAdamGrain = 32 * 1024;  // values per task
constexpr int64_t kRun = 1024;             // squares summed in T before the sum goes to double
constexpr int64_t kSums = 16;              // independent sums, so that they fit vectors

void check(const at::Tensor& p, const at::Tensor& other, const char* name) {
  require_shape("adamw", name, other, p.sizes());
  require_like("adamw", name, other, p);
  require("adamw", other.is_contiguous(), "{} must be contiguous", name);
}

// The loop is simple enough for the compiler to vectorize.
template <typename T>
void update(const AdamWStep& s, double scale, int64_t size, T* p, const T* g, T* m, T* v) {
  const double t = static_cast<double>(s.updates);
  const T b1 = static_cast<T>(s.beta1), b2 = static_cast<T>(s.beta2), eps = static_cast<T>(s.eps);
  const T c1 = static_cast<T>(1 - s.beta1), c2 = static_cast<T>(1 - s.beta2), by = static_cast<T>(scale);
  const T keep = static_cast<T>(1 - s.lr * s.weight_decay);
  const T rate = static_cast<T>(s.lr / (1 - std::pow(s.beta1, t)));
  const T correction = static_cast<T>(1 / std::sqrt(1 - std::pow(s.beta2, t)));
  for (int64_t i = 0; i < size; ++i) {
    const T gradient = by * g[i];
    m[i] = b1 * m[i] + c1 * gradient;
    v[i] = b2 * v[i] + c2 * gradient * gradient;
    p[i] = keep * p[i] - rate * m[i] / (std::sqrt(v[i]) * correction + eps);
  }
}

template <typename T>
double squares(const T* x, int64_t size) {
  double total = 0;
  for (int64_t first = 0; first < size; first += kRun) {
    const int64_t count = std::min(kRun, size - first);
    T sums[kSums] = {};
    int64_t i = 0;
    for (; i + kSums <= count; i += kSums) {
      for (int64_t j = 0; j < kSums; ++j) sums[j] += x[first + i + j] * x[first + i + j];
    }
    for (; i < count; ++i) sums[0] += x[first + i] * x[first + i];
    for (const T sum : sums) total += static_cast<double>(sum);
  }
  return total;
}

}  // namespace

void adamw_(at::Tensor& p, const at::Tensor& g, at::Tensor& m, at::Tensor& v, const AdamWStep& step, double scale) {
  check(p, p, "p");
  check(p, g, "g");
  check(p, m, "m");
  check(p, v, "v");
  require("adamw", step.updates > 0, "updates must be positive, got {}", step.updates);
  if (!has_kernels(p)) return adamw_plain_(p, g, m, v, step, scale);
  AT_DISPATCH_FLOATING_TYPES(p.scalar_type(), "adamw", [&] {
    auto *pp = p.data_ptr<scalar_t>(), *pm = m.data_ptr<scalar_t>(), *pv = v.data_ptr<scalar_t>();
    const auto* pg = g.data_ptr<scalar_t>();
    at::parallel_for(0, p.numel(), kAdamGrain, [&](int64_t i, int64_t end) {
      update<scalar_t>(step, scale, end - i, pp + i, pg + i, pm + i, pv + i);
    });
  });
}

void adamw_plain_(at::Tensor& p, const at::Tensor& g, at::Tensor& m, at::Tensor& v, const AdamWStep& s, double scale) {
  const at::NoGradGuard no_grad;
  const at::Tensor gradient = g * scale;
  const double t = static_cast<double>(s.updates);
  m.copy_(s.beta1 * m + (1 - s.beta1) * gradient);
  v.copy_(s.beta2 * v + (1 - s.beta2) * gradient * gradient);
  const at::Tensor m_hat = m / (1 - std::pow(s.beta1, t)), v_hat = v / (1 - std::pow(s.beta2, t));
  p.copy_((1 - s.lr * s.weight_decay) * p - s.lr * m_hat / (at::sqrt(v_hat) + s.eps));
}

double square_sum(const at::Tensor& x) {
  if (!has_kernels(x)) return x.detach().to(at::kDouble).square().sum().item<double>();
  const at::Tensor values = x.contiguous();
  double total = 0;
  AT_DISPATCH_FLOATING_TYPES(values.scalar_type(), "square_sum", [&] {
    const int64_t tasks = (values.numel() + kAdamGrain - 1) / kAdamGrain;
    std::vector<double> sums(tasks);  // fixed blocks: the sum does not depend on the threads
    const auto* data = values.data_ptr<scalar_t>();
    at::parallel_for(0, tasks, 1, [&](int64_t task, int64_t end) {
      for (; task < end; ++task) {
        sums[task] = squares(data + task * kAdamGrain, std::min(kAdamGrain, values.numel() - task * kAdamGrain));
      }
    });
    for (const double sum : sums) total += sum;
  });
  return total;
}

}  // namespace convssm::ops
