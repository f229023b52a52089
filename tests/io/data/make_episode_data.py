"""Makes the HDF5 and JPEG files of this folder with h5py and Pillow, the writers that people use.

    pip install numpy h5py pillow && python make_episode_data.py

Arrays count upwards from 0, modulo what their type holds, so that the tests can check every value.
"""

import pathlib

import h5py
import numpy as np
from PIL import Image

FOLDER = pathlib.Path(__file__).parent


def counted(code, shape):
    return (np.arange(int(np.prod(shape))) % (2 if code == "b1" else 120)).astype(code).reshape(shape)


def make_types():
    with h5py.File(FOLDER / "types.h5", "w", libver="v110") as file:
        for code in ["b1", "u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", "f2", "f4", "f8"]:
            file[f"types/{code}"] = counted(code, (2, 3))
        file["types/big"] = counted("u2", (2, 3)).astype(">u2")
        file["scalar"] = np.int64(7)
        chunked = counted("u1", (7, 5, 4, 3))
        file.create_dataset("packed", data=chunked, chunks=(2, 3, 4, 1), compression="gzip", shuffle=True)
        file.create_dataset("summed", data=chunked, chunks=(7, 5, 4, 3), fletcher32=True)
        file.create_dataset("lzf", data=chunked, compression="lzf")
        file["text"] = "not numbers"
        file["pairs"] = np.zeros(2, [("a", "<f4"), ("b", "<i4")])
        file["elsewhere"] = h5py.ExternalLink("minari.h5", "episode_0/actions")
        file["soft"] = h5py.SoftLink("/packed")
        file.create_dataset("outside", (4,), "u1", external=[("/etc/passwd", 0, 4)])
        layout = h5py.VirtualLayout((3,), "u1")
        layout[:] = h5py.VirtualSource("minari.h5", "episode_0/actions", (5,))[:3]
        file.create_virtual_dataset("virtual", layout)


def make_minari():
    with h5py.File(FOLDER / "minari.h5", "w", libver="v110") as file:
        for episode, frames in [(0, 6), (1, 4), (10, 5), (2, 7)]:
            group = file.create_group(f"episode_{episode}")
            group.attrs["id"] = episode
            pixels = (np.arange(frames * 60).reshape(frames, 5, 4, 3) + episode) % 256
            group.create_dataset("observations", data=pixels.astype("u1"), compression="gzip")
            group["actions"] = (np.arange(frames - 1) + episode) % 5
            group["rewards"] = np.zeros(frames - 1)


def make_jpeg():
    y, x = np.mgrid[0:20, 0:28]
    rgb = np.stack([40 + 6 * x, 30 + 9 * y, 200 - 3 * x - 2 * y], -1).astype("u1")
    grey = (30 + 4 * x + 3 * y).astype("u1")
    for name, pixels in [("rgb", rgb), ("grey", grey)]:
        Image.fromarray(pixels).save(FOLDER / f"{name}.jpg", quality=90)
        np.save(FOLDER / f"{name}_jpg.npy", np.asarray(Image.open(FOLDER / f"{name}.jpg")))


make_types()
make_minari()
make_jpeg()
