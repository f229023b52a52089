"""The stack of ConvS5 layers and windowed attention for the oracle: float64, one query at a time.

Frames [L,B,C,H,W]; states are a dict name -> array as the library's. Rotary positions are written with complex numbers:
feature pair (i, i + size/2) is one number, multiplied by exp(i angle) of the token's own frame, row and column.
"""

import numpy as np

import oracle
from oracle import layer_norm, sigmoid, sub

DEFAULTS = dict(layers=2, attention_every=2, window=8, heads=4, mlp=0, patch=1)


def full_options(options):
    o = {**DEFAULTS, **{k: v for k, v in options.items() if k in DEFAULTS}}
    o["mlp"] = o["mlp"] or 4 * options["features"]
    o["convs5"] = oracle.full_options("convs5", {k: v for k, v in options.items() if k not in DEFAULTS or k == "layers"})
    o["attention"] = [(i + 1) % o["attention_every"] == 0 for i in range(o["layers"])]
    return o


def param_shapes(options):
    o = full_options(options)
    D, M, p = options["features"], o["mlp"], o["patch"]
    convs5 = oracle.param_shapes("convs5", {k: v for k, v in options.items() if k not in DEFAULTS} | {"layers": o["layers"]})
    s = {}
    for i in range(o["layers"]):
        pre = f"layers.{i}."
        if not o["attention"][i]:
            s.update({k: v for k, v in convs5.items() if k.startswith(pre)})
            continue
        dense = {"block.qkv": (3 * D, D), "block.out": (D, D), "block.mlp1": (M, D), "block.mlp2": (D, M)}
        if p > 1:
            dense.update({"compress": (D, p * p * D), "expand": (p * p * D, D)})
        for name, shape in dense.items():
            s[pre + name + ".weight"], s[pre + name + ".bias"] = shape, shape[:1]
        after = ["norm"] if o["convs5"]["use_norm"] and not o["convs5"]["prenorm"] else []
        for norm in ["block.norm1", "block.norm2", *after]:
            s[pre + norm + ".weight"] = s[pre + norm + ".bias"] = (D,)
    return s


def turn(x, frame, row, column):
    """One head of one token, x [size]."""
    half = len(x) // 2
    out = np.empty(2 * half)
    for i in range(half):
        axis = i % 3
        count = len(range(axis, half, 3))
        angle = (frame, row, column)[axis] * 100.0 ** (-(i // 3) / count)
        z = (x[i] + 1j * x[i + half]) * np.exp(1j * angle)
        out[i], out[i + half] = z.real, z.imag
    return out


def attend(o, q, k, v, before, h, w):
    """One head of one sample: q, k, v [T,size], before (k, v) or None -> out [T,size], (k, v) that later frames may see."""
    n, W = h * w, o["window"]
    if before is not None:
        k, v = np.concatenate([before[0], k]), np.concatenate([before[1], v])
    shift = (len(k) - len(q)) // n
    place = lambda t: (t // n, t % n // w, t % w)
    keys = [turn(k[t], *place(t)) for t in range(len(k))]
    out = []
    for i in range(len(q)):
        frame, row, column = place(i)
        seen = [t for t in range(len(k)) if 0 <= frame + shift - t // n < W]
        query = turn(q[i], frame + shift, row, column)
        score = np.array([query @ keys[t] for t in seen]) / np.sqrt(len(query))
        e = np.exp(score - score.max())
        out.append((e / e.sum()) @ v[seen])
    keep = min(len(k), (W - 1) * n)
    return np.array(out), (k[len(k) - keep:], v[len(v) - keep:])


def attention_layer(o, p, u, before):
    L, B, C, H, W = u.shape
    s, heads = o["patch"], o["heads"]
    h, w = H // s, W // s
    D = C
    linear = lambda name, x: x @ p[name + ".weight"].T + p[name + ".bias"]
    norm = lambda name, x: layer_norm(x, p[name + ".weight"], p[name + ".bias"], -1)
    y = np.empty_like(u)
    memory = [[], []]
    for b in range(B):
        tokens = np.array([u[t, b, :, i * s:(i + 1) * s, j * s:(j + 1) * s].transpose(1, 2, 0).ravel()
                           for t in range(L) for i in range(h) for j in range(w)])
        x = linear("compress", tokens) if s > 1 else tokens
        qkv = linear("block.qkv", norm("block.norm1", x)).reshape(len(x), 3, heads, D // heads)
        outs, kept = [], []
        for a in range(heads):
            past = None if before is None else (before[0][b, a], before[1][b, a])
            out, last = attend(o, qkv[:, 0, a], qkv[:, 1, a], qkv[:, 2, a], past, h, w)
            outs.append(out)
            kept.append(last)
        x = x + linear("block.out", np.concatenate(outs, 1))
        m = linear("block.mlp1", norm("block.norm2", x))
        x = x + linear("block.mlp2", m * sigmoid(1.702 * m))
        if s > 1:
            x = tokens + linear("expand", x)
        if "norm.weight" in p:      # of every pixel over its channels
            x = norm("norm", x.reshape(-1, C)).reshape(len(x), -1)
        for t in range(L):
            for i in range(h):
                for j in range(w):
                    patch = x[(t * h + i) * w + j].reshape(s, s, C).transpose(2, 0, 1)
                    y[t, b, :, i * s:(i + 1) * s, j * s:(j + 1) * s] = patch
        for which in range(2):
            memory[which].append([last[which] for last in kept])
    return y, [np.array(m) for m in memory]


def stack(options, params, x, state=None, step_rescale=1.0, dt=None):
    """(y, states after the last frame)."""
    o = full_options(options)
    params = {k: np.asarray(v, np.float64) for k, v in params.items()}
    u = np.asarray(x, np.float64)
    dt = None if dt is None else np.asarray(dt, np.float64)
    last = {}
    for i in range(o["layers"]):
        p = sub(params, f"layers.{i}.")
        at = lambda name: f"layers.{i}.{name}"
        if o["attention"][i]:
            before = None if state is None else [np.asarray(state[at(n)], np.float64) for n in "kv"]
            u, memory = attention_layer(o, p, u, before)
            last.update({at("k"): memory[0], at("v"): memory[1]})
            continue
        P = o["convs5"]["state_size"] // 2
        x0 = np.zeros((u.shape[1], P, *u.shape[3:]), complex) if state is None else \
            oracle.join_state(np.asarray(state[at("x")], np.float64))
        u, x_last = oracle.layer("convs5", p, o["convs5"], u, x0, step_rescale, dt, None)
        last[at("x")] = oracle.split_state(x_last)
    return u, last
