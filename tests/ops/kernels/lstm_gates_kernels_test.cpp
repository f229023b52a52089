// Rows of an LSTM update against its formulas, and the backward against finite differences of them.
#include "convssm/ops/lstm_gates_kernels.h"

#include "tests/ops/kernels/kernel_test.h"

namespace convssm::ops::testing {
namespace {

using Doubles = std::vector<double>;

struct Update {
  Doubles active, c, h;
};

// Gates i, f, o, g of 4P channels; empty from_h and c_prev are zero.
Update naive(int64_t rows, int64_t P, const Doubles& from_u, const Doubles& from_h, const Doubles& c_prev) {
  Update out{Doubles(rows * 4 * P), Doubles(rows * P), Doubles(rows * P)};
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t p = 0; p < P; ++p) {
      double gate[4];
      for (int64_t kind = 0; kind < 4; ++kind) {
        const int64_t at = row * 4 * P + kind * P + p;
        const double sum = from_u[at] + (from_h.empty() ? 0 : from_h[at]);
        out.active[at] = gate[kind] = kind == 3 ? std::tanh(sum) : sigmoid(sum);
      }
      const int64_t at = row * P + p;
      out.c[at] = gate[0] * gate[3] + (c_prev.empty() ? 0 : gate[1] * c_prev[at]);
      out.h[at] = gate[2] * std::tanh(out.c[at]);
    }
  }
  return out;
}

template <typename T>
void check_forward(int64_t rows, int64_t P, bool past, bool keep) {
  const auto u = normals<T>(rows * 4 * P, 1, 2), h0 = normals<T>(rows * 4 * P, 2), c0 = normals<T>(rows * P, 3);
  auto active = unwritten<T>(rows * 4 * P), c = unwritten<T>(rows * P), h = c;
  lstm_rows(LstmRows<T>{rows, P, u.data(), past ? h0.data() : nullptr, past ? c0.data() : nullptr,
                        keep ? active.data() : nullptr, c.data(), h.data()});
  const Update expected = naive(rows, P, exact(u), past ? exact(h0) : Doubles(), past ? exact(c0) : Doubles());
  EXPECT_LT(difference(c, expected.c), tolerance<T>(2)) << P;
  EXPECT_LT(difference(h, expected.h), tolerance<T>(2)) << P;
  if (keep) {
    EXPECT_LT(difference(active, expected.active), tolerance<T>()) << P;
  }
}

TEST(LstmKernels, Forward) {
  on_every_isa_and_type([](auto zero) {
    for (const int64_t P : kSizes) {
      check_forward<decltype(zero)>(1, P, true, false);
      check_forward<decltype(zero)>(3, P, false, false);
      check_forward<decltype(zero)>(3, P, true, true);
    }
  });
}

// The gradient of `loss` by what `x` holds, by central differences of fourth order.
Doubles differences(const std::function<double()>& loss, Doubles& x) {
  constexpr double h = 1e-3;
  Doubles gradient;
  for (double& value : x) {
    const double centre = value;
    const auto at = [&](double steps) {
      value = centre + steps * h;
      return loss();
    };
    gradient.push_back((8 * (at(1) - at(-1)) - (at(2) - at(-2))) / (12 * h));
    value = centre;
  }
  return gradient;
}

template <typename T>
void check_backward(int64_t rows, int64_t P, bool past) {
  const auto u = normals<T>(rows * 4 * P, 1), c0 = normals<T>(rows * P, 3);
  const auto grad_c = normals<T>(rows * P, 4), grad_h = normals<T>(rows * P, 5);
  Doubles gates = exact(u), before = past ? exact(c0) : Doubles();
  const auto loss = [&] {
    const Update out = naive(rows, P, gates, {}, before);
    double sum = 0;
    for (size_t i = 0; i < out.c.size(); ++i) {
      sum += out.c[i] * static_cast<double>(grad_c[i]) + out.h[i] * static_cast<double>(grad_h[i]);
    }
    return sum;
  };
  const Update forward = naive(rows, P, gates, {}, before);
  const std::vector<T> active(forward.active.begin(), forward.active.end()), c(forward.c.begin(), forward.c.end());
  auto grad_gates = unwritten<T>(rows * 4 * P), grad_c0 = unwritten<T>(rows * P);
  lstm_backward_rows(LstmBackwardRows<T>{rows, P, active.data(), past ? c0.data() : nullptr, c.data(), grad_c.data(),
                                         grad_h.data(), grad_gates.data(), past ? grad_c0.data() : nullptr});
  EXPECT_LT(difference(grad_gates, differences(loss, gates)), std::max(tolerance<T>(3), 1e-9)) << P;
  if (past) {
    EXPECT_LT(difference(grad_c0, differences(loss, before)), std::max(tolerance<T>(3), 1e-9)) << P;
  }
}

TEST(LstmKernels, Backward) {
  on_every_isa_and_type([](auto zero) {
    for (const int64_t P : {1, 3, 4, 5, 8, 9, 15, 16, 17}) {
      check_backward<decltype(zero)>(1, P, true);
      check_backward<decltype(zero)>(2, P, false);
    }
  });
}

}  // namespace
}  // namespace convssm::ops::testing
