"""Independent NumPy reference ("oracle") for the ConvS5 and S5 layers and stacks.

Purpose: produce expected outputs for the library's tests from the written specification alone.
It shares no code with the library. Everything is float64/complex128, convolutions are direct
(one einsum per kernel tap, zero SAME padding) and the recurrence is a plain loop over time;
speed does not matter here.

Layouts: frames [L,B,C,H,W] (ConvS5) or [L,B,U] (S5); parameters are a flat dict name -> array.
"""

import numpy as np

import oracle_blocks
import oracle_dynamics

CONVS5_DEFAULTS = dict(
    layers=1, blocks=1, clip_eigs=True, kernel_b=3, kernel_c=3, kernel_d=3,
    dynamics="fixed", output_gate="none",
    activation_block="resnet", activation="gelu", groups=32, squeeze_excite=False,
    use_norm=True, prenorm=False, skip=True, skip_connections=False, feedthrough=False,
    discretization="zoh", init="hippo", learned_state=False, depthwise_kernel=7, axis_states=16)
S5_DEFAULTS = dict(
    layers=1, blocks=1, clip_eigs=True, use_norm=True, prenorm=False, skip=True,
    discretization="zoh")


def full_options(core, options):
    defaults = {"convs5": CONVS5_DEFAULTS, "s5": S5_DEFAULTS}[core]
    unknown = set(options) - set(defaults) - {"features", "state_size"}
    if unknown:
        raise ValueError(f"unknown options {sorted(unknown)}")
    return {**defaults, **options}


# ---------------------------------------------------------------------------------- HiPPO-N

def hippo_normal(R):
    """S = -I/2 + K: the normal part of HiPPO-LegS for one block of size R."""
    p = np.sqrt(np.arange(R) + 0.5)
    pp = np.outer(p, p)
    return np.triu(pp, 1) - np.tril(pp, -1) - 0.5 * np.eye(R)


def hippo_eig(R):
    """Kept half of the eigenpairs: (w, V) with Lambda = -1/2 + i w, most negative w first."""
    K = hippo_normal(R) + 0.5 * np.eye(R)
    w, V = np.linalg.eigh(-1j * K)
    return w[:R // 2], V[:, :R // 2]


def block_lambda(N, J):
    """Lambda (N/2 complex) for J identical blocks."""
    w, _ = hippo_eig(N // J)
    return np.tile(-0.5 + 1j * w, J)


# --------------------------------------------------------------------------- discretization

def complex_expm1(z):
    """exp(z) - 1 without cancellation near 0."""
    re = np.expm1(z.real) * np.cos(z.imag) - 2.0 * np.sin(0.5 * z.imag) ** 2
    return re + 1j * np.exp(z.real) * np.sin(z.imag)


def discretize(lam, delta, method):
    """(Abar, gamma), elementwise; Bbar = gamma * B~."""
    lam, delta = np.broadcast_arrays(np.asarray(lam, complex), np.asarray(delta, float))
    z = lam * delta
    if method == "zoh":
        zero = lam == 0
        gamma = np.where(zero, delta, complex_expm1(z) / np.where(zero, 1.0, lam))
        return np.exp(z), gamma
    if method == "bilinear":
        return (1 + z / 2) / (1 - z / 2), delta / (1 - z / 2)
    if method == "euler":
        return 1 + z, delta.astype(complex)
    raise ValueError(method)


# --------------------------------------------------------------------------- small functions

def sigmoid(x):
    return 1.0 / (1.0 + np.exp(-x))


def gelu(x):
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x ** 3)))


ACTIVATIONS = {
    "gelu": gelu,
    "relu": lambda x: np.maximum(x, 0.0),
    "swish": lambda x: x * sigmoid(x),
    "elu": lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0.0))),
}


def conv2d(x, w, b=None):
    """Cross-correlation, stride 1, zero SAME padding. x [...,C,H,W], w [O,C,kh,kw]."""
    H, W = x.shape[-2:]
    kh, kw = w.shape[2:]
    top, left = (kh - 1) // 2, (kw - 1) // 2
    pad = [(0, 0)] * (x.ndim - 2) + [(top, kh - 1 - top), (left, kw - 1 - left)]
    xp = np.pad(x, pad)
    out = 0.0
    for i in range(kh):
        for j in range(kw):
            out = out + np.einsum("...chw,oc->...ohw", xp[..., i:i + H, j:j + W], w[:, :, i, j])
    return out if b is None else out + b[:, None, None]


def normalize(x, axes):
    mean = x.mean(axes, keepdims=True)
    var = np.maximum(0.0, (x * x).mean(axes, keepdims=True) - mean * mean)
    return (x - mean) / np.sqrt(var + 1e-6)


def layer_norm(x, weight, bias, axis):
    """Over the channel axis only (axis is negative)."""
    tail = (1,) * (-axis - 1)
    return normalize(x, (axis,)) * weight.reshape(-1, *tail) + bias.reshape(-1, *tail)


