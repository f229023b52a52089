"""Write tests/golden/codes_*.npz and teco_*.npz: the models of codes in NumPy, float64.

Usage: python make_codes.py [output directory]     (default: ../../tests/golden)
Cores come from oracle.py and oracle_tokens.py, encoder and decoder from make_pixel.py; losses, masking, posterior,
codebook, MaskGit and forecasts are written here from the specification. Parameters are drawn here, rounded to float32,
and stored with the results. Every file has one model and several `variants`: other options and choices, its numbers.
"""

import json
import os
import sys

import numpy as np

import oracle
import oracle_frame
import oracle_tokens
from make_pixel import decode_linear, encode

HERE = os.path.dirname(os.path.abspath(__file__))
SOS_CORES = ("transformer", "performer")


# ------------------------------------------------------------------------------------ parameters

class Drawer:
    def __init__(self, rng):
        self.rng, self.p = rng, {}

    def weights(self, name, out, n, k=None, bias=True):
        shape = (out, n) if k is None else (out, n, k, k)
        self.p[name + ".weight"] = self.rng.normal(size=shape) / np.sqrt(np.prod(shape[1:]))
        if bias:
            self.p[name + ".bias"] = 0.1 * self.rng.normal(size=out)

    def norm(self, name, n):
        self.p[name + ".weight"] = 1 + 0.1 * self.rng.normal(size=n)
        self.p[name + ".bias"] = 0.1 * self.rng.normal(size=n)

    def blocks(self, name, n, depths):
        for b, d in enumerate(depths):
            pre = f"{name}.blocks.{b}"
            self.norm(pre + ".norm1", n)
            self.weights(pre + ".conv1", d, n, 3)
            self.norm(pre + ".norm2", d)
            self.weights(pre + ".conv2", d, d, 3)
            if n != d:
                self.weights(pre + ".shortcut", d, n, 1, bias=False)
            n = d
        return n

    def encoder(self, n, o):
        depths = o["depths"]
        self.weights("encoder.first", depths[0], n, 3)
        return self.blocks("encoder", depths[0], depths[:1] + [d for d in depths[1:] for _ in range(o["blocks"])])

    def decoder(self, n, o, out):
        depths = o["depths"]
        self.weights("decoder.first", depths[0], n, 3)
        n = self.blocks("decoder", depths[0], [d for d in reversed(depths) for _ in range(o["blocks"])])
        self.norm("decoder.norm", n)
        self.weights("decoder.last", out, n)

    def core(self, o, frame):
        """o: the section of the core. Returns its output channels."""
        name, options = o["name"], {k: v for k, v in o.items() if k != "name"}
        inner = oracle_frame.core_options(name, options, frame)
        shapes = (oracle_tokens if name in SOS_CORES else oracle).param_shapes(
            name, inner if name in SOS_CORES else oracle.full_options(name, inner))
        for key, shape in oracle_frame.param_shapes(name, options, frame, shapes).items():
            scale = 1 / np.sqrt(np.prod(shape[1:])) if len(shape) > 1 else 0.3
            value = scale * self.rng.normal(size=shape)
            if key.endswith("Lambda_re"):
                value = -0.5 - 0.1 * np.abs(value)
            if key.endswith("log_step"):
                value = self.rng.uniform(np.log(1e-2), np.log(0.3), size=shape)
            if key.endswith(("norm.weight", "norm1.weight", "norm2.weight")):
                value = 1 + 0.1 * value
            self.p["core." + key] = value
        return options.get("out_features", 256) if oracle_frame.on_tokens(name) else options["features"]

    def maskgit(self, o, tokens, cond, h, w):
        D, V = o["features"], o["vocabulary"]
        half = D - D // 2  # what is left over goes to the first axis
        for name, shape in dict(tokens=(tokens + 1, V), rows=(h, half), columns=(w, D - half)).items():
            self.p["prior." + name] = 0.5 * self.rng.normal(size=shape)
        self.weights("prior.transformer.input", D, V + cond)
        for i in range(o["layers"]):
            pre = f"prior.transformer.layers.{i}."
            self.norm(pre + "norm1", D)
            self.weights(pre + "qkv", 3 * D, D)
            self.weights(pre + "out", D, D)
            self.norm(pre + "norm2", D)
            self.weights(pre + "mlp1", o["mlp"], D)
            self.weights(pre + "mlp2", D, o["mlp"])
        self.weights("prior.transformer.output", D, D)
        self.norm("prior.transformer.norm", D)
        self.weights("prior.head", V, D)
        self.norm("prior.norm", V)
        self.p["prior.bias"] = 0.1 * self.rng.normal(size=tokens)


