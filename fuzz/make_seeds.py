"""Makes the seeds: small valid files that together use every feature and type family of the formats.

    pip install numpy pillow safetensors && python make_seeds.py
"""

import io
import json
import pathlib
import struct
import zipfile

import numpy as np
from PIL import Image
from safetensors.numpy import save

FOLDER = pathlib.Path(__file__).parent / "seeds"


def write(name, data):
    path = FOLDER / name
    path.parent.mkdir(parents=True, exist_ok=True)
    assert len(data) < 2048, name
    path.write_bytes(data)


def npy(array, version=None):
    out = io.BytesIO()
    np.lib.format.write_array(out, array, version=version)
    return out.getvalue()


def raw_npy(header):
    return b"\x93NUMPY\1\0" + struct.pack("<H", len(header)) + header.encode() + b"1234"


def make_npy():
    for code in ["|b1", "|u1", "|i1", "<u2", ">i2", "<i4", ">u4", "<i8", ">u8", "<f2", "<f4", ">f8", "<c8", ">c16"]:
        write(f"npy/{code[1:]}{'_big' if code[0] == '>' else ''}", npy(np.arange(6).reshape(2, 3).astype(code)))
    write("npy/fortran", npy(np.asfortranarray(np.arange(24, dtype="f4").reshape(2, 3, 4))))
    write("npy/scalar", npy(np.array(1.5)))
    write("npy/empty", npy(np.zeros((3, 0, 2), "f4")))
    write("npy/version_2", npy(np.arange(3), (2, 0)))
    write("npy/version_3", npy(np.arange(3), (3, 0)))
    write("npy/structured", npy(np.zeros(2, [("a", "<f4")])))
    write("npy/text", npy(np.array(["one"])))
    write("npy/python_2", raw_npy('{"shape": (2L, 2L), "descr": "|u1", "fortran_order": True}'))
    write("npy/overflow", raw_npy("{'descr': '|u1', 'fortran_order': False, 'shape': (4611686018427387905, 4), }\n"))


def zipped(members, method, **options):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        for name, data in members.items():
            with archive.open(name, "w", **options) as member:
                member.write(data)
    return out


class Unseekable(io.RawIOBase):
    def __init__(self, file):
        self.file = file

    def writable(self):
        return True

    def write(self, data):
        return self.file.write(data)


def with_end64(data):
    """Inserts the ZIP64 end record and locator before the end record."""
    count, size, offset = struct.unpack("<HII", data[-12:-2])
    record = struct.pack("<IQHHIIQQQQ", 0x06064B50, 44, 45, 45, 0, 0, count, count, size, offset)
    return data[:-22] + record + struct.pack("<IIQI", 0x07064B50, 0, offset + size, 1) + data[-22:]


def make_npz():
    small, floats = npy(np.arange(4, dtype="u1")), npy(np.arange(6, dtype="f4").reshape(2, 3))
    stored, deflated = zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED
    write("npz/stored", zipped({"a.npy": small}, stored).getvalue())
    write("npz/deflated", zipped({"a.npy": small}, deflated).getvalue())
    write("npz/zip64_members", zipped({"a.npy": small, "b.npy": floats}, stored, force_zip64=True).getvalue())
    write("npz/zip64_deflated", zipped({"a.npy": floats}, deflated, force_zip64=True).getvalue())
    write("npz/zip64_end", with_end64(zipped({"a.npy": small}, deflated).getvalue()))
    write("npz/empty", zipped({}, stored).getvalue())
    write("npz/expands", zipped({"a.npy": npy(np.zeros(50000, "u1"))}, deflated).getvalue())
    write("npz/other_members", zipped({"readme": b"text", "folder/": b"", "ö.npy": small}, stored).getvalue())
    write("npz/big_fortran", zipped({"a.npy": npy(np.asfortranarray(np.ones((2, 3), ">c16")))}, deflated).getvalue())
    write("npz/bzip2", zipped({"a.npy": small}, zipfile.ZIP_BZIP2).getvalue())
    streamed = io.BytesIO()
    with zipfile.ZipFile(Unseekable(streamed), "w", deflated) as archive:
        archive.writestr("a.npy", small)
        archive.comment = b"a comment"
    write("npz/descriptors", streamed.getvalue())


def raw_safetensors(header, data=b""):
    text = header if isinstance(header, str) else json.dumps(header)
    return struct.pack("<Q", len(text.encode())) + text.encode() + data


def make_safetensors():
    for code in ["b1", "u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", "f2", "f4", "f8", "c8"]:
        write(f"safetensors/{code}", save({"a": np.arange(6).reshape(2, 3).astype(code)}))
    entry = {"dtype": "BF16", "shape": [2], "data_offsets": [0, 4]}
    write("safetensors/bf16", raw_safetensors({"a": entry}, b"1234"))
    write("safetensors/metadata", save({"a": np.ones(2, "f4")}, {"format": "pt", "größe": "\n\"\\"}))
    write("safetensors/scalar_and_empty", save({"a": np.array(1.5, "f4"), "b": np.zeros((3, 0), "f4")}))
    write("safetensors/many", save({f"layer.{i}": np.ones(i, "u1") for i in range(8)}))
    write("safetensors/none", raw_safetensors("{}"))
    write("safetensors/deep", raw_safetensors('{"a":' + "[" * 50))
    write("safetensors/escapes", raw_safetensors(r'{"\u00f6\ud83d\ude00":{"dtype":"U8","shape":[],"data_offsets":[0,1]}}', b"1"))


def gif(frames, **options):
    out = io.BytesIO()
    frames[0].save(out, "GIF", save_all=True, append_images=frames[1:], duration=50, **options)
    return out.getvalue()


def moving(mode, background, size=(8, 6)):
    frames = []
    for t in range(3):
        frame = Image.new(mode, size, background)
        frame.paste(200 - 50 * t if mode == "L" else (80 * t, 255 - 60 * t, 30), (t, t, t + 3, t + 2))
        frames.append(frame)
    return frames


def make_gif():
    write("gif/grey", gif(moving("L", 7), loop=0))
    for disposal in range(4):
        write(f"gif/disposal_{disposal}", gif(moving("RGB", (200, 30, 40)), disposal=disposal))
    write("gif/transparent", gif(moving("RGBA", (0, 0, 0, 0)), disposal=2))
    write("gif/interlaced", gif(moving("L", 7)[:1], interlace=1))
    write("gif/comment", gif(moving("L", 7)[:1], interlace=0, comment=b"text"))
    noise = np.random.default_rng(0).integers(0, 256, (12, 12), dtype="u1")
    write("gif/noise", gif([Image.fromarray(noise)]))


def make_yaml():
    write("yaml/config", b"model: {core: convs5, depths: [32, 64]}\ntrain:\n  lr: 1e-3 # rate\n  note: 'it''s'\n")
    write("yaml/scalars", b"- 1\n- -2\n- 0x1f\n- 0o17\n- .5\n- -.inf\n- ~\n- true\n- no\n- \"\\u00e4\\n\"\n- !!str 1\n")
    write("yaml/blocks", b"a: |\n  text\n  more\nb: >-\n  folded\n  text\n? key\n: value\n")
    write("yaml/anchors", b"a: &x {b: [1, 2]}\nc: *x\nd: [*x, *x]\n")
    write("yaml/documents", b"%YAML 1.2\n---\na: 1\n...\n")
    write("yaml/bad", b"a:\n\tb: [1, 'x\n")


make_npy()
make_npz()
make_safetensors()
make_gif()
make_yaml()
