"""ConvRNN, ConvLSTM and ConvGRU stacks for the oracle: float64, direct convolutions of [u, h], a plain loop over time.

Frames [L,B,C,H,W]; states are a dict name -> [B,C,H,W]. The wrapper is that of the ConvS5 layer.
"""

import numpy as np

from oracle import conv2d, layer_norm, per_step, sigmoid, sub

DEFAULTS = dict(layers=1, kernel=3, use_norm=True, prenorm=False, skip=True)
STATES = {"convrnn": ("h",), "convlstm": ("c", "h"), "convgru": ("h",)}


def full_options(core, options):
    unknown = set(options) - set(DEFAULTS) - {"features"}
    if unknown:
        raise ValueError(f"unknown options {sorted(unknown)}")
    return {**DEFAULTS, **options}


def param_shapes(core, options):
    o = full_options(core, options)
    U, k = o["features"], o["kernel"]
    s = {}
    for i in range(o["layers"]):
        if core == "convrnn":
            s[f"layers.{i}.cell.A"] = s[f"layers.{i}.cell.B"] = (U, U, k, k)
        elif core == "convlstm":
            s[f"layers.{i}.cell.kernel"] = (4 * U, 2 * U, k, k)
        else:
            for gate in "zrn":
                s[f"layers.{i}.cell.kernel_{gate}"] = (U, 2 * U, k, k)
        if o["use_norm"]:
            s[f"layers.{i}.norm.weight"] = s[f"layers.{i}.norm.bias"] = (U,)
    return s


def rnn(p, u, state):
    (h,) = state
    return (np.tanh(conv2d(h, p["A"]) + conv2d(u, p["B"])),)


def lstm(p, u, state):
    c, h = state
    i, f, o, g = np.split(conv2d(np.concatenate([u, h], 1), p["kernel"]), 4, axis=1)
    c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    return c, sigmoid(o) * np.tanh(c)


def gru(p, u, state):
    (h,) = state
    both = np.concatenate([u, h], 1)
    z = sigmoid(conv2d(both, p["kernel_z"]))
    r = sigmoid(conv2d(both, p["kernel_r"]))
    n = np.tanh(conv2d(np.concatenate([u, r * h], 1), p["kernel_n"]))
    return ((1 - z) * h + z * n,)


def stack(core, options, params, x, state=None, resets=None):
    """(y, states after the last frame)."""
    o = full_options(core, options)
    params = {k: np.asarray(v, np.float64) for k, v in params.items()}
    u = np.asarray(x, np.float64)
    L, B = u.shape[:2]
    reset = per_step(np.zeros(L) if resets is None else resets, L, B)
    cell = {"convrnn": rnn, "convlstm": lstm, "convgru": gru}[core]
    last = {}
    for i in range(o["layers"]):
        p = sub(params, f"layers.{i}.")
        names = [f"layers.{i}.{n}" for n in STATES[core]]
        s = [np.zeros(u.shape[1:]) if state is None else np.asarray(state[n], np.float64) for n in names]
        norm = lambda a: layer_norm(a, p["norm.weight"], p["norm.bias"], -3)
        v = norm(u) if o["use_norm"] and o["prenorm"] else u
        out = []
        for t in range(L):
            s = [np.where(reset[t].reshape(B, 1, 1, 1) != 0, 0.0, a) for a in s]
            s = cell(sub(p, "cell."), v[t], s)
            out.append(s[-1])
        y = np.stack(out)
        if o["skip"]:
            y = u + y
        if o["use_norm"] and not o["prenorm"]:
            y = norm(y)
        u = y
        last.update(zip(names, s))
    return u, last