# ----------------------------------------------------------------------------------------- parts

def linear(p, name, x):
    return x @ p[name + ".weight"].T + p[name + ".bias"]


def norm(p, name, x):
    return oracle.layer_norm(x, p[name + ".weight"], p[name + ".bias"], -1)


def log_softmax(x):
    top = x.max(-1, keepdims=True)
    return x - top - np.log(np.exp(x - top).sum(-1, keepdims=True))


def smoothed(labels, count, smoothing):
    return (1 - smoothing) * np.eye(count)[labels] + smoothing / count


def cross_entropy(logits, labels, smoothing):
    """logits [...,K], labels [...]."""
    return -(smoothed(labels, logits.shape[-1], smoothing) * log_softmax(logits)).sum(-1)


def constant(count, smoothing):
    """The cross-entropy of a label whose own smoothed vector is the logits."""
    y = smoothed(np.array(0), count, smoothing)
    return -(y * log_softmax(y)).sum()


def maskgit(p, o, tokens, cond):
    """tokens [N,h,w], cond [N,h,w,C] -> logits [N,h,w,K]."""
    N, h, w = tokens.shape
    D, H = o["features"], o["heads"]
    d = D // H
    x = linear(p, "prior.transformer.input", np.concatenate([p["prior.tokens"][tokens], cond], -1))
    for i in range(h):
        for j in range(w):
            x[:, i, j] += np.concatenate([p["prior.rows"][i], p["prior.columns"][j]])
    x = x.reshape(N, h * w, D)
    for i in range(o["layers"]):
        pre = f"prior.transformer.layers.{i}."
        q, k, v = linear(p, pre + "qkv", norm(p, pre + "norm1", x)).reshape(N, h * w, 3, H, d).transpose(2, 0, 3, 1, 4)
        score = np.exp(log_softmax(q @ k.transpose(0, 1, 3, 2) / np.sqrt(d)))
        x = x + linear(p, pre + "out", (score @ v).transpose(0, 2, 1, 3).reshape(N, h * w, D))
        m = linear(p, pre + "mlp1", norm(p, pre + "norm2", x))
        x = x + linear(p, pre + "mlp2", m * oracle.sigmoid(1.702 * m))
    x = norm(p, "prior.transformer.norm", oracle.gelu(linear(p, "prior.transformer.output", x)))
    said = norm(p, "prior.norm", oracle.gelu(linear(p, "prior.head", x)))
    return (said @ p["prior.tokens"][:-1].T + p["prior.bias"]).reshape(N, h, w, -1)


class Codes:
    """What both models share. Arrays are [T,B,...], channels before height and width as the library has them."""

    def __init__(self, model, rng):
        self.m = model
        draw = Drawer(rng)
        draw.p["codebook"] = rng.normal(size=(model["codebook"]["count"], model["codebook"]["features"]))
        self.draw(draw)
        self.p = {k: np.float32(v) for k, v in draw.p.items()}
        self.q = {k: v.astype(np.float64) for k, v in self.p.items()}

    def grid(self):
        c = self.m["codebook"]
        scale = 2 ** (len(self.m["encoder"]["depths"]) - 1)
        return c["count"], c["height"] // scale, c["width"] // scale

    def embed(self, codes):
        return np.moveaxis(self.q["codebook"][codes], -1, -3)

    def frames(self, function, *arrays):
        """function of [T*B,...] on [T,B,...]."""
        T, B = arrays[0].shape[:2]
        y = function(*[a.reshape((T * B,) + a.shape[2:]) for a in arrays])
        return y.reshape((T, B) + y.shape[1:])

    def encode(self, x):
        return self.frames(lambda a: encode(a, self.q, self.m["encoder"]["depths"], self.m["encoder"]["blocks"]), x)

    def decode(self, *parts):
        o = self.m["decoder"]
        x = np.concatenate(parts, 2)
        return np.moveaxis(self.frames(lambda a: decode_linear(a, self.q, o["depths"], o["blocks"]), x), 2, -1)

    def core(self, features, actions):
        """features [L,B,F,h,w], actions [L,B] that follow -> deter [L,B,D,h,w]."""
        rows = self.q["actions"][actions]  # -1 is the last row
        wide = np.broadcast_to(rows[..., None, None], rows.shape + features.shape[-2:])
        name = self.m["core"]["name"]
        options = {k: v for k, v in self.m["core"].items() if k != "name"}
        x = np.concatenate([features, wide], 2)
        inner = oracle_frame.core_options(name, options, x.shape[2:])
        if name in SOS_CORES:
            run = lambda p, u: oracle_tokens.stack(name, inner, p, u)
        else:
            run = lambda p, u: oracle.stack(name, oracle.full_options(name, inner), p, u)[:2]
        return oracle_frame.run(name, oracle.sub(self.q, "core."), x, run)[0]

    def first_hidden(self, K):
        """Of a forecast after K frames: those that training hides, and no frame that is known."""
        first = max(K, self.m["causal_masking"]["context"])
        return first - 1 if self.m.get("like_reference") else first

    def hide(self, features, blind, first):
        """Features of frames t >= first become the constant in rows that have actions."""
        features = features.copy()
        features[first:, ~blind] = self.m["causal_masking"]["value"]
        return features


