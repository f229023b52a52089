"""The adaptors around cores for the oracle: frames [L,B,C,H,W] of any channels in, frames out.

Cores on frames: a 1x1 convolution before. Cores on tokens: a convolution with kernel = stride = patch before and a
transposed one after, tap by tap. Parameters of the core carry the prefix `core.`.
"""

import numpy as np

from oracle import conv2d, sub

ADAPTOR = ("patch", "out_features")


def on_tokens(core):
    return not core.startswith("conv")


def core_options(core, options, frame):
    """The core's own options."""
    o = {k: v for k, v in options.items() if k not in ADAPTOR}
    if core in ("transformer", "performer"):
        p, q = patch_of(options, frame)
        o["tokens"] = (frame[1] // p, frame[2] // q)
    return o


def patch_of(options, frame):
    patch = options.get("patch", frame[1:])
    return (patch, patch) if isinstance(patch, int) else tuple(patch)


def param_shapes(core, options, frame, core_shapes):
    D, C = options["features"], frame[0]
    s = {"core." + k: v for k, v in core_shapes.items()}
    if on_tokens(core):
        p, q = patch_of(options, frame)
        s["z_proj"], s["z_unproj"] = (D, C, p, q), (D, options.get("out_features", 256), p, q)
    else:
        s["input.weight"], s["input.bias"] = (D, C), (D,)
    return s


def compress(w, x):
    p, q = w.shape[2:]
    h, v = x.shape[-2] // p, x.shape[-1] // q
    out = np.zeros((*x.shape[:2], w.shape[0], h, v))
    for i in range(h):
        for j in range(v):
            part = x[..., i * p:(i + 1) * p, j * q:(j + 1) * q]
            out[..., i, j] = np.einsum("lbcpq,dcpq->lbd", part, w)
    return out


def expand(w, y):
    p, q = w.shape[2:]
    h, v = y.shape[-2:]
    out = np.zeros((*y.shape[:2], w.shape[1], h * p, v * q))
    for i in range(h):
        for j in range(v):
            out[..., i * p:(i + 1) * p, j * q:(j + 1) * q] = np.einsum("lbd,dopq->lbopq", y[..., i, j], w)
    return out


def run(core, params, x, run_core):
    """run_core(core's parameters, input of the core) -> (y, state)."""
    params = {k: np.asarray(v, np.float64) for k, v in params.items()}
    x = np.asarray(x, np.float64)
    inner = sub(params, "core.")
    if not on_tokens(core):
        w = params["input.weight"][:, :, None, None]
        return run_core(inner, conv2d(x, w, params["input.bias"]))
    tokens = compress(params["z_proj"], x)
    single = tokens.shape[-2:] == (1, 1)
    y, state = run_core(inner, tokens[..., 0, 0] if single else tokens)
    return expand(params["z_unproj"], y[..., None, None] if single else y), state
