"""I3D in plain PyTorch, straight from its description: writes tests/golden/i3d.npz and tests/golden/frechet.npz.

Shares no code with the library: padding is explicit, batch norm is not folded, time is not split. The weights are a
hash of tensor name and element number, so that no file of 50 MB is needed; tests/metrics/i3d_weights.h has the same.

    python3 tools/golden/make_i3d.py [folder] [manifest.json]   golden files; checks names and shapes if given a manifest
    python3 tools/golden/make_i3d.py --time [frames]             seconds for one clip: the peer of speed comparisons
Stored files: PyTorch 1.13.1, NumPy 1.24.2, SciPy 1.10.1 (Debian 12)."""

import json
import pathlib
import sys
import time
import zlib

import numpy as np
import torch
import torch.nn.functional as F

ROOT = "RGB/inception_i3d/"
MIXED = {  # branch 0; branch 1: 1x1, 3x3; branch 2: 1x1, 3x3; branch 3
    "Mixed_3b": (64, 96, 128, 16, 32, 32), "Mixed_3c": (128, 128, 192, 32, 96, 64),
    "Mixed_4b": (192, 96, 208, 16, 48, 64), "Mixed_4c": (160, 112, 224, 24, 64, 64),
    "Mixed_4d": (128, 128, 256, 24, 64, 64), "Mixed_4e": (112, 144, 288, 32, 64, 64),
    "Mixed_4f": (256, 160, 320, 32, 128, 128),
    "Mixed_5b": (256, 160, 320, 32, 128, 128), "Mixed_5c": (384, 192, 384, 48, 128, 128)}


def mixed_units(name, cin):
    b0, b1a, b1b, b2a, b2b, b3 = MIXED[name]
    third = "Conv3d_0a_3x3" if name == "Mixed_5b" else "Conv3d_0b_3x3"  # a slip of the published graph
    return [(f"{name}/Branch_0/Conv3d_0a_1x1", 1, cin, b0),
            (f"{name}/Branch_1/Conv3d_0a_1x1", 1, cin, b1a), (f"{name}/Branch_1/Conv3d_0b_3x3", 3, b1a, b1b),
            (f"{name}/Branch_2/Conv3d_0a_1x1", 1, cin, b2a), (f"{name}/Branch_2/{third}", 3, b2a, b2b),
            (f"{name}/Branch_3/Conv3d_0b_1x1", 1, cin, b3)]


def shapes():
    """name -> shape of every tensor of the checkpoint."""
    units = [("Conv3d_1a_7x7", 7, 3, 64), ("Conv3d_2b_1x1", 1, 64, 64), ("Conv3d_2c_3x3", 3, 64, 192)]
    cin = 192
    for name, (b0, _, b1, _, b2, b3) in MIXED.items():
        units += mixed_units(name, cin)
        cin = b0 + b1 + b2 + b3
    out = {}
    for name, k, i, o in units:
        out[f"{ROOT}{name}/conv_3d/w"] = (k, k, k, i, o)
        for part in ("beta", "moving_mean", "moving_variance"):
            out[f"{ROOT}{name}/batch_norm/{part}"] = (o,)
    out[f"{ROOT}Logits/Conv3d_0c_1x1/conv_3d/w"] = (1, 1, 1, 1024, 400)
    out[f"{ROOT}Logits/Conv3d_0c_1x1/conv_3d/b"] = (400,)
    return out


def made_up(name, shape):
    """float32 weights of a usual size: He for kernels; a hash of 32 bits for each element."""
    h = np.arange(np.prod(shape), dtype=np.uint64) * 0x9E3779B9 + zlib.crc32(name.encode())
    h &= 0xFFFFFFFF
    for shift, factor in ((16, 0x7FEB352D), (15, 0x846CA68B), (16, 1)):
        h = ((h ^ (h >> shift)) * factor) & 0xFFFFFFFF
    u = (h >> 8).astype(np.float64) / 2**24
    if name.endswith("/w"):
        values = (2 * u - 1) * np.sqrt(6 / np.prod(shape[:4]))
    elif name.endswith("moving_variance"):
        values = 0.5 + u
    else:
        values = 0.4 * u - 0.2
    return values.astype(np.float32).reshape(shape)


