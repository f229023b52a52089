#!/usr/bin/env python3
"""Golden values of Latent FDM: its denoiser with padding frames, the loss, and futures with given noise.

Plain NumPy in float64, a clip, a frame, a pixel and a head at a time, from the equations of the papers (Harvey et al. 2022; Ho et al.
2020; Nichol and Dhariwal 2021; Song et al. 2021). It shares no code with the library and knows neither batches nor masks: padding
frames are a second list of frames, and attention runs on each list alone.

    tools/golden/make_latent_fdm.py tests/golden
"""
import json
import sys
from pathlib import Path

import numpy as np

EPS = 1e-5  # of group norms


def silu(x):
    return x / (1 + np.exp(-x))


def softmax(x):
    e = np.exp(x - x.max())
    return e / e.sum()


def conv(x, w, b, stride=1):
    """x [C,H,W], 'w' [O,C,k,k], (k - 1) / 2 zeros around."""
    o, _, k, _ = w.shape
    p = (k - 1) // 2
    x = np.pad(x, ((0, 0), (p, p), (p, p)))
    h, v = (x.shape[1] - k) // stride + 1, (x.shape[2] - k) // stride + 1
    y = np.zeros((o, h, v))
    for i in range(h):
        for j in range(v):
            patch = x[:, i * stride:i * stride + k, j * stride:j * stride + k]
            y[:, i, j] = np.tensordot(w, patch, 3) + b
    return y


def divisor(channels, wanted):
    while channels % wanted:
        wanted -= 1
    return wanted


