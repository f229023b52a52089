"""Makes the .pth files of this folder with PyTorch, the reference writer of the format.

    /usr/bin/python3 make_torch_data.py     (Debian: python3-torch; any PyTorch from 1.6 on)

Tensors count upwards from 0 (or -2 for signed types) so that the tests can check every value.
"""

import collections
import pathlib

import torch

FOLDER = pathlib.Path(__file__).parent
TYPES = {"b1": "bool", "u1": "uint8", "i1": "int8", "i2": "int16", "i4": "int32", "i8": "int64", "f2": "float16",
         "bf16": "bfloat16", "f4": "float32", "f8": "float64"}


def counted(code):
    start = 0 if code in ("b1", "u1") else -2
    values = torch.arange(start, start + 6)
    if code == "b1":
        values = values % 2
    return values.to(getattr(torch, TYPES[code])).reshape(2, 3)


def save(name, value, **options):
    path = FOLDER / name
    torch.save(value, path, **options)
    assert path.stat().st_size < 10000, name


def views():
    base = torch.arange(24, dtype=torch.float32)
    return collections.OrderedDict(
        base=base,
        transposed=base.reshape(4, 6).t(),
        window=base.reshape(4, 6)[1:3, 2:5],
        steps=base[1::5],
        permuted=base.reshape(2, 3, 4).permute(2, 0, 1),
        expanded=base[3:4].expand(2, 3),
        element=base[7],
        none=base[5:5],
        lone=base.reshape(1, 24)[:, 4:6],
    )


def checkpoint():
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3))
    with torch.no_grad():
        model[0].weight.copy_(torch.arange(6.0).reshape(3, 2))
        model[1].num_batches_tracked.fill_(7)
    return model


def make_files():
    save("torch_types.pth", {code: counted(code) for code in TYPES})
    save("torch_views.pth", views())
    model = checkpoint()
    save("torch_module.pth", model.state_dict())
    extras = {"epoch": 3, "rate": 1e-3, "big": 1 << 40, "negative": -70000, "tags": ["a", ("b", None, True)]}
    save("torch_checkpoint.pth", {"state_dict": model.state_dict(), **extras})
    save("torch_parameters.pth", {"w": torch.nn.Parameter(torch.tensor([1.0, 2.0])), "note": "text"})
    save("torch_protocol_4.pth", {"w": counted("f4")}, pickle_protocol=4)
    save("torch_two_models.pth", {"model": {"w": counted("f4")}, "ema": {"w": counted("f4")}})
    save("torch_tensor.pth", counted("f4"))
    save("torch_legacy.pth", {"w": counted("f4")}, _use_new_zipfile_serialization=False)
    torch.jit.save(torch.jit.script(torch.nn.Linear(1, 1)), str(FOLDER / "torch_script.pt"))


make_files()
