"""NumPy reference of the activation blocks sparse, convnext and s4nd (see oracle.py).

A depthwise kernel is a sum over shifted frames, channel by channel. The kernels of s4nd are written out,
K[h,w] = K_h[h] K_w[w], and applied as one product over all pairs of pixels.
"""

import math

import numpy as np


def shapes(kind, o):
    """name -> shape of the parameters of the block."""
    U, k, kd, n = o["features"], o["kernel_d"], o["depthwise_kernel"], o["axis_states"] // 2
    s = {}

    def put(name, *shape):
        s[name] = shape

    if kind == "sparse":
        for i in "12":
            put(f"norm{i}.weight", U), put(f"norm{i}.bias", U)
            put(f"depthwise{i}.weight", U, 1, k, k)
            put(f"conv{i}.weight", U, U, 1, 1), put(f"conv{i}.bias", U)
    if kind == "convnext":
        put("depthwise.weight", U, 1, kd, kd), put("depthwise.bias", U)
        put("norm.weight", U), put("norm.bias", U)
        put("expand.weight", 4 * U, U), put("expand.bias", 4 * U)
        put("contract.weight", U, 4 * U), put("contract.bias", U)
        put("scale", U)
    if kind == "s4nd":
        for axis in ("rows", "columns"):
            put(f"{axis}.Lambda_re", U, n), put(f"{axis}.Lambda_im", U, n)
            put(f"{axis}.C", 2, U, n, 2), put(f"{axis}.log_step", U)
        put("D", U)
        put("dense.weight", 2 * U, U), put("dense.bias", 2 * U)
    return s


def gelu_erf(x):
    return 0.5 * x * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))


def depthwise(x, w, b=None):
    """x [...,C,H,W], w [C,1,k,k], zero padding."""
    H, W = x.shape[-2:]
    k = w.shape[-1]
    r = k // 2
    xp = np.pad(x, [(0, 0)] * (x.ndim - 2) + [(r, r), (r, r)])
    out = sum(xp[..., i:i + H, j:j + W] * w[:, 0, i, j][:, None, None] for i in range(k) for j in range(k))
    return out if b is None else out + b[:, None, None]


def dense(x, p, name):
    return np.einsum("oc,...chw->...ohw", p[name + ".weight"], x) + p[name + ".bias"][:, None, None]


def two_sided(p, axis, length):
    """T [C,i,j] = K(i - j): ahead k0[m] for m = i - j >= 0, back k1[m] for m = j - i - 1 >= 0."""
    lam = np.minimum(p[axis + ".Lambda_re"], -1e-4) + 1j * p[axis + ".Lambda_im"]
    delta = np.exp(p[axis + ".log_step"])[:, None]
    a = np.exp(lam * delta)
    gamma = (a - 1) / lam
    C = p[axis + ".C"][..., 0] + 1j * p[axis + ".C"][..., 1]
    k = 2 * np.einsum("dcn,cnm->dcm", C * gamma, a[:, :, None] ** np.arange(length)).real
    T = np.zeros((a.shape[0], length, length))
    for i in range(length):
        for j in range(length):
            T[:, i, j] = k[0, :, i - j] if i >= j else k[1, :, j - i - 1]
    return T


def block(kind, p, y, act, group_norm, layer_norm):
    """The block on y [...,C,H,W]; the norms take (x, name)."""
    if kind == "sparse":
        h = y
        for i in "12":
            h = depthwise(act(group_norm(h, "norm" + i)), p[f"depthwise{i}.weight"])
            h = np.einsum("oc,...chw->...ohw", p[f"conv{i}.weight"][:, :, 0, 0], h) + p[f"conv{i}.bias"][:, None, None]
        return h                                          # the caller adds y and applies act
    if kind == "convnext":
        v = layer_norm(depthwise(y, p["depthwise.weight"], p["depthwise.bias"]), "norm")
        return y + p["scale"][:, None, None] * dense(gelu_erf(dense(v, p, "expand")), p, "contract")
    if kind == "s4nd":
        H, W = y.shape[-2:]
        pairs = np.einsum("cij,ckl->cikjl", two_sided(p, "columns", H), two_sided(p, "rows", W))
        mixed = np.einsum("cikjl,...cjl->...cik", pairs, y) + p["D"][:, None, None] * y
        gelu = 0.5 * mixed * (1 + np.tanh(np.sqrt(2 / np.pi) * (mixed + 0.044715 * mixed ** 3)))
        values, gates = np.split(dense(gelu, p, "dense"), 2, axis=-3)
        return values / (1 + np.exp(-gates))
    raise ValueError(kind)
