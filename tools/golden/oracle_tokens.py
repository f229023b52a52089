"""Transformer and Performer on tokens for the oracle: float64, one query at a time, straight from the definitions.

x [L,B,D] or [L,B,D,h,w]; states are a dict name -> array as the library's (k, v caches or sums, and position; with
recompute the past frames `tokens`). Parameters and buffers are one flat dict.
"""

import numpy as np

from oracle import gelu, layer_norm, sigmoid, sub

DEFAULTS = {
    "transformer": dict(layers=1, heads=8, mlp=0, tokens=(1, 1), window=0, recompute=False),
    "performer": dict(layers=1, heads=8, mlp=0, tokens=(1, 1), random_features=256, epsilon=1e-6)}
MEMORY = {"transformer": ("k", "v"), "performer": ("s", "z", "v_sum", "max")}


def full_options(core, options):
    unknown = set(options) - set(DEFAULTS[core]) - {"features"}
    if unknown:
        raise ValueError(f"unknown options {sorted(unknown)}")
    o = {**DEFAULTS[core], **options}
    o["mlp"] = o["mlp"] or 4 * o["features"]
    o["n"] = o["tokens"][0] * o["tokens"][1]
    return o


def param_shapes(core, options):
    o = full_options(core, options)
    D, M = o["features"], o["mlp"]
    s = {"sos": (D, *o["tokens"])}

    def dense(name, n_out, n_in):
        s[name + ".weight"], s[name + ".bias"] = (n_out, n_in), (n_out,)

    def norm(name):
        s[name + ".weight"] = s[name + ".bias"] = (D,)

    dense("transformer.input", D, D)
    for i in range(o["layers"]):
        pre = f"transformer.layers.{i}."
        norm(pre + "norm1")
        dense(pre + "qkv", 3 * D, D)
        dense(pre + "out", D, D)
        norm(pre + "norm2")
        dense(pre + "mlp1", M, D)
        dense(pre + "mlp2", D, M)
    dense("transformer.output", D, D)
    norm("transformer.norm")
    return s


