// The scan on the CPU: cuts the lanes into tiles whose carried state stays in the cache, and time into
// chunks when there are too few lanes to occupy the threads. Three phases over chunks:
//   1. every chunk but the last finds its last state from a zero start;   2. the starts of all chunks, one after the
//   other;   3. every chunk from its true start.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <complex>
#include <cstring>
#include <vector>

#include "convssm/ops/scan_problem.h"

namespace convssm::ops {
namespace {

constexpr int64_t kTileBytes = 32 * 1024;           // measured: 16 KiB is slower by a fifth, 64 KiB the same
constexpr int64_t kStreamBytes = 16 * 1024 * 1024;  // results larger than this do not stay in the cache anyway
constexpr int64_t kChannelBlock = 16;               // a cache line of float32: tiles never share one

struct Tile {
  int64_t sample, first_row, rows, c0, c1;
};

// Tiles never cross samples, so that coefficients per sample are constant in a tile. Channels are cut only when there
// are fewer tiles than threads.
std::vector<Tile> make_tiles(const ScanProblem& p, int64_t scalar_size) {
  const int64_t threads = at::get_num_threads();
  const int64_t rows_per_tile =
      std::clamp<int64_t>(kTileBytes / (p.row() * scalar_size), 1, std::max<int64_t>(1, p.B * p.S / threads));
  const int64_t tiles_per_sample = (p.S + rows_per_tile - 1) / rows_per_tile;
  const int64_t wanted = (threads + p.B * tiles_per_sample - 1) / (p.B * tiles_per_sample);
  const int64_t blocks = (p.P + kChannelBlock - 1) / kChannelBlock;
  const int64_t width = (blocks + wanted - 1) / wanted * kChannelBlock;
  std::vector<Tile> tiles;
  for (int64_t sample = 0; sample < p.B; ++sample) {
    for (int64_t row = 0; row < p.S; row += rows_per_tile) {
      for (int64_t c = 0; c < p.P; c += width) {
        tiles.push_back({sample, row, std::min(rows_per_tile, p.S - row), c, std::min(c + width, p.P)});
      }
    }
  }
  return tiles;
}

// Complex tensors as pairs of reals.
at::Tensor scalars(const at::Tensor& x) { return x.is_complex() ? at::view_as_real(x) : x; }

// a as the kernels take it, [La,rows of a,row]: where it is when each row has its own, else as split rows.
at::Tensor coefficient_rows(const ScanProblem& p, const at::Tensor& a) {
  if (p.form == ScanForm::real || p.a_per_row) return scalars(a).contiguous();
  return split_numbers(a).contiguous();
}

template <typename T>
struct Arrays {
  const ScanProblem& p;
  at::Tensor a;
  bool stream;
  std::vector<Tile> tiles;

  Arrays(const ScanProblem& problem, const at::Tensor& coefficients, std::initializer_list<const void*> outputs,
         bool fresh_outputs)
      : p(problem), a(coefficient_rows(problem, coefficients)), tiles(make_tiles(problem, sizeof(T))) {
    uintptr_t address = 0;
    for (const void* output : outputs) address |= reinterpret_cast<uintptr_t>(output);
    const int64_t bytes = p.L * p.B * p.S * p.row() * static_cast<int64_t>(sizeof(T));
    stream = fresh_outputs && bytes >= kStreamBytes && address % 64 == 0 && p.P * sizeof(T) % 64 == 0;
  }

  int64_t a_frame() const { return p.a_per_step ? p.a_rows() * p.row() : 0; }

  // The offsets of the tile's first row in a frame, and of its coefficients.
  int64_t offset(const Tile& tile) const { return (tile.sample * p.S + tile.first_row) * p.row(); }
  int64_t a_offset(const Tile& tile) const {
    return p.a_per_row ? offset(tile) : p.a_per_sample ? tile.sample * p.row() : 0;
  }

  void describe(const Tile& tile, int64_t k0, int64_t k1, T* carry, bool store, ScanTile<T>& t) const {
    t.form = p.form;
    t.P = p.P;
    t.rows = tile.rows;
    t.c0 = tile.c0;
    t.c1 = tile.c1;
    t.k0 = k0;
    t.k1 = k1;
    t.frame = p.B * p.S * p.row();
    t.a = a.template data_ptr<T>() + a_offset(tile);
    t.a_frame = a_frame();
    t.a_row = p.a_per_row ? p.row() : 0;
    t.carry = carry + offset(tile);
    t.store = store;
    t.stream = store && stream;
  }
};

// run(tile, chunk index) for all tiles and chunks in [0,chunks), in parallel.
template <typename Run>
void for_tiles(const std::vector<Tile>& tiles, int64_t chunks, const Run& run) {
  const int64_t count = static_cast<int64_t>(tiles.size());
  at::parallel_for(0, count * chunks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) run(tiles[i % count], i / count);
  });
}

