"""Write tests/golden/pixel_*.npz: the pixel predictor (encoder, ConvS5 core, decoder, loss, rollout) in NumPy, float64.

Usage: python make_pixel.py [output directory]     (default: ../../tests/golden)
Only the core is taken from oracle.py; encoder, decoder, action embedding, padding and loss are written here from the
specification. Parameters are drawn here, rounded to float32, and stored with the results.
"""

import json
import os
import sys

import numpy as np

import oracle

HERE = os.path.dirname(os.path.abspath(__file__))


def elu(x):
    return np.where(x > 0, x, np.expm1(np.minimum(x, 0)))


def groups_of(channels, wanted=32):
    return max(g for g in range(1, min(channels, wanted) + 1) if channels % g == 0)


def conv(x, p, name):
    """x [N,C,H,W]; zero padding so that the size stays."""
    w = p[name + ".weight"].astype(np.float64)
    w = w[:, :, None, None] if w.ndim == 2 else w
    k = w.shape[2] // 2
    padded = np.pad(x, ((0, 0), (0, 0), (k, k), (k, k)))
    H, W = x.shape[2:]
    out = np.zeros((x.shape[0], w.shape[0], H, W))
    for dy in range(w.shape[2]):
        for dx in range(w.shape[3]):
            out += np.einsum("nchw,oc->nohw", padded[:, :, dy:dy + H, dx:dx + W], w[:, :, dy, dx])
    bias = p.get(name + ".bias")
    return out if bias is None else out + bias[None, :, None, None]


def normalized(x, p, name, groups):
    N, C, H, W = x.shape
    g = x.reshape(N, groups, -1)
    g = (g - g.mean(-1, keepdims=True)) / np.sqrt(g.var(-1, keepdims=True) + 1e-6)
    return g.reshape(x.shape) * p[name + ".weight"][None, :, None, None] + p[name + ".bias"][None, :, None, None]


def res_block(x, p, name):
    d = p[name + ".conv1.bias"].size
    s = conv(x, p, name + ".shortcut") if x.shape[1] != d else x
    h = conv(elu(normalized(x, p, name + ".norm1", groups_of(x.shape[1]))), p, name + ".conv1")
    h = conv(elu(normalized(h, p, name + ".norm2", groups_of(d))), p, name + ".conv2")
    return s + 0.1 * h


