#!/usr/bin/env python3
"""Writes tests/golden/vqgan.npz: encoder, quantizer, decoder and discriminator of a small VQ-GAN in plain PyTorch, float64;
and tests/golden/vqgan_kl.npz: the same networks around a normal latent, as latent diffusion has them.

The parameters have the names of the public layout (taming) and values that a formula makes of name and index, so that the
file need not hold them; tests/models/vqgan_golden.h has the same formula. Shares no code with the library.
  x [2,3,16,12]       frames
  z, codes, decoded   quant_conv(encoder(x)), nearest rows, decoder(post_quant_conv(rows)) before any clipping
  names               all parameters, one a line, with their shapes
  disc_train, disc_eval   the discriminator (2 layers of stride 2, 8 features) on x: statistics of the batch, running ones
                      after that batch
  vqgan_kl.npz: x, z (mean and log variance), divergence [2] of each frame from N(0,1), decoded of the means, names
To regenerate: python3 tools/golden/make_vqgan.py [output folder]   (made with PyTorch 2.15, NumPy 2.4; vqgan_kl.npz with
PyTorch 1.13, NumPy 1.24)
"""
import math
import pathlib
import sys

import numpy as np
import torch
import torch.nn.functional as F

CH, MULT, BLOCKS, ATTENTION, LATENT, EMBED, CODES, GROUPS = 32, (1, 2), 1, (8,), 24, 20, 50, 32
LATENT_NUMBERS = 5
HEIGHT = 16
used = {}


def value(name, shape, fan_in=None):
    """A tensor whose values follow from its name: uniform-looking, variance 1/fan_in; of norms around 1 and 0."""
    seed = sum((i + 1) * byte for i, byte in enumerate(name.encode())) % 65521
    k = np.arange(int(np.prod(shape)), dtype=np.int64)
    u = ((k * 7919 + seed * 104729 + (k * k) % 1013) % 10007) / 10007.0 - 0.5
    if fan_in is None:
        values = (1 if name.endswith("weight") else 0) + 0.4 * u
    else:
        values = u * math.sqrt(12.0 / fan_in)
    used[name] = list(shape)
    return torch.tensor(values.astype(np.float32).reshape(shape)).double()


