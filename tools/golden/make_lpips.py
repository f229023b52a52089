"""LPIPS v0.1 in plain PyTorch: writes tests/golden/lpips.npz, checks the published values, and is the peer that the
library's speed is measured against.

    make_lpips.py [output directory]       the golden file: weights from a formula, images and distances stored
    make_lpips.py --published FOLDER       the values of the LPIPS authors' images with the weights in FOLDER
    make_lpips.py --time FOLDER            milliseconds for 64 pairs of 3x64x64 frames, two threads

It shares no code with the library. The golden distances are computed in float64."""

import json
import pathlib
import statistics
import struct
import sys
import time

import numpy as np
import torch
import torch.nn.functional as F

# conv: name, in, out, kernel, stride, padding; fire: name, in, squeezed, half of out; pool: kernel, ceil mode.
# A relu follows each convolution; what is compared are the activations at each "tap".
SQUEEZE = [("conv", "0", 3, 64, 3, 2, 0), "tap",
           ("pool", 3, True), ("fire", "3", 64, 16, 64), ("fire", "4", 128, 16, 64), "tap",
           ("pool", 3, True), ("fire", "6", 128, 32, 128), ("fire", "7", 256, 32, 128), "tap",
           ("pool", 3, True), ("fire", "9", 256, 48, 192), "tap", ("fire", "10", 384, 48, 192), "tap",
           ("fire", "11", 384, 64, 256), "tap", ("fire", "12", 512, 64, 256), "tap"]
ALEX = [("conv", "0", 3, 64, 11, 4, 2), "tap", ("pool", 3, False), ("conv", "3", 64, 192, 5, 1, 2), "tap",
        ("pool", 3, False), ("conv", "6", 192, 384, 3, 1, 1), "tap", ("conv", "8", 384, 256, 3, 1, 1), "tap",
        ("conv", "10", 256, 256, 3, 1, 1), "tap"]
VGG = [("conv", "0", 3, 64, 3, 1, 1), ("conv", "2", 64, 64, 3, 1, 1), "tap",
       ("pool", 2, False), ("conv", "5", 64, 128, 3, 1, 1), ("conv", "7", 128, 128, 3, 1, 1), "tap",
       ("pool", 2, False), ("conv", "10", 128, 256, 3, 1, 1), ("conv", "12", 256, 256, 3, 1, 1),
       ("conv", "14", 256, 256, 3, 1, 1), "tap",
       ("pool", 2, False), ("conv", "17", 256, 512, 3, 1, 1), ("conv", "19", 512, 512, 3, 1, 1),
       ("conv", "21", 512, 512, 3, 1, 1), "tap",
       ("pool", 2, False), ("conv", "24", 512, 512, 3, 1, 1), ("conv", "26", 512, 512, 3, 1, 1),
       ("conv", "28", 512, 512, 3, 1, 1), "tap"]
NETWORKS = {"squeeze": SQUEEZE, "alex": ALEX, "vgg": VGG}
SHIFT, SCALE = (-0.030, -0.088, -0.188), (0.458, 0.448, 0.450)


def activations(network, weights, x):
    """x [N,3,H,W] in [-1,1] -> the activations at the taps."""
    conv = lambda x, name, stride=1, padding=0: F.relu(
        F.conv2d(x, weights[name + ".weight"], weights[name + ".bias"], stride, padding), inplace=True)
    shift, scale = (torch.tensor(v, dtype=x.dtype).view(1, 3, 1, 1) for v in (SHIFT, SCALE))
    x, taps = (x - shift) / scale, []
    for step in network:
        if step == "tap":
            taps.append(x)
        elif step[0] == "conv":
            x = conv(x, step[1], step[5], step[6])
        elif step[0] == "pool":
            x = F.max_pool2d(x, step[1], 2, ceil_mode=step[2])
        else:
            x = conv(x, step[1] + ".squeeze")
            x = torch.cat([conv(x, step[1] + ".expand1x1"), conv(x, step[1] + ".expand3x3", padding=1)], 1)
    return taps


def unit(x):
    return x / (torch.sqrt(torch.sum(x**2, 1, keepdim=True)) + 1e-10)


def lpips_layers(network, weights, a, b, one_batch=False):
    """a, b [N,3,H,W] in [-1,1] -> [taps,N]. The usual implementation runs the network twice; one_batch runs it once."""
    if one_batch:
        pairs = [torch.chunk(x, 2) for x in activations(network, weights, torch.cat([a, b]))]
    else:
        pairs = zip(activations(network, weights, a), activations(network, weights, b))
    return torch.stack([F.conv2d((unit(x) - unit(y)) ** 2, weights[f"lin{k}.model.1.weight"]).mean((1, 2, 3))
                        for k, (x, y) in enumerate(pairs)])


def read_safetensors(path):
    data = pathlib.Path(path).read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    out = {}
    for name, entry in json.loads(data[8 : 8 + size]).items():
        if name != "__metadata__":
            assert entry["dtype"] == "F32"
            begin, end = (8 + size + offset for offset in entry["data_offsets"])
            out[name] = torch.tensor(np.frombuffer(data[begin:end], np.float32).reshape(entry["shape"]))
    return out


def published_weights(folder):
    folder = pathlib.Path(folder)
    return (read_safetensors(folder / "squeezenet1_1.features.safetensors")
            | read_safetensors(folder / "lpips_squeeze.linear.v0_1.safetensors"))


def lpips_squeeze(weights, images_a, images_b, one_batch=False):
    """[N,3,H,W] in [-1,1] -> [N]. Channels-last images and weights stay so."""
    with torch.inference_mode():
        return lpips_layers(SQUEEZE, weights, images_a, images_b, one_batch).sum(0)