class CodeModel(Codes):
    def draw(self, draw):
        m = self.m
        count, h, w = self.grid()
        n = draw.encoder(m["codebook"]["features"], m["encoder"])
        draw.p["actions"] = draw.rng.normal(size=(m["actions"] + 1, m["action_features"]))
        D = draw.core(m["core"], (n + m["action_features"], h, w))
        draw.decoder(D, m["decoder"], count)

    def features(self, codes):
        return self.encode(self.embed(codes))

    def losses(self, codes, actions, frames, hidden):
        T, B = codes.shape[:2]
        blind = (actions < 0).all(0)
        f = self.features(codes)
        masked = self.m.get("causal_masking") is not None
        if masked:
            f = self.hide(f, blind, self.m["causal_masking"]["context"])
        logits = self.decode(self.core(f[:-1], actions[1:]))
        smoothing, count = self.m["label_smoothing"], self.m["codebook"]["count"]
        each = cross_entropy(logits, codes[1:], smoothing).sum((2, 3))  # [L,B]
        counted = each[frames]
        if not masked:
            total = counted.mean()
        else:
            late = np.array([s >= self.m["causal_masking"]["context"] - 1 for s in frames])
            other = constant(count, smoothing) * codes[0, 0].size if self.m.get("like_reference") else 0.0
            l1 = np.where(blind, other, counted)[late].mean()
            l2 = np.where(blind, counted, other).mean()
            total = l1 + l2
        return {"loss": total, "cross_entropy": total, "nats_per_code": counted.mean() / codes[0, 0].size}

    def rollout(self, codes, actions, frames):
        """The most likely codes of the frames after a context, the whole sequence again for every one."""
        K = len(codes)
        codes = list(codes)
        masked = self.m.get("causal_masking") is not None
        for k in range(K, K + frames):
            f = self.features(np.stack(codes))
            if masked:  # a row is blind to the action of each frame by itself
                for t in range(self.first_hidden(K), k):
                    f[t, actions[t + 1] >= 0] = self.m["causal_masking"]["value"]
            codes.append(self.decode(self.core(f, actions[1:k + 1]))[-1].argmax(-1))
        return np.stack(codes[K:])


