"""TECO with a ConvS5 core as a PyTorch user writes it: what `convssm bench --only codes` measures against, which holds the text
of this file:

    python3 -c peer_codes.py MODEL.safetensors threads

MODEL has the parameters, `bench.codes` [1,T,H,W], `bench.actions` [1,T], `bench.hidden` [T-1,h,w] (tokens that the prior does
not see) and the loss and the norm of its gradients as convssm computes them. Tasks, a word a line: check (relative differences
of loss and norm), train (a step forward and backward on the clip), generate (codes of one frame: core, all passes of draft and
revise, decoder). The faster memory format of each task is found first, by measuring. Everything else as in peer_pytorch.py: one convolution
for all frames in training, complex kernels as real ones, parameters folded once for generation."""

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
    metadata = header.pop("__metadata__")
    types = {"F32": np.float32, "F64": np.float64, "I64": np.int64, "BOOL": np.bool_}
    tensors = {}
    for name, entry in header.items():
        if entry["dtype"] in types:
            values = np.frombuffer(data[slice(*entry["data_offsets"])], types[entry["dtype"]]).copy()
            tensors[name] = torch.from_numpy(values).view(entry["shape"])
    return tensors, json.loads(metadata["model"])


class Teco:
    def __init__(self, tensors, options):
        self.o, self.core, self.git = options, options["core"], options["maskgit"]
        self.p = {k[6:]: v for k, v in tensors.items() if k.startswith("model.") and "tokenizer." not in k}
        for name, t in self.p.items():
            if t.dtype == torch.float32 and "usage" not in name:
                self.p[name] = torch.nn.Parameter(t)
        self.table = tensors["bench.table"]  # of the tokenizer
        self.folded, self.states, self.latent = None, None, None

    def in_format(self, memory_format):
        if getattr(self, "format", None) == memory_format:
            return
        self.format, self.folded = memory_format, None
        for name, t in self.p.items():
            if t.dim() == 4:
                t.data = t.data.contiguous(memory_format=memory_format)

    def conv(self, x, name, bias=True):
        weight = self.p[name + ".weight"]
        return F.conv2d(x, weight, self.p[name + ".bias"] if bias else None, padding=weight.shape[-1] // 2)

    def group_norm(self, x, name):
        return F.group_norm(x, 32, self.p[name + ".weight"], self.p[name + ".bias"], 1e-6)

    def map_norm(self, x, name):
        y = F.layer_norm(x.permute(0, 2, 3, 1), x.shape[1:2], self.p[name + ".weight"], self.p[name + ".bias"], 1e-6)
        return y.permute(0, 3, 1, 2)

    def dense(self, x, name):
        return F.conv2d(x, self.p[name + ".weight"][:, :, None, None], self.p[name + ".bias"])

    def res_block(self, x, name):
        h = self.conv(F.elu(self.group_norm(x, name + ".norm1")), name + ".conv1")
        h = self.conv(F.elu(self.group_norm(h, name + ".norm2")), name + ".conv2")
        shortcut = self.conv(x, name + ".shortcut", False) if name + ".shortcut.weight" in self.p else x
        return torch.add(shortcut, h, alpha=0.1)

    def coder(self, x, name, first_count, between):
        h, block = self.conv(x, name + ".first"), 0
        options = self.o[name]
        for level in range(len(options["depths"])):
            h = between(h) if level > 0 else h
            for _ in range(first_count if level == 0 else options["blocks"]):
                h = self.res_block(h, f"{name}.blocks.{block}")
                block += 1
        return h

    def posterior(self, before, now):
        pair = torch.cat([before, now], 1).contiguous(memory_format=self.format)
        z = self.dense(self.coder(pair, "encoder", 1, lambda h: F.avg_pool2d(h, 2)), "to_latent")
        return z, F.normalize(torch.einsum("nchw,oc->nohw", z, self.p["project_in"]), dim=1, eps=1e-6)

    def rows(self):
        return F.normalize(self.p["quantizer.embedding.weight"], dim=1, eps=1e-6)

    def latents(self, tokens):
        return torch.einsum("nhwc,oc->nohw", self.rows()[tokens], self.p["project_out"])

    def kernels(self, i):
        name = f"core.core.layers.{i}.ssm."
        re, im = self.p[name + "Lambda_re"].double(), self.p[name + "Lambda_im"].double()
        if self.core.get("clip_eigs", True):
            re = re.clamp(max=-1e-4)
        lam = torch.complex(re, im)
        a = (lam * self.p[name + "log_step"].double().exp().squeeze(-1)).exp()
        gamma = ((a - 1) / lam).to(torch.complex64).view(-1, 1, 1, 1)
        b, c = self.p[name + "B"], self.p[name + "C"]
        b = torch.view_as_complex(b.view(b.shape[0], -1, 3, 3, 2).contiguous()) * gamma
        c = c.permute(4, 3, 2, 0, 1)
        return (a.to(torch.complex64).view(-1, 1, 1),
                torch.cat([b.real, b.imag]).contiguous(memory_format=self.format),
                torch.cat([2 * c[0], -2 * c[1]], 1).contiguous(memory_format=self.format))

    def layer(self, i, u, kernels, x0):
        a, b, c = kernels
        z = torch.complex(*F.conv2d(u, b, padding=1).chunk(2, 1))
        xs = []
        for k in range(z.shape[0]):
            x0 = z[k] if x0 is None else a * x0 + z[k]
            xs.append(x0)
        x = torch.stack(xs)
        y = F.conv2d(torch.cat([x.real, x.imag], 1).contiguous(memory_format=self.format), c, padding=1)
        name = f"core.core.layers.{i}."
        gelu = lambda v: F.gelu(v, approximate="tanh")
        h = self.conv(gelu(self.group_norm(y, name + "block.norm1")), name + "block.conv1")
        h = self.conv(gelu(self.group_norm(h, name + "block.norm2")), name + "block.conv2")
        return self.map_norm(u + gelu(y + h), name + "norm"), x0

    def dynamics(self, x, actions, kernels, states):
        """x [L,E,h,w] of one clip and the actions after them."""
        rows = self.p["actions"][actions].view(len(actions), -1, 1, 1).expand(-1, -1, *x.shape[2:])
        h = self.dense(torch.cat([x, rows], 1).contiguous(memory_format=self.format), "core.input")
        after = []
        for i, kernel in enumerate(kernels):
            h, state = self.layer(i, h, kernel, states[i])
            after.append(state)
        return h, after

    def linear(self, x, name):
        return F.linear(x, self.p[name + ".weight"], self.p[name + ".bias"])

    def norm(self, x, name):
        return F.layer_norm(x, x.shape[-1:], self.p[name + ".weight"], self.p[name + ".bias"], 1e-6)

    def prior(self, tokens, deter):
        """tokens [N,h,w], deter [N,D,h,w] -> logits [N,h*w,K]."""
        n, heads, t = tokens.shape[0], self.git["heads"], "prior.transformer."
        h, w = tokens.shape[1:]
        x = torch.cat([self.p["prior.tokens"][tokens.flatten(1)], deter.flatten(2).transpose(1, 2)], 2)
        place = torch.cat([self.p["prior.rows"][:, None].expand(h, w, -1), self.p["prior.columns"][None].expand(h, w, -1)], 2)
        x = self.linear(x, t + "input") + place.flatten(0, 1)
        for i in range(self.git["layers"]):
            name = f"{t}layers.{i}."
            q, k, v = self.linear(self.norm(x, name + "norm1"), name + "qkv").view(n, h * w, 3, heads, -1).permute(2, 0, 3, 1, 4)
            if hasattr(F, "scaled_dot_product_attention"):
                mixed = F.scaled_dot_product_attention(q, k, v)
            else:
                mixed = torch.softmax(q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5, -1) @ v
            x = x + self.linear(mixed.transpose(1, 2).reshape(x.shape), name + "out")
            m = self.linear(self.norm(x, name + "norm2"), name + "mlp1")
            x = x + self.linear(m * torch.sigmoid(1.702 * m), name + "mlp2")
        x = self.norm(F.gelu(self.linear(x, t + "output"), approximate="tanh"), t + "norm")
        x = self.norm(F.gelu(self.linear(x, "prior.head"), approximate="tanh"), "prior.norm")
        return F.linear(x, self.p["prior.tokens"][:-1], self.p["prior.bias"])

    def decode(self, deter, latent):
        x = torch.cat([deter, latent], 1).contiguous(memory_format=self.format)
        h = self.coder(x, "decoder", self.o["decoder"]["blocks"], lambda y: F.interpolate(y, scale_factor=2.0, mode="nearest"))
        return self.dense(self.map_norm(h, "decoder.norm"), "decoder.last")

    def loss(self, codes, actions, hidden):
        e = self.table[codes].permute(0, 3, 1, 2)
        z, zp = self.posterior(torch.cat([self.p["before_first"][None], e[:-1]]), e)
        rows = self.rows()
        tokens = torch.einsum("nchw,kc->nhwk", zp, rows).argmax(-1)
        c = rows[tokens].permute(0, 3, 1, 2)
        table = 0.5 * ((c - zp.detach()) ** 2).mean()
        commitment = 0.5 * 0.25 * ((c.detach() - zp) ** 2).mean()
        zq = torch.einsum("nchw,oc->nohw", zp + (c - zp).detach(), self.p["project_out"])
        kernels = [self.kernels(i) for i in range(self.core["layers"])]
        x = torch.cat([z[:1], zq[1:-1]])
        deter, _ = self.dynamics(x, actions[1:], kernels, [None] * len(kernels))
        after = tokens[1:]
        logits = self.prior(after.masked_fill(hidden, rows.shape[0]), deter)
        each = F.cross_entropy(logits.flatten(0, 1), after.flatten(), reduction="none")[hidden.flatten()]
        prior = each.mean() * after[0].numel()
        y = self.decode(deter, zq[1:]).permute(0, 2, 3, 1)
        recon = F.cross_entropy(y.flatten(0, 2), codes[1:].flatten(), label_smoothing=0.01, reduction="sum") / len(after)
        return recon + prior + table + commitment

    def gradients(self, bench):
        learned = [t for t in self.p.values() if isinstance(t, torch.nn.Parameter)]
        for t in learned:
            t.grad = None
        value = self.loss(bench["codes"][0], bench["actions"][0], bench["hidden"])
        value.backward()
        return value.item(), torch.sqrt(sum((t.grad.double() ** 2).sum() for t in learned if t.grad is not None)).item()

    @torch.no_grad()
    def generate(self):
        if self.folded is None:
            self.folded = [self.kernels(i) for i in range(self.core["layers"])]
            self.states = [None] * len(self.folded)
            self.latent = torch.zeros(1, self.o["features"], 8, 8)
        deter, self.states = self.dynamics(self.latent, torch.zeros(1, dtype=torch.long), self.folded, self.states)
        n, K = 64, self.rows().shape[0]
        tokens = torch.full((1, n), K)
        for round in range(1 + self.git["rounds"]):
            for places in torch.randperm(n).chunk(self.git["draft"] if round == 0 else self.git["revise"]):
                tokens[:, places] = K
                logits = self.prior(tokens.view(1, 8, 8), deter)
                tokens[0, places] = torch.multinomial(torch.softmax(logits[0, places], -1), 1)[:, 0]
        self.latent = self.latents(tokens.view(1, 8, 8))
        return self.decode(deter, self.latent).argmax(1)


def fastest_format(model, run):
    times = {}
    for memory_format in (torch.contiguous_format, torch.channels_last):
        model.in_format(memory_format)
        run()
        start = time.perf_counter()
        run()
        times[time.perf_counter() - start] = memory_format
    return times[min(times)]


def main():
    tensors, options = read_safetensors(sys.argv[1])
    torch.set_num_threads(int(sys.argv[2]))
    torch.set_flush_denormal(True)
    model = Teco(tensors, options)
    bench = {k[6:]: v for k, v in tensors.items() if k.startswith("bench.")}
    work = {"generate": model.generate, "train": lambda: model.gradients(bench)}
    best = {task: fastest_format(model, run) for task, run in work.items()}
    names = ", ".join(f"{task} {str(chosen).split('.')[-1]}" for task, chosen in best.items())
    print(f"PyTorch {torch.__version__}, {names}", flush=True)
    for line in sys.stdin:
        task, numbers = line.strip(), []
        model.in_format(best["generate" if task == "generate" else "train"])
        if task == "generate":
            model.generate()
        else:
            value, norm = model.gradients(bench)
            if task == "check":
                numbers = [abs(value / bench["loss"].item() - 1), abs(norm / bench["gradient_norm"].item() - 1)]
        print("done", *numbers, flush=True)


main()
