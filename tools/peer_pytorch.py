"""ConvS5 as a PyTorch user writes it, after the listing of the paper: encoder, ConvS5 layers, decoder. It is what
`convssm bench --only peer` measures against, which holds the text of this file:

    python3 tools/peer_pytorch.py MODEL.safetensors threads frames [best|eager|compiled]

MODEL is a file that the command makes and removes again: a model with `bench.video` [1,T,C,H,W], the loss, the norm of its gradients and the
next frame as convssm computes them. It prints its version and the choices it made, then does what it is told, a word a
line: check, train, generate (that many frames). An answer is "done" and numbers: the largest differences for check, for
generate the seconds of each frame.

What is here is what one can expect of a user who cares: one convolution for all frames in training, the complex kernels
of B and C as single real convolutions, parameters folded once for generation, no gradients there, denormals flushed.
Eager or compiled (torch.compile, where the version has it), the memory format and the algorithm for the recurrence (a
loop over frames, a parallel scan; in complex or in real numbers, since the compiler makes no code for complex ones) are
found once by measuring, for training and for generation. What is tried and passed over is told on stderr."""

import functools
import json
import os
import struct
import sys
import time

import numpy as np

os.environ.setdefault("TORCHINDUCTOR_FREEZING", "1")  # compiled generation has its parameters as constants

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


def times_add(a, x, b):
    """b + a x, a = (complex [P,1,1],) or, where x and b [N,2P,H,W] are real parts and imaginary parts, (re, turn) with
    the imaginary part of a as turn = -im, im."""
    if len(a) == 1:
        return torch.addcmul(b, a[0], x)
    swapped = x.unflatten(1, (2, -1)).flip(1).flatten(1, 2)
    return torch.addcmul(torch.addcmul(b, a[0], x), a[1], swapped)


def square(a):
    return (a[0] * a[0],) if len(a) == 1 else (a[0] * a[0] - a[1] * a[1], 2 * a[0] * a[1])


def scan_loop(a, b, x0, batch):
    """x_k = a x_{k-1} + b_k, frame after frame: b [L*B,P,H,W] complex or [L*B,2P,H,W] real."""
    x, xs = x0, []
    for bk in b.split(batch):
        x = bk if x is None else times_add(a, x, bk)
        xs.append(x)
    return torch.cat(xs) if len(xs) > 1 else x


def scan_parallel(a, b, x0, batch):
    """The same in log2(L) rounds over all frames: the powers of a are the same for every frame."""
    if x0 is not None:
        b = torch.cat([times_add(a, x0, b[:batch]), b[batch:]])
    step = batch
    while step < b.shape[0]:
        b = torch.cat([b[:step], times_add(a, b[:-step], b[step:])])
        a, step = square(a), 2 * step
    return b


FORMATS = {"contiguous": torch.contiguous_format, "channels_last": torch.channels_last}
SCANS = {"a loop over frames": (scan_loop, False), "a parallel scan": (scan_parallel, False),
         "a real loop over frames": (scan_loop, True), "a real parallel scan": (scan_parallel, True)}