// The carry of one frame in split order: [B,S,row], from a frame in the problem's form (or zero).
template <typename T>
at::Tensor make_carry(const ScanProblem& p, const at::Tensor& frame, at::TensorOptions options) {
  if (!frame.defined()) {  // without at::zeros, which would wait for the other threads to help with it
    at::Tensor carry = at::empty({p.B, p.S, p.row()}, options);
    std::memset(carry.data_ptr(), 0, carry.nbytes());
    return carry;
  }
  if (p.form != ScanForm::complex) return frame.reshape({p.B, p.S, p.row()}).clone();
  return split_numbers(frame).reshape({p.B, p.S, p.row()});
}

at::Tensor carry_to_form(const ScanProblem& p, const at::Tensor& carry, at::IntArrayRef shape) {
  if (p.form != ScanForm::complex) return carry.reshape(shape);
  return join_halves(carry).reshape(shape);
}

// The product of the coefficients of frames [k0,k1) as split rows that broadcast against a carry, multiplied in double;
// for phase 2.
template <typename T>
at::Tensor chunk_product(const Arrays<T>& arrays, int64_t k0, int64_t k1, bool conjugated) {
  const ScanProblem& p = arrays.p;
  at::Tensor product = at::empty({p.a_per_sample ? p.B : 1, p.a_per_row ? p.S : 1, p.row()}, arrays.a.options());
  const int64_t step = p.a_per_row && p.form != ScanForm::real ? 2 : 1, im = step == 2 ? 1 : p.P;  // pairs or halves
  at::parallel_for(0, p.a_rows(), 1, [&](int64_t begin, int64_t end) {
    std::vector<std::complex<double>> z(p.P);
    for (int64_t row = begin; row < end; ++row) {
      std::fill(z.begin(), z.end(), 1.0);
      for (int64_t k = k0; k < k1; ++k) {
        const T* a = arrays.a.template data_ptr<T>() + k * arrays.a_frame() + row * p.row();
        for (int64_t c = 0; c < p.P; ++c) {
          z[c] *= std::complex<double>(a[step * c], p.form == ScanForm::real ? T{0} : a[step * c + im]);
        }
      }
      T* out = product.template data_ptr<T>() + row * p.row();
      for (int64_t c = 0; c < p.P; ++c) {
        out[c] = static_cast<T>(z[c].real());
        if (p.form != ScanForm::real) out[p.P + c] = static_cast<T>(conjugated ? -z[c].imag() : z[c].imag());
      }
    }
  });
  return product;
}

// a * x + b on split rows.
at::Tensor multiply_add(const ScanProblem& p, const at::Tensor& a, const at::Tensor& x, const at::Tensor& b) {
  if (p.form == ScanForm::real) return a * x + b;
  const at::Tensor ar = a.narrow(-1, 0, p.P), ai = a.narrow(-1, p.P, p.P);
  const at::Tensor xr = x.narrow(-1, 0, p.P), xi = x.narrow(-1, p.P, p.P);
  return at::cat({ar * xr - ai * xi, ar * xi + ai * xr}, -1) + b;
}

template <typename T>
void forward(const ScanProblem& p, const at::Tensor& a, const at::Tensor& b, const at::Tensor& x0, at::Tensor& x,
             int64_t chunk) {
  const Arrays<T> arrays(p, a, {x.data_ptr()}, x.data_ptr() != b.data_ptr());
  const int64_t chunks = (p.L + chunk - 1) / chunk;
  const T* in = static_cast<const T*>(b.data_ptr());
  T* out = static_cast<T*>(x.data_ptr());
  const auto run = [&](const Tile& tile, int64_t index, std::vector<at::Tensor>& carries, bool store) {
    ScanForwardTile<T> t;
    arrays.describe(tile, index * chunk, std::min(p.L, (index + 1) * chunk), carries[index].data_ptr<T>(), store, t);
    t.b = in + arrays.offset(tile);
    t.x = out + arrays.offset(tile);
    scan_forward_tile(t);
  };
  std::vector<at::Tensor> starts{make_carry<T>(p, x0, arrays.a.options())};
  if (chunks > 1) {
    std::vector<at::Tensor> ends;
    for (int64_t i = 0; i + 1 < chunks; ++i) ends.push_back(make_carry<T>(p, {}, arrays.a.options()));
    for_tiles(arrays.tiles, chunks - 1, [&](const Tile& tile, int64_t i) { run(tile, i, ends, false); });
    for (int64_t i = 0; i + 1 < chunks; ++i) {
      const at::Tensor product = chunk_product(arrays, i * chunk, (i + 1) * chunk, false);
      starts.push_back(multiply_add(p, product, starts[i], ends[i]));
    }
  }
  for_tiles(arrays.tiles, chunks, [&](const Tile& tile, int64_t i) { run(tile, i, starts, true); });
}

