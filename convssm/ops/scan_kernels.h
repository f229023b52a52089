// The inner loops of the scan: one tile of lanes over a range of frames, with the best instructions of this machine.
// Raw pointers only; everything is checked by the caller.
#pragma once

#include <cstdint>

namespace convssm::ops {

// How P channels lie in a row of memory.
enum class ScanForm {
  real,     // P values
  split,    // P real parts, then P imaginary parts
  complex,  // P pairs (re, im)
};

// A tile is `rows` rows of channels [c0,c1), frames [k0,k1). Pointers are at the tile's first row and frame 0.
// Rows of the carry are always in split order (Re at [c], Im at [P+c]). So is a row of a that all rows of the tile share;
// rows of a of their own lie as tensors have them, in pairs (re, im) when numbers are complex.
template <typename T>
struct ScanTile {
  ScanForm form;
  int64_t P, rows, c0, c1, k0, k1;
  int64_t frame;    // distance between frames of b, x, g and mu, in T
  const T* a;       // coefficients of frame 0, at the tile's first row
  int64_t a_frame;  // distance between frames of a; 0: the same for all
  int64_t a_row;    // distance between rows of a; 0: one for all rows
  T* carry;         // [rows, row size]: in: state before k0 (backward: after k1); out: after k1 (before k0)
  bool store;       // false: only the carry is wanted
  bool stream;      // write around the cache
};

template <typename T>
struct ScanForwardTile : ScanTile<T> {
  const T* b;
  T* x;
};

// mu_k = g_k + conj(a_{k+1}) mu_{k+1};  the carry is conj(a_k) mu_k;  grad_a_k += sum over rows of mu_k conj(x_{k-1}).
template <typename T>
struct ScanBackwardTile : ScanTile<T> {
  const T* g;            // gradient of x; nullptr = zero
  const T* x;            // the states
  const T* x0;           // at the tile's first row; nullptr = zero
  T* mu;                 // gradient of b
  double* grad_a;        // of a shared by rows: split rows, added to; nullptr = not wanted
  int64_t grad_a_frame;  // distance between frames of grad_a; 0: one row for all frames
  T* scratch;            // one split row, for partial sums
  T* grad_a_rows;        // of rows of a of their own: written where a is read; nullptr = not wanted
};

void scan_forward_tile(const ScanForwardTile<float>& tile);
void scan_forward_tile(const ScanForwardTile<double>& tile);
void scan_backward_tile(const ScanBackwardTile<float>& tile);
void scan_backward_tile(const ScanBackwardTile<double>& tile);

}  // namespace convssm::ops
