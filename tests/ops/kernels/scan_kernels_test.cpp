// Tiles of the scan, forward and backward, against recurrences of complex numbers: every form, coefficients for all
// frames, for each, or for each row of each, tiles that are a part of the rows, channels and frames. What is outside of
// a tile stays as it was.
#include "convssm/ops/scan_kernels.h"

#include <complex>
#include <cstdlib>
#include <memory>

#include "tests/ops/kernels/kernel_test.h"

namespace convssm::ops::testing {
namespace {

using Complex = std::complex<double>;

constexpr std::array kForms{ScanForm::real, ScanForm::split, ScanForm::complex};

ScanForm own_order(ScanForm form) { return form == ScanForm::real ? form : ScanForm::split; }

// Arrays [frames,rows,row] of which a tile takes rows [first,first+count), channels [c0,c1) and frames [k0,k1).
struct Case {
  ScanForm form;
  int64_t P, c0, c1, frames, k0, k1;
  bool a_per_frame, a_per_row = false;
  int64_t rows = 4, first = 1, count = 2;

  int64_t row() const { return form == ScanForm::real ? P : 2 * P; }
  int64_t size() const { return frames * rows * row(); }
  int64_t a_row() const { return a_per_row ? row() : 0; }
  int64_t a_frame() const { return a_per_frame ? (a_per_row ? rows : 1) * row() : 0; }
  int64_t a_size() const { return (a_per_frame ? frames : 1) * (a_per_row ? rows : 1) * row(); }
  ScanForm a_form() const { return a_per_row && form != ScanForm::real ? ScanForm::complex : own_order(form); }
};

// Channel c of the row that begins at `at`. Coefficients and carries are in split order.
template <typename V>
Complex get(const V& values, ScanForm form, int64_t P, int64_t at, int64_t c) {
  const auto value = [&](int64_t i) { return static_cast<double>(values[i]); };
  if (form == ScanForm::complex) return {value(at + 2 * c), value(at + 2 * c + 1)};
  return {value(at + c), form == ScanForm::real ? 0 : value(at + P + c)};
}

void put(std::vector<double>& values, ScanForm form, int64_t P, int64_t at, int64_t c, Complex z) {
  const bool pairs = form == ScanForm::complex;
  values[at + (pairs ? 2 * c : c)] = z.real();
  if (form != ScanForm::real) values[at + (pairs ? 2 * c + 1 : P + c)] = z.imag();
}

template <typename T>
void describe(const Case& s, const std::vector<T>& a, std::vector<T>& carry, bool store, ScanTile<T>& t) {
  t.form = s.form;
  t.P = s.P;
  t.rows = s.count;
  t.c0 = s.c0;
  t.c1 = s.c1;
  t.k0 = s.k0;
  t.k1 = s.k1;
  t.frame = s.rows * s.row();
  t.a = a.data() + s.first * s.a_row();
  t.a_frame = s.a_frame();
  t.a_row = s.a_row();
  t.carry = carry.data() + s.first * s.row();
  t.store = store;
  t.stream = false;
}

// The cases of one type: cut off at the ends of all vector widths.
template <class Check>
void for_cases(const Check& check) {
  for (const ScanForm form : kForms) {
    for (const int64_t P : kSizes) {
      for (const bool a_per_frame : {false, true}) {
        check(Case{form, P, 0, P, 3, 0, 3, a_per_frame});
        check(Case{form, P, P / 3, P - P / 4, 5, 1, 4, a_per_frame});
      }
      check(Case{form, P, 0, P, 3, 0, 3, true, true});
      check(Case{form, P, P / 3, P - P / 4, 5, 1, 4, true, true});
    }
    check(Case{form, 5, 0, 5, 70, 3, 70, false});  // partial sums are collected every 32 frames
    check(Case{form, 5, 0, 5, 70, 0, 69, true});
  }
}

template <typename T>
void check_forward(const Case& s, bool store) {
  const auto a = normals<T>(s.a_size(), 1, 0.5), b = normals<T>(s.size(), 2);
  auto carry = normals<T>(s.rows * s.row(), 3), x = filled(s.size(), T{7});
  auto states = exact(x), last = exact(carry);
  for (int64_t r = s.first; r < s.first + s.count; ++r) {
    for (int64_t c = s.c0; c < s.c1; ++c) {
      Complex z = get(carry, own_order(s.form), s.P, r * s.row(), c);
      for (int64_t k = s.k0; k < s.k1; ++k) {
        const int64_t at = (k * s.rows + r) * s.row();
        z = get(a, s.a_form(), s.P, k * s.a_frame() + r * s.a_row(), c) * z + get(b, s.form, s.P, at, c);
        if (store) put(states, s.form, s.P, at, c, z);
      }
      put(last, own_order(s.form), s.P, r * s.row(), c, z);
    }
  }
  ScanForwardTile<T> tile{};
  describe(s, a, carry, store, tile);
  tile.b = b.data() + s.first * s.row();
  tile.x = x.data() + s.first * s.row();
  scan_forward_tile(tile);
  EXPECT_LT(difference(x, states), tolerance<T>(3)) << s.P;
  EXPECT_LT(difference(carry, last), tolerance<T>(3)) << s.P;
}

TEST(ScanKernels, Forward) {
  on_every_isa_and_type([](auto zero) {
    for_cases([](const Case& s) {
      check_forward<decltype(zero)>(s, true);
      check_forward<decltype(zero)>(s, false);
    });
  });
}

struct Given {
  bool g, x0, grad_a;
};

template <typename T>
void check_backward(const Case& s, const Given& given) {
  const auto a = normals<T>(s.a_size(), 1, 0.5), g = normals<T>(s.size(), 2), x = normals<T>(s.size(), 4);
  const auto x0 = normals<T>(s.rows * s.row(), 5);
  auto carry = normals<T>(s.rows * s.row(), 3), mu = filled(s.size(), T{7}), scratch = filled(s.row(), T{0});
  auto grad_a = filled(s.a_size(), 0.5);
  auto grad_a_rows = filled(s.a_size(), T{0.5});
  auto gradients = exact(mu), first = exact(carry), a_gradients = grad_a;
  for (int64_t r = s.first; r < s.first + s.count; ++r) {
    for (int64_t c = s.c0; c < s.c1; ++c) {
      Complex z = get(carry, own_order(s.form), s.P, r * s.row(), c);
      for (int64_t k = s.k1 - 1; k >= s.k0; --k) {
        const int64_t at = (k * s.rows + r) * s.row();
        if (given.g) z += get(g, s.form, s.P, at, c);
        put(gradients, s.form, s.P, at, c, z);
        Complex before = 0;
        if (k > 0) before = get(x, s.form, s.P, at - s.rows * s.row(), c);
        if (k == 0 && given.x0) before = get(x0, s.form, s.P, r * s.row(), c);
        const int64_t own = k * s.a_frame() + r * s.a_row();
        if (given.grad_a) {
          const Complex sum = s.a_per_row ? 0 : get(a_gradients, s.a_form(), s.P, own, c);
          put(a_gradients, s.a_form(), s.P, own, c, sum + z * std::conj(before));
        }
        z *= std::conj(get(a, s.a_form(), s.P, own, c));
      }
      put(first, own_order(s.form), s.P, r * s.row(), c, z);
    }
  }
  ScanBackwardTile<T> tile{};
  describe(s, a, carry, true, tile);
  tile.g = given.g ? g.data() + s.first * s.row() : nullptr;
  tile.x = x.data() + s.first * s.row();
  tile.x0 = given.x0 ? x0.data() + s.first * s.row() : nullptr;
  tile.mu = mu.data() + s.first * s.row();
  tile.grad_a = given.grad_a && !s.a_per_row ? grad_a.data() : nullptr;
  tile.grad_a_rows = given.grad_a && s.a_per_row ? grad_a_rows.data() + s.first * s.a_row() : nullptr;
  tile.grad_a_frame = s.a_frame();
  tile.scratch = scratch.data();
  scan_backward_tile(tile);
  EXPECT_LT(difference(mu, gradients), tolerance<T>(3)) << s.P;
  EXPECT_LT(difference(carry, first), tolerance<T>(3)) << s.P;
  EXPECT_LT(s.a_per_row ? difference(grad_a_rows, a_gradients) : difference(grad_a, a_gradients), tolerance<T>(3))
      << s.P;
  EXPECT_EQ(scratch, filled(s.row(), T{0})) << "left as it was found";
}

TEST(ScanKernels, Backward) {
  on_every_isa_and_type([](auto zero) {
    for_cases([](const Case& s) {
      check_backward<decltype(zero)>(s, {true, true, true});
      check_backward<decltype(zero)>(s, {false, true, true});
      check_backward<decltype(zero)>(s, {true, false, true});
      check_backward<decltype(zero)>(s, {true, false, false});
    });
  });
}

// Around the cache: rows of whole cache lines in aligned memory, and only the channels of the tile. (The backward's, of
// which coefficients per row have two: ScanGradient.TooLargeForTheCacheIsTheSame.)
TEST(ScanKernels, StreamingStoresGiveTheSame) {
  on_every_isa_and_type([](auto zero) {
    using T = decltype(zero);
    for (const Case& s :
         {Case{ScanForm::real, 64, 16, 48, 3, 0, 3, false}, Case{ScanForm::split, 64, 16, 48, 3, 0, 3, false},
          Case{ScanForm::complex, 64, 16, 48, 3, 0, 3, false},
          Case{ScanForm::split, 64, 16, 48, 3, 0, 3, true, true}}) {
      const auto a = normals<T>(s.a_size(), 1, 0.5), b = normals<T>(s.size(), 2);
      auto carry = normals<T>(s.rows * s.row(), 3), x = filled(s.size(), T{7});
      const auto bytes = static_cast<size_t>(s.size()) * sizeof(T);
      const std::unique_ptr<T, void (*)(void*)> aligned(static_cast<T*>(std::aligned_alloc(64, bytes)), std::free);
      std::copy(x.begin(), x.end(), aligned.get());
      ScanForwardTile<T> tile{};
      for (const bool stream : {false, true}) {
        auto own = carry;
        describe(s, a, own, true, tile);
        tile.b = b.data() + s.first * s.row();
        tile.stream = stream;
        tile.x = (stream ? aligned.get() : x.data()) + s.first * s.row();
        scan_forward_tile(tile);
      }
      EXPECT_EQ(x, std::vector<T>(aligned.get(), aligned.get() + s.size()));
    }
  });
}

}  // namespace
}  // namespace convssm::ops::testing
