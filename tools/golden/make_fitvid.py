"""Write tests/golden/fitvid_*.npz: FitVid on pixels and on codes in NumPy, float64, with given noise and ends of contexts.

Usage: python make_fitvid.py [output directory]     (default: ../../tests/golden)
Written from the specification; shares no code with the library or with the other oracles. Recurrent networks run one clip at a
time, gate by gate; frames are doubled where the specification says, first in a block; forecasts run frame by frame from the
beginning, so nothing here knows of states.
"""

import json
import os
import sys

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def swish(x):
    return x * sigmoid(x)


def conv(x, w, stride=1):
    """x [N,C,H,W], w [O,C,k,k], zeros around: as many before as after, one more after if they are odd."""
    k, (H, W) = w.shape[2], x.shape[2:]
    h, v = -(-H // stride), -(-W // stride)
    rows, columns = max((h - 1) * stride + k - H, 0), max((v - 1) * stride + k - W, 0)
    x = np.pad(x, ((0, 0), (0, 0), (rows // 2, rows - rows // 2), (columns // 2, columns - columns // 2)))
    y = np.zeros((x.shape[0], w.shape[0], h, v))
    for i in range(h):
        for j in range(v):
            part = x[:, :, i * stride:i * stride + k, j * stride:j * stride + k]
            y[:, :, i, j] = np.tensordot(part, w, ([1, 2, 3], [1, 2, 3]))
    return y


class FitVid:
    def __init__(self, case, rng):
        self.c, self.m, self.rng = case, case["model"], rng
        self.p, self.b = {}, {}
        self.least_relu = 1.0  # how near a ReLU came to 0, where it has no derivative
        self.draw()
        self.p = {k: np.float32(v) for k, v in self.p.items()}
        self.b = {k: np.float32(v) for k, v in self.b.items()}
        self.q = {k: v.astype(np.float64) for k, v in self.p.items()}
        self.kept = {k: v.astype(np.float64) for k, v in self.b.items()}
        self.training, self.moved = False, {}

    # ---- parameters
    def weight(self, name, shape, fan):
        self.p[name] = self.rng.normal(size=shape) / np.sqrt(fan)

    def dense_of(self, name, n, out):
        self.weight(name + ".weight", (out, n), n)
        self.p[name + ".bias"] = 0.2 * self.rng.normal(size=out)

    def conv_of(self, name, n, out, k):
        self.weight(name + ".weight", (out, n, k, k), n * k * k)

    def norm_of(self, name, n):
        self.p[name + ".weight"] = self.rng.uniform(0.5, 1.5, size=n)
        self.p[name + ".bias"] = 0.3 * self.rng.normal(size=n)
        self.b[name + ".mean"] = 0.3 * self.rng.normal(size=n)
        self.b[name + ".variance"] = self.rng.uniform(0.3, 2, size=n)

    def scale_of(self, name, n):
        few = max(n // 16, 4)
        self.dense_of(name + ".squeeze", n, few)
        self.dense_of(name + ".excite", few, n)

    def memory_of(self, name, n, layers):
        d = self.m["memory"]
        self.dense_of(name + ".memory.first", n, d)
        for i in range(layers):
            self.weight(f"{name}.memory.lstm{i}.input", (4 * d, d), d)
            self.weight(f"{name}.memory.lstm{i}.hidden", (4 * d, d), d)
            self.p[f"{name}.memory.lstm{i}.bias"] = 0.2 * self.rng.normal(size=4 * d)

    def draw(self):
        m, (C, out, H, W) = self.m, self.c["frames"]
        S, n, F, e, g = m["stages"], m["blocks"], m["filters"], m["expansion"], m["hidden"]
        if "codebook" in m:
            self.p["codebook"] = self.rng.normal(size=(m["codebook"]["count"], m["codebook"]["features"]))
        channels = C
        for k in range(S * n):
            name, f, half = f"encoder.block{k}.", F * 2 ** (k // n), k > 0 and k % n == 0
            self.norm_of(name + "norm0", channels)
            self.conv_of(name + "conv0", channels, f, 3)
            self.norm_of(name + "norm1", f)
            self.conv_of(name + "conv1", f, f, 3)
            self.scale_of(name + "scale", f)
            if channels != f or half:
                self.conv_of(name + "shortcut", channels, f, 1)
                self.norm_of(name + "shortcut_norm", f)
            channels = f
        self.dense_of("encoder.head", channels, g)
        small = 2 ** (S - 1)
        self.dense_of("decoder.first", g, channels * (H // small) * (W // small))
        for k in range(S * n):
            name, f = f"decoder.block{k}.", F * 2 ** (S - 1 - k // n)
            self.norm_of(name + "norm0", channels)
            self.conv_of(name + "widen", channels, e * f, 1)
            self.norm_of(name + "norm1", e * f)
            self.conv_of(name + "conv", e * f, e * f, 5)
            self.norm_of(name + "norm2", e * f)
            self.conv_of(name + "narrow", e * f, f, 1)
            self.norm_of(name + "norm3", f)
            self.scale_of(name + "scale", f)
            if channels != f:
                self.conv_of(name + "shortcut", channels, f, 1)
                self.norm_of(name + "shortcut_norm", f)
            channels = 2 * f if m.get("skips") == "concat" else f
        self.conv_of("decoder.last", channels, out, 3)
        A = m.get("action_features", 1) if m.get("actions", 0) > 0 else 0
        if A:
            self.p["actions"] = self.rng.normal(size=(m["actions"] + 1, A))
        z = m["latent"] if m["stochastic"] else 0
        for name in ["posterior", "prior"] if z else []:
            self.memory_of(name, g, 1)
            self.dense_of(name + ".mean", m["memory"], z)
            self.dense_of(name + ".log_variance", m["memory"], z)
        self.memory_of("predictor", g + A + z, 2)
        self.dense_of("predictor.mean", m["memory"], g)

    # ---- layers
    def dense(self, name, x):
        return x @ self.q[name + ".weight"].T + self.q[name + ".bias"]

    def norm(self, name, x):
        mean, variance = self.kept[name + ".mean"], self.kept[name + ".variance"]
        if self.training:
            mean, variance = x.mean((0, 2, 3)), x.var((0, 2, 3))
            self.moved[name + ".mean"] = 0.9 * self.kept[name + ".mean"] + 0.1 * mean
            self.moved[name + ".variance"] = 0.9 * self.kept[name + ".variance"] + 0.1 * variance
        def row(v):
            return v[None, :, None, None]
        return row(self.q[name + ".weight"]) * (x - row(mean)) / np.sqrt(row(variance) + 1e-5) + row(self.q[name + ".bias"])

    def scale(self, name, x):
        inner = self.dense(name + ".squeeze", x.mean((2, 3)))
        self.least_relu = min(self.least_relu, np.abs(inner).min())
        return x * sigmoid(self.dense(name + ".excite", np.maximum(inner, 0)))[:, :, None, None]

    def rest(self, name, x, stride=1):
        if name + "shortcut.weight" not in self.q:
            return x
        return self.norm(name + "shortcut_norm", conv(x, self.q[name + "shortcut.weight"], stride))

    def encode(self, x):
        """x [N,C,H,W] -> hidden [N,g], what each block gave."""
        n, given = self.m["blocks"], []
        for k in range(self.m["stages"] * n):
            name, stride = f"encoder.block{k}.", 2 if k > 0 and k % n == 0 else 1
            y = conv(swish(self.norm(name + "norm0", x)), self.q[name + "conv0.weight"], stride)
            y = conv(swish(self.norm(name + "norm1", y)), self.q[name + "conv1.weight"])
            y = self.scale(name + "scale", y)
            x = swish(self.rest(name, x, stride) + y)
            given.append(x)
        return self.dense("encoder.head", x.mean((2, 3))), given

    def decode(self, h, shown):
        """h [N,g], shown: for each block of the encoder [N,C,H,W]."""
        m, (_, _, H, W) = self.m, self.c["frames"]
        n, small = m["blocks"], 2 ** (m["stages"] - 1)
        x = self.dense("decoder.first", h).reshape(len(h), -1, H // small, W // small)
        for k in range(m["stages"] * n):
            name = f"decoder.block{k}."
            if k > 0 and k % n == 0:
                x = x.repeat(2, 2).repeat(2, 3)
            y = conv(self.norm(name + "norm0", x), self.q[name + "widen.weight"])
            y = conv(swish(self.norm(name + "norm1", y)), self.q[name + "conv.weight"])
            y = conv(swish(self.norm(name + "norm2", y)), self.q[name + "narrow.weight"])
            y = self.scale(name + "scale", self.norm(name + "norm3", y))
            x = swish(self.rest(name, x) + y)
            s = shown[len(shown) - 1 - k]
            x = np.concatenate([x, s], 1) if m.get("skips") == "concat" else x + s
        return conv(x, self.q["decoder.last.weight"])

    def memory(self, name, layers, x, state):
        """One step of one clip; `state` is a list of (h, c), changed in place."""
        d = self.m["memory"]
        y = self.dense(name + ".memory.first", x)
        for l in range(layers):
            h, c = state[l] if l < len(state) else (np.zeros(d), np.zeros(d))
            at = f"{name}.memory.lstm{l}."
            gates = self.q[at + "input"] @ y + self.q[at + "hidden"] @ h + self.q[at + "bias"]
            i, f, o, g = sigmoid(gates[:d]), sigmoid(gates[d:2 * d]), sigmoid(gates[2 * d:3 * d]), np.tanh(gates[3 * d:])
            c = f * c + i * g
            h = o * np.tanh(c)
            state[l:l + 1] = [(h, c)]
            y = h
        return y

    def gaussian(self, name, x, state):
        y = self.memory(name, 1, x, state)
        return self.dense(name + ".mean", y), self.dense(name + ".log_variance", y)

    def predict(self, h, action, z, state):
        x = [h]
        if "actions" in self.q:
            x.append(self.q["actions"][action])  # -1 is the last row
        if z is not None:
            x.append(z)
        return sigmoid(self.dense("predictor.mean", self.memory("predictor", 2, np.concatenate(x), state)))

    # ---- the loss of clips
    def losses(self, seen, targets, valid, actions, noise, cuts):
        m, (B, T) = self.m, seen.shape[:2]
        h, given = self.encode(seen.reshape((B * T,) + seen.shape[2:]))
        h = h.reshape(B, T, -1)
        predicted, kl = np.zeros(h.shape), 0.0
        for b in range(B):
            one, two, three = [], [], []
            for t in range(1, T):
                z = None
                if m["stochastic"]:
                    (pm, pv), (qm, qv) = self.gaussian("posterior", h[b, t], one), self.gaussian("prior", h[b, t - 1], two)
                    ps, qs = np.exp(pv / 2), np.exp(qv / 2)
                    kl += (np.log(qs / ps) + (ps ** 2 + (pm - qm) ** 2) / (2 * qs ** 2) - 0.5).sum()
                    z = pm + ps * noise[t - 1, b]
                predicted[b, t] = self.predict(h[b, t - 1], actions[b, t], z, three)
        pairs = []  # clip, frame that is shown, frame that is predicted
        for b in range(B):
            ends = [m["n_past"] - 1] if m.get("n_past") else [cuts[b], T - 2 - cuts[b]]
            for end in ends:
                pairs += [(b, end, t) for t in range(1 if m.get("n_past") else end + 1, T)]
        rows = [b * T + end for b, end, _ in pairs]
        said = self.decode(np.array([predicted[b, t] for b, _, t in pairs]), [s[rows] for s in given])
        error = 0.0
        for y, (b, _, t) in zip(said, pairs):
            if "codebook" in m:
                K, a = y.shape[0], m["label_smoothing"]
                log_p = y - y.max(0) - np.log(np.exp(y - y.max(0)).sum(0))
                for i in range(y.shape[1]):
                    for j in range(y.shape[2]):
                        error -= (1 - a) * log_p[targets[b, t, i, j], i, j] + a / K * log_p[:, i, j].sum()
            else:
                error += ((sigmoid(y) - targets[b, t]) ** 2 * valid[b, t]).mean()
        error /= len(pairs)
        out = {"error": error, "loss": error}
        if m["stochastic"]:
            out["kl"] = kl / B / (T - 1)
            out["loss"] = error + m["beta"] * kl / B
        return out

    # ---- a future of one clip
    def future(self, inputs, told, actions, noise):
        """Frame by frame: those of `told` are true, the others made. What is made of each of the others."""
        m, made = self.m, {}
        one, two = [], []
        h = None
        for t in range(len(actions)):
            if t > 0:
                z = None
                if m["stochastic"]:
                    mean, variance = self.gaussian("prior", h, one)
                    z = mean + np.exp(variance / 2) * noise[t - 1]
                predicted = self.predict(h, actions[t], z, two)
            if t in told:
                h, shown = self.encode(self.seen(inputs[t])[None])
                h = h[0]
                continue
            y = self.decode(predicted[None], shown)[0]
            made[t] = y.argmax(0) if "codebook" in m else 2 * sigmoid(y) - 1
            h = self.encode(self.seen(made[t])[None])[0][0]
        return made

    def seen(self, x):
        return self.q["codebook"][x].transpose(2, 0, 1) if "codebook" in self.m else (x + 1) / 2


BASE = dict(hidden=5, memory=6, latent=3, stochastic=True, beta=0.03)

CASES = {
    "fitvid_plain": dict(model=dict(BASE, stages=2, blocks=2, filters=2, expansion=2), frames=[1, 1, 6, 8]),
    "fitvid_options": dict(model=dict(BASE, stages=3, blocks=1, filters=3, expansion=1, skips="concat", n_past=2, actions=3,
                                      action_features=2, beta=0.4), frames=[2, 2, 8, 4]),
    "fitvid_codes": dict(model=dict(BASE, stages=2, blocks=1, filters=4, expansion=2, stochastic=False, actions=2,
                                    label_smoothing=0.05, codebook=dict(count=7, height=6, width=4, features=3)),
                         frames=[3, 7, 6, 4]),
}


def build(case, seed):
    rng = np.random.default_rng(seed)
    model = FitVid(case, rng)
    m, B, T, K = case["model"], 3, 6, 2
    C, _, H, W = case["frames"]
    noise = np.float32(rng.normal(size=(T - 1, B, m["latent"])))
    actions = rng.integers(-1, max(m.get("actions", 0), 1), size=(B, T))
    cuts = rng.integers(0, T - 1, size=B)
    out = {"config": np.frombuffer(json.dumps(case).encode(), np.uint8), "actions": actions, "context": np.int64(K),
           "noise": noise, "cuts": cuts}
    n = noise.astype(np.float64)
    if "codebook" in m:
        inputs = targets = out["codes"] = rng.integers(0, m["codebook"]["count"], size=(B, T, H, W))
        seen = np.array([[model.seen(x) for x in clip] for clip in inputs])
    else:
        out["video"] = np.float32(rng.uniform(-1, 1, size=(B, T, C, H, W)))
        inputs = out["video"].astype(np.float64)
        seen = targets = model.seen(inputs)
        out["valid"] = (rng.uniform(size=inputs.shape) < 0.8).astype(np.uint8)
    everything = np.ones(seen.shape)

    def losses(name, valid):
        for key, value in model.losses(seen, targets, valid, actions, n, cuts).items():
            out[name + key] = np.float64(value)

    model.training = True
    losses("", everything)
    assert set(model.moved) == set(model.kept)
    for name in sorted({k.rsplit(".", 1)[0] for k in model.kept}):  # mean and variance, and what they are after a step of training
        out["norm." + name] = np.array([v[name + "." + k] for v in (model.kept, model.moved) for k in ("mean", "variance")])
    if "codebook" not in m:
        losses("valid.", out["valid"])
    model.training = False
    losses("eval.", everything)

    def future(name, told, first):
        rows = [model.future(inputs[b], told, actions[b], n[:, b]) for b in range(B)]
        out[name] = np.array([[made[t] for t in range(first, T)] for made in rows])

    future("rollout", set(range(K)), K)
    future("corrected", set(range(K)) | {K + 1}, K + 2)  # frame K+1 was told after its forecast, frame K was not
    out["parameter_count"] = np.int64(sum(p.size for p in model.p.values()))
    out.update({"param." + k: p for k, p in model.p.items()})
    return out, model.least_relu


def main():
    folder = sys.argv[1] if len(sys.argv) > 1 else os.path.join(HERE, "..", "..", "tests", "golden")
    for number, (name, case) in enumerate(CASES.items()):
        seed = 1000 * (number + 1)  # the first with no ReLU near 0, where tests take finite differences
        while True:
            values, nearest = build(case, seed)
            if nearest > 1e-3:
                break
            seed += 1
        path = os.path.join(folder, name + ".npz")
        np.savez_compressed(path, **values)
        print(path, os.path.getsize(path), seed, nearest, {k: float(v) for k, v in values.items() if k.endswith(("error", "loss", "kl"))})


if __name__ == "__main__":
    main()