def conv(name, x, out, kernel, stride=1, padding=None, bias=True):
    fan = x.shape[1] * kernel * kernel
    weight = value(name + ".weight", (out, x.shape[1], kernel, kernel), fan)
    b = value(name + ".bias", (out,), 3 * fan) if bias else None
    return F.conv2d(x, weight, b, stride, kernel // 2 if padding is None else padding)


def norm(name, x):
    c = x.shape[1]
    return F.group_norm(x, GROUPS, value(name + ".weight", (c,)), value(name + ".bias", (c,)), 1e-6)


def swish(x):
    return x * torch.sigmoid(x)


def res(name, x, out):
    h = conv(name + ".conv1", swish(norm(name + ".norm1", x)), out, 3)
    h = conv(name + ".conv2", swish(norm(name + ".norm2", h)), out, 3)
    return h + (conv(name + ".nin_shortcut", x, out, 1) if x.shape[1] != out else x)


def attention(name, x):
    n, c, height, width = x.shape
    h = norm(name + ".norm", x)
    q, k, v = (conv(f"{name}.{part}", h, c, 1).reshape(n, c, height * width) for part in "qkv")
    scores = torch.einsum("nci,ncj->nij", q, k) / math.sqrt(c)
    mixed = torch.einsum("nij,ncj->nci", torch.softmax(scores, 2), v).reshape(n, c, height, width)
    return x + conv(name + ".proj_out", mixed, c, 1)


def middle(name, x):
    c = x.shape[1]
    return res(name + ".block_2", attention(name + ".attn_1", res(name + ".block_1", x, c)), c)


def encoder(x, latent=LATENT):
    h = conv("encoder.conv_in", x, CH, 3)
    for level, mult in enumerate(MULT):
        for i in range(BLOCKS):
            h = res(f"encoder.down.{level}.block.{i}", h, CH * mult)
            if HEIGHT >> level in ATTENTION:
                h = attention(f"encoder.down.{level}.attn.{i}", h)
        if level + 1 < len(MULT):
            h = conv(f"encoder.down.{level}.downsample.conv", F.pad(h, (0, 1, 0, 1)), h.shape[1], 3, 2, 0)
    return conv("encoder.conv_out", swish(norm("encoder.norm_out", middle("encoder.mid", h))), latent, 3)


def decoder(z):
    h = middle("decoder.mid", conv("decoder.conv_in", z, CH * MULT[-1], 3))
    for level in reversed(range(len(MULT))):
        for i in range(BLOCKS + 1):
            h = res(f"decoder.up.{level}.block.{i}", h, CH * MULT[level])
            if HEIGHT >> level in ATTENTION:
                h = attention(f"decoder.up.{level}.attn.{i}", h)
        if level > 0:
            h = h.repeat_interleave(2, 2).repeat_interleave(2, 3)
            h = conv(f"decoder.up.{level}.upsample.conv", h, h.shape[1], 3)
    return conv("decoder.conv_out", swish(norm("decoder.norm_out", h)), 3, 3)


def discriminator(x, running):
    """`running` None: statistics of the batch, which are given back as the running ones after it."""
    h, after = x, []
    for i, (out, stride) in enumerate([(8, 2), (16, 2), (32, 1)]):
        h = conv(f"discriminator.conv{i}", h, out, 4, stride, 1, bias=i == 0)
        if i > 0:
            mean, var = h.mean((0, 2, 3)), h.var((0, 2, 3), unbiased=False)
            count = h.numel() / out
            after.append((0.1 * mean, 0.9 + 0.1 * var * count / (count - 1)))
            if running is not None:
                mean, var = running[i - 1]
            h = (h - mean[:, None, None]) / torch.sqrt(var[:, None, None] + 1e-5)
            h = h * value(f"discriminator.norm{i}.weight", (out,))[:, None, None]
            h = h + value(f"discriminator.norm{i}.bias", (out,))[:, None, None]
        h = torch.where(h > 0, h, 0.2 * h)
    return conv("discriminator.conv3", h, 1, 4, 1, 1), after


def listed_names():
    return np.frombuffer("\n".join(f"{name} {' '.join(map(str, shape))}" for name, shape in used.items()).encode(), np.uint8)


def write_kl(out, x):
    used.clear()
    z = conv("quant_conv", encoder(x, 2 * LATENT), 2 * LATENT_NUMBERS, 1)
    mean, log_var = z[:, :LATENT_NUMBERS], z[:, LATENT_NUMBERS:].clamp(-30, 20)
    normal = torch.distributions.Normal(mean, torch.exp(log_var / 2))
    divergence = torch.distributions.kl_divergence(normal, torch.distributions.Normal(0.0, 1.0)).sum((1, 2, 3))
    decoded = decoder(conv("post_quant_conv", mean, LATENT, 1))
    np.savez_compressed(
        out, x=x.numpy().astype(np.float32), z=z.numpy(), divergence=divergence.numpy(),
        decoded=decoded.numpy().astype(np.float32), names=listed_names())
    print(out, "divergence:", divergence.tolist(), "decoded range:", decoded.min().item(), decoded.max().item())


def main():
    folder = pathlib.Path(__file__).resolve().parents[2] / "tests" / "golden"
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else folder
    out = folder / "vqgan.npz"
    x = torch.tensor(np.random.RandomState(3).uniform(-1, 1, (2, 3, HEIGHT, 12)).astype(np.float32)).double()
    z = conv("quant_conv", encoder(x), EMBED, 1)
    table = value("quantize.embedding.weight", (CODES, EMBED), 0.5 * EMBED)
    rows = z.permute(0, 2, 3, 1)
    codes = ((rows[..., None, :] - table) ** 2).sum(-1).argmin(-1)
    chosen = table[codes].permute(0, 3, 1, 2)
    decoded = decoder(conv("post_quant_conv", chosen, LATENT, 1))
    names = listed_names()
    trained, running = discriminator(x, None)
    np.savez_compressed(
        out, x=x.numpy().astype(np.float32), z=z.numpy().astype(np.float32), codes=codes.numpy(),
        decoded=decoded.numpy().astype(np.float32), names=names,
        disc_train=trained.numpy().astype(np.float32),
        disc_eval=discriminator(x, running)[0].numpy().astype(np.float32))
    print(out, "codes used:", len(codes.unique()), "decoded range:", decoded.min().item(), decoded.max().item())
    write_kl(folder / "vqgan_kl.npz", x)


if __name__ == "__main__":
    main()
