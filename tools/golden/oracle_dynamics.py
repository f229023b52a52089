"""NumPy reference of the dynamics of ConvS5 that depend on the input, and of its output gate (see oracle.py)."""

import numpy as np


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def shapes(o):
    """name -> shape of the parameters of a layer."""
    U, P, k = o["features"], o["state_size"] // 2, o["kernel_b"]
    kind, s = o["dynamics"], {}
    if kind == "selective":
        s["ssm.dynamics.step"] = (P, U)
    if kind == "gated":
        s["ssm.dynamics.gates"], s["ssm.dynamics.bias"] = (2 * P, U, k, k), (2 * P,)
    if kind == "liquid":
        s["ssm.dynamics.l"] = (P, 2)
    if o["output_gate"] != "none":
        s["gate.weight"], s["gate.bias"] = (U, U, o["kernel_d"], o["kernel_d"]), (U,)
        s["out.weight"], s["out.bias"] = (U, U), (U,)
    return s


def vary(p, o, u, bu, a, gamma, rates, times, conv2d):
    """a, b complex [L,B,P,H,W] from a, gamma [L,B,P] of a layer without dynamics.

    rates is (lambda, step): continuous time, or for lru the logarithm of the eigenvalue and 1. times is [L,B].
    """
    pixels = lambda v: v[..., None, None]
    kind = o["dynamics"]
    if kind == "fixed":
        return pixels(a), pixels(gamma) * bu
    if kind == "liquid":
        b = pixels(gamma) * bu
        v = pixels(a) + pixels(p["dynamics.l"][:, 0] + 1j * p["dynamics.l"][:, 1]) * b
        return v / np.maximum(1, np.abs(v)), b
    lam, step = (pixels(v) for v in rates)
    if kind == "selective":
        signal = np.einsum("pu,lbuhw->lbphw", p["dynamics.step"], u)
        delta = np.log1p(np.exp(signal + np.log(np.expm1(step))))
    else:
        P = bu.shape[2]
        signal = conv2d(u, p["dynamics.gates"]) + pixels(p["dynamics.bias"])
        delta = step * 2 * sigmoid(signal[:, :, :P])
        bu = bu * 2 * sigmoid(signal[:, :, P:])
    a = np.exp(lam * delta * times[:, :, None, None, None])
    return a, (np.sqrt(1 - np.abs(a) ** 2) if o.get("init") == "lru" else (a - 1) / lam) * bu


def gate(p, o, out, v, activations, conv2d):
    """The activation block's output behind the gate."""
    if o["output_gate"] == "none":
        return out
    open_ = activations[o["output_gate"]](conv2d(v, p["gate.weight"], p["gate.bias"]))
    return np.einsum("oc,...chw->...ohw", p["out.weight"], out * open_) + p["out.bias"][:, None, None]