class PeerI3d:
    """logits(x [N,3,T,224,224] in [-1,1]) -> [N,400]. `weights`: name -> array in TensorFlow's layout."""

    def __init__(self, weights, dtype=torch.float32, memory_format=torch.contiguous_format):
        self.format, self.trace = memory_format, None
        self.w = {}
        for name, value in weights.items():
            value = torch.from_numpy(value).to(dtype)
            self.w[name] = value.permute(4, 3, 0, 1, 2).contiguous(memory_format=memory_format) if value.dim() == 5 \
                else value

    @staticmethod
    def same(x, kernel, stride, value):
        """TensorFlow's SAME: as many outputs as ceil(n / stride), the odd one of the padding behind."""
        pads = []
        for n, k, s in reversed(list(zip(x.shape[2:], kernel, stride))):
            total = max((-(-n // s) - 1) * s + k - n, 0)
            pads += [total // 2, total - total // 2]
        return F.pad(x, pads, value=value) if any(pads) else x

    def unit(self, x, name, stride=1):
        w = self.w[f"{ROOT}{name}/conv_3d/w"]
        x = F.conv3d(self.same(x, w.shape[2:], (stride,) * 3, 0.0), w, stride=stride)
        bn = lambda part: self.w[f"{ROOT}{name}/batch_norm/{part}"]
        x = F.batch_norm(x, bn("moving_mean"), bn("moving_variance"), None, bn("beta"), False, eps=1e-3)
        return F.relu_(x)

    def pool(self, x, kernel, stride):
        return F.max_pool3d(self.same(x, kernel, stride, -float("inf")), kernel, stride)

    def mixed(self, x, name):
        units = [u[0] for u in mixed_units(name, 0)]
        return torch.cat([self.unit(x, units[0]), self.unit(self.unit(x, units[1]), units[2]),
                          self.unit(self.unit(x, units[3]), units[4]),
                          self.unit(self.pool(x, (3, 3, 3), (1, 1, 1)), units[5])], 1)

    def note(self, name, x):
        if self.trace is not None:
            self.trace[name] = x.mean(dim=(0, 1, 3, 4))
        return x

    def logits(self, x):
        x = x.contiguous(memory_format=self.format)
        x = self.note("Conv3d_1a_7x7", self.unit(x, "Conv3d_1a_7x7", 2))
        x = self.unit(self.pool(x, (1, 3, 3), (1, 2, 2)), "Conv3d_2b_1x1")
        x = self.note("Conv3d_2c_3x3", self.unit(x, "Conv3d_2c_3x3"))
        x = self.pool(x, (1, 3, 3), (1, 2, 2))
        for name in MIXED:
            if name == "Mixed_4b":
                x = self.pool(x, (3, 3, 3), (2, 2, 2))
            if name == "Mixed_5b":
                x = self.pool(x, (2, 2, 2), (2, 2, 2))
            x = self.note(name, self.mixed(x, name))
        x = F.avg_pool3d(x, (2, 7, 7), (1, 1, 1))
        last = f"{ROOT}Logits/Conv3d_0c_1x1/conv_3d/"
        x = F.conv3d(x, self.w[last + "w"], self.w[last + "b"])
        return x[..., 0, 0].mean(2)


def resize(frames, half_pixel, size=224):
    """[T,C,H,W] float64, bilinear. TensorFlow 1: output pixel i reads i * scale; else (i + 1/2) * scale - 1/2."""
    for axis in (2, 3):
        n = frames.shape[axis]
        at = (np.arange(size) + 0.5) * (n / size) - 0.5 if half_pixel else np.arange(size) * (n / size)
        at = np.clip(at, 0, n - 1)
        low = np.floor(at).astype(int)
        share = (at - low).reshape((-1, 1) if axis == 2 else (-1,))
        frames = np.take(frames, low, axis) * (1 - share) + np.take(frames, np.minimum(low + 1, n - 1), axis) * share
    return frames


def network_input(clip, half_pixel=False):
    """uint8 [T,C,H,W] -> [1,3,T,224,224] in [-1,1]."""
    x = 2 * resize(clip.astype(np.float64), half_pixel) / 255 - 1
    x = np.repeat(x, 3, axis=1) if x.shape[1] == 1 else x
    return torch.from_numpy(np.ascontiguousarray(x.transpose(1, 0, 2, 3)))[None]


def clip(frames, channels, height, width, seed):
    """A bright block that moves over a noisy ground."""
    rng = np.random.default_rng(seed)
    out = rng.integers(0, 90, (1, channels, height, width)).repeat(frames, 0)
    for t in range(frames):
        y, x = (3 * t + seed) % (height - 4), (2 * t) % (width - 4)
        out[t, :, y : y + 5, x : x + 5] += rng.integers(80, 160, (channels, 1, 1))
    return out.astype(np.uint8)


CLIPS = {"grey16": (16, 1, 16, 16, 0), "grey11": (11, 1, 20, 12, 0), "rgb10": (10, 3, 16, 16, 0),
         "rgb17half": (17, 3, 16, 18, 1), "grey23": (23, 1, 13, 16, 0)}


def write_i3d(folder):
    weights = {name: made_up(name, shape) for name, shape in shapes().items()}
    catalogue = "".join(f"{name}{list(shape)}\n" for name, shape in sorted(shapes().items()))
    out = {"catalogue_crc32": np.int64(zlib.crc32(catalogue.encode()))}
    net = PeerI3d(weights, torch.float64)
    for seed, (name, (*shape, half_pixel)) in enumerate(CLIPS.items()):
        pixels, net.trace = clip(*shape, seed), {}
        logits = net.logits(network_input(pixels, half_pixel))[0]
        out |= {f"{name}.clip": pixels, f"{name}.half_pixel": np.int64(half_pixel), f"{name}.logits": logits.numpy()}
        out |= {f"{name}.{stage}": value.numpy() for stage, value in net.trace.items()}
        print(f"{name:10} logits {logits.mean():.6f} +- {logits.std():.6f}", flush=True)
    np.savez_compressed(folder / "i3d.npz", **out)


def write_frechet(folder):
    from scipy.linalg import sqrtm

    rng, out = np.random.default_rng(7), {}
    for name, n1, n2, d in (("tall", 60, 45, 6), ("square", 12, 13, 12), ("wide", 9, 14, 24), ("one", 5, 7, 1)):
        mix = rng.normal(size=(d, d))
        x, y = rng.normal(size=(n1, d)) @ mix + 1, rng.normal(size=(n2, d)) * rng.uniform(0.2, 3, d)
        s1, s2 = np.cov(x.T).reshape(d, d), np.cov(y.T).reshape(d, d)
        root = sqrtm(s1)
        middle = sqrtm(root @ s2 @ root)
        distance = np.sum((x.mean(0) - y.mean(0)) ** 2) + np.trace(s1 + s2) - 2 * np.trace(middle).real
        out |= {f"{name}.x": x, f"{name}.y": y, f"{name}.distance": np.float64(distance)}
        print(f"{name:8} {distance:.12f}  imaginary part of the root {np.abs(np.imag(middle)).max():.1e}")
    np.savez_compressed(folder / "frechet.npz", **out)


def time_peer(frames):
    """The faster of the two memory formats, seconds for one clip on two threads."""
    torch.set_num_threads(2)
    weights = {name: made_up(name, shape) for name, shape in shapes().items()}
    x = network_input(clip(frames, 3, 64, 64, 1)).float()
    with torch.inference_mode():
        nets = {"contiguous": PeerI3d(weights), "channels_last_3d": PeerI3d(weights,
                                                                          memory_format=torch.channels_last_3d)}
        for round in range(4):
            for name, net in nets.items():
                begin = time.perf_counter()
                net.logits(x)
                print(f"{name:17} {time.perf_counter() - begin:.3f} s", flush=True)


def main():
    if sys.argv[1:2] == ["--time"]:
        return time_peer(int(sys.argv[2]) if len(sys.argv) > 2 else 16)
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parents[2] / "tests/golden")
    if len(sys.argv) > 2:
        assert shapes() == {t["name"]: tuple(t["shape"]) for t in json.load(open(sys.argv[2]))}
    write_frechet(folder)
    with torch.inference_mode():
        write_i3d(folder)


if __name__ == "__main__":
    main()