class Teco(Codes):
    def draw(self, draw):
        m = self.m
        count, h, w = self.grid()
        c, E, proj = m["codebook"], m["features"], m["quantizer"]["features"]
        draw.p["before_first"] = draw.rng.normal(size=(c["features"], c["height"], c["width"]))
        n = draw.encoder(2 * c["features"], m["encoder"])
        draw.weights("to_latent", E, n)
        draw.p["project_in"] = draw.rng.normal(size=(proj, E)) / np.sqrt(E)
        draw.p["quantizer.embedding.weight"] = draw.rng.normal(size=(m["quantizer"]["size"], proj))
        draw.p["project_out"] = draw.rng.normal(size=(E, proj))
        draw.p["actions"] = draw.rng.normal(size=(m["actions"] + 1, m["action_features"]))
        D = draw.core(m["core"], (E + m["action_features"], h, w))
        draw.maskgit(m["maskgit"], m["quantizer"]["size"], D, h, w)
        draw.decoder(D + E, m["decoder"], count)

    def latent_of(self, tokens):
        c = self.q["quantizer.embedding.weight"]
        c = c / np.maximum(np.sqrt((c ** 2).sum(-1, keepdims=True)), 1e-6)
        return np.moveaxis(c[tokens] @ self.q["project_out"].T, -1, -3)

    def posterior(self, codes):
        """codes [T,B,H,W] -> z, zq [T,B,E,h,w], tokens [T,B,h,w], zp and q [T,B,h,w,proj]."""
        e = self.embed(codes)
        before = np.concatenate([np.broadcast_to(self.q["before_first"], e[:1].shape), e[:-1]])
        f = np.moveaxis(self.encode(np.concatenate([before, e], 2)), 2, -1)
        z = linear(self.q, "to_latent", f)
        zp = z @ self.q["project_in"].T
        zp = zp / np.maximum(np.sqrt((zp ** 2).sum(-1, keepdims=True)), 1e-6)
        c = self.q["quantizer.embedding.weight"]
        c = c / np.maximum(np.sqrt((c ** 2).sum(-1, keepdims=True)), 1e-6)
        distance = 2 - 2 * zp @ c.T
        two = np.sort(distance, -1)[..., :2]
        assert (two[..., 1] - two[..., 0]).min() > 1e-5, "two codes are as near as each other: take another seed"
        tokens = distance.argmin(-1)
        q = c[tokens]
        return np.moveaxis(z, -1, 2), np.moveaxis(q @ self.q["project_out"].T, -1, 2), tokens, zp, q

    def inputs(self, codes):
        z, zq = self.posterior(codes)[:2]
        return np.concatenate([z[:1], zq[1:]])  # the first frame as it is

    def losses(self, codes, actions, frames, hidden):
        """hidden [S,B,h,w]: tokens that the prior does not see, for each counted frame."""
        m, (T, B) = self.m, codes.shape[:2]
        blind = (actions < 0).all(0)
        z, zq, tokens, zp, q = self.posterior(codes)
        inputs = np.concatenate([z[:1], zq[1:]])
        masked = m.get("causal_masking") is not None
        if masked:
            inputs = self.hide(inputs, blind, m["causal_masking"]["context"])
        deter = self.core(inputs[:-1], actions[1:])[frames]
        zq, tokens, labels = zq[1:][frames], tokens[1:][frames], codes[1:][frames]
        recon = cross_entropy(self.decode(deter, zq), labels, m["label_smoothing"]).sum((2, 3)).mean()
        K = m["quantizer"]["size"]
        seen = np.where(hidden, K, tokens)
        logits = self.frames(lambda t, d: maskgit(self.q, m["maskgit"], t, np.moveaxis(d, 1, -1)), seen, deter)
        each, n = cross_entropy(logits, tokens, 0.0), tokens[0, 0].size
        if not masked or m.get("like_reference"):
            prior = n * (hidden * each).sum() / hidden.sum()
            if masked:
                prior += n * constant(K, 0.0)
        else:
            late = np.array([s >= m["causal_masking"]["context"] - 1 for s in frames])[:, None, None, None] & hidden
            sighted = ~blind[None, :, None, None]
            prior = n * (late * sighted * each).sum() / late.sum()
            prior += n * (hidden * ~sighted * each).sum() / hidden.sum()
        commitment = 0.25 * (0.5 * (zp - q) ** 2).mean()
        codebook = (0.5 * (zp - q) ** 2).mean()
        return {"loss": recon + prior + commitment + codebook, "recon": recon, "prior": prior,
                "commitment": commitment, "codebook": codebook}

    def rollout(self, codes, actions, frames):
        """The most likely tokens, all at once, and of them the most likely codes."""
        K = len(codes)
        inputs, out = list(self.inputs(codes)), []
        masked = self.m.get("causal_masking") is not None
        count, h, w = self.grid()
        for k in range(K, K + frames):
            f = np.stack(inputs)
            if masked:
                for t in range(self.first_hidden(K), k):
                    f[t, actions[t + 1] >= 0] = self.m["causal_masking"]["value"]
            deter = self.core(f, actions[1:k + 1])[-1]
            all_hidden = np.full((deter.shape[0], h, w), self.m["quantizer"]["size"])
            tokens = maskgit(self.q, self.m["maskgit"], all_hidden, np.moveaxis(deter, 1, -1)).argmax(-1)
            inputs.append(self.latent_of(tokens))
            out.append(self.decode(deter[None], inputs[-1][None])[0].argmax(-1))
        return np.stack(out)


# ----------------------------------------------------------------------------------------- cases

CONVS5 = dict(name="convs5", features=8, state_size=8, layers=2, groups=4)
FLAT = dict(name="codes", codebook=dict(count=7, height=3, width=4, features=5), encoder=dict(depths=[6], blocks=1),
            decoder=dict(depths=[8], blocks=2), core=CONVS5, actions=3, action_features=2, label_smoothing=0.01)