class Peer:
    """The pixel predictor with a ConvS5 core, with the parameters of a file, in one of its modes."""

    def __init__(self, path, mode, memory_format, scan):
        tensors, metadata = read_safetensors(path)
        self.options = json.loads(metadata["model"])
        self.format = FORMATS[memory_format]
        self.scan, self.real = SCANS[scan]
        self.p = {k[6:]: torch.nn.Parameter(v.contiguous(memory_format=self.format) if v.dim() == 4 else v)
                  for k, v in tensors.items() if k.startswith("model.")}
        self.bench = {k[6:]: v for k, v in tensors.items() if k.startswith("bench.")}
        self.core = self.options["core"]
        self.weight = self.options.get("loss_weight", 0.5)
        self.folded = None  # the kernels, for generation
        self.loss_of, self.run_frame = self.loss, self.run
        if mode == "compiled":
            self.loss_of = torch.compile(self.loss, fullgraph=True, dynamic=False)
            self.run_frame = torch.compile(self.run, fullgraph=True, dynamic=False, options={"cpp_wrapper": True})

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
        """A_bar as times_add wants it, B_bar [2P,U,k,k] and C [U,2P,k,k] real, from the parameters of a layer."""
        name = f"core.core.layers.{i}.ssm."
        re, im = self.p[name + "Lambda_re"].double(), self.p[name + "Lambda_im"].double()
        if self.core.get("clip_eigs", True):
            re = re.clamp(max=-1e-4)
        delta = self.p[name + "log_step"].double().exp().squeeze(-1)
        size, angle = (re * delta).exp(), im * delta
        ar, ai = size * angle.cos(), size * angle.sin()
        norm = re * re + im * im
        gr, gi = ((ar - 1) * re + ai * im) / norm, (ai * re - (ar - 1) * im) / norm  # (a - 1) / lambda
        gr, gi = gr.float().view(-1, 1, 1, 1), gi.float().view(-1, 1, 1, 1)
        b, c = self.p[name + "B"], self.p[name + "C"]
        k = self.core.get("kernel_b", 3)
        br, bi = b.view(b.shape[0], -1, k, k, 2).unbind(-1)
        b = torch.cat([br * gr - bi * gi, br * gi + bi * gr]).contiguous(memory_format=self.format)
        c = c.permute(4, 3, 2, 0, 1)
        c = torch.cat([2 * c[0], -2 * c[1]], 1).contiguous(memory_format=self.format)
        ar, ai = ar.float().view(-1, 1, 1), ai.float().view(-1, 1, 1)
        return (torch.cat([ar, ar]), torch.cat([-ai, ai])) if self.real else (torch.complex(ar, ai),), b, c

    def recur(self, a, bu, x0, batch):
        """The states [L*B,2P,H,W] of all frames: the real parts, then the imaginary parts."""
        if self.real:
            return self.scan(a, bu, x0, batch)
        z, x0 = (None if v is None else torch.complex(*v.chunk(2, 1)) for v in (bu, x0))
        x = self.scan(a, z, x0, batch)
        return torch.cat([x.real, x.imag], 1).contiguous(memory_format=self.format)

    def layer(self, i, u, batch, x0, kernels):
        """u [L*B,U,H,W] -> the same, and the last state [B,2P,H,W]."""
        a, b, c = kernels
        x = self.recur(a, F.conv2d(u, b, padding=b.shape[-1] // 2), x0, batch)
        y = F.conv2d(x, c, padding=c.shape[-1] // 2)
        name, groups = f"core.core.layers.{i}.", self.core.get("groups", 32)
        h = self.conv(self.gelu(self.group_norm(y, name + "block.norm1", groups)), name + "block.conv1")
        h = self.conv(self.gelu(self.group_norm(h, name + "block.norm2", groups)), name + "block.conv2")
        return self.layer_norm(u + self.gelu(y + h), name + "norm"), x[-batch:]

    @staticmethod
    def gelu(x):
        return F.gelu(x, approximate="tanh")

    def run(self, frames, batch, states, kernels):
        """frames [L*B,C,H,W] -> predictions of the frames after them, and the states."""
        h, after = self.encode(frames), []
        for i, kernel in enumerate(kernels):
            h, x = self.layer(i, h, batch, states[i], kernel)
            after.append(x)
        return self.decode(h), after

    # The work.

    def layers(self):
        return range(self.core["layers"])

    def loss(self, video):
        """Teacher forced, video [B,T,C,H,W]."""
        inputs = video[:, :-1].transpose(0, 1).flatten(0, 1)
        targets = video[:, 1:].transpose(0, 1).flatten(0, 1)
        kernels = [self.kernels(i) for i in self.layers()]
        prediction, _ = self.run(inputs, video.shape[0], [None for _ in self.layers()], kernels)
        difference = prediction - targets
        row = video.shape[2] * video.shape[4]
        l2, l1 = (difference * difference).mean() * row, difference.abs().mean() * row
        return self.weight * l2 + (1 - self.weight) * l1

    def make_optimizer(self):
        options = dict(lr=0.0, betas=(0.9, 0.95), weight_decay=1e-5)
        try:
            self.adam = torch.optim.AdamW(self.p.values(), fused=True, **options)
        except (TypeError, RuntimeError):  # a version without it
            self.adam = torch.optim.AdamW(self.p.values(), **options)

    def train_step(self):
        """One step with a learning rate of zero, so that every step does the same work."""
        self.adam.zero_grad(set_to_none=True)
        loss = self.loss_of(self.bench["video"])
        loss.backward()
        self.adam.step()
        return loss

    @torch.no_grad()
    def start(self):
        """The folded parameters, and the state after all frames but the last."""
        def constant(v):  # freezing wants a Parameter
            return torch.nn.Parameter(v, requires_grad=False)

        if self.folded is None:
            kernels = map(self.kernels, self.layers())
            self.folded = [(tuple(map(constant, a)), constant(b), constant(c)) for a, b, c in kernels]
        video = self.bench["video"][:1]
        none = [None for _ in self.layers()]
        _, self.states = self.run(video[0, :-1], 1, none, self.folded)
        self.frame = video[:, -1]

    @torch.no_grad()
    def next(self):
        frame, self.states = self.run_frame(self.frame, 1, self.states, self.folded)
        self.frame = frame.clamp(-1, 1)
        return self.frame


WORK = {"training": Peer.train_step, "generation": Peer.next}


def check(trainer, generator):
    """The largest difference of the next frame, those of the loss and of the norm of the gradients, as parts."""
    loss = trainer.train_step()
    norm = torch.sqrt(sum((v.grad.double() ** 2).sum() for v in trainer.p.values() if v.grad is not None))
    generator.start()
    frame = (generator.next() - generator.bench["frame"]).abs().max()
    ours = trainer.bench["loss"].item(), trainer.bench["gradient_norm"].item()
    return [frame.item(), abs(loss.item() / ours[0] - 1), abs(norm.item() / ours[1] - 1)]


def seconds(action):
    begin = time.perf_counter()
    action()
    return time.perf_counter() - begin


def note(text):
    print(f"peer_pytorch.py: {text}", file=sys.stderr)


def attempt(path, work, choice):
    """(seconds, choice, peer): the least time of the work after a run that warms up, infinite where it fails."""
    name = f"{work}: {', '.join(choice)}"
    try:
        peer = Peer(path, *choice)
        peer.make_optimizer() if work == "training" else peer.start()
        action = functools.partial(WORK[work], peer)
        first = seconds(action)  # compiles
        repeats = max(2, min(200, int(1 / seconds(action))))  # a second of it: single short runs are noise
        least = min(seconds(action) for _ in range(repeats))
    except Exception as error:  # whatever a compiler may throw
        if choice[0] == "eager":
            raise
        note(f"{name}: passed over, it failed: {' '.join(repr(error).split())[:300]}")
        return float("inf"), choice, None
    note(f"{name}: {1000 * least:.2f} ms, the first {first:.1f} s")
    return least, choice, peer


def choose(path, work, modes):
    """The quickest peer: of each mode the memory format with the first recurrence, then the recurrence; then the modes
    in turns, since they were measured minutes apart."""
    finalists = []
    for mode in modes:
        scans = [s for s in SCANS if work == "training" or SCANS[s][0] is scan_loop]  # the same for a single frame
        if mode == "compiled":  # the compiler leaves complex numbers to eager kernels
            scans = [s for s in reversed(scans) if SCANS[s][1]]
        found = min((attempt(path, work, (mode, f, scans[0])) for f in FORMATS), key=lambda c: c[0])
        for scan in scans[1:]:
            found = min(found, attempt(path, work, (mode, found[1][1], scan)), key=lambda c: c[0])
        finalists += [found[1:]] if found[2] is not None else []
    if not finalists:
        sys.exit(f"peer_pytorch.py: no mode for {work}")
    rounds = 5 if work == "training" else 50
    turns = [[seconds(functools.partial(WORK[work], peer)) for _, peer in finalists] for _ in range(rounds)]
    (least, (choice, peer)), *others = sorted(zip(map(min, zip(*turns)), finalists), key=lambda c: c[0])
    for slower, (other, _) in others:
        note(f"{work}: {other[0]} is passed over, {1000 * slower:.2f} ms in turns with {1000 * least:.2f} {choice[0]}")
    return peer, ", ".join(choice)


def available(modes):
    """The modes of the argument that this version has."""
    if modes not in ("best", "eager", "compiled"):
        sys.exit(f"peer_pytorch.py: expected best, eager or compiled, got '{modes}'")
    if modes != "eager" and not hasattr(torch, "compile"):
        if modes == "compiled":
            sys.exit(f"peer_pytorch.py: PyTorch {torch.__version__} has no torch.compile")
        note(f"PyTorch {torch.__version__} has no torch.compile: eager alone")
        modes = "eager"
    return ["eager", "compiled"] if modes == "best" else [modes]


def main():
    path, threads, frames = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    torch.set_num_threads(threads)
    torch.set_flush_denormal(True)
    modes = available(sys.argv[4] if len(sys.argv) > 4 else "best")
    trainer, training = choose(path, "training", modes)
    generator, generation = choose(path, "generation", modes)
    generator.start()
    print(f"PyTorch {torch.__version__} (training: {training}; generation: {generation})")
    for line in sys.stdin:
        word, numbers = line.strip(), []
        if word == "check":
            numbers = check(trainer, generator)
        elif word == "train":
            trainer.train_step()
        elif word == "generate":
            numbers = [seconds(generator.next) for _ in range(frames)]
        else:
            sys.exit(f"peer_pytorch.py: expected check, train or generate, got '{word}'")
        print("done", *numbers)


main()
