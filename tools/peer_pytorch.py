"""ConvS5 as a PyTorch user writes it, after the listing of the paper: encoder, ConvS5 layers, decoder. It is what
`convssm bench --only peer` measures against, which holds the text of this file:

    python3 -c peer_pytorch.py MODEL.safetensors threads frames

MODEL is a file of that command: a model with `bench.video` [1,T,C,H,W], the loss, the norm of its gradients and the
next frame as convssm computes them. It prints its version and the choices it made, then does what it is told, a word a
line: check, train, generate (that many frames). An answer is "done" and numbers: the largest differences for check, for
generate the seconds of each frame.

What is here is what one can expect of a user who cares: one convolution for all frames in training, the complex kernels
of B and C as single real convolutions, parameters folded once for generation, no gradients there, denormals flushed. The
faster memory format and the faster algorithm for the recurrence (a loop over frames, a parallel scan) are found once
by measuring, for training and for generation."""

import json
import struct
import sys
import time

import numpy as np
import torch
import torch.nn.functional as F


def read_safetensors(path):
    """The tensors (float32) and the metadata of a file."""
    with open(path, "rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        data = file.read()
    metadata = header.pop("__metadata__")
    tensors = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        if entry["dtype"] == "F32":
            tensors[name] = torch.from_numpy(np.frombuffer(data[begin:end], np.float32).copy()).view(entry["shape"])
    return tensors, metadata


def scan_loop(a, b, x0):
    """x_k = a x_{k-1} + b_k, frame after frame: a [P,1,1], b [L,B,P,H,W] complex."""
    x, xs = x0, []
    for bk in b.unbind(0):
        x = bk if x is None else torch.addcmul(bk, a, x)
        xs.append(x)
    return torch.stack(xs)


def scan_parallel(a, b, x0):
    """The same in log2(L) rounds over all frames: the powers of a are the same for every frame."""
    if x0 is not None:
        b = torch.cat([b[:1] + a * x0, b[1:]])
    step = 1
    while step < b.shape[0]:
        b = torch.cat([b[:step], torch.addcmul(b[step:], a, b[:-step])])
        a, step = a * a, 2 * step
    return b


class Peer:
    """The pixel predictor with a ConvS5 core, with the parameters of a file."""

    def __init__(self, path):
        tensors, metadata = read_safetensors(path)
        self.options = json.loads(metadata["model"])
        self.p = {k[6:]: v.requires_grad_(True) for k, v in tensors.items() if k.startswith("model.")}
        self.bench = {k[6:]: v for k, v in tensors.items() if k.startswith("bench.")}
        self.core = self.options["core"]
        self.weight = self.options.get("loss_weight", 0.5)
        self.scan = scan_loop
        self.format = torch.contiguous_format
        self.folded = None

    def use(self, memory_format, scan):
        self.format, self.scan, self.folded = memory_format, scan, None
        for value in self.p.values():
            if value.dim() == 4:
                value.data = value.data.contiguous(memory_format=memory_format)

    # The parts of a frame.

    def conv(self, x, name, bias=True):
        weight = self.p[name + ".weight"]
        return F.conv2d(x, weight, self.p[name + ".bias"] if bias else None, padding=weight.shape[-1] // 2)

    def group_norm(self, x, name, groups):
        groups = min(groups, x.shape[1])
        while x.shape[1] % groups:
            groups -= 1
        return F.group_norm(x, groups, self.p[name + ".weight"], self.p[name + ".bias"], 1e-6)

    def layer_norm(self, x, name):
        y = F.layer_norm(x.permute(0, 2, 3, 1), x.shape[1:2], self.p[name + ".weight"], self.p[name + ".bias"], 1e-6)
        return y.permute(0, 3, 1, 2)

    def dense(self, x, name):
        return F.conv2d(x, self.p[name + ".weight"][:, :, None, None], self.p[name + ".bias"])

    def res_block(self, x, name, groups):
        h = self.conv(F.elu(self.group_norm(x, name + ".norm1", groups)), name + ".conv1")
        h = self.conv(F.elu(self.group_norm(h, name + ".norm2", groups)), name + ".conv2")
        shortcut = self.conv(x, name + ".shortcut", False) if name + ".shortcut.weight" in self.p else x
        return torch.add(shortcut, h, alpha=0.1)

    def coder(self, x, name, options, first_count, between):
        h, block = self.conv(x, name + ".first"), 0
        for level in range(len(options["depths"])):
            if level > 0:
                h = between(h)
            for _ in range(first_count if level == 0 else options.get("blocks", 1)):
                h = self.res_block(h, f"{name}.blocks.{block}", options.get("groups", 32))
                block += 1
        return h

    def encode(self, frames):
        x = frames.contiguous(memory_format=self.format)
        f = self.coder(x, "encoder", self.options["encoder"], 1, lambda h: F.avg_pool2d(h, 2))
        if "actions" in self.p:
            rows = self.p["actions"][0].view(1, -1, 1, 1).expand(f.shape[0], -1, *f.shape[2:])
            f = torch.cat([f, rows], 1).contiguous(memory_format=self.format)
        return self.dense(f, "core.input")

    def decode(self, features):
        options = self.options["decoder"]
        h = self.coder(features, "decoder", options, options.get("blocks", 1),
                       lambda x: F.interpolate(x, scale_factor=2.0, mode="nearest"))
        return torch.tanh(self.dense(self.layer_norm(h, "decoder.norm"), "decoder.last"))

    # The core.

    def kernels(self, i):
        """A_bar [P,1,1] complex, B_bar [2P,U,k,k] and C [U,2P,k,k] real, from the parameters of a layer."""
        name = f"core.core.layers.{i}.ssm."
        re, im = self.p[name + "Lambda_re"].double(), self.p[name + "Lambda_im"].double()
        if self.core.get("clip_eigs", True):
            re = re.clamp(max=-1e-4)
        lam, delta = torch.complex(re, im), self.p[name + "log_step"].double().exp().squeeze(-1)
        a = torch.exp(lam * delta)
        gamma = ((a - 1) / lam).to(torch.complex64)
        b, c = self.p[name + "B"], self.p[name + "C"]
        states, kernel = b.shape[0], c.shape[0]
        k = self.core.get("kernel_b", 3)
        b = torch.view_as_complex(b).view(states, -1, k, k) * gamma.view(-1, 1, 1, 1)
        c = c.permute(4, 3, 2, 0, 1)
        b = torch.cat([b.real, b.imag]).contiguous(memory_format=self.format)
        c = torch.cat([2 * c[0], -2 * c[1]], 1).contiguous(memory_format=self.format)
        return a.to(torch.complex64).view(-1, 1, 1), b, c, kernel

    def layer(self, i, u, length, x0, kernels):
        """u [L*B,U,H,W] -> the same, and the last state [B,P,H,W] complex."""
        a, b, c, kernel = kernels
        bu = F.conv2d(u, b, padding=b.shape[-1] // 2)
        states = bu.shape[1] // 2
        z = torch.complex(bu[:, :states], bu[:, states:]).unflatten(0, (length, -1))
        xs = self.scan(a, z, x0)
        flat = xs.flatten(0, 1)
        x = torch.cat([flat.real, flat.imag], 1).contiguous(memory_format=self.format)
        y = F.conv2d(x, c, padding=kernel // 2)
        name, groups = f"core.core.layers.{i}.", self.core.get("groups", 32)
        h = self.conv(self.gelu(self.group_norm(y, name + "block.norm1", groups)), name + "block.conv1")
        h = self.conv(self.gelu(self.group_norm(h, name + "block.norm2", groups)), name + "block.conv2")
        return self.layer_norm(u + self.gelu(y + h), name + "norm"), xs[-1]

    @staticmethod
    def gelu(x):
        return F.gelu(x, approximate="tanh")

    def run(self, frames, length, states, kernels):
        """frames [L*B,C,H,W] -> predictions of the frames after them, and the states."""
        h, after = self.encode(frames), []
        for i, kernel in enumerate(kernels):
            h, x = self.layer(i, h, length, states[i], kernel)
            after.append(x)
        return self.decode(h), after

    # The work.

    def layers(self):
        return range(self.core["layers"])

    def loss(self, video):
        """Teacher forced, video [B,T,C,H,W]."""
        length = video.shape[1] - 1
        inputs = video[:, :-1].transpose(0, 1).flatten(0, 1)
        targets = video[:, 1:].transpose(0, 1).flatten(0, 1)
        kernels = [self.kernels(i) for i in self.layers()]
        prediction, _ = self.run(inputs, length, [None for _ in self.layers()], kernels)
        difference = prediction - targets
        row = video.shape[2] * video.shape[4]
        l2, l1 = (difference * difference).mean() * row, difference.abs().mean() * row
        return self.weight * l2 + (1 - self.weight) * l1

    def make_optimizer(self):
        self.adam = torch.optim.AdamW(list(self.p.values()), lr=0.0, betas=(0.9, 0.95), weight_decay=1e-5)

    def train_step(self):
        """One step with a learning rate of zero, so that every step does the same work."""
        self.adam.zero_grad(set_to_none=True)
        loss = self.loss(self.bench["video"])
        loss.backward()
        self.adam.step()
        return loss

    @torch.no_grad()
    def start(self):
        """The folded parameters, and the state after all frames but the last."""
        self.folded = [self.kernels(i) for i in self.layers()]
        video = self.bench["video"][:1]
        known = video[0, :-1]
        none = [None for _ in self.layers()]
        _, self.states = self.run(known, known.shape[0], none, self.folded)
        self.frame = video[:, -1]

    @torch.no_grad()
    def next(self):
        frame, self.states = self.run(self.frame, 1, self.states, self.folded)
        self.frame = frame.clamp(-1, 1)
        return self.frame

    def check(self):
        """The largest difference of the next frame, those of the loss and of the norm of the gradients, as parts."""
        loss = self.train_step()
        norm = torch.sqrt(sum((v.grad.double() ** 2).sum() for v in self.p.values() if v.grad is not None))
        self.start()
        frame = (self.next() - self.bench["frame"]).abs().max()
        ours = self.bench["loss"].item(), self.bench["gradient_norm"].item()
        return [frame.item(), abs(loss.item() / ours[0] - 1), abs(norm.item() / ours[1] - 1)]


def seconds(action):
    begin = time.perf_counter()
    action()
    return time.perf_counter() - begin


FORMATS = {"contiguous": torch.contiguous_format, "channels_last": torch.channels_last}
SCANS = {"a loop over frames": scan_loop, "a parallel scan": scan_parallel}


def quickest(choices, prepare, action):
    """The choice with the least time of the action, after one run to warm up."""
    def best(choice):
        prepare(choice)
        repeats = 5 if seconds(action) < 0.5 else 2
        return min(seconds(action) for _ in range(repeats))

    chosen = min(choices, key=best)
    prepare(chosen)
    return chosen


def choose_training(peer):
    """The memory format by whole steps, then the recurrence by whole steps."""
    name = quickest(FORMATS, lambda f: peer.use(FORMATS[f], scan_loop), peer.train_step)
    scan = quickest(SCANS, lambda s: peer.use(FORMATS[name], SCANS[s]), peer.train_step)
    return f"{name}, {scan}"


def choose_generation(peer):
    def prepare(name):
        peer.use(FORMATS[name], scan_loop)
        peer.start()

    return quickest(FORMATS, prepare, peer.next)


def main():
    path, threads, frames = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    torch.set_num_threads(threads)
    torch.set_flush_denormal(True)
    trainer, generator = Peer(path), Peer(path)
    trainer.make_optimizer()
    training = choose_training(trainer)
    generation = choose_generation(generator)
    generator.start()
    print(f"PyTorch {torch.__version__} (training: {training}; generation: {generation})")
    for line in sys.stdin:
        word, numbers = line.strip(), []
        if word == "check":
            numbers = trainer.check()
        elif word == "train":
            trainer.train_step()
        elif word == "generate":
            numbers = [seconds(generator.next) for _ in range(frames)]
        else:
            sys.exit(f"peer_pytorch.py: expected check, train or generate, got '{word}'")
        print("done", *numbers)


main()
