// Recurrences of a plan: one step of the scan, of a vanilla RNN, an LSTM and a GRU, on states that change in place. The scan is the
// kernel of ops::scan with one frame, its carry being the state.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include "convssm/nn/frame_plan.h"
#include "convssm/nn/frame_steps.h"
#include "convssm/ops/check.h"
#include "convssm/ops/frame_kernels.h"
#include "convssm/ops/kept_pixel_states.h"
#include "convssm/ops/liquid_kernels.h"
#include "convssm/ops/lstm_gates_kernels.h"
#include "convssm/ops/scan_kernels.h"

namespace convssm::nn {

void FramePlan::scan_step(Buffer state, const at::Tensor& a, Buffer b) {
  ops::require("FramePlan",
               a.is_complex() && a.dim() == 1 && state.channels == 2 * a.size(0) && b.channels == state.channels,
               "a must be complex [P] for states of 2P = {} channels, got {} {}", state.channels, ops::dtype_text(a),
               ops::shape_text(a.sizes()));
  const at::Tensor halves = frozen(at::cat({at::real(a), at::imag(a)}));
  step({state, b}, [this, state, b, halves] {
    at::parallel_for(0, batch() * state.pixels(), grain(state.channels),
                     [&](int64_t begin, int64_t end) { scan_rows(state, halves.data_ptr<float>(), 0, b, begin, end); });
  });
}

// Pixels [begin,end) of the state, with a the row of all (halves) or, `a_row` apart, the row of the first of them (pairs).
void FramePlan::scan_rows(Buffer state, const float* a, int64_t a_row, Buffer b, int64_t begin, int64_t end) {
  const int64_t C = state.channels;
  ops::ScanForwardTile<float> tile{};
  tile.form = ops::ScanForm::split;
  tile.P = tile.c1 = C / 2;
  tile.rows = end - begin;
  tile.k1 = 1;
  tile.a = a;
  tile.a_row = a_row;
  tile.carry = at(state) + begin * C;
  tile.b = at(b) + begin * C;
  tile.x = tile.carry;  // not written: the carry is all that is wanted
  ops::scan_forward_tile(tile);
}

void FramePlan::pixel_step(Buffer state, const ops::PixelStates& rates, Buffer m, Buffer b) {
  ops::require("FramePlan", b.channels == state.channels && 2 * m.channels == state.channels,
               "m and b of states of {} channels must have half as many and as many, got {} and {}", state.channels,
               m.channels, b.channels);
  const ops::KeptPixelStates kept = ops::keep_states(rates);
  const Buffer a = make(state.channels, state.height, state.width);
  step({state, m, b, a}, [this, state, m, b, a, kept] {
    const int64_t C = state.channels;
    at::parallel_for(0, batch() * state.pixels(), grain(C), [&](int64_t begin, int64_t end) {
      float* input = at(b) + begin * C;
      ops::step_rows(kept.constants(),
                     ops::StepRows<float>{end - begin, 1, at(m) + begin * C / 2, input, at(a) + begin * C, input});
      scan_rows(state, at(a) + begin * C, C, b, begin, end);
    });
  });
}

void FramePlan::liquid_step(Buffer state, const at::Tensor& a_bar, const at::Tensor& l, Buffer b) {
  const auto pairs = [](const at::Tensor& x) {
    return at::view_as_real(x.detach().resolve_conj().to(at::kComplexFloat).contiguous()).clone();
  };
  ops::require("FramePlan", b.channels == state.channels && 2 * l.size(0) == state.channels,
               "b and l of states of {} channels must have as many and half as many, got {} and {}", state.channels,
               b.channels, l.size(0));
  const at::Tensor own = pairs(a_bar), moving = pairs(l);
  const Buffer a = make(state.channels, state.height, state.width);
  step({state, b, a}, [this, state, b, a, own, moving] {
    const int64_t C = state.channels;
    at::parallel_for(0, batch() * state.pixels(), grain(C), [&](int64_t begin, int64_t end) {
      ops::liquid_rows(ops::LiquidRows<float>{end - begin, C / 2, own.data_ptr<float>(), moving.data_ptr<float>(),
                                              at(b) + begin * C, at(a) + begin * C});
      scan_rows(state, at(a) + begin * C, C, b, begin, end);
    });
  });
}

void FramePlan::tanh_step(Buffer x, Buffer state) {
  step({x, state}, [this, x, state] {
    at::parallel_for(0, size(state), grain(1), [&](int64_t begin, int64_t end) {
      ops::tanh_loop(at(x) + begin, at(state) + begin, end - begin);
    });
  });
}

void FramePlan::lstm_step(Buffer from_u, Buffer from_h, Buffer c, Buffer h) {
  step({from_u, from_h, c, h}, [this, from_u, from_h, c, h] {
    const int64_t P = c.channels;
    at::parallel_for(0, batch() * c.pixels(), grain(4 * P), [&](int64_t begin, int64_t end) {
      float* cells = at(c) + begin * P;
      ops::lstm_rows(ops::LstmRows<float>{end - begin, P, at(from_u) + begin * 4 * P, at(from_h) + begin * 4 * P, cells,
                                          nullptr, cells, at(h) + begin * P});
    });
  });
}

Buffer FramePlan::gru_reset(Buffer from_u, Buffer zr_from_h, Buffer h) {
  const Buffer y = make(h.channels, h.height, h.width);
  step({from_u, zr_from_h, h, y}, [this, from_u, zr_from_h, h, y] {
    const int64_t P = h.channels;
    at::parallel_for(0, batch() * h.pixels(), grain(3 * P), [&](int64_t begin, int64_t end) {
      ops::gru_reset_rows({end - begin, P, at(from_u) + begin * 3 * P, at(zr_from_h) + begin * 2 * P, nullptr,
                           at(y) + begin * P, at(h) + begin * P});
    });
  });
  return y;
}

void FramePlan::gru_update(Buffer from_u, Buffer zr_from_h, Buffer n_from_h, Buffer h) {
  step({from_u, zr_from_h, n_from_h, h}, [this, from_u, zr_from_h, n_from_h, h] {
    const int64_t P = h.channels;
    at::parallel_for(0, batch() * h.pixels(), grain(3 * P), [&](int64_t begin, int64_t end) {
      ops::gru_update_rows({end - begin, P, at(from_u) + begin * 3 * P, at(zr_from_h) + begin * 2 * P,
                            at(n_from_h) + begin * P, nullptr, at(h) + begin * P});
    });
  });
}

}  // namespace convssm::nn