// The sum of every thread's partial gradient of a that rows share, in the shape and dtype of a.
at::Tensor collect_grad_a(const ScanProblem& p, const at::Tensor& partial, const at::Tensor& a) {
  at::Tensor sum = partial.sum(0);
  if (p.form != ScanForm::real) sum = join_halves(sum);
  return sum.reshape(a.sizes()).to(a.scalar_type());
}

template <typename T>
ScanGradients backward(const ScanProblem& p, const at::Tensor& a, const at::Tensor& x, const at::Tensor& x0,
                       const at::Tensor& g, const at::Tensor& g_last, int64_t chunk, bool want_grad_a) {
  ScanGradients grads;
  grads.b = at::empty_like(x);
  if (want_grad_a && p.a_per_row) grads.a = at::empty_like(a);
  T* grad_a_rows = grads.a.defined() ? static_cast<T*>(grads.a.data_ptr()) : nullptr;
  const Arrays<T> arrays(p, a, {grads.b.data_ptr(), grad_a_rows}, true);
  const int64_t chunks = (p.L + chunk - 1) / chunk;
  const auto real = arrays.a.options();
  const bool sum_grad_a = want_grad_a && !p.a_per_row;
  const int64_t sums = sum_grad_a ? (p.a_per_step ? p.L : 1) * p.a_rows() : 0;
  at::Tensor partial = at::zeros({at::get_num_threads(), sums, p.row()}, real.dtype(at::kDouble));
  at::Tensor scratch = at::zeros({at::get_num_threads(), p.row()}, real);

  const auto run = [&](const Tile& tile, int64_t index, std::vector<at::Tensor>& carries, bool store) {
    const int64_t thread = at::get_thread_num();
    ScanBackwardTile<T> t;
    arrays.describe(tile, index * chunk, std::min(p.L, (index + 1) * chunk), carries[index].data_ptr<T>(), store, t);
    t.g = g.defined() ? static_cast<const T*>(g.data_ptr()) + arrays.offset(tile) : nullptr;
    t.x = static_cast<const T*>(x.data_ptr()) + arrays.offset(tile);
    t.x0 = x0.defined() ? static_cast<const T*>(x0.data_ptr()) + arrays.offset(tile) : nullptr;
    t.mu = static_cast<T*>(grads.b.data_ptr()) + arrays.offset(tile);
    t.grad_a =
        store && sum_grad_a ? partial.data_ptr<double>() + thread * sums * p.row() + arrays.a_offset(tile) : nullptr;
    t.grad_a_frame = arrays.a_frame();
    t.scratch = scratch.data_ptr<T>() + thread * p.row();
    t.grad_a_rows = store && grad_a_rows != nullptr ? grad_a_rows + arrays.a_offset(tile) : nullptr;
    scan_backward_tile(t);
  };
  std::vector<at::Tensor> starts(chunks);
  starts[chunks - 1] = make_carry<T>(p, g_last, real);
  if (chunks > 1) {
    std::vector<at::Tensor> ends;
    for (int64_t i = 0; i < chunks; ++i) ends.push_back(make_carry<T>(p, {}, real));
    for_tiles(arrays.tiles, chunks - 1, [&](const Tile& tile, int64_t i) { run(tile, i + 1, ends, false); });
    for (int64_t i = chunks - 1; i > 0; --i) {
      const at::Tensor product = chunk_product(arrays, i * chunk, std::min(p.L, (i + 1) * chunk), true);
      starts[i - 1] = multiply_add(p, product, starts[i], ends[i]);
    }
  }
  for_tiles(arrays.tiles, chunks, [&](const Tile& tile, int64_t i) { run(tile, i, starts, true); });
  if (sum_grad_a) grads.a = collect_grad_a(p, partial, a);
  if (x0.defined()) grads.x0 = carry_to_form(p, starts[0], x0.sizes());
  return grads;
}

}  // namespace

void scan_cpu(const ScanProblem& p, const at::Tensor& a, const at::Tensor& b, const at::Tensor& x0, at::Tensor& x,
              int64_t chunk) {
  if (scalars(b).scalar_type() == at::kFloat) return forward<float>(p, a, b, x0, x, chunk);
  forward<double>(p, a, b, x0, x, chunk);
}

ScanGradients scan_adjoint_cpu(const ScanProblem& p, const at::Tensor& a, const at::Tensor& x, const at::Tensor& x0,
                               const at::Tensor& g, const at::Tensor& g_last, int64_t chunk, bool want_grad_a) {
  if (scalars(x).scalar_type() == at::kFloat) return backward<float>(p, a, x, x0, g, g_last, chunk, want_grad_a);
  return backward<double>(p, a, x, x0, g, g_last, chunk, want_grad_a);
}

}  // namespace convssm::ops