DEEP = dict(FLAT, codebook=dict(count=5, height=4, width=6, features=3), encoder=dict(depths=[4, 6], blocks=2),
            decoder=dict(depths=[6, 8], blocks=1), core=dict(CONVS5, layers=1), label_smoothing=0.1)
ATTENTION = dict(name="transformer", features=8, heads=2, mlp=12, layers=2, out_features=5)
TECO = dict(DEEP, name="teco", decoder=dict(depths=[6, 8], blocks=2), features=6,
            quantizer=dict(name="cosine", size=9, features=4),
            maskgit=dict(vocabulary=6, features=10, layers=2, heads=2, mlp=12), label_smoothing=0.01)
MASKING = dict(context=3, value=-2.0)

# Each variant: options that differ, and the predictions that count (None: all).
PLAIN = {"all": ({}, None), "some": ({}, [3, 0, 3])}
MASKED = {"masked": (dict(causal_masking=MASKING), None),
          "reference": (dict(causal_masking=MASKING, like_reference=True), None), "open": ({}, None)}
DROPPED = dict(MASKED, dropped=(dict(causal_masking=MASKING), [4, 1, 3, 4]),
               late=(dict(causal_masking=dict(MASKING, value=0.5, context=5)), [4, 0]))

CASES = {
    "codes_flat": (CodeModel, FLAT, PLAIN),
    "codes_deep": (CodeModel, DEEP, MASKED),
    "codes_transformer": (CodeModel, dict(DEEP, core=dict(ATTENTION, patch=[1, 3])), MASKED),
    "teco_convs5": (Teco, TECO, dict(PLAIN, **DROPPED)),
    "teco_transformer": (Teco, dict(TECO, core=dict(ATTENTION, out_features=7)), DROPPED),
}


def most_likely(model):
    """Options by which a forecast takes the most likely of everything."""
    if model["name"] == "codes":
        return dict(model, top_k=1)
    return dict(model, top_k=1, maskgit=dict(model["maskgit"], draft=1, revise=1, rounds=1))


def build(kind, base, variants, seed):
    rng = np.random.default_rng(seed)
    model = kind(base, rng)
    B, T, K, N = 4, 6, 4, 3
    c = base["codebook"]
    codes = rng.integers(0, c["count"], size=(T, B, c["height"], c["width"]))
    actions = rng.integers(0, base["actions"], size=(T + N, B))
    actions[:, [1, 2]] = -1  # clips without actions
    actions[K + 1, 0] = -1  # and one action of a clip that has some
    _, h, w = model.grid()
    out = {"codes": codes.swapaxes(0, 1), "actions": actions.T, "context": np.int64(K),
           "parameter_count": np.int64(sum(v.size for v in model.p.values()))}
    about = {}
    for name, (changes, frames) in variants.items():
        model.m = dict(base, **changes)
        frames = list(range(T - 1)) if frames is None else frames
        hidden = rng.uniform(size=(len(frames), B, h, w)) < 0.6
        hidden[:, :, 0, 0] = True  # at least one of each frame
        about[name] = {"model": most_likely(model.m), "frames": frames}
        for part, value in model.losses(codes, actions[:T], frames, hidden).items():
            out[f"{name}.{part}"] = np.float64(value)
        out[f"{name}.hidden"] = hidden
        out[f"{name}.rollout"] = model.rollout(codes[:K], actions, N).swapaxes(0, 1)
    if kind is Teco:
        tokens = rng.integers(0, base["quantizer"]["size"] + 1, size=(3, h, w))
        cond = np.float32(rng.normal(size=(3, base["core"].get("out_features", base["core"]["features"]), h, w)))
        logits = maskgit(model.q, base["maskgit"], tokens, np.moveaxis(cond.astype(np.float64), 1, -1))
        out.update({"maskgit.tokens": tokens, "maskgit.cond": cond, "maskgit.logits": np.moveaxis(logits, -1, 1)})
    out["variants"] = np.frombuffer(json.dumps(about).encode(), np.uint8)
    out.update({"param." + k: v for k, v in model.p.items()})
    return out


def main():
    folder = sys.argv[1] if len(sys.argv) > 1 else os.path.join(HERE, "..", "..", "tests", "golden")
    for seed, (name, case) in enumerate(CASES.items()):
        path = os.path.join(folder, name + ".npz")
        np.savez_compressed(path, **build(*case, seed))
        print(path, os.path.getsize(path))
    print("label entropy", constant(1024, 0.01), constant(1024, 0.0))


if __name__ == "__main__":
    main()