def encode(x, p, depths, blocks):
    h, b = conv(x, p, "encoder.first"), 0
    for i in range(len(depths)):
        if i > 0:
            N, C, H, W = h.shape
            h = h.reshape(N, C, H // 2, 2, W // 2, 2).mean((3, 5))
        for _ in range(1 if i == 0 else blocks):
            h = res_block(h, p, f"encoder.blocks.{b}")
            b += 1
    return h


def decode_linear(x, p, depths, blocks):
    h, b = conv(x, p, "decoder.first"), 0
    for i in range(len(depths)):
        if i > 0:
            h = h.repeat(2, axis=2).repeat(2, axis=3)
        for _ in range(blocks):
            h = res_block(h, p, f"decoder.blocks.{b}")
            b += 1
    h = (h - h.mean(1, keepdims=True)) / np.sqrt(h.var(1, keepdims=True) + 1e-6)
    h = h * p["decoder.norm.weight"][None, :, None, None] + p["decoder.norm.bias"][None, :, None, None]
    w = p["decoder.last.weight"]
    return np.einsum("nchw,oc->nohw", h, w) + p["decoder.last.bias"][None, :, None, None]


def decode(x, p, depths, blocks):
    return np.tanh(decode_linear(x, p, depths, blocks))


class Pixel:
    def __init__(self, case, rng):
        self.c = case
        self.p = {k: np.float32(v) for k, v in self.draw(rng).items()}
        self.q = {k: v.astype(np.float64) for k, v in self.p.items()}

    def draw(self, rng):
        c, p = self.c, {}

        def weights(name, out, n, k, bias=True):
            p[name + ".weight"] = rng.normal(size=(out, n, k, k)) / np.sqrt(n * k * k)
            if bias:
                p[name + ".bias"] = 0.1 * rng.normal(size=out)

        def norm(name, n):
            p[name + ".weight"] = 1 + 0.1 * rng.normal(size=n)
            p[name + ".bias"] = 0.1 * rng.normal(size=n)

        def block(name, n, d):
            norm(name + ".norm1", n)
            weights(name + ".conv1", d, n, 3)
            norm(name + ".norm2", d)
            weights(name + ".conv2", d, d, 3)
            if n != d:
                weights(name + ".shortcut", d, n, 1, bias=False)

        depths, blocks = c["depths"], c["blocks"]
        seen = c["channels"] - len(c.get("diagnostic", []))
        inputs = seen * (2 if c.get("mask_input") else 1) + (c["action_maps"] + 1 if "action_maps" in c else 0)
        weights("encoder.first", depths[0], inputs, 3)
        n, b = depths[0], 0
        for i, d in enumerate(depths):
            for _ in range(1 if i == 0 else blocks):
                block(f"encoder.blocks.{b}", n, d)
                n, b = d, b + 1
        if c["actions"] > 0:
            p["actions"] = rng.normal(size=(c["actions"] + 1, c["action_features"]))
            n += c["action_features"]
        U = c["core"]["features"]
        weights(CORE_IN, U, n, 1)
        p[CORE_IN + ".weight"] = p[CORE_IN + ".weight"][:, :, 0, 0]
        options = {k: v for k, v in c["core"].items() if k != "name"}
        for name, shape in oracle.param_shapes("convs5", oracle.full_options("convs5", options)).items():
            scale = 1 / np.sqrt(np.prod(shape[1:-1])) if len(shape) > 2 else 0.3
            value = scale * rng.normal(size=shape)
            if name.endswith("Lambda_re"):
                value = -0.5 - 0.1 * np.abs(value)
            if name.endswith("log_step"):
                value = rng.uniform(np.log(1e-2), np.log(0.3), size=shape)
            if name.endswith("norm.weight") or name.endswith("norm1.weight") or name.endswith("norm2.weight"):
                value = 1 + 0.1 * value
            p[CORE + name] = value
        weights("decoder.first", depths[0], U, 3)
        n, b = depths[0], 0
        for d in reversed(depths):
            for _ in range(blocks):
                block(f"decoder.blocks.{b}", n, d)
                n, b = d, b + 1
        norm("decoder.norm", n)
        p["decoder.last.weight"] = rng.normal(size=(c["channels"], n)) / np.sqrt(n)
        p["decoder.last.bias"] = 0.1 * rng.normal(size=c["channels"])
        return p

    def beside(self, video, valid, maps):
        """What the encoder sees of frames: seen channels, their mask, maps of the frames to come and where they are masked."""
        c, parts = self.c, []
        for k in range(c["channels"]):
            if k not in c.get("diagnostic", []):
                parts.append(video[:, :, k] * valid[:, :, k] if c.get("mask_input") else video[:, :, k])
        if c.get("mask_input"):
            parts += [valid[:, :, k] * 1.0 for k in range(c["channels"]) if k not in c.get("diagnostic", [])]
        if "action_maps" in c:
            gone = np.isnan(maps).any(2)
            parts += [np.where(gone, 0, maps[:, :, m]) for m in range(c["action_maps"])] + [gone * 1.0]
        return np.stack(parts, 2)

    def predict(self, video, actions, valid=None):
        """video [B,T,C,H,W] -> predictions of frames 1..T, [B,T,C,H,W]; actions [B,T] or maps [B,T,M,H,W] lead to them."""
        c = self.c
        video = self.beside(video, valid if valid is not None else np.ones(video.shape, bool), actions)
        B, T, C, H, W = video.shape
        scale = 2 ** (len(c["depths"]) - 1)
        ph, pw = -H % scale, -W % scale
        x = np.pad(video, ((0, 0), (0, 0), (0, 0), (0, ph), (0, pw)), mode="edge").transpose(1, 0, 2, 3, 4)
        f = encode(x.reshape(T * B, C, H + ph, W + pw), self.q, c["depths"], c["blocks"])
        if c["actions"] > 0:
            rows = self.q["actions"][actions.T.reshape(-1)]  # -1 is the last row
            f = np.concatenate([f, np.broadcast_to(rows[:, :, None, None], rows.shape + f.shape[2:])], 1)
        u = conv(f, self.q, CORE_IN)
        options = oracle.full_options("convs5", {k: v for k, v in c["core"].items() if k != "name"})
        core = {k[len(CORE):]: v for k, v in self.q.items() if k.startswith(CORE) and not k.startswith(CORE_IN)}
        y = oracle.stack("convs5", options, core, u.reshape((T, B) + u.shape[1:]))[0]
        r = decode(y.reshape((T * B,) + y.shape[2:]), self.q, c["depths"], c["blocks"])
        return r.reshape((T, B) + r.shape[1:]).transpose(1, 0, 2, 3, 4)[..., :H, :W]


CORE_IN, CORE = "core.input", "core.core."

CASES = {
    "pixel_plain": dict(channels=1, height=8, width=8, depths=[4, 8], blocks=1, actions=1, action_features=1,
                        loss_weight=0.5, core=dict(name="convs5", features=8, state_size=8, layers=2, groups=4)),
    "pixel_odd": dict(channels=2, height=9, width=7, depths=[4, 6, 8], blocks=2, actions=3, action_features=2,
                      loss_weight=0.3, core=dict(name="convs5", features=8, state_size=4, layers=1, groups=2)),
    "pixel_flat": dict(channels=3, height=5, width=4, depths=[6], blocks=1, actions=0, action_features=1,
                       loss_weight=1.0, core=dict(name="convs5", features=4, state_size=4, layers=1, groups=1)),
    "pixel_field": dict(channels=3, height=6, width=7, depths=[4, 6], blocks=1, actions=0, action_features=1,
                        action_maps=2, mask_input=True, diagnostic=[1], loss_weight=0.4,
                        core=dict(name="convs5", features=4, state_size=4, layers=1, groups=2)),
}


def build(case, seed):
    rng = np.random.default_rng(seed)
    model = Pixel(case, rng)
    B, T, K, N = 2, 5, 3, 3
    shape = (B, T, case["channels"], case["height"], case["width"])
    video = np.float32(rng.uniform(-1, 1, size=shape))
    actions = rng.integers(-1, max(case["actions"], 1), size=(B, T + N)) if case["actions"] > 1 else np.zeros((B, T + N), int)
    valid = np.ones(shape, bool)
    if "action_maps" in case:
        actions = np.float32(rng.uniform(-1, 1, size=(B, T + N, case["action_maps"]) + shape[3:]))
        actions[rng.uniform(size=actions.shape) < 0.05] = np.nan
    if case.get("mask_input"):
        valid = rng.uniform(size=shape) < 0.6
        valid[:, :, :, 0, :3] = False  # land
        valid[:, 2] = False  # a frame that was not measured at all
        video[~valid] = 0
    v = video.astype(np.float64)
    r = model.predict(v[:, :-1], actions[:, 1:T], valid[:, :-1])
    e = (r - v[:, 1:])[valid[:, 1:]]
    row = case["channels"] * case["width"]
    l2, l1 = (e ** 2).mean() * row, np.abs(e).mean() * row  # over channel and width
    w = case["loss_weight"]
    frames, masks = list(v[:, :K].transpose(1, 0, 2, 3, 4)), list(valid[:, :K].transpose(1, 0, 2, 3, 4))
    for k in range(K, K + N):  # the whole sequence again for every frame: slow and sure
        sequence = np.stack(frames, 1)
        frames.append(np.clip(model.predict(sequence, actions[:, 1:k + 1], np.stack(masks, 1))[:, -1], -1, 1))
        masks.append(valid[:, :K].any(1))
    out = {"config": np.frombuffer(json.dumps(case).encode(), np.uint8), "video": video, "actions": actions,
           "prediction": np.float32(r), "l1": np.float64(l1), "l2": np.float64(l2),
           "loss": np.float64(w * l2 + (1 - w) * l1), "rollout": np.float32(np.stack(frames[K:], 1)),
           "context": np.int64(K), "parameter_count": np.int64(sum(v.size for v in model.p.values()))}
    if case.get("mask_input"):
        out["valid"] = valid.astype(np.uint8)
    out.update({"param." + k: v for k, v in model.p.items()})
    return out


def main():
    folder = sys.argv[1] if len(sys.argv) > 1 else os.path.join(HERE, "..", "..", "tests", "golden")
    for seed, (name, case) in enumerate(CASES.items()):
        path = os.path.join(folder, name + ".npz")
        np.savez_compressed(path, **build(case, seed))
        print(path, os.path.getsize(path))


if __name__ == "__main__":
    main()
