"""Write the golden files used by the tests, after checking the oracle against itself.

Usage: python make_golden.py [output directory]     (default: ../../tests/golden)
Needs numpy and mpmath. Every case has its own fixed seed, so cases are independent of each other.
Parameters and inputs are rounded to float32 first; the expected values are computed from the
rounded values in float64 and rounded to float32 when stored.
"""

import json
import os
import sys
import zlib

import mpmath
import numpy as np

import oracle
import oracle_cells
import oracle_frame
import oracle_hybrid
import oracle_tokens

HERE = os.path.dirname(os.path.abspath(__file__))
SIZE_LIMIT = 100_000


# ------------------------------------------------------------------------------ self-checks

def expm(A):
    """Matrix exponential by Taylor series with scaling and squaring (no eigenvectors)."""
    k = max(0, int(np.ceil(np.log2(np.abs(A).sum(1).max() + 1e-300))) + 4)
    X = A / 2.0 ** k
    E = T = np.eye(len(A))
    for n in range(1, 20):
        T = T @ X / n
        E = E + T
    for _ in range(k):
        E = E @ E
    return E


def largest_frequency(R):
    """Largest |w| by power iteration on K^T K (cheap for big R)."""
    K = oracle.hippo_normal(R) + 0.5 * np.eye(R)
    v = np.random.default_rng(0).standard_normal(R)
    for _ in range(60):
        v = K.T @ (K @ (v / np.linalg.norm(v)))
    return np.sqrt(np.linalg.norm(v))


