"""Write tests/golden/cwvae_*.npz: CW-VAE on pixels and on codes in NumPy, float64, with given noise.

Usage: python make_cwvae.py [output directory]     (default: ../../tests/golden)
Written from the specification; shares no code with the library or with the other oracles. Sequences are run frame by frame from
the beginning, one clip at a time, so nothing here knows of batches, windows that are kept or products taken together.
"""

import json
import os
import sys

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def leaky(x):
    return np.where(x > 0, x, 0.2 * x)


def relu(x):
    return np.maximum(x, 0)


def conv(x, w, b, padding):
    """x [C,H,W], w [O,C,kh,kw], stride 2, by its definition."""
    x = np.pad(x, ((0, 0), (padding, padding), (padding, padding)))
    O, _, kh, kw = w.shape
    H, W = (x.shape[1] - kh) // 2 + 1, (x.shape[2] - kw) // 2 + 1
    y = np.zeros((O, H, W))
    for i in range(H):
        for j in range(W):
            y[:, i, j] = np.tensordot(w, x[:, 2 * i:2 * i + kh, 2 * j:2 * j + kw], 3) + b
    return y


def conv_transposed(x, w, b, padding):
    """x [C,H,W], w [C,O,kh,kw], stride 2: every pixel paints a kernel."""
    _, O, kh, kw = w.shape
    H, W = x.shape[1:]
    y = np.zeros((O, 2 * (H - 1) + kh, 2 * (W - 1) + kw))
    for i in range(H):
        for j in range(W):
            y[:, 2 * i:2 * i + kh, 2 * j:2 * j + kw] += np.tensordot(x[:, i, j], w, 1)
    if padding:
        y = y[:, padding:-padding, padding:-padding]
    return y + b[:, None, None]


