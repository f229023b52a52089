"""The autoencoder of the VQ-GAN in PyTorch, by the names of the public layout: what `convssm bench --only tokenizer` measures
against, which holds the text of this file:

    python3 -c peer_tokenizer.py MODEL.safetensors threads attention...

MODEL has the parameters, frames `bench.frames` [N,C,H,W] and what convssm makes of them: `bench.codes` and `bench.decoded`.
`attention` are the heights of maps that are attended to. Tasks, a word a line: check (differing codes, largest difference of
decoded frames), encode, decode (all frames together, without gradients), train (a step forward and backward on all frames).
The faster memory format is found first, by measuring."""

import json
import struct
import sys
import time

import numpy as np
import torch
import torch.nn.functional as F


def read_safetensors(path):
    with open(path, "rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        data = file.read()
    header.pop("__metadata__", None)
    types = {"F32": np.float32, "I64": np.int64}
    return {name: torch.from_numpy(np.frombuffer(data[slice(*e["data_offsets"])], types[e["dtype"]]).copy())
            .view(e["shape"]) for name, e in header.items()}


class Tokenizer:
    def __init__(self, tensors, attention):
        self.p = {n[len("model.autoencoder."):]: t for n, t in tensors.items() if n.startswith("model.autoencoder.")}
        self.attention = attention
        self.groups = 32

    def conv(self, name, x, stride=1, padding=None):
        weight = self.p[name + ".weight"]
        return F.conv2d(x, weight, self.p[name + ".bias"], stride, weight.shape[2] // 2 if padding is None else padding)

    def norm(self, name, x):
        return F.group_norm(x, self.groups, self.p[name + ".weight"], self.p[name + ".bias"], 1e-6)

    def res(self, name, x):
        h = self.conv(name + ".conv1", F.silu(self.norm(name + ".norm1", x)))
        h = self.conv(name + ".conv2", F.silu(self.norm(name + ".norm2", h)))
        return h + (self.conv(name + ".nin_shortcut", x) if name + ".nin_shortcut.weight" in self.p else x)

    def attend(self, name, x):
        n, c, height, width = x.shape
        h = self.norm(name + ".norm", x)
        q, k, v = (self.conv(f"{name}.{part}", h).flatten(2) for part in "qkv")
        weights = torch.softmax(torch.bmm(q.transpose(1, 2), k) * c ** -0.5, 2)
        return x + self.conv(name + ".proj_out", torch.bmm(v, weights.transpose(1, 2)).reshape(x.shape))

    def middle(self, name, x):
        return self.res(name + ".block_2", self.attend(name + ".attn_1", self.res(name + ".block_1", x)))

    def level(self, name, x):
        i = 0
        while f"{name}.block.{i}.conv1.weight" in self.p:
            x = self.res(f"{name}.block.{i}", x)
            if f"{name}.attn.{i}.q.weight" in self.p:
                x = self.attend(f"{name}.attn.{i}", x)
            i += 1
        return x

    def levels(self, side):
        return len({n.split(".")[2] for n in self.p if n.startswith(side)})

    def features(self, x):
        h = self.conv("encoder.conv_in", x)
        for i in range(self.levels("encoder.down.")):
            h = self.level(f"encoder.down.{i}", h)
            if f"encoder.down.{i}.downsample.conv.weight" in self.p:
                h = self.conv(f"encoder.down.{i}.downsample.conv", F.pad(h, (0, 1, 0, 1)), 2, 0)
        h = F.silu(self.norm("encoder.norm_out", self.middle("encoder.mid", h)))
        return self.conv("quant_conv", self.conv("encoder.conv_out", h))

    def codes(self, z):
        table = self.p["quantize.embedding.weight"]
        rows = z.permute(0, 2, 3, 1).reshape(-1, z.shape[1])
        scores = (table ** 2).sum(1) - 2 * rows @ table.t()
        return scores.argmin(1).view(z.shape[0], *z.shape[2:])

    def frames(self, q):
        h = self.middle("decoder.mid", self.conv("decoder.conv_in", self.conv("post_quant_conv", q)))
        for i in reversed(range(self.levels("decoder.up."))):
            h = self.level(f"decoder.up.{i}", h)
            if f"decoder.up.{i}.upsample.conv.weight" in self.p:
                h = self.conv(f"decoder.up.{i}.upsample.conv", F.interpolate(h, scale_factor=2.0, mode="nearest"))
        return self.conv("decoder.conv_out", F.silu(self.norm("decoder.norm_out", h)))

    def embed(self, codes):
        return self.p["quantize.embedding.weight"][codes].permute(0, 3, 1, 2)

    def in_format(self, memory_format):
        for name, t in self.p.items():
            if t.dim() == 4:
                self.p[name] = t.contiguous(memory_format=memory_format)


def main():
    tensors = read_safetensors(sys.argv[1])
    torch.set_num_threads(int(sys.argv[2]))
    torch.set_flush_denormal(True)
    model = Tokenizer(tensors, [int(a) for a in sys.argv[3:]])
    x, given = tensors["bench.frames"], tensors["bench.codes"]
    best = {}
    for memory_format in (torch.contiguous_format, torch.channels_last):
        model.in_format(memory_format)
        frames = x.contiguous(memory_format=memory_format)
        with torch.no_grad():
            model.features(frames[:1])
            start = time.perf_counter()
            model.features(frames)
            best[time.perf_counter() - start] = memory_format
    chosen = best[min(best)]
    model.in_format(chosen)
    x = x.contiguous(memory_format=chosen)
    learned = [t.requires_grad_(True) for n, t in model.p.items() if t.dtype == torch.float32 and "usage" not in n]
    print(f"PyTorch {torch.__version__}, {str(chosen).split('.')[-1]}", flush=True)
    for line in sys.stdin:
        task, numbers = line.strip(), []
        if task == "train":
            z = model.features(x)
            q = model.embed(model.codes(z.detach()))
            y = model.frames(z + (q - z).detach())
            loss = (y - x).abs().mean() + (y - x).square().mean() + ((q - z.detach()) ** 2).mean() + 0.25 * ((q.detach() - z) ** 2).mean()
            for t in learned:
                t.grad = None
            loss.backward()
        else:
            with torch.no_grad():
                if task == "encode":
                    model.codes(model.features(x))
                elif task == "decode":
                    model.frames(model.embed(given)).clamp(-1, 1)
                else:
                    codes = model.codes(model.features(x))
                    decoded = model.frames(model.embed(given)).clamp(-1, 1)
                    numbers = [(codes != given).sum().item(), (decoded - tensors["bench.decoded"]).abs().max().item()]
        print("done", *numbers, flush=True)


main()