# The weights of the golden file, by a formula that the test repeats: number i of tensor t is a hash of both.
def uniform(tensor, shape):
    x = (np.arange(np.prod(shape), dtype=np.uint64) + tensor * 0x9E3779B9) & 0xFFFFFFFF
    x ^= x >> 16
    x = x * 0x7FEB352D & 0xFFFFFFFF
    x ^= x >> 15
    x = x * 0x846CA68B & 0xFFFFFFFF
    x ^= x >> 16
    return (x.astype(np.float64) / 2**32).reshape(shape)


def convolutions(network):
    """Names and shapes of the weights, in the order of the network."""
    for step in network:
        if step[0] == "conv":
            yield step[1], (step[3], step[2], step[4], step[4])
        elif step[0] == "fire":
            _, name, inputs, squeezed, half = step
            yield name + ".squeeze", (squeezed, inputs, 1, 1)
            yield name + ".expand1x1", (half, squeezed, 1, 1)
            yield name + ".expand3x3", (half, squeezed, 3, 3)


def formula_weights(network):
    """Tensors are numbered from 0: weight and bias of each convolution, then the heads. All float32."""
    out, width, taps = {}, 0, []
    for name, shape in convolutions(network):
        out[name + ".weight"] = (2 * uniform(len(out), shape) - 1) * np.sqrt(6 / np.prod(shape[1:]))
        out[name + ".bias"] = (2 * uniform(len(out), shape[:1]) - 1) * 0.1
    for step in network:
        if step == "tap":
            taps.append(width)
        elif step[0] != "pool":
            width = step[3] if step[0] == "conv" else 2 * step[4]
    for k, width in enumerate(taps):
        out[f"lin{k}.model.1.weight"] = uniform(len(out), (1, width, 1, 1))
    return {name: torch.tensor(value.astype(np.float32)) for name, value in out.items()}


def images():
    """Pairs of uint8 frames [N,C,H,W]: waves, and the same with noise or moved."""
    rng = np.random.default_rng(11)
    for name, (n, c, h, w) in {"rgb": (2, 3, 32, 47), "grey": (1, 1, 45, 33)}.items():
        i, j = np.mgrid[0:h, 0:w]
        phase = rng.uniform(0, 6, (2, n, c, 1, 1))
        truth = 127 + 80 * np.sin(i / 5 + phase[0]) * np.cos(j / 7 + phase[1]) + rng.normal(0, 10, (n, c, h, w))
        forecast = np.roll(truth, (2, -3), (2, 3)) + rng.normal(0, 15, (n, c, h, w))
        yield name, *(np.clip(x, 0, 255).astype(np.uint8) for x in (truth, forecast))


def write_golden(folder):
    out = {}
    for name, truth, forecast in images():
        out |= {f"{name}.truth": truth, f"{name}.forecast": forecast}
        for kind, network in NETWORKS.items():
            weights = {key: value.double() for key, value in formula_weights(network).items()}
            # The library gets float32 frames in [0,1]; what float32 makes of p/255 belongs to the input.
            a, b = ((torch.tensor(x).float() / 255).double().expand(-1, 3, -1, -1) * 2 - 1 for x in (truth, forecast))
            out[f"{name}.{kind}"] = lpips_layers(network, weights, a, b).numpy()
            print(f"{name:5} {kind:8}", *(f"{v:.7f}" for v in out[f"{name}.{kind}"].sum(0)))
    np.savez_compressed(pathlib.Path(folder) / "lpips.npz", **out)


def print_published(folder):
    from PIL import Image
    weights = published_weights(folder)
    read = lambda name: torch.tensor(np.array(Image.open(pathlib.Path(folder) / name))).permute(2, 0, 1)[None] / 127.5 - 1
    for name in ("ex_p0.png", "ex_p1.png"):
        layers = lpips_layers(SQUEEZE, weights, read("ex_ref.png"), read(name))
        print(name, f"{layers.sum():.6f}", *(f"{v:.6f}" for v in layers[:, 0]))
    torch.manual_seed(123)
    a, b = (torch.rand(10, 3, 100, 100) * 2 - 1 for _ in range(2))
    print("seed 123", f"{lpips_squeeze(weights, a, b).mean():.6f}")
    print("-1 and +1", f"{lpips_squeeze(weights, -torch.ones(1, 3, 64, 64), torch.ones(1, 3, 64, 64)).item():.6f}")


def print_times(folder, rounds=15):
    torch.set_num_threads(2)
    a, b = (torch.rand(64, 3, 64, 64) * 2 - 1 for _ in range(2))
    weights = published_weights(folder)
    last = lambda x: x.contiguous(memory_format=torch.channels_last)
    runs = {"contiguous": (weights, a, b, False), "contiguous, one batch": (weights, a, b, True)}
    weights = {name: last(value) if value.dim() == 4 else value for name, value in weights.items()}
    runs |= {"channels_last": (weights, last(a), last(b), False),
             "channels_last, one batch": (weights, last(a), last(b), True)}
    times = {name: [] for name in runs}
    for _ in range(rounds + 2):
        for name, arguments in runs.items():
            start = time.perf_counter()
            lpips_squeeze(*arguments)
            times[name].append(1000 * (time.perf_counter() - start))
    for name, values in times.items():
        values = sorted(values[2:])
        print(f"{name:26} median {statistics.median(values):7.2f} ms, quartiles {values[len(values) // 4]:.2f}"
              f" {values[3 * len(values) // 4]:.2f}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--published"]:
        print_published(sys.argv[2])
    elif sys.argv[1:2] == ["--time"]:
        print_times(sys.argv[2])
    else:
        write_golden(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parents[2] / "tests/golden")
