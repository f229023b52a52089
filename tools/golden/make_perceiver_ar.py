"""Write tests/golden/perceiver_ar_*.npz: Perceiver AR on codes in NumPy, float64.

Usage: python make_perceiver_ar.py [output directory]     (default: ../../tests/golden)
Written from the specification; shares no code with the library or with the other oracles. One clip, one position and one head at a
time. There are no caches: every code of a future is drawn from a pass over all that it may see, by the definition of what a
cache that is rebuilt would hold.
"""

import json
import os
import sys

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))


class PerceiverAr:
    def __init__(self, m, rng):
        self.m, self.rng, self.p = m, rng, {}
        c = m["codebook"]
        self.K, self.h, self.w = c["count"], c["height"], c["width"]
        self.D, self.heads = m["features"], m["heads"]
        self.draw()
        self.p = {k: np.float32(v) for k, v in self.p.items()}
        self.q = {k: v.astype(np.float64) for k, v in self.p.items()}

    def linear(self, name, n, out):
        self.p[name + ".weight"] = self.rng.normal(size=(out, n)) / np.sqrt(n)
        self.p[name + ".bias"] = 0.2 * self.rng.normal(size=out)

    def affine(self, name):
        self.p[name + ".weight"] = 1 + 0.2 * self.rng.normal(size=self.D)
        self.p[name + ".bias"] = 0.2 * self.rng.normal(size=self.D)

    def draw(self):
        D, m = self.D, self.m
        self.p["network.tokens"] = self.rng.normal(size=(self.K + 1, D))  # the last is the start
        if m.get("axes", False):
            self.p["network.rows"] = self.rng.normal(size=(self.h, D))
            self.p["network.columns"] = self.rng.normal(size=(self.w, D))
        self.linear("network.latent", D, D)
        for name in ["cross"] + [f"layer{i}" for i in range(m["layers"])]:
            b = "network." + name + "."
            if name == "cross":
                self.affine(b + "norm_kv")
                self.linear(b + "q", D, D)
                self.linear(b + "kv", D, 2 * D)
            else:
                self.linear(b + "qkv", D, 3 * D)
            self.affine(b + "norm1")
            self.affine(b + "norm2")
            self.linear(b + "out", D, D)
            self.linear(b + "mlp1", D, m["widening"] * D)
            self.linear(b + "mlp2", m["widening"] * D, D)
        self.affine("network.norm")
        self.linear("network.logits", D, self.K)
        if m.get("actions", 0) > 0:
            self.p["actions"] = self.rng.normal(size=(m["actions"] + 1, D))

    def dense(self, name, x):
        return self.q[name + ".weight"] @ x + self.q[name + ".bias"]

    def norm(self, name, x):
        return (x - x.mean()) / np.sqrt(x.var() + 1e-5) * self.q[name + ".weight"] + self.q[name + ".bias"]

    def turn(self, x, pos):
        """One head's channels at a position."""
        x, r = x.copy(), int(self.m["rotary_fraction"] * x.size)
        n = r // 2
        for k in range(n):
            angle = pos / self.m["wavelength"] ** (k / (n - 1) if n > 1 else 0)
            e, o = x[2 * k], x[2 * k + 1]
            x[2 * k] = e * np.cos(angle) - o * np.sin(angle)
            x[2 * k + 1] = o * np.cos(angle) + e * np.sin(angle)
        return x

    def attend(self, q, q_pos, keys, values, k_pos):
        d = self.D // self.heads
        out = []
        for i in range(self.heads):
            part = slice(i * d, (i + 1) * d)
            turned = self.turn(q[part], q_pos)
            s = np.array([turned @ self.turn(k[part], j) for k, j in zip(keys, k_pos)]) / np.sqrt(d)
            a = np.exp(s - s.max())
            a /= a.sum()
            out.append(sum(x * v[part] for x, v in zip(a, values)))
        return np.concatenate(out)

    def after(self, block, z, attended):
        z = z + self.dense(block + "out", attended)
        hidden = np.maximum(self.dense(block + "mlp1", self.norm(block + "norm2", z)), 0) ** 2
        return z + self.dense(block + "mlp2", hidden)

    def embed(self, tokens, actions, p):
        """What enters at position p, which writes token p: the token before it, and where and by which action p is."""
        hw = self.h * self.w
        e = self.q["network.tokens"][tokens[p - 1] if p > 0 else self.K].copy()
        if self.m.get("axes", False):
            t, y, x = p // hw, p % hw // self.w, p % self.w
            f = 10000.0 ** (-2 * np.arange(self.D // 2) / self.D)
            e += np.concatenate([np.sin(t * f), np.cos(t * f)]) + self.q["network.rows"][y] + self.q["network.columns"][x]
        if "actions" in self.q:
            e += self.q["actions"][actions[p // hw]]  # -1 is the last row
        return e

    def logits(self, tokens, actions, first, latents, end):
        """Of positions latents..end-1, which see the inputs from `first` on and each other."""
        E = {p: self.embed(tokens, actions, p) for p in range(first, end)}
        both = {p: self.dense("network.cross.kv", self.norm("network.cross.norm_kv", E[p])) for p in E}
        keys, values = {p: x[:self.D] for p, x in both.items()}, {p: x[self.D:] for p, x in both.items()}
        at = range(latents, end)
        z = {}
        for p in at:
            z[p] = self.dense("network.latent", E[p])
            q = self.dense("network.cross.q", self.norm("network.cross.norm1", z[p]))
            seen = range(first, p + 1)
            a = self.attend(q, p, [keys[j] for j in seen], [values[j] for j in seen], seen)
            z[p] = self.after("network.cross.", z[p], a)
        for i in range(self.m["layers"]):
            b = f"network.layer{i}."
            three = {p: self.dense(b + "qkv", self.norm(b + "norm1", z[p])).reshape(3, self.D) for p in at}
            new = {}
            for p in at:
                seen = range(latents, p + 1)
                a = self.attend(three[p][0], p, [three[j][1] for j in seen], [three[j][2] for j in seen], seen)
                new[p] = self.after(b, z[p], a)
            z = new
        return [self.dense("network.logits", self.norm("network.norm", z[p])) for p in at]

    def loss(self, tokens, actions, end):
        """Sums over the latents of one window: cross-entropy, squared log sum exp, and how many."""
        N, Z = self.m["context"], self.m["latents"]
        first, latents = max(0, end - N), max(0, end - Z)
        ce = squares = 0.0
        for p, y in zip(range(latents, end), self.logits(tokens, actions, first, latents, end)):
            lse = y.max() + np.log(np.exp(y - y.max()).sum())
            ce += lse - y[tokens[p]]
            squares += lse ** 2
        return ce, squares, end - latents

    def next_logits(self, tokens, actions, p):
        """As sampling has them: the latents were rebuilt, half as many, when the cache was full."""
        N, Z = self.m["context"], self.m["latents"]
        latents = max(0, (p // (Z // 2) - 1) * (Z // 2))
        return self.logits(tokens, actions, max(0, latents + Z - N), latents, p + 1)[-1]

    def choose(self, y, u):
        m = self.m
        kept = np.ones(y.size, bool)
        if m.get("top_k", 0) > 0:
            kept = y >= np.sort(y)[-m["top_k"]]
        prob = np.where(kept, np.exp((y - y.max()) / m.get("temperature", 1)), 0)
        prob /= prob.sum()
        if m.get("top_p", 1) < 1:
            order, mass, most = np.argsort(-prob), 0.0, np.zeros(y.size)
            for k in order:
                if mass < m["top_p"]:
                    most[k] = prob[k]
                mass += prob[k]
            prob = most / most.sum()
        return int(np.argmax(np.cumsum(prob) > u))


def section(**more):
    m = dict(features=16, heads=2, layers=2, widening=4, latents=8, context=20, wavelength=20.0, rotary_fraction=0.5, dropout=0.0,
             log_sum_weight=1e-4)
    m.update(more)
    return m


CASES = {
    # windows that slide, futures with rebuilds within frames
    "perceiver_ar_rotary": section(codebook=dict(count=6, height=2, width=3, features=1), actions=3, temperature=0.8, top_k=5,
                                   top_p=0.9),
    # absolute positions, a clip that is not longer than the latents or the context
    "perceiver_ar_axes": section(codebook=dict(count=5, height=3, width=2, features=1), rotary_fraction=0.0, axes=True, layers=1,
                                 widening=2, latents=14, context=100, log_sum_weight=0.1),
}


def build(m, seed):
    rng = np.random.default_rng(300 + seed)
    model = PerceiverAr(m, rng)
    B, T, C, F = 2, 5, 3, 4  # clips, frames, of them context, frames of the future
    h, w = model.h, model.w
    hw = h * w
    codes = rng.integers(0, model.K, size=(B, T, h, w))
    actions = rng.integers(-1, max(m.get("actions", 0), 1), size=(B, C + F))
    out = {"config": np.frombuffer(json.dumps(m).encode(), np.uint8), "codes": codes, "actions": actions,
           "context": np.int64(C)}
    tokens = codes.reshape(B, -1)
    for name, ends in [("", [T * hw, m["latents"] + 5]), ("whole.", [T * hw, T * hw])]:
        parts = np.array([model.loss(tokens[b], actions[b], ends[b]) for b in range(B)])
        ce, squares, count = parts.sum(0)
        out[name + "ends"] = np.array(ends)
        out[name + "nats_per_code"] = np.float64(ce / count)
        out[name + "log_sum_square"] = np.float64(squares / count)
        out[name + "loss"] = np.float64((ce + m["log_sum_weight"] * squares) / count)
    short = np.array([model.loss(tokens[b], actions[b], hw) for b in range(B)]).sum(0)  # of the first frames alone
    out["short.loss"] = np.float64((short[0] + m["log_sum_weight"] * short[1]) / short[2])

    uniforms = rng.uniform(size=(B, F * hw))

    def future(b, known, first):
        """Goes on after the codes `known`; the numbers are those of the codes from `first` on."""
        tokens, all_logits = list(known), []
        while len(tokens) < (C + F) * hw:
            y = model.next_logits(tokens, actions[b], len(tokens))
            all_logits.append(y)
            tokens.append(model.choose(y, uniforms[b][len(tokens) - first]))
        return tokens[len(known):], all_logits

    rolled = [future(b, tokens[b][:C * hw], C * hw) for b in range(B)]
    out["uniforms"] = uniforms
    out["rollout"] = np.array([r[0] for r in rolled]).reshape(B, F, h, w)
    out["rollout_logits"] = np.array([r[1] for r in rolled])
    # The first forecast frame is told, and the future goes on after it.
    told = [future(b, tokens[b][:(C + 1) * hw], C * hw) for b in range(B)]
    out["corrected"] = np.array([r[0] for r in told]).reshape(B, F - 1, h, w)
    out["corrected_logits"] = np.array([r[1] for r in told])
    out["parameter_count"] = np.int64(sum(p.size for p in model.p.values()))
    out.update({"param." + k: p for k, p in model.p.items()})
    return out


def main():
    folder = sys.argv[1] if len(sys.argv) > 1 else os.path.join(HERE, "..", "..", "tests", "golden")
    for seed, (name, m) in enumerate(CASES.items()):
        path = os.path.join(folder, name + ".npz")
        values = build(m, seed)
        np.savez_compressed(path, **values)
        print(path, os.path.getsize(path), {k: float(v) for k, v in values.items() if k.endswith(("loss", "code", "square"))})


if __name__ == "__main__":
    main()