class Cwvae:
    def __init__(self, case, rng):
        self.c, self.m = case, case["model"]
        self.padding = 1 if "codebook" in self.m else 0
        self.p = {}
        self.rng = rng
        self.draw()
        self.p = {k: np.float32(v) for k, v in self.p.items()}
        self.q = {k: v.astype(np.float64) for k, v in self.p.items()}

    def weight(self, name, shape, fan):
        self.p[name] = self.rng.normal(size=shape) / np.sqrt(fan)

    def linear(self, name, n, out):
        self.weight(name + ".weight", (out, n), n)
        self.p[name + ".bias"] = 0.1 * self.rng.normal(size=out)

    def draw(self):
        c, m = self.c, self.m
        s, d, e, L = m["stochastic"], m["deterministic"], m["embedding"], m["levels"]
        if "codebook" in m:
            self.p["codebook"] = self.rng.normal(size=(m["codebook"]["count"], m["codebook"]["features"]))
        for i, (n, out, kh, kw) in enumerate(c["down"]):
            self.weight(f"encoder.weight{i}", (out, n, kh, kw), n * kh * kw)
            self.p[f"encoder.bias{i}"] = 0.1 * self.rng.normal(size=out)
        E = c["features"]
        self.linear("decoder.first", s + d, E)
        for i, (n, out, kh, kw) in enumerate(c["up"]):
            self.weight(f"decoder.weight{i}", (n, out, kh, kw), n)
            self.p[f"decoder.bias{i}"] = 0.1 * self.rng.normal(size=out)
        A = m.get("action_features", 1) if m.get("actions", 0) > 0 else 0
        if A:
            self.p["actions"] = self.rng.normal(size=(m["actions"] + 1, A))
        use = m.get("use_obs", [1] * L)
        for l in range(L):
            h = f"hierarchy.level{l}."
            self.linear(h + "input", s + (s + d) + (A if l == 0 else 0), e)
            self.weight(h + "gru.input", (3 * d, e), e)
            self.weight(h + "gru.hidden", (3 * d, d), d)
            self.p[h + "gru.input_bias"] = 0.1 * self.rng.normal(size=3 * d)
            self.p[h + "gru.hidden_bias"] = 0.1 * self.rng.normal(size=3 * d)
            kinds = ["prior", "posterior"] if use[l] else ["prior"]
            self.linear(h + "prior", d, e)
            if use[l]:
                self.linear(h + "joint", d + E, e)
                self.linear(h + "posterior", e, e)
            for kind in kinds:
                self.linear(h + kind + "_mean", e, s)
                self.linear(h + kind + "_std", e, s)
            if l > 0 and any(use[l:]):
                n = m["dense_layers"]
                for i in range(n):
                    self.linear(f"hierarchy.upwards{l}_{i}", E if i == 0 else m["dense_features"],
                                E if i + 1 == n else m["dense_features"])

    def dense(self, name, x):
        return self.q[name + ".weight"] @ x + self.q[name + ".bias"]

    def encode(self, x):
        for i in range(len(self.c["down"])):
            x = leaky(conv(x, self.q[f"encoder.weight{i}"], self.q[f"encoder.bias{i}"], self.padding))
        return x.reshape(-1)

    def decode(self, o):
        x = self.dense("decoder.first", o).reshape(self.c["begin"])
        n = len(self.c["up"])
        for i in range(n):
            x = conv_transposed(x, self.q[f"decoder.weight{i}"], self.q[f"decoder.bias{i}"], self.padding)
            x = leaky(x) if i + 1 < n else x
        return x

    def gru(self, name, x, h):
        a = self.q[name + ".input"] @ x + self.q[name + ".input_bias"]
        b = self.q[name + ".hidden"] @ h + self.q[name + ".hidden_bias"]
        d = h.size
        r, u = sigmoid(a[:d] + b[:d]), sigmoid(a[d:2 * d] + b[d:2 * d])
        n = np.tanh(a[2 * d:] + r * b[2 * d:])
        return u * h + (1 - u) * n

    def head(self, name, q):
        return self.dense(name + "_mean", q), np.logaddexp(0, self.dense(name + "_std", q + 0.54)) + self.m["min_std"]

    def clip(self, frames, seen, actions, noise):
        """One clip of T frames, those with seen[t] looked at: per level lists of (z, h, posterior or None, prior)."""
        m, T = self.m, len(seen)
        L, f = m["levels"], m["factor"]
        use = m.get("use_obs", [1] * L)
        looks = [[self.encode(frames[t]) if seen[t] else None for t in range(T)]]
        for l in range(1, L):
            above = []
            for x in looks[-1]:
                if x is not None and any(use[l:]):
                    for i in range(m["dense_layers"]):
                        x = self.dense(f"hierarchy.upwards{l}_{i}", x)
                        x = relu(x) if i + 1 < m["dense_layers"] else x
                above.append(x)
            looks.append(above)
        s, d = m["stochastic"], m["deterministic"]
        levels = [None] * L
        for l in reversed(range(L)):
            w = f ** l
            z, h, ticks = np.zeros(s), np.zeros(d), []
            for k in range(-(-T // w)):
                context = np.zeros(s + d) if l + 1 == L else np.concatenate(levels[l + 1][k // f][:2])
                if l == 0 and "actions" in self.q:
                    context = np.concatenate([context, self.q["actions"][actions[k]]])  # -1 is the last row
                name = f"hierarchy.level{l}."
                h = self.gru(name + "gru", relu(self.dense(name + "input", np.concatenate([z, context]))), h)
                prior = self.head(name + "prior", relu(self.dense(name + "prior", h)))
                window = [looks[l][t] for t in range(k * w, min((k + 1) * w, T)) if seen[t]]
                posterior = None
                if use[l] and window:
                    joint = relu(self.dense(name + "joint", np.concatenate([h, sum(window)])))
                    posterior = self.head(name + "posterior", relu(self.dense(name + "posterior", joint)))
                mean, std = prior if posterior is None else posterior
                z = mean + std * noise[l][k] if noise is not None else mean
                ticks.append((z, h, posterior, prior))
            levels[l] = ticks
        return levels

    def losses(self, targets, valid, levels):
        """Of one clip, sums over its frames: nll, divergence per level, what of the divergences is the loss."""
        m, nll = self.m, 0.0
        for t, (z, h, _, _) in enumerate(levels[0]):
            y = self.decode(np.concatenate([z, h]))
            if "codebook" in m:
                y = y - y.max(0)
                log_p = y - np.log(np.exp(y).sum(0))
                for i in range(y.shape[1]):
                    for j in range(y.shape[2]):
                        nll -= log_p[targets[t][i, j], i, j]
                continue
            sigma = m["sigma"]
            error = (np.tanh(y) - targets[t]) ** 2 / (2 * sigma ** 2) + np.log(sigma) + 0.5 * np.log(2 * np.pi)
            nll += (error * valid[t]).sum()
        a, kls, total = m.get("kl_balance", 0), {}, 0.0
        beta = m.get("beta", [1])
        for l, ticks in enumerate(levels):
            if ticks[0][2] is None:
                continue
            kl = 0.0
            for _, _, (pm, ps), (qm, qs) in ticks:
                kl += (np.log(qs / ps) + (ps ** 2 + (pm - qm) ** 2) / (2 * qs ** 2) - 0.5).sum()
            kls[f"kl_{l}"] = kl
            loss = (1 - a) * kl + max(1, a * kl) if a > 0 else kl
            total += beta[l if len(beta) > 1 else 0] * loss
        if m.get("free_nats", 0) > 0:
            total = max(0, total - m["free_nats"])
        return nll, kls, nll + total


BASE = dict(stochastic=2, deterministic=4, embedding=5, dense_layers=3, dense_features=6, min_std=1e-4, sigma=1.0)

CASES = {
    # 14 x 16 -> 6 x 7 -> 2 x 2; up 1 -> 5 x 6 -> 14 x 16
    "cwvae_plain": dict(model=dict(BASE, levels=3, factor=2, filters=2), frames=[1, 14, 16], features=16,
                        down=[[1, 2, 4, 4], [2, 4, 4, 4]], begin=[16, 1, 1], up=[[16, 2, 5, 6], [2, 1, 6, 6]]),
    # 8 x 10 -> 3 x 4; up 1 -> 8 x 10
    "cwvae_options": dict(model=dict(BASE, levels=3, factor=3, filters=3, sigma=0.4, actions=3, action_features=2,
                                     kl_balance=0.4, beta=[1.0, 0.5, 2.0], free_nats=0.3, use_obs=[1, 1, 0],
                                     dense_layers=2), frames=[2, 8, 10], features=36,
                          down=[[2, 3, 4, 4]], begin=[36, 1, 1], up=[[36, 2, 8, 10]]),
    # 8 x 8 -> 4 x 4 -> 2 x 2 and back
    "cwvae_codes": dict(model=dict(BASE, levels=2, factor=2, filters=1, dense_layers=1, actions=2,
                                   codebook=dict(count=7, height=8, width=8, features=3)), frames=[1, 8, 8], features=16,
                        down=[[3, 2, 4, 4], [2, 4, 4, 4]], begin=[4, 2, 2], up=[[4, 2, 4, 4], [2, 7, 4, 4]]),
}


def build(case, seed):
    rng = np.random.default_rng(200 + seed)  # no ReLU of these is within 1e-5 of 0, where tests take finite differences
    model = Cwvae(case, rng)
    m = case["model"]
    B, T, K = 2, 7, 3
    C, H, W = case["frames"]
    f, L = m["factor"], m["levels"]
    noise = [np.float32(rng.normal(size=(-(-T // f ** l), B, m["stochastic"]))) for l in range(L)]
    actions = rng.integers(-1, max(m.get("actions", 0), 1), size=(B, T))
    out = {"config": np.frombuffer(json.dumps(case).encode(), np.uint8), "actions": actions, "context": np.int64(K)}
    if "codebook" in m:
        codes = rng.integers(0, m["codebook"]["count"], size=(B, T, H, W))
        out["codes"] = codes
        frames = model.q["codebook"][codes].transpose(0, 1, 4, 2, 3)
        targets, valid = codes, None
    else:
        video = np.float32(rng.uniform(-1, 1, size=(B, T, C, H, W)))
        valid = rng.uniform(size=video.shape) < 0.8
        out["video"], out["valid"] = video, valid.astype(np.uint8)
        targets = frames = (video.astype(np.float64) + 1) / 2
    v = valid if valid is not None else [None] * B

    def losses(noise_of, masks, name):
        parts = []
        for b in range(B):
            levels = model.clip(frames[b], [True] * T, actions[b], noise_of(b))
            parts.append(model.losses(targets[b], masks[b], levels))
        out[name + "nll"] = np.float64(np.mean([p[0] for p in parts]) / T)
        for key in parts[0][1]:
            out[name + key] = np.float64(np.mean([p[1][key] for p in parts]) / T)
        out[name + "loss"] = np.float64(np.mean([p[2] for p in parts]) / T)

    def own(b):
        return [n[:, b].astype(np.float64) for n in noise]

    losses(own, np.ones((B, T, 1, 1, 1)), "")
    losses(lambda b: None, np.ones((B, T, 1, 1, 1)), "means.")
    if valid is not None:
        losses(own, v, "valid.")

        def future(seen, first):
            rows = []
            for b in range(B):
                ticks = model.clip(frames[b], [t in seen for t in range(T)], actions[b], own(b))[0]
                rows.append([np.clip(np.tanh(model.decode(np.concatenate(k[:2]))), 0, 1) * 2 - 1 for k in ticks[first:]])
            return np.float32(np.array(rows))

        out["rollout"] = future(set(range(K)), K)
        out["corrected"] = future(set(range(K)) | {K + 1}, K + 2)  # frame K+1 was told after its forecast, frame K was not
    for l, n in enumerate(noise):
        out[f"noise{l}"] = n
    out["parameter_count"] = np.int64(sum(p.size for p in model.p.values()))
    out.update({"param." + k: p for k, p in model.p.items()})
    return out


def main():
    folder = sys.argv[1] if len(sys.argv) > 1 else os.path.join(HERE, "..", "..", "tests", "golden")
    for seed, (name, case) in enumerate(CASES.items()):
        path = os.path.join(folder, name + ".npz")
        values = build(case, seed)
        np.savez_compressed(path, **values)
        print(path, os.path.getsize(path), {k: float(v) for k, v in values.items() if k.endswith(("nll", "loss", "kl_0", "kl_1", "kl_2"))})


if __name__ == "__main__":
    main()