def group_norm(x, weight, bias, groups):
    """x [...,C,H,W]; statistics per leading index and group."""
    C, H, W = x.shape[-3:]
    assert C % groups == 0, "groups must divide the channels"
    g = x.reshape(*x.shape[:-3], groups, C // groups, H, W)
    return normalize(g, (-3, -2, -1)).reshape(x.shape) * weight[:, None, None] + bias[:, None, None]


def squeeze_excite(x, p):
    s = x.mean((-2, -1))
    h = np.maximum(0.0, s @ p["down.weight"].T + p["down.bias"])
    return x * sigmoid(h @ p["up.weight"].T + p["up.bias"])[..., None, None]


def sub(params, prefix):
    """Parameters under a prefix, with the prefix removed."""
    return {k[len(prefix):]: v for k, v in params.items() if k.startswith(prefix)}


def to_complex(a):
    return a[..., 0] + 1j * a[..., 1]


def split_state(x):
    """Complex [B,P,...] -> real [B,2P,...], Re half first."""
    return np.concatenate([x.real, x.imag], axis=1)


def join_state(x):
    P = x.shape[1] // 2
    return x[:, :P] + 1j * x[:, P:]


# ------------------------------------------------------------------------ parameter shapes

def param_shapes(core, options):
    """name -> shape of every parameter of the stack."""
    o = full_options(core, options)
    U, N = o["features"], o["state_size"]
    P = N // 2
    s = {}

    def affine(name, n=U):
        s[name + ".weight"], s[name + ".bias"] = (n,), (n,)

    def dense(name, n_out, n_in):
        s[name + ".weight"], s[name + ".bias"] = (n_out, n_in), (n_out,)

    def conv(name, k):
        s[name + ".weight"], s[name + ".bias"] = (U, U, k, k), (U,)

    for i in range(o["layers"]):
        pre = f"layers.{i}."
        lru = o.get("init") == "lru"
        for leaf in ("nu", "theta") if lru else ("Lambda_re", "Lambda_im"):
            s[pre + "ssm." + leaf] = (P,)
        if core == "s5":
            s[pre + "ssm.B"], s[pre + "ssm.C"] = (P, U, 2), (U, P, 2)
            s[pre + "ssm.D"] = (U,)
            s[pre + "ssm.log_step"] = (P, 1)
            dense(pre + "dense", U, U)
        else:
            kb, kc, kd = o["kernel_b"], o["kernel_c"], o["kernel_d"]
            kind = o["activation_block"]
            s[pre + "ssm.B"], s[pre + "ssm.C"] = (P, U * kb * kb, 2), (kc, kc, P, U, 2)
            if not lru:
                s[pre + "ssm.log_step"] = (P, 1)
            if o["learned_state"]:
                s[pre + "ssm.x0"] = (2 * P,)
            s.update({pre + "block." + k: v for k, v in oracle_blocks.shapes(kind, o).items()})
            s.update({pre + k: v for k, v in oracle_dynamics.shapes(o).items()})
            if kind == "standard" or o["feedthrough"]:
                conv(pre + "D", kd)
            if kind in ("standard", "half_glu"):
                affine(pre + "block.norm")
            if kind == "half_glu":
                dense(pre + "block.dense", U, U)
            if kind in ("resnet", "diag_resnet"):
                affine(pre + "block.norm1")
                conv(pre + "block.conv1", kd)
                affine(pre + "block.norm2")
            if kind == "resnet":
                conv(pre + "block.conv2", kd)
            if o["squeeze_excite"] and kind in ("resnet", "standard", "sparse"):
                hidden = max(U // 16, 4)
                dense(pre + "block.se.down", hidden, U)
                dense(pre + "block.se.up", U, hidden)
        if o["use_norm"]:
            affine(pre + "norm")
    return s


def parameter_count(core, options):
    return sum(int(np.prod(shape)) for shape in param_shapes(core, options).values())


# ------------------------------------------------------------------------------------- SSM

def per_step(value, L, B):
    """[L] or [L,B] -> [L,B]."""
    value = np.asarray(value)
    return np.broadcast_to(value[:, None] if value.ndim == 1 else value, (L, B))


def first_state(p, o):
    """Complex [P]: the state before the first frame and after a reset."""
    P = o["state_size"] // 2
    return p["x0"][:P] + 1j * p["x0"][P:] if o.get("learned_state") else np.zeros(P, complex)


def ssm(core, p, o, u, x0, step_rescale, dt, resets):
    """u real [L,B,U,...]; x0 complex [B,P,...] -> (y real like u without D, x_L)."""
    L, B = u.shape[:2]
    space = (1,) * (u.ndim - 3)
    interval = per_step(np.ones(L) if dt is None else dt, L, B)
    reset = per_step(np.zeros(L) if resets is None else resets, L, B)
    if o.get("init") == "lru":
        lam = np.exp(-np.exp(p["nu"]) + 1j * np.exp(p["theta"]))
        a, gamma = (np.broadcast_to(v, (L, B, lam.size)) for v in (lam, np.sqrt(1 - np.abs(lam) ** 2)))
        rates = -np.exp(p["nu"]) + 1j * np.exp(p["theta"]), np.ones(lam.size)
    else:
        re = np.minimum(p["Lambda_re"], -1e-4) if o["clip_eigs"] else p["Lambda_re"]
        delta = step_rescale * np.exp(p["log_step"][:, 0]) * interval[:, :, None]    # [L,B,P]
        a, gamma = discretize(re + 1j * p["Lambda_im"], delta, o["discretization"])
        rates = re + 1j * p["Lambda_im"], np.exp(p["log_step"][:, 0])
    first = first_state(p, o).reshape(1, -1, *space)

    Bt, Ct = to_complex(p["B"]), to_complex(p["C"])
    if core == "convs5":
        k = o["kernel_b"]
        bu = conv2d(u, Bt.reshape(Bt.shape[0], -1, k, k))
        a, b = oracle_dynamics.vary(p, o, u, bu, a, gamma, rates, step_rescale * interval, conv2d)
    else:
        b = gamma * np.einsum("pu,lbu->lbp", Bt, u)

    x, xs = x0, []
    for t in range(L):
        x = np.where((reset[t] != 0).reshape(B, 1, *space), first, x)
        x = a[t] * x + b[t]
        xs.append(x)
    xs = np.stack(xs)

    if core == "convs5":
        cx = conv2d(xs, Ct.transpose(3, 2, 0, 1))
    else:
        cx = np.einsum("up,lbp->lbu", Ct, xs)
    return 2.0 * cx.real, x


# ------------------------------------------------------------------------------ layer bodies

def convs5_block(p, o, y):
    """Activation block on y (any feedthrough already added)."""
    act, groups, kind = ACTIVATIONS[o["activation"]], o["groups"], o["activation_block"]
    se = (lambda h: squeeze_excite(h, sub(p, "se."))) if o["squeeze_excite"] else (lambda h: h)

    def gn(h, n):
        return group_norm(h, p[n + ".weight"], p[n + ".bias"], groups)

    def conv(h, n):
        return conv2d(h, p[n + ".weight"], p[n + ".bias"])

    if kind == "resnet":
        h = conv(act(gn(y, "norm1")), "conv1")
        h = conv(act(gn(h, "norm2")), "conv2")
        return act(y + se(h))
    if kind == "standard":
        return se(act(gn(y, "norm")))
    if kind == "half_glu":
        v = gelu(layer_norm(y, p["norm.weight"], p["norm.bias"], -3))
        d = np.einsum("oc,...chw->...ohw", p["dense.weight"], v) + p["dense.bias"][:, None, None]
        return v * sigmoid(d)
    if kind in ("sparse", "convnext", "s4nd"):
        ln = lambda h, n: layer_norm(h, p[n + ".weight"], p[n + ".bias"], -3)
        out = oracle_blocks.block(kind, p, y, act, gn, ln)
        return act(y + se(out)) if kind == "sparse" else out
    if kind == "diag_resnet":
        h = act(gn(conv(act(gn(y, "norm1")), "conv1"), "norm2"))
        return act(y + h)
    raise ValueError(kind)


def layer(core, p, o, u, x0, step_rescale=1.0, dt=None, resets=None):
    """One wrapped layer: (out, x_L)."""
    axis = -3 if core == "convs5" else -1

    def norm(h):
        return layer_norm(h, p["norm.weight"], p["norm.bias"], axis)

    v = norm(u) if o["use_norm"] and o["prenorm"] else u
    y, xL = ssm(core, sub(p, "ssm."), o, v, x0, step_rescale, dt, resets)
    if core == "convs5":
        if o["activation_block"] == "standard" or o["feedthrough"]:
            y = y + conv2d(v, p["D.weight"], p["D.bias"])
        out = oracle_dynamics.gate(p, o, convs5_block(sub(p, "block."), o, y), v, ACTIVATIONS, conv2d)
    else:
        g = gelu(y + p["ssm.D"] * v)
        out = g * sigmoid(g @ p["dense.weight"].T + p["dense.bias"])
    if o["skip"]:
        out = u + out
    if o["use_norm"] and not o["prenorm"]:
        out = norm(out)
    return out, xL


def stack(core, options, params, x, x0=None, step_rescale=1.0, dt=None, resets=None):
    """Whole stack. x0: None or list of real states [B,2P,...]. Returns (y, list of real x_L)."""
    o = full_options(core, options)
    params = {k: np.asarray(v, np.float64) for k, v in params.items()}
    h = np.asarray(x, np.float64)
    dt = None if dt is None else np.asarray(dt, np.float64)
    P = o["state_size"] // 2
    inputs, last = [], []
    for i in range(o["layers"]):
        if o.get("skip_connections"):
            if i == 8:
                h = h + inputs[3]
            if i == 11:
                h = h + inputs[6]
        inputs.append(h)
        if x0 is None:
            first = first_state(sub(params, f"layers.{i}.ssm."), o)
            state = np.zeros((h.shape[1], P, *h.shape[3:]), complex) + first.reshape(1, P, *[1] * (h.ndim - 3))
        else:
            state = join_state(np.asarray(x0[i], np.float64))
        h, xL = layer(core, sub(params, f"layers.{i}."), o, h, state, step_rescale, dt, resets)
        last.append(split_state(xL))
    return h, last