class Net:
    """The denoiser. Parameters are drawn when they are first asked for, by name, none of them zero."""

    def __init__(self, o, channels, side, seed):
        self.o, self.channels, self.side = o, channels, side
        self.rng = np.random.default_rng(seed)
        self.params = {}

    def param(self, name, shape):
        if name not in self.params:
            scale = 0.4 / np.sqrt(max(1, int(np.prod(shape[1:])))) if len(shape) > 1 else 0.1
            value = self.rng.normal(size=shape) * scale * (2.5 if len(shape) > 1 else 1)
            if name.endswith("norm.weight") or "norm0.weight" in name or "norm1.weight" in name:
                value += 1
            self.params[name] = (np.round(value * 32) / 32).astype(np.float32)  # few digits: a small file
        value = self.params[name].astype(np.float64)
        assert value.shape == tuple(shape), name
        return value

    def linear(self, name, x, out):
        return self.param(name + ".weight", (out, x.shape[0])) @ x + self.param(name + ".bias", (out,))

    def conv(self, name, x, out, k=3, stride=1):
        return conv(x, self.param(name + ".weight", (out, x.shape[0], k, k)), self.param(name + ".bias", (out,)), stride)

    def norm(self, name, x):
        """x [C, ...]: groups of channels with everything that comes after them."""
        c, g = x.shape[0], divisor(x.shape[0], self.o["groups"])
        y = np.zeros_like(x)
        for i in range(g):
            part = x[i * c // g:(i + 1) * c // g]
            y[i * c // g:(i + 1) * c // g] = (part - part.mean()) / np.sqrt(part.var() + EPS)
        shape = (c,) + (1,) * (x.ndim - 1)
        return y * self.param(name + ".weight", (c,)).reshape(shape) + self.param(name + ".bias", (c,)).reshape(shape)

    def time(self, t):
        c = self.o["channels"]
        half = c // 2
        t = t * 1000.0 / self.o["diffusion"]["steps"]
        angles = [t * 10000.0 ** (-i / half) for i in range(half)]
        e = np.array([np.cos(a) for a in angles] + [np.sin(a) for a in angles])
        return self.linear("denoiser.time1", silu(self.linear("denoiser.time0", e, 4 * c)), 4 * c)

    def res(self, name, x, temb, out):
        h = self.conv(name + ".conv0", silu(self.norm(name + ".norm0", x)), out)
        sb = self.linear(name + ".time", silu(temb), 2 * out)
        s, b = sb[:out, None, None], sb[out:, None, None]
        h = self.conv(name + ".conv1", silu(self.norm(name + ".norm1", h) * (1 + s) + b), out)
        return h + (x if x.shape[0] == out else self.conv(name + ".skip", x, out, 1))

    def position(self, name, d, temb, out):
        f = np.array([np.log(1 + max(d, 0)), np.log(1 + max(-d, 0)), float(d == 0)])
        return self.linear(name + ".out", silu(self.linear(name + ".distance", f, out) + self.linear(name + ".time", temb, out)), out)

    def temporal(self, name, x, numbers, tembs, lists):
        """x [K,C,H,W]; frames of a list attend to those of the same list; the norm sees all of them."""
        K, C, H, W = x.shape
        heads, e = self.o["heads"], C // self.o["heads"]
        relative = {}
        for frames in lists:
            for t in frames:
                for s in frames:
                    for what in "qkv":
                        relative[what, t, s] = self.position(f"{name}.position_{what}", numbers[t] - numbers[s], tembs[t], C)
        y = np.zeros_like(x)
        for i in range(H):
            for j in range(W):
                n = self.norm(name + ".norm", x[:, :, i, j].T).T  # [K,C]
                qkv = [self.linear(name + ".qkv", n[t], 3 * C) for t in range(K)]
                q, k, v = ([z[p * C:(p + 1) * C] for z in qkv] for p in range(3))
                for frames in lists:
                    for t in frames:
                        out = np.zeros(C)
                        for a in range(heads):
                            part = slice(a * e, (a + 1) * e)
                            logits = []
                            for s in frames:
                                logits.append((q[t][part] @ k[s][part] + q[t][part] @ relative["k", t, s][part]
                                               + k[s][part] @ relative["q", s, t][part]) / np.sqrt(e))
                            for weight, s in zip(softmax(np.array(logits)), frames):
                                out[part] += weight * (v[s][part] + relative["v", t, s][part])
                        y[t, :, i, j] = n[t] + self.linear(name + ".out", out, C)
        return y

    def spatial(self, name, x):
        """x [C,H,W] of one frame."""
        C, H, W = x.shape
        heads, e = self.o["heads"], C // self.o["heads"]
        n = self.norm(name + ".norm", x.reshape(C, H * W))
        qkv = np.array([self.linear(name + ".qkv", n[:, p], 3 * C) for p in range(H * W)])
        y = np.zeros_like(n)
        for p in range(H * W):
            out = np.zeros(C)
            for a in range(heads):
                q, k, v = (qkv[:, z * C + a * e:z * C + (a + 1) * e] for z in range(3))
                out[a * e:(a + 1) * e] = softmax(k @ q[p] / np.sqrt(e)) @ v
            y[:, p] = n[:, p] + self.linear(name + ".out", out, C)
        return y.reshape(C, H, W)

    def attention(self, name, h, numbers, tembs, lists):
        h = self.temporal(name + ".temporal", h, numbers, tembs, lists)
        return np.array([self.spatial(name + ".spatial", f) for f in h])

    def __call__(self, x, x0, observed, padding, numbers, t, actions):
        """x, x0 [K,C,H,W] -> eps [K,C,H,W]. `actions`: a row of the table for each frame, or None."""
        o, K = self.o, len(x)
        c, n, mults = o["channels"], o["blocks"], o["multipliers"]
        inputs = [np.concatenate([x0[k] if observed[k] else x[k], np.full((1,) + x.shape[2:], float(observed[k]))])
                  for k in range(K)]
        tembs = [self.time(t) for _ in range(K)]
        if actions is not None:
            table = self.param("actions", (o["actions"] + 1, 4 * c))
            tembs = [e + table[a] for e, a in zip(tembs, actions)]
        lists = [[k for k in range(K) if not padding[k]], [k for k in range(K) if padding[k]]]
        each = lambda f, h, *more: np.array([f(*z) for z in zip(h, *more)])

        h = each(lambda f: self.conv("denoiser.stem", f, c), inputs)
        skips, unit = [h], 0
        attend = lambda name, h: self.attention(name, h, numbers, tembs, lists) if h.shape[2] in o["attention"] else h
        for level, m in enumerate(mults):
            for _ in range(n):
                name = f"denoiser.down{unit}"
                h = attend(name + ".attention", each(lambda f, e: self.res(name + ".res", f, e, m * c), h, tembs))
                skips.append(h)
                unit += 1
            if level + 1 < len(mults):
                h = each(lambda f: self.conv(f"denoiser.down{unit}.conv", f, m * c, 3, 2), h)
                skips.append(h)
                unit += 1
        last = mults[-1] * c
        h = each(lambda f, e: self.res("denoiser.middle0", f, e, last), h, tembs)
        h = self.attention("denoiser.middle_attention", h, numbers, tembs, lists)
        h = each(lambda f, e: self.res("denoiser.middle1", f, e, last), h, tembs)
        unit = 0
        for level in reversed(range(len(mults))):
            for i in range(n + 1):
                name, out = f"denoiser.up{unit}", mults[level] * c
                h = np.concatenate([h, skips.pop()], 1)
                h = attend(name + ".attention", each(lambda f, e: self.res(name + ".res", f, e, out), h, tembs))
                if level > 0 and i == n:
                    h = each(lambda f: self.conv(name + ".conv", f.repeat(2, 1).repeat(2, 2), out), h)
                unit += 1
        return each(lambda f: self.conv("denoiser.out", silu(self.norm("denoiser.out_norm", f)), x.shape[1]), h)


def alpha_bars(o):
    n = o["diffusion"]["steps"]
    if o["diffusion"]["schedule"] == "linear":
        scale = 1000.0 / n
        betas = [scale * 1e-4 + (scale * 0.02 - scale * 1e-4) * i / (n - 1) for i in range(n)]
    else:
        bar = lambda s: np.cos((s + 0.008) / 1.008 * np.pi / 2) ** 2
        betas = [min(1 - bar((i + 1) / n) / bar(i / n), 0.999) for i in range(n)]
    return np.cumprod(1 - np.array(betas))


def sample(net, o, observed, latent, frames, noise, clip_actions, sampler, eta, clamp):
    """Frames of the numbers `latent`, given those of `observed`. noise[number][i], i = 0 before the first step."""
    bars = alpha_bars(o)
    n, count = len(bars), o["sampling"]["steps"]
    steps = [int(np.floor(i * (n - 1) / (count - 1) + 0.5)) for i in range(count)]
    numbers = observed + latent
    x = {f: noise[f][0] for f in latent}
    blank = np.zeros_like(noise[latent[0]][0])
    for i, place in enumerate(reversed(range(count))):
        bar, before = bars[steps[place]], bars[steps[place - 1]] if place > 0 else 1.0
        eps = net(np.array([x.get(f, blank) for f in numbers]), np.array([frames.get(f, blank) for f in numbers]),
                  [f in observed for f in numbers], [False] * len(numbers), numbers, steps[place],
                  None if clip_actions is None else [clip_actions[f] for f in numbers])
        for k, f in enumerate(numbers):
            if f in observed:
                continue
            x0 = (x[f] - np.sqrt(1 - bar) * eps[k]) / np.sqrt(bar)
            if clamp > 0:
                x0 = np.clip(x0, -clamp, clamp)
            if sampler == "ddpm":
                beta = 1 - bar / before
                mean = beta * np.sqrt(before) / (1 - bar) * x0 + (1 - before) * np.sqrt(1 - beta) / (1 - bar) * x[f]
                sigma = np.sqrt(beta)
            else:
                e = (x[f] - np.sqrt(bar) * x0) / np.sqrt(1 - bar)
                sigma = eta * np.sqrt((1 - before) / (1 - bar)) * np.sqrt(1 - bar / before)
                mean = np.sqrt(before) * x0 + np.sqrt(1 - before - sigma ** 2) * e
            x[f] = mean + (sigma * noise[f][i + 1] if place > 0 else 0)
    frames.update(x)


def write(path, o, channels, side, seed):
    rng = np.random.default_rng(seed)
    net = Net(o, channels, side, seed + 1)
    B, T, K = 2, 9, o["frames"]
    video = np.round(np.tanh(rng.normal(size=(B, T, channels, side, side))) * 128) / 128
    acts = rng.integers(-1, o["actions"], size=(B, T)) if o["actions"] else None
    rows = None if acts is None else np.where(acts < 0, o["actions"], acts)

    # The loss: 6 frames of each clip, two of them padding from the other; a set of frames in no order.
    own = [[4, 1, 7, 2], [0, 8, 3, 5]]
    other = [[6, 0], [7, 2]]
    observed = np.array([[1, 0, 0, 1, 0, 0], [0, 0, 1, 0, 0, 0]])
    padding = np.array([[0, 0, 0, 0, 1, 1], [0, 0, 0, 0, 1, 1]])
    numbers = np.array([own[b] + other[b] for b in range(B)])
    clip = np.array([[b] * 4 + [1 - b] * 2 for b in range(B)])
    steps = np.array([3, o["diffusion"]["steps"] - 4])
    noise = np.round(rng.normal(size=(B, K, channels, side, side)) * 64) / 64
    bars = alpha_bars(o)
    total, eps = 0.0, []
    for b in range(B):
        x0 = np.array([video[clip[b, k], numbers[b, k]] for k in range(K)])
        bar = bars[steps[b]]
        x = np.sqrt(bar) * x0 + np.sqrt(1 - bar) * noise[b]
        a = None if rows is None else [rows[clip[b, k], numbers[b, k]] for k in range(K)]
        out = net(x, x0, observed[b], padding[b], numbers[b], int(steps[b]), a)
        eps.append(out)
        error = (noise[b] - out) ** 2 * (1 - observed[b])[:, None, None, None]
        total += error.mean() / B

    # Futures of the first clip, autoreg: contexts of 4, the last K - S observed, S drawn at a time.
    context, S = 4, o["sampling"]["frames"]
    future_noise = np.round(rng.normal(size=(T, o["sampling"]["steps"] + 1, channels, side, side)) * 64) / 64
    futures = {}
    for name, sampler, eta, clamp in [("ddpm", "ddpm", 0, 1.0), ("ddim", "ddim", 0, 0), ("ddim_eta", "ddim", 0.7, 1.5)]:
        frames = {f: video[0, f] for f in range(context)}
        done = context
        while done < T - 1:
            latent = list(range(done, done + S))
            sample(net, o, list(range(max(0, done - (K - S)), done)), latent, frames, future_noise,
                   None if rows is None else rows[0], sampler, eta, clamp)
            done += S
        futures[name] = np.clip(np.array([frames[f] for f in range(context, done)]), -1, 1)

    config = {"model": o, "frames": [channels, side, side]}
    arrays = {"config": np.frombuffer(json.dumps(config).encode(), np.uint8), "video": video, "numbers": numbers, "clip": clip,
              "observed": observed, "latent": 1 - observed - padding, "steps": steps, "noise": noise, "eps": np.array(eps),
              "loss": np.array(total), "alpha_bars": bars, "future_noise": future_noise.astype(np.float32),
              "context": np.array(context), "parameter_count": np.array(sum(p.size for p in net.params.values()))}
    if acts is not None:
        arrays["actions"] = acts
    arrays.update({"future." + k: v for k, v in futures.items()})
    arrays.update({"param." + k: v for k, v in net.params.items()})
    np.savez_compressed(path, **arrays)
    print(f"{path}: loss {total:.6f}, {int(arrays['parameter_count'])} parameters, {path.stat().st_size} bytes")


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    base = {"frames": 6, "channels": 4, "groups": 2, "heads": 2}
    write(folder / "latent_fdm_linear.npz",
          base | {"multipliers": [1, 2], "blocks": 1, "attention": [4], "actions": 3,
                  "diffusion": {"steps": 40, "schedule": "linear"}, "sampling": {"frames": 2, "steps": 5}}, 2, 4, 1)
    write(folder / "latent_fdm_cosine.npz",
          base | {"multipliers": [1, 2], "blocks": 2, "attention": [], "actions": 0, "heads": 1,
                  "diffusion": {"steps": 50, "schedule": "cosine"}, "sampling": {"frames": 4, "steps": 4}}, 1, 4, 2)
