"""The work of `convssm bench --only metrics` in plain PyTorch. It is run by that command, which holds the text of this
file and of the two in tools/golden that hold the networks:

    python3 -c peer_metrics.py make_lpips.py make_i3d.py threads

It prints its version, then does what it is told, a word a line: lpips, ssim, i3d. The faster of the usual memory formats
is found once for each network."""

import sys
import time
import types

import torch
import torch.nn.functional as F


def module(name, text):
    made = types.ModuleType(name)
    exec(compile(text, name, "exec"), made.__dict__)
    return made


def faster(choices):
    """The quickest of some functions, each run three times."""
    def best(run):
        times = []
        for _ in range(3):
            begin = time.perf_counter()
            run()
            times.append(time.perf_counter() - begin)
        return min(times)

    return min(choices, key=best)


def lpips_work(peer):
    weights = {}
    for name, shape in peer.convolutions(peer.SQUEEZE):
        weights[name + ".weight"] = torch.randn(shape) * (2 / (shape[1] * shape[2] * shape[3])) ** 0.5
        weights[name + ".bias"] = torch.zeros(shape[0])
    for k, channels in enumerate((64, 128, 256, 384, 384, 512, 512)):
        weights[f"lin{k}.model.1.weight"] = torch.rand(1, channels, 1, 1)
    a, b = torch.rand(2, 64, 3, 64, 64) * 2 - 1

    def last(x):
        return x.contiguous(memory_format=torch.channels_last)

    moved = {name: last(w) if w.dim() == 4 else w for name, w in weights.items()}
    return faster([lambda: peer.lpips_squeeze(weights, a, b), lambda: peer.lpips_squeeze(weights, a, b, True),
                   lambda: peer.lpips_squeeze(moved, last(a), last(b)),
                   lambda: peer.lpips_squeeze(moved, last(a), last(b), True)])


def ssim_work():
    """float32 and a separable window, as PyTorch packages do it."""
    g = torch.exp(-0.5 * (torch.arange(-5, 6) / 1.5) ** 2)
    g = (g / g.sum()).view(1, 1, 11, 1)
    x, y = torch.rand(2, 256, 1, 64, 64)

    def blur(t):
        return F.conv2d(F.conv2d(t, g), g.transpose(2, 3))

    def ssim():
        mx, my = blur(x), blur(y)
        sx, sy, sxy = blur(x * x) - mx * mx, blur(y * y) - my * my, blur(x * y) - mx * my
        top = (2 * mx * my + 1e-4) * (2 * sxy + 9e-4)
        return (top / ((mx * mx + my * my + 1e-4) * (sx + sy + 9e-4))).mean((1, 2, 3))

    return ssim


def i3d_work(peer):
    weights = {name: peer.made_up(name, shape) for name, shape in peer.shapes().items()}
    clip = torch.rand(1, 3, 16, 64, 64)

    def run(net):
        x = F.interpolate(clip[0].transpose(0, 1), (224, 224), mode="bilinear", align_corners=False)
        return net.logits((2 * x - 1).transpose(0, 1)[None])

    nets = [peer.PeerI3d(weights, memory_format=f) for f in (torch.contiguous_format, torch.channels_last_3d)]
    return faster([lambda net=net: run(net) for net in nets])


def main():
    torch.set_num_threads(int(sys.argv[3]))
    torch.set_grad_enabled(False)
    torch.manual_seed(1)
    make = {"lpips": lambda: lpips_work(module("lpips", sys.argv[1])), "ssim": ssim_work,
            "i3d": lambda: i3d_work(module("i3d", sys.argv[2]))}
    ready = {}
    print("PyTorch " + torch.__version__)
    for line in sys.stdin:
        name = line.strip()
        if name not in ready:
            ready[name] = make[name]()
        ready[name]()
        print("done")


main()