def check_eigenvalues():
    printed = {
        4: "0.556501 4.603293",
        8: "0.427489 1.957794 5.354209 19.857410",
        16: "0.352018 1.371989 2.899668 5.090024 8.362105 13.834342 25.629226 80.966081"}
    for R, text in printed.items():
        w, _ = oracle.hippo_eig(R)
        assert " ".join(f"{-v:.6f}" for v in w[::-1]) == text, R
    largest = {32: "325.426", 64: "1303.27", 128: "5214.67", 256: "20860.2", 512: "83442.5",
               1024: "333771.6", 2048: "1335087.9"}
    for R, text in largest.items():
        digits = len(text.split(".")[1])
        assert f"{largest_frequency(R):.{digits}f}" == text, R
        if R <= 64:
            assert abs(largest_frequency(R) + oracle.hippo_eig(R)[0][0]) < 1e-9 * R * R
    for R in (2, 4, 8, 16, 32, 64):
        w, V = oracle.hippo_eig(R)
        S = oracle.hippo_normal(R)
        assert (np.diff(w) > 0).all() and (w < 0).all()
        assert np.abs(V.conj().T @ V - np.eye(R // 2)).max() < 1e-12
        assert np.abs(V.T @ V).max() < 1e-12
        full = (V * (-0.5 + 1j * w)) @ V.conj().T
        assert np.abs(2 * full.real - S).max() < 1e-11 * R * R      # S = V diag V^H + conjugate


def check_conjugate_halves():
    """2 Re(C~ f(Lambda) B~) = C0 f(S) B0 for block-diagonal S and f = exp(Delta .)."""
    rng = np.random.default_rng(1)
    for R, J in ((2, 1), (4, 3), (8, 2), (16, 1), (32, 1)):
        N, delta = R * J, 0.07
        w, Vb = oracle.hippo_eig(R)
        S, V = np.kron(np.eye(J), oracle.hippo_normal(R)), np.kron(np.eye(J), Vb)
        lam = oracle.block_lambda(N, J)
        B0, C0 = rng.standard_normal((N, 5)), rng.standard_normal((3, N))
        left = 2 * ((C0 @ V) @ (np.exp(delta * lam)[:, None] * (V.conj().T @ B0))).real
        right = C0 @ expm(delta * S) @ B0
        assert np.abs(left - right).max() < 1e-11, (R, J)


def check_layers():
    """Splitting in time, per-pixel equality with S5, and shift equivariance of the SSM."""
    options = dict(features=4, state_size=4, layers=2, groups=2)
    p = random_params("convs5", options, np.random.default_rng(2))
    x = np.random.default_rng(3).standard_normal((6, 2, 4, 5, 6))
    y, xL = oracle.stack("convs5", options, p, x)
    for k in range(1, 6):
        y1, s1 = oracle.stack("convs5", options, p, x[:k])
        y2, s2 = oracle.stack("convs5", options, p, x[k:], s1)
        assert np.abs(np.concatenate([y1, y2]) - y).max() < 1e-12
        assert max(np.abs(a - b).max() for a, b in zip(s2, xL)) < 1e-12

    q = {k[13:]: v.astype(float) for k, v in p.items() if k.startswith("layers.0.ssm.")}
    o = oracle.full_options("convs5", options)
    state = np.zeros((2, 2, 5, 6), complex)
    wide = lambda a: np.pad(a, [(0, 0)] * 3 + [(4, 4)] * 2)
    ya, _ = oracle.ssm("convs5", q, o, wide(x), wide(state[None])[0], 1.0, None, None)
    xb = np.roll(wide(x), (1, 2), (-2, -1))
    yb, _ = oracle.ssm("convs5", q, o, xb, wide(state[None])[0], 1.0, None, None)
    assert np.abs(np.roll(ya, (1, 2), (-2, -1)) - yb).max() < 1e-12

    o1 = dict(o, kernel_b=1, kernel_c=1)
    q1 = dict(q, B=q["B"].reshape(2, 4, 9, 2)[:, :, 4], C=q["C"][1:2, 1:2])
    yc, _ = oracle.ssm("convs5", q1, o1, x, state, 1.0, None, None)
    pixels = x.transpose(0, 1, 3, 4, 2).reshape(6, 60, 4)
    q1 = dict(q1, C=q1["C"][0, 0].transpose(1, 0, 2))
    ys, _ = oracle.ssm("s5", q1, o1, pixels, np.zeros((60, 2), complex), 1.0, None, None)
    assert np.abs(ys.reshape(6, 2, 5, 6, 4).transpose(0, 1, 4, 2, 3) - yc).max() < 1e-12


def check_splits():
    """Splitting in time for the cells, the hybrid, Transformer and Performer."""
    cases = [("convrnn", CELL, (6, 2, 5, 3, 4)), ("hybrid", HYBRID, (6, 2, 8, 2, 3)),
             ("convlstm", CELL, (6, 2, 5, 3, 4)), ("convgru", CELL, (6, 2, 5, 3, 4)),
             ("transformer", TOKENS, (6, 2, 8)), ("transformer", dict(TOKENS, window=3), (6, 2, 8)),
             ("transformer", dict(TOKENS, tokens=(2, 1), window=2), (6, 2, 8, 2, 1)),
             ("transformer", dict(TOKENS, window=4, recompute=True), (6, 2, 8)),
             ("performer", dict(FAVOR, tokens=(1, 2)), (6, 2, 8, 1, 2))]
    for core, options, shape in cases:
        rng = np.random.default_rng(5)
        p = {**random_params(core, options, rng), **random_buffers(core, options, rng)}
        x = rng.standard_normal(shape)
        run = lambda part, state: run_core(core, options, p, part, state, 1.0, None, None)
        y, last = run(x, None)
        for k in range(1, 6):
            y1, s1 = run(x[:k], None)
            y2, s2 = run(x[k:], s1)
            assert np.abs(np.concatenate([y1, y2]) - y).max() < 1e-11, (core, k)
            assert max(np.abs(s2[n] - last[n]).max() for n in last if last[n].size) < 1e-10, (core, k)
    p = random_params("transformer", TOKENS, np.random.default_rng(6))
    x = np.random.default_rng(7).standard_normal((5, 2, 8))
    again, _ = oracle_tokens.stack("transformer", dict(TOKENS, recompute=True), p, x)
    assert np.abs(again - oracle_tokens.stack("transformer", TOKENS, p, x)[0]).max() < 1e-12


def check_counts():
    """Parameter counts of one resnet layer with its LayerNorm, 3x3 kernels."""
    expected = {(128, 128): 591_040, (256, 256): 2_361_728, (512, 512): 9_442_048,
                (512, 1024): 14_161_408}
    for (U, N), count in expected.items():
        got = oracle.parameter_count("convs5", dict(features=U, state_size=N))
        print(f"  parameters U={U} N={N}: {got:,}")
        assert got == count


# ------------------------------------------------------------------------ random parameters

def random_params(core, options, rng, step=(1e-3, 1e-1)):
    """Random everywhere, so that no term hides behind a zero or a one."""
    if core not in ("convs5", "s5", "hybrid"):
        return random_plain(shapes_of(core, options), rng)
    o = oracle_hybrid.full_options(options)["convs5"] if core == "hybrid" else oracle.full_options(core, options)
    lam = oracle.block_lambda(o["state_size"], o["blocks"])
    params = {}
    for name, shape in shapes_of(core, options).items():
        z = rng.standard_normal(shape)
        leaf = name.rsplit(".", 1)[1]
        module = name.rsplit(".", 2)[1]
        if module in ("rows", "columns"):
            v = axis_param(leaf, z, oracle.block_lambda(o["axis_states"], 1), rng)
        elif leaf == "nu":       # |lambda| between 0.1 and 0.99
            v = np.log(-np.log(rng.uniform(0.1, 0.99, shape)))
        elif leaf == "theta":
            v = np.log(rng.uniform(0.01, 6.28, shape))
        elif leaf == "Lambda_re":
            v = lam.real * np.exp(0.3 * z)
        elif leaf == "Lambda_im":
            v = lam.imag * (1 + 0.05 * z)
        elif leaf == "log_step":
            v = rng.uniform(np.log(step[0]), np.log(step[1]), shape)
        elif leaf == "B":
            v = z * np.sqrt(2.0 / shape[1])
        elif leaf == "C":       # fan-in: all axes but the output feature and re/im
            v = z * 3.0 / np.sqrt(np.prod(shape) / 2 / o["features"])
        elif leaf == "D":
            v = z
        elif module.startswith("norm"):
            v = 1 + 0.3 * z if leaf == "weight" else 0.3 * z
        elif leaf == "weight":
            v = z / np.sqrt(np.prod(shape[1:]))
        else:
            v = 0.3 * z
        params[name] = v.astype(np.float32)
    return params


def axis_param(leaf, z, lam, rng):
    """Of the state spaces along an axis."""
    if leaf == "Lambda_re":
        return lam.real * np.exp(0.3 * z)
    if leaf == "Lambda_im":
        return lam.imag * (1 + 0.05 * z)
    return np.log(rng.uniform(0.1, 1.0, z.shape)) if leaf == "log_step" else 0.7 * z


def shapes_of(core, options):
    if core in ("convs5", "s5"):
        return oracle.param_shapes(core, options)
    if core == "hybrid":
        return oracle_hybrid.param_shapes(options)
    if core in oracle_tokens.MEMORY:
        return oracle_tokens.param_shapes(core, options)
    return oracle_cells.param_shapes(core, options)


def random_buffers(core, options, rng):
    shapes = oracle_tokens.buffer_shapes(core, options) if core in oracle_tokens.MEMORY else {}
    return {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}


def random_plain(shapes, rng):
    params = {}
    for name, shape in shapes.items():
        z = rng.standard_normal(shape)
        parts = name.split(".")
        if name == "sos":
            pass
        elif len(parts) > 1 and "norm" in parts[-2]:
            z = 1 + 0.3 * z if parts[-1] == "weight" else 0.3 * z
        elif len(shape) > 1:
            z = 1.5 * z / np.sqrt(np.prod(shape[1:]))
        else:
            z = 0.3 * z
        params[name] = z.astype(np.float32)
    return params


# ------------------------------------------------------------------------------------ cases

CONV = dict(features=8, state_size=8, groups=4)
SMALL = dict(features=4, state_size=8, blocks=2, groups=2)
S5 = dict(features=6, state_size=8)
CELL = dict(features=5, layers=2)
HYBRID = dict(features=8, state_size=8, groups=4, heads=1, window=3, mlp=12)
TOKENS = dict(features=8, layers=2, heads=2, mlp=12)
FAVOR = dict(TOKENS, random_features=12)


def positive_real_parts(p):
    """Some real parts above the clipping bound, one state with a tiny eigenvalue."""
    for name, v in p.items():
        if name.endswith("Lambda_re"):
            v[0], v[-1] = 0.05, 0.05
        if name.endswith("Lambda_im"):
            v[-1] = -1e-6


def zero_eigenvalue(p):
    """Positive real part, an exactly zero and a tiny eigenvalue."""
    for name, v in p.items():
        if name.endswith("Lambda_re"):
            v[0], v[1], v[2] = 0.05, 0.0, -1e-7
        if name.endswith("Lambda_im"):
            v[1], v[2] = 0.0, 1e-7


# name: (core, options, extras); extras: size (L,B,H,W) or (L,B), step range, dt, resets, x0,
# step_rescale, edit (changes parameters)
CASES = {
    "convs5_resnet": ("convs5", dict(CONV, layers=2), {}),
    "convs5_standard": ("convs5", dict(CONV, activation_block="standard"), {}),
    "convs5_standard_se": ("convs5", dict(CONV, activation_block="standard", groups=2,
                                          squeeze_excite=True), {}),
    "convs5_se_wide": ("convs5", dict(features=96, state_size=4, kernel_b=1, kernel_c=1, kernel_d=1,
                                      activation_block="standard", squeeze_excite=True),
                       dict(size=(3, 1, 2, 3), step=(1e-1, 2.0))),
    "convs5_half_glu": ("convs5", dict(CONV, layers=2, activation_block="half_glu",
                                       activation="relu"), {}),
    "convs5_diag_resnet": ("convs5", dict(CONV, activation_block="diag_resnet"), {}),
    "convs5_sparse": ("convs5", dict(CONV, layers=2, activation_block="sparse", prenorm=True), {}),
    "convs5_sparse_se": ("convs5", dict(CONV, activation_block="sparse", kernel_d=5, squeeze_excite=True,
                                        activation="swish"), {}),
    "convs5_convnext": ("convs5", dict(CONV, layers=2, activation_block="convnext"), {}),
    "convs5_convnext_kernel3": ("convs5", dict(CONV, activation_block="convnext", depthwise_kernel=3,
                                               prenorm=True), {}),
    "convs5_s4nd": ("convs5", dict(CONV, layers=2, activation_block="s4nd", axis_states=6), {}),
    "convs5_lru": ("convs5", dict(CONV, layers=2, init="lru"), dict(resets="LB", x0=True)),
    "convs5_learned_state": ("convs5", dict(CONV, layers=2, learned_state=True),
                             dict(dt="LB", resets="LB", step_rescale=0.5, size=(7, 3, 4, 3))),
    "convs5_lru_learned_state": ("convs5", dict(CONV, layers=2, init="lru", learned_state=True),
                                 dict(resets="L")),
    "convs5_selective": ("convs5", dict(CONV, layers=2, dynamics="selective"),
                         dict(dt="LB", resets="LB", step_rescale=0.5, x0=True)),
    "convs5_gated": ("convs5", dict(CONV, layers=2, dynamics="gated", learned_state=True), dict(dt="L", resets="L")),
    "convs5_lru_gated": ("convs5", dict(CONV, layers=2, init="lru", dynamics="gated", kernel_b=1), dict(x0=True)),
    "convs5_liquid": ("convs5", dict(CONV, layers=2, dynamics="liquid"), dict(dt="LB", resets="L")),
    "convs5_output_gate": ("convs5", dict(CONV, layers=2, output_gate="swish", prenorm=True), {}),
    "convs5_prenorm_noskip": ("convs5", dict(CONV, layers=2, prenorm=True, skip=False), {}),
    "convs5_kernels": ("convs5", dict(CONV, kernel_b=5, kernel_c=1, kernel_d=3), {}),
    "convs5_kernel1": ("convs5", dict(CONV, layers=2, kernel_b=1, kernel_c=1, kernel_d=1), {}),
    "convs5_swish_se": ("convs5", dict(CONV, activation="swish", groups=1, squeeze_excite=True), {}),
    "convs5_elu": ("convs5", dict(CONV, layers=2, activation="elu"), {}),
    "convs5_relu_nonorm": ("convs5", dict(CONV, layers=2, activation="relu",
                                          use_norm=False), {}),
    "convs5_feedthrough": ("convs5", dict(CONV, layers=2, prenorm=True, feedthrough=True), {}),
    "convs5_x0": ("convs5", dict(CONV, layers=2), dict(x0=True)),
    "convs5_dt": ("convs5", dict(CONV, layers=2), dict(dt="L", x0=True)),
    "convs5_dt_batch_reset": ("convs5", dict(CONV, layers=2, blocks=2),
                              dict(dt="LB", resets="LB", x0=True, step_rescale=0.5,
                                   size=(7, 3, 4, 3))),
    "convs5_reset": ("convs5", dict(SMALL), dict(resets="L")),
    "convs5_bilinear": ("convs5", dict(CONV, layers=2, discretization="bilinear"),
                        dict(step=(1e-2, 1.0))),
    "convs5_euler": ("convs5", dict(CONV, layers=2, blocks=2, discretization="euler"), {}),
    "convs5_noclip": ("convs5", dict(CONV, clip_eigs=False),
                      dict(step=(1e-1, 2.0), edit=zero_eigenvalue)),
    "convs5_clip": ("convs5", dict(CONV), dict(step=(1e-1, 2.0), edit=positive_real_parts)),
    "convs5_deep": ("convs5", dict(features=4, state_size=4, groups=2, layers=12,
                                   skip_connections=True), dict(size=(3, 1, 3, 4), step=(1e-2, 1.0))),
    "s5_basic": ("s5", dict(S5), {}),
    "s5_two_layers_x0": ("s5", dict(S5, layers=2, blocks=2), dict(x0=True)),
    "s5_dt_reset": ("s5", dict(S5, layers=2), dict(dt="LB", resets="LB", x0=True,
                                                    step_rescale=2.0)),
    "s5_prenorm_bilinear": ("s5", dict(S5, layers=2, prenorm=True, discretization="bilinear"),
                            dict(step=(1e-2, 1.0))),
    "s5_noclip": ("s5", dict(S5, layers=2, clip_eigs=False, skip=False),
                  dict(step=(1e-1, 2.0), edit=zero_eigenvalue)),
    "convrnn_basic": ("convrnn", dict(CELL), {}),
    "convrnn_x0_reset": ("convrnn", dict(CELL), dict(x0=True, resets="LB", size=(6, 3, 4, 3))),
    "convrnn_prenorm_kernel2": ("convrnn", dict(features=4, kernel=2, prenorm=True), dict(resets="L")),
    "convrnn_nonorm_noskip": ("convrnn", dict(CELL, use_norm=False, skip=False, kernel=5), {}),
    "hybrid_basic": ("hybrid", dict(HYBRID), dict(size=(6, 2, 3, 4))),
    "hybrid_patch_x0": ("hybrid", dict(HYBRID, layers=3, patch=2), dict(size=(5, 2, 4, 6), x0=2)),
    "hybrid_young_x0": ("hybrid", dict(HYBRID, features=12, heads=2, window=5, prenorm=True), dict(size=(4, 2, 2, 2), x0=1)),
    "hybrid_every3_dt": ("hybrid", dict(HYBRID, layers=4, attention_every=3, mlp=0),
                         dict(size=(5, 2, 2, 3), dt="LB", step_rescale=0.5)),
    "hybrid_attention_alone": ("hybrid", dict(HYBRID, layers=2, attention_every=1), dict(size=(7, 1, 3, 2))),
    "hybrid_frame": ("hybrid", dict(HYBRID, features=16, heads=2, window=1, activation_block="half_glu"),
                     dict(size=(4, 2, 3, 3))),
    "convlstm_basic": ("convlstm", dict(CELL), {}),
    "convlstm_x0_reset": ("convlstm", dict(CELL), dict(x0=True, resets="LB", size=(6, 3, 4, 3))),
    "convlstm_prenorm_kernel5": ("convlstm", dict(features=4, kernel=5, prenorm=True), dict(resets="L")),
    "convlstm_noskip": ("convlstm", dict(CELL, skip=False, kernel=1), {}),
    "convlstm_nonorm": ("convlstm", dict(CELL, use_norm=False, kernel=2), {}),
    "convgru_basic": ("convgru", dict(CELL), {}),
    "convgru_x0_reset": ("convgru", dict(CELL), dict(x0=True, resets="LB", size=(6, 3, 4, 3))),
    "convgru_prenorm_kernel5": ("convgru", dict(features=4, kernel=5, prenorm=True), dict(resets="L")),
    "convgru_nonorm_noskip": ("convgru", dict(CELL, use_norm=False, skip=False), {}),
    "transformer_basic": ("transformer", dict(TOKENS), {}),
    "transformer_default_mlp": ("transformer", dict(features=6, heads=3), dict(size=(5, 1))),
    "transformer_tokens": ("transformer", dict(TOKENS, tokens=(2, 3)), dict(size=(4, 2, 2, 3))),
    "transformer_x0": ("transformer", dict(TOKENS), dict(x0=40)),
    "transformer_tokens_x0": ("transformer", dict(TOKENS, tokens=(2, 1)), dict(size=(4, 2, 2, 1), x0=6)),
    "transformer_window": ("transformer", dict(TOKENS, window=3), {}),
    "transformer_window_x0": ("transformer", dict(TOKENS, window=4, tokens=(1, 2)),
                              dict(size=(6, 2, 1, 2), x0=14)),
    "transformer_long": ("transformer", dict(features=8, heads=2, mlp=4), dict(size=(300, 1))),
    "transformer_long_window": ("transformer", dict(features=8, heads=1, mlp=4, window=150), dict(size=(300, 1))),
    "transformer_recompute": ("transformer", dict(TOKENS, recompute=True), dict(x0=3)),
    "transformer_recompute_window": ("transformer", dict(TOKENS, recompute=True, window=4), {}),
    "transformer_recompute_window_x0": ("transformer", dict(TOKENS, recompute=True, window=4, tokens=(2, 1)),
                                        dict(size=(5, 2, 2, 1), x0=2)),
    "performer_basic": ("performer", dict(FAVOR), {}),
    "performer_tokens": ("performer", dict(FAVOR, tokens=(2, 3)), dict(size=(4, 2, 2, 3))),
    "performer_x0": ("performer", dict(FAVOR, epsilon=1e-2), dict(x0=700)),
    "performer_epsilon": ("performer", dict(FAVOR, epsilon=0.3), dict(size=(12, 2))),
    "performer_default_features": ("performer", dict(features=4, heads=1, mlp=4), dict(size=(9, 2))),
    "performer_long": ("performer", dict(features=4, heads=2, mlp=4, random_features=6), dict(size=(150, 1))),
}


def make_resets(kind, L, B):
    resets = np.zeros({"L": (L,), "LB": (L, B)}[kind], np.uint8)
    if kind == "L":
        resets[[2, 3]] = 1
    else:                   # sample 0 at the first step, others inside, one at the last step
        resets[0, 0] = resets[3, 1 % B] = resets[4, 2 % B] = resets[L - 1, 1 % B] = 1
    return resets


def start_memory(core, o, rng, B, space, seen):
    """What attention may remember of `seen` tokens (with recompute: of frames)."""
    f32 = np.float32
    H, d = o["heads"], o["features"] // o["heads"]
    if o.get("recompute"):
        return {"tokens": rng.standard_normal((seen, B, o["features"], *space)).astype(f32)}
    state = {}
    for i in range(o["layers"]):
        if core == "transformer":
            kept = seen if o["window"] == 0 else min(seen, (o["window"] - 1) * o["n"])
            values = [rng.standard_normal((B, H, min(kept, seen), d)) for _ in range(2)]
        else:
            m = o["random_features"]
            values = [rng.standard_normal((B, H, m, d)), rng.uniform(1, 3, (B, H, m)),
                      rng.standard_normal((B, H, d)), rng.uniform(-1, 3, (B, H))]
        state.update({f"layers.{i}.{n}": v.astype(f32) for n, v in zip(oracle_tokens.MEMORY[core], values)})
    state["position"] = np.array(seen, np.int64)
    return state


def start_window(o, options, rng, B, space, seen):
    """States of the hybrid after `seen` frames, at most window - 1."""
    tokens, size = seen * space[0] * space[1] // o["patch"] ** 2, options["features"] // o["heads"]
    state = {}
    for i, attention in enumerate(o["attention"]):
        shapes = {n: (B, o["heads"], tokens, size) for n in "kv"} if attention else {"x": (B, options["state_size"], *space)}
        state.update({f"layers.{i}.{n}": rng.standard_normal(s).astype(np.float32) for n, s in shapes.items()})
    return state


def start_state(core, options, rng, B, space, seen):
    """name -> random values, float32."""
    o = options
    if core in oracle_tokens.MEMORY:
        return start_memory(core, oracle_tokens.full_options(core, options), rng, B, space, seen)
    if core == "hybrid":
        return start_window(oracle_hybrid.full_options(options), options, rng, B, space, seen)
    size = o["state_size"] if core in ("convs5", "s5") else o["features"]
    leaves = oracle_cells.STATES.get(core, ("x",))
    return {f"layers.{i}.{leaf}": (0.5 * rng.standard_normal((B, size, *space))).astype(np.float32)
            for i in range(o.get("layers", 1)) for leaf in leaves}


def run_core(core, options, params, x, state, scale, dt, resets):
    """(y, name -> state after the last frame)."""
    if core in ("convs5", "s5"):
        x0 = None if state is None else list(state.values())
        y, last = oracle.stack(core, options, params, x, x0, scale, dt, resets)
        return y, {f"layers.{i}.x": v for i, v in enumerate(last)}
    if core == "hybrid":
        assert resets is None
        return oracle_hybrid.stack(options, params, x, state, scale, dt)
    if core in oracle_tokens.MEMORY:
        return oracle_tokens.stack(core, options, params, x, state)
    return oracle_cells.stack(core, options, params, x, state, resets)


# name: (core, options with those of the adaptor, channels and size of the frames, (L, B))
FRAME_CASES = {
    "frame_convs5": ("convs5", dict(CONV, features=4), (3, 4, 5), (5, 2)),
    "frame_convlstm": ("convlstm", dict(features=4), (3, 4, 5), (5, 2)),
    "frame_s5": ("s5", dict(S5, out_features=4), (3, 3, 4), (6, 2)),
    "frame_transformer": ("transformer", dict(TOKENS, out_features=5), (3, 4, 4), (6, 2)),
    "frame_transformer_patch": ("transformer", dict(TOKENS, patch=2, out_features=3), (2, 4, 6), (5, 2)),
    "frame_transformer_default": ("transformer", dict(TOKENS, patch=(2, 1)), (2, 2, 3), (3, 1)),
    "frame_performer_patch": ("performer", dict(FAVOR, patch=(1, 3), out_features=3), (2, 2, 6), (4, 2)),
}


def build_frame_case(name):
    core, options, frame, (L, B) = FRAME_CASES[name]
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    inner = oracle_frame.core_options(core, options, frame)
    params = {"core." + k: v for k, v in random_params(core, inner, rng).items()}
    shapes = oracle_frame.param_shapes(core, options, frame, shapes_of(core, inner))
    params.update(random_plain({k: v for k, v in shapes.items() if k not in params}, rng))
    buffers = {"core." + k: v for k, v in random_buffers(core, inner, rng).items()}
    x = rng.standard_normal((L, B, *frame)).astype(np.float32)
    run = lambda p, u: run_core(core, inner, p, u, None, 1.0, None, None)
    y, last = oracle_frame.run(core, {**params, **buffers}, x, run)
    config = {"core": core, "options": options, "frame": frame}
    return pack(config, params, buffers, x, y, last)


def pack(config, params, buffers, x, y, last, **given):
    """The arrays of a golden file; `given` are further inputs."""
    f32 = np.float32
    assert np.isfinite(y).all()
    out = {"config": np.frombuffer(json.dumps(config).encode(), np.uint8)}
    out.update({"param." + k: v for k, v in params.items()})
    out.update({"buffer." + k: v for k, v in buffers.items()})
    out["x"] = x
    out.update({k: v for k, v in given.items() if v is not None})
    out["y"] = y.astype(f32)
    out.update({"xL." + k: v if v.dtype == np.int64 else v.astype(f32) for k, v in last.items()})
    out["parameter_count"] = np.array(sum(v.size for v in params.values()), np.int64)
    return out


def build_case(name):
    core, options, extra = CASES[name]
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    f32 = np.float32
    L, B, *space = extra.get("size", (7, 2, 5, 6) if core.startswith("conv") else (9, 3))
    params = random_params(core, options, rng, extra.get("step", (1e-2, 1e-1)
                                                         if core == "s5" else (1e-3, 1e-1)))
    if "edit" in extra:
        extra["edit"](params)
    buffers = random_buffers(core, options, rng)
    x = rng.standard_normal((L, B, options["features"], *space)).astype(f32)
    state = start_state(core, options, rng, B, space, extra["x0"]) if extra.get("x0") else None
    dt = resets = None
    if "dt" in extra:
        dt = rng.uniform(0.2, 4.0, {"L": (L,), "LB": (L, B)}[extra["dt"]]).astype(f32)
    if "resets" in extra:
        resets = make_resets(extra["resets"], L, B)
    scale = extra.get("step_rescale", 1.0)

    y, last = run_core(core, options, {**params, **buffers}, x, state, scale, dt, resets)
    config = {"core": core, "options": options}
    if scale != 1.0:
        config["step_rescale"] = scale
    start = {"x0." + k: v for k, v in (state or {}).items()}
    return pack(config, params, buffers, x, y, last, **start, dt=dt, resets=resets)


# -------------------------------------------------------------------------- special goldens

def build_hippo():
    return {f"R{R}": oracle.hippo_eig(R)[0] for R in (2, 4, 8, 16, 32, 64)}


def build_discretize():
    """All methods at 50 digits with mpmath, rounded to float64."""
    mpmath.mp.dps = 50
    lams = [0j, 1e-12 + 0j, -1e-12 + 0j, 1e-12j, complex(-1e-12, 1e-12), complex(-1e-9, -1e-8),
            complex(-1e-6, 1e-6), complex(-1e-4, 0), complex(-1e-4, -1e-5), complex(-1e-4, 0.5),
            complex(0.05, -0.3), complex(-0.5, 0), complex(-0.5, -0.427489),
            complex(-0.5, -4.603293), complex(-0.5, -80.966081), complex(0, -1303.27),
            complex(-0.5, -20860.2), complex(-0.5, -333771.0), complex(-0.5, 333771.0),
            complex(-40.0, 3.0)]
    deltas = [1e-3, 0.0123, 0.1, 1.0, 2.5]
    lam = np.repeat(np.array(lams), len(deltas))
    delta = np.tile(np.array(deltas), len(lams))
    out = {"lambda_re": lam.real.copy(), "lambda_im": lam.imag.copy(), "delta": delta}
    for method in ("zoh", "bilinear", "euler"):
        a, gamma = [], []
        for l, d in zip(lam, delta):
            l, d = mpmath.mpc(l.real, l.imag), mpmath.mpf(float(d))
            z = l * d
            if method == "zoh":
                a.append(complex(mpmath.exp(z)))
                gamma.append(complex(mpmath.expm1(z) / l if l != 0 else d))
            elif method == "bilinear":
                a.append(complex((1 + z / 2) / (1 - z / 2)))
                gamma.append(complex(d / (1 - z / 2)))
            else:
                a.append(complex(1 + z))
                gamma.append(complex(d))
        a, gamma = np.array(a), np.array(gamma)
        a2, gamma2 = oracle.discretize(lam, delta, method)
        # the angle |z| itself is rounded, so allow a relative error growing with it; gamma is a
        # difference, small when the angle is near a multiple of 2 pi, hence the second scale
        tol = 4e-16 * (4 + np.abs(lam * delta))
        assert (np.abs(a2 - a) <= tol * np.maximum(np.abs(a), 1e-300)).all(), method
        scale = np.maximum(np.abs(gamma), np.minimum(delta, 1 / np.maximum(np.abs(lam), 1e-300)))
        assert (np.abs(gamma2 - gamma) <= tol * scale).all(), method
        for key, v in (("a", a), ("gamma", gamma)):
            out[f"{method}_{key}_re"], out[f"{method}_{key}_im"] = v.real.copy(), v.imag.copy()
    return out


def main():
    target = sys.argv[1] if len(sys.argv) > 1 else os.path.join(HERE, "..", "..", "tests", "golden")
    os.makedirs(target, exist_ok=True)
    print("self-checks")
    check_eigenvalues()
    check_conjugate_halves()
    check_layers()
    check_splits()
    check_counts()
    print(f"{'file':<24}{'bytes':>8}{'arrays':>8}{'params':>8}  x shape / rms(y) / max|y|")
    builders = {"hippo": build_hippo, "discretize": build_discretize}
    for name in [*CASES, *FRAME_CASES, *builders]:
        if name in builders:
            data = builders[name]()
        else:
            data = build_frame_case(name) if name in FRAME_CASES else build_case(name)
        path = os.path.join(target, name + ".npz")
        np.savez(path, **data)
        size = os.path.getsize(path)
        assert size < SIZE_LIMIT, (name, size)
        line = f"{name:<24}{size:>8}{len(data):>8}"
        if "y" in data:
            y = data["y"]
            line += (f"{int(data['parameter_count']):>8}  {list(data['x'].shape)} / "
                     f"{np.sqrt((y ** 2).mean()):.3f} / {np.abs(y).max():.3f}")
        print(line)


if __name__ == "__main__":
    main()