def buffer_shapes(core, options):
    o = full_options(core, options)
    if core == "transformer":
        return {}
    shape = (o["random_features"], o["features"] // o["heads"])
    return {f"transformer.layers.{i}.attention.projection": shape for i in range(o["layers"])}


def position_row(p, D):
    f = [10000.0 ** (-2.0 * i / D) for i in range(D // 2)]
    return np.array([np.sin(p * v) for v in f] + [np.cos(p * v) for v in f])


def linear(p, name, x):
    return x @ p[name + ".weight"].T + p[name + ".bias"]


# ------------------------------------------------------- one head: q, k, v [T,d], memory before

def softmax_head(o, q, k, v, before, seen):
    """Memory: (k, v) of the tokens that later ones may see."""
    if before is not None:
        k, v = np.concatenate([before[0], k]), np.concatenate([before[1], v])
    first = seen + len(q) - len(k)                  # token index of k[0]
    out = []
    for i in range(len(q)):
        frame = (seen + i) // o["n"]
        score = []
        for j in range(len(k)):
            age = frame - (first + j) // o["n"]
            visible = age >= 0 and (o["window"] == 0 or age < o["window"])
            score.append(q[i] @ k[j] / np.sqrt(len(q[i])) if visible else -np.inf)
        w = np.exp(np.array(score) - max(score))
        out.append((w / w.sum()) @ v)
    keep = len(k) if o["window"] == 0 else min(seen + len(q), (o["window"] - 1) * o["n"])
    return np.array(out), (k[len(k) - keep:], v[len(v) - keep:])


def favor_head(o, W, q, k, v, before, seen):
    """Memory: sums of exp(. - max) v^T and exp(. - max), of v, and the largest W k so far."""
    m, e, n = o["random_features"], o["epsilon"], o["n"]
    r = m ** -0.5
    q, k = q * q.shape[1] ** -0.25, k * k.shape[1] ** -0.25
    s, z, v_sum, top = before if before is not None else (0.0, 0.0, 0.0, -np.inf)
    out = []
    for i in range(len(q)):
        end = (i // n + 1) * n                      # the frames up to the query's
        M = max(top, max((W @ k[j]).max() for j in range(end)))
        S = r * (np.exp(top - M) * s + e * v_sum) + np.zeros((m, v.shape[1]))
        Z = r * (np.exp(top - M) * z + e * seen) + np.zeros(m)
        for j in range(end):
            phi = r * (np.exp(W @ k[j] - k[j] @ k[j] / 2 - M) + e)
            S, Z = S + np.outer(phi, v[j]), Z + phi
        wq = W @ q[i]
        phi = r * (np.exp(wq - q[i] @ q[i] / 2 - wq.max()) + e)
        den = phi @ Z
        out.append(phi @ S / (den + 2 * e if abs(den) <= e else den))
    E = np.array([np.exp(W @ a - a @ a / 2 - M) for a in k])
    return np.array(out), (np.exp(top - M) * s + E.T @ v, np.exp(top - M) * z + E.sum(0), v_sum + v.sum(0), M)


# ------------------------------------------------------------------------------ whole sequence

def attend(core, o, p, x, before, seen):
    """x [B,T,D] -> mixed [B,T,D], memory: one array [B,heads,...] per name."""
    B, T, D = x.shape
    H, d = o["heads"], D // o["heads"]
    qkv = linear(p, "qkv", x).reshape(B, T, 3, H, d)
    out, memory = np.zeros((B, T, H, d)), [[] for _ in MEMORY[core]]
    for b in range(B):
        rows = [[] for _ in memory]
        for h in range(H):
            head = (qkv[b, :, 0, h], qkv[b, :, 1, h], qkv[b, :, 2, h],
                    None if before is None else [a[b, h] for a in before], seen)
            if core == "transformer":
                out[b, :, h], after = softmax_head(o, *head)
            else:
                out[b, :, h], after = favor_head(o, p["attention.projection"], *head)
            for row, a in zip(rows, after):
                row.append(a)
        for all_rows, row in zip(memory, rows):
            all_rows.append(row)
    return linear(p, "out", out.reshape(B, T, D)), [np.array(a) for a in memory]


def sequence(core, o, params, tokens, state, seen):
    """tokens [B,T,D] -> (outputs [B,T,D], state)."""
    p = sub(params, "transformer.")
    norm = lambda q, name, a: layer_norm(a, q[name + ".weight"], q[name + ".bias"], -1)
    x = linear(p, "input", tokens)
    x = x + np.array([position_row(seen + t, o["features"]) for t in range(tokens.shape[1])])
    last = {}
    for i in range(o["layers"]):
        q = sub(p, f"layers.{i}.")
        names = [f"layers.{i}.{m}" for m in MEMORY[core]]
        before = None if seen == 0 else [np.asarray(state[m], np.float64) for m in names]
        mixed, after = attend(core, o, q, norm(q, "norm1", x), before, seen)
        x = x + mixed
        h = linear(q, "mlp1", norm(q, "norm2", x))
        x = x + linear(q, "mlp2", h * sigmoid(1.702 * h))
        last.update(zip(names, after))
    last["position"] = np.array(seen + tokens.shape[1], np.int64)
    return norm(p, "norm", gelu(linear(p, "output", x))), last


def to_tokens(x, n):
    """[L,B,D,...] -> [B,L*n,D], row-major in a frame."""
    L, B, D = x.shape[:3]
    return x.reshape(L, B, D, n).transpose(1, 0, 3, 2).reshape(B, L * n, D)


def causal(core, o, params, x, state):
    B, D = x.shape[1:3]
    tokens, seen = to_tokens(x, o["n"]), 0 if state is None else int(state["position"])
    if seen == 0:
        sos = params["sos"].reshape(D, o["n"]).T
        tokens = np.concatenate([np.broadcast_to(sos, (B, *sos.shape)), tokens], 1)
    y, last = sequence(core, o, params, tokens, state, seen)
    y = y[:, o["n"]:] if seen == 0 else y
    return y.reshape(B, len(x), o["n"], D).transpose(1, 0, 3, 2).reshape(x.shape), last


def recomputed(o, params, x, state):
    """The reference's sliding window: output k from (sos, the last W-1 frames up to k) alone."""
    frames = x if state is None else np.concatenate([state["tokens"], x])
    W, inner = o["window"], dict(o, window=0)
    out = []
    for k in range(len(frames) - len(x), len(frames)):
        first = 0 if W == 0 else max(0, k + 1 - (W - 1))
        out.append(causal("transformer", inner, params, frames[first:k + 1], None)[0][-1])
    keep = len(frames) if W == 0 else min(len(frames), W - 2)
    return np.array(out), {"tokens": frames[len(frames) - keep:]}


def stack(core, options, params, x, state=None):
    o = full_options(core, options)
    params = {k: np.asarray(v, np.float64) for k, v in params.items()}
    x = np.asarray(x, np.float64)
    if o.get("recompute"):
        return recomputed(o, params, x, state)
    return causal(core, o, params, x, state)
