"""TIFF files as tifffile writes them, beside their numbers as .npy files. "refused_..." have none.

    pip install numpy tifffile imagecodecs && python make_tiff_data.py
"""

import pathlib

import numpy as np
import tifffile

FOLDER = pathlib.Path(__file__).parent / "tiff"


def numbers(shape, dtype):
    """[T,H,W,C], over the whole range of the type, rows alike enough to be packed."""
    values = np.random.default_rng(len(shape)).random(shape) * 0.25 + np.linspace(0, 0.75, shape[-2])[:, None]
    if np.dtype(dtype).kind == "f":
        return (values * 80 - 40).astype(dtype)
    info = np.iinfo(dtype)
    return (values * (int(info.max) - int(info.min)) + int(info.min)).astype(dtype)


def save(name, frames, stored=None, extra_pages=(), **options):
    """`stored` is what is written, [T,...] a page each, `frames` what should be read."""
    pages = frames if stored is None else stored
    top = {key: options.pop(key) for key in ("bigtiff", "byteorder") if key in options}
    with tifffile.TiffWriter(FOLDER / f"{name}.tif", **top) as tiff:
        for page in [*pages, *extra_pages]:
            page = page[..., 0] if page.shape[-1] == 1 else page
            tiff.write(page, contiguous=False, metadata=None, **{"photometric": "minisblack", **options})
    if frames is not None:
        np.save(FOLDER / f"{name}.npy", frames)


FOLDER.mkdir(exist_ok=True)
rgb = dict(photometric="rgb")
for dtype in ["u1", "i1", "u2", "i2", "u4", "i4", "f2", "f4", "f8"]:
    save(f"grey_{dtype}", numbers((1, 7, 9, 1), dtype))
save("stack", numbers((5, 8, 6, 1), "f4"))
save("stack_big", numbers((4, 8, 6, 1), "u2"), bigtiff=True, byteorder=">")
save("stack_big_endian", numbers((3, 8, 6, 1), "i2"), byteorder=">", compression="zlib")
save("lzw", numbers((2, 20, 30, 1), "u2"), compression="lzw", predictor=True, rowsperstrip=6)
save("deflate", numbers((1, 20, 30, 1), "f4"), compression="zlib", predictor=3)
save("packbits", numbers((1, 20, 30, 1), "u1") // 64, compression="packbits")
save("lzma", numbers((1, 20, 30, 1), "i2"), compression="lzma")
save("zstd", numbers((1, 20, 30, 3), "u1"), compression="zstd", **rgb)
save("tiles", numbers((2, 35, 41, 1), "u2"), tile=(16, 32), compression="zlib")
save("tiles_rgb", numbers((1, 35, 41, 3), "u1"), tile=(32, 16), **rgb)
save("strips_rgb", numbers((2, 13, 9, 3), "u2"), rowsperstrip=4, **rgb)
apart = numbers((2, 13, 9, 3), "u2")
save("apart", apart, stored=apart.transpose(0, 3, 1, 2), planarconfig="separate", rowsperstrip=5, **rgb)
save("apart_tiles", apart, stored=apart.transpose(0, 3, 1, 2), planarconfig="separate", tile=(16, 16), **rgb)
alpha = numbers((1, 6, 5, 4), "u1")
save("alpha", alpha[..., :3].copy(), stored=alpha, extrasamples=["unassalpha"], **rgb)
five = numbers((1, 6, 5, 5), "i2")
save("five", five, stored=five, planarconfig="contig", extrasamples=["unspecified"] * 4)
white = numbers((1, 6, 5, 1), "u2")
save("white", 65535 - white, stored=white, photometric="miniswhite")
with tifffile.TiffWriter(FOLDER / "thumbnails.tif") as tiff:
    for page in white[[0, 0], ..., 0]:
        tiff.write(page, contiguous=False, metadata=None, photometric="minisblack")
        tiff.write(page[:2, :2], subfiletype=1, contiguous=False, metadata=None, photometric="minisblack")
np.save(FOLDER / "thumbnails.npy", white[[0, 0]])
save("refused_sizes", None, stored=numbers((1, 6, 5, 1), "u1"), extra_pages=[np.zeros((6, 4, 1), "u1")])
save("refused_types", None, stored=numbers((1, 6, 5, 1), "u1"), extra_pages=[np.zeros((6, 5, 1), "u2")])
save("refused_palette", None, stored=numbers((1, 6, 5, 1), "u1"), photometric="palette",
     colormap=np.zeros((3, 256), "u2"))
save("refused_complex", None, stored=np.zeros((1, 6, 5, 1), "c8"))
save("refused_bits", None, stored=np.zeros((1, 6, 8, 1), "u1"), bitspersample=4)
