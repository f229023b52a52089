"""Makes the seeds: small valid files that together use every feature and type family of the formats.

    pip install numpy pillow safetensors tifffile imagecodecs torch && python make_seeds.py
"""

import io
import json
import pathlib
import struct
import subprocess
import tempfile
import zipfile

import numpy as np
import tifffile
import torch
from PIL import Image
from safetensors.numpy import save

FOLDER = pathlib.Path(__file__).parent / "seeds"


def write(name, data, largest=2048):
    path = FOLDER / name
    path.parent.mkdir(parents=True, exist_ok=True)
    assert len(data) < largest, name
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


def varint(value):
    out = b""
    while value >= 0x80:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def masked(data):
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def field(number, value):
    """A protobuf field: a number, or bytes."""
    if isinstance(value, bytes):
        return varint(number << 3 | 2) + varint(len(value)) + value
    return varint(number << 3) + varint(value)


def tf_entry(dtype, shape, size, offset=0):
    dims = b"".join(field(2, field(1, length)) for length in shape)
    crc = struct.pack("<I", masked(bytes(size)))
    return field(1, dtype) + field(2, dims) + field(4, offset) + field(5, size) + varint(6 << 3 | 5) + crc


def table_block(entries, interval):
    out, restarts, last = b"", [], b""
    for i, (key, value) in enumerate(entries):
        shared = 0
        if i % interval == 0:
            restarts.append(len(out))
        else:
            while shared < min(len(key), len(last)) and key[shared] == last[shared]:
                shared += 1
        out += varint(shared) + varint(len(key) - shared) + varint(len(value)) + key[shared:] + value
        last = key
    restarts = restarts or [0]
    return out + struct.pack(f"<{len(restarts)}I", *restarts) + struct.pack("<I", len(restarts))


def table(blocks):
    out, index = b"", []

    def add(block):
        nonlocal out
        handle = varint(len(out)) + varint(len(block))
        out += block + b"\0" + struct.pack("<I", masked(block + b"\0"))
        return handle

    for i, block in enumerate(blocks):
        index.append((b"z" * (i + 1), add(block)))
    handles = add(table_block([], 1)) + add(table_block(index, 1))
    return out + handles.ljust(40, b"\0") + struct.pack("<Q", 0xDB4775248B80FB57)


def make_tf_bundle():
    header = (b"", field(1, 1) + field(3, field(1, 1)))
    first = [(b"net/conv_%d" % i, tf_entry(code, [2, 2], 4 * size)) for i, (code, size) in
             enumerate([(1, 4), (2, 8), (3, 4), (9, 8)])]
    second = [(b"net/scalar", tf_entry(1, [], 4)), (b"net/text", tf_entry(7, [1], 4)), (b"none", tf_entry(1, [0, 3], 0))]
    write("tf_bundle/index", table([table_block([header] + first, 2), table_block(second, 16)]))
    write("tf_bundle/empty", table([table_block([header], 1)]))
    # The fuzz target also takes its input as one block.
    write("tf_bundle/block", table_block([header] + first + second, 16))
    sliced = tf_entry(1, [1], 4) + field(7, b"") + field(3, 1)
    write("tf_bundle/block_sliced", table_block([header, (b"w", sliced)], 1))


def make_torch_file():
    base = torch.arange(4, dtype=torch.float32)
    states = {
        "views": {"a": base, "b": base.reshape(2, 2).t(), "c": base[1::2], "d": base[3].expand(2, 2)},
        "nested": {"state_dict": {"w": torch.nn.Parameter(base)}, "epoch": 3, "rest": [1.5, -70000, 1 << 40, (None, True)]},
        "module": torch.nn.Linear(2, 2, bias=False).state_dict(),
    }
    for name, state in states.items():
        for protocol in (2, 4):
            data = io.BytesIO()
            torch.save(state, data, pickle_protocol=protocol)
            write(f"torch_file/{name}_{protocol}", data.getvalue())
            # The fuzz target also takes its input as the pickle of an archive with one storage.
            with zipfile.ZipFile(data) as archive:
                write(f"torch_file/{name}_{protocol}.pkl", archive.read("archive/data.pkl"))


def make_csv():
    write("csv/plain", b"1,2\n3,4\n")
    write("csv/names", b'frame,"action"\r\n0,-3\r\n1,2.5e3\r\n')
    write("csv/tabs", b"\xef\xbb\xbf# a remark\na\tb\n1\t+2\n\nnan\tinf\n")
    write("csv/semicolons", b"1;2;3\n4;5;6")
    write("csv/short_row", b"1,2\n3\n")
    write("csv/one_column", b"action\n0\n1\n")


def make_zarr():
    """Arrays of the golden stores: what fuzz_zarr takes the metadata for, the metadata, a zero byte, the first chunk or shard."""
    stores = FOLDER.parents[1] / "tests/io/data/zarr"
    v2 = json.loads((stores / "v2.zarr/.zmetadata").read_text())["metadata"]
    v3 = json.loads((stores / "v3.zarr/zarr.json").read_text())["consolidated_metadata"]["metadata"]

    def add(name, kind, metadata, chunk=b""):
        text = json.dumps(metadata, separators=(",", ":"))
        write("zarr/" + name, kind + text.encode() + b"\0" + chunk)

    for key in ["types/big_f8", "types/little_b1", "codecs/zlib", "codecs/gzip", "codecs/zstd_sum", "codecs/lz4",
                "codecs/blosc_lz4_1", "codecs/blosc_zstd_1", "codecs/blosc_zlib_1", "codecs/blosc_blosclz_1", "filters/scaled_delta",
                "filters/delta_f4", "order/f", "order/f_filtered", "missing/nan"]:
        file = next(file for file in [stores / "v2.zarr" / key / name for name in ("0", "0.0")] if file.exists())
        add("v2_" + key.replace("/", "_"), b"2", v2[key + "/.zarray"], file.read_bytes())
    for key in ["types/big_f8", "codecs/crc32c_zstd", "codecs/shuffle_zlib", "codecs/scaled", "order/transposed", "keys/v2_dot",
                "shards/plain", "shards/blosc_crc", "shards/index_start", "shards/index_big", "shards/missing", "shapes/scalar"]:
        folder = stores / "v3.zarr" / key
        files = [folder / name for name in ("c/0/0", "c/0", "0.0", "c")]
        file = next(file for file in files if file.is_file())
        add("v3_" + key.replace("/", "_"), b"3", v3[key], file.read_bytes())
    add("consolidated_v2", b"m", {"metadata": {"a/.zarray": v2["types/big_f8/.zarray"], "a/.zattrs": {
        "_ARRAY_DIMENSIONS": ["x"], "b": [1, 2.5], "c": "NaN", "d": {}}, ".zgroup": {"zarr_format": 2}, ".zattrs": {"t": "x"}}})
    add("consolidated_v3", b"3", {"zarr_format": 3, "node_type": "group", "attributes": {"t": 1}, "consolidated_metadata": {
        "kind": "inline", "metadata": {"a": v3["names/some"], "g": {"zarr_format": 3, "node_type": "group"}}}})
    write("zarr/bare", b'2{"a":NaN,"b":[-Infinity]}')


def make_tiff():
    def add(name, values, pages=1, **options):
        out = io.BytesIO()
        with tifffile.TiffWriter(out, **{k: options.pop(k) for k in ("bigtiff", "byteorder") if k in options}) as tiff:
            for _ in range(pages):
                tiff.write(values, contiguous=False, metadata=None, **{"photometric": "minisblack", **options})
        write(f"tiff/{name}", out.getvalue())

    grey, rgb = np.arange(70, dtype="u2").reshape(7, 10), np.arange(210, dtype="u1").reshape(7, 10, 3)
    add("pages", grey, 3)
    add("big", grey, 2, bigtiff=True, byteorder=">")
    for name in ["lzw", "zlib", "packbits", "lzma", "zstd"]:
        add(name, grey.astype("u1"), compression=name)
    add("predictor", grey, compression="zlib", predictor=True)
    add("floats", grey.astype("f4"), compression="zlib", predictor=3, byteorder=">")
    add("rgb", rgb, photometric="rgb", rowsperstrip=3)
    add("jpeg", rgb, photometric="rgb", compression="jpeg")
    add("tiles", grey.astype("i2"), tile=(16, 16), compression="zlib")
    add("apart", rgb.transpose(2, 0, 1).copy(), photometric="rgb", planarconfig="separate")
    add("white", grey, photometric="miniswhite")
    add("alpha", np.dstack([rgb, rgb[..., :1]]), photometric="rgb", extrasamples=["unassalpha"])


def make_pnm():
    write("pnm/grey", b"P5 3 2 255\nabcdef")
    write("pnm/several", b"P5 2 1 255\nabP5 2 1 255\ncd\n")
    write("pnm/deep", b"P6\n# remark\n1 1 4095\n\1\2\3\4\5\6")
    write("pnm/text", b"P2 3 1 15\n1 # one\n2 15\n")
    write("pnm/text_rgb", b"P3 1 1 65535 1 2 65535")


def make_video():
    def add(name, ending, *options):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / f"a.{ending}"
            source = ["-f", "lavfi", "-i", "testsrc2=s=16x16:r=5:d=0.8"]
            subprocess.run(["ffmpeg", "-v", "error", *source, "-bitexact", "-fflags", "+bitexact", *options, path], check=True)
            write(f"video/{name}", path.read_bytes(), 9000)

    add("mpeg4.mp4", "mp4", "-c:v", "mpeg4", "-g", "2")
    add("fragments.mp4", "mp4", "-c:v", "mpeg4", "-movflags", "+frag_keyframe+empty_moov")
    add("turned.mov", "mov", "-c:v", "mjpeg", "-metadata:s:v", "rotate=90")
    add("rle.mov", "mov", "-c:v", "qtrle")
    add("mpeg4.avi", "avi", "-c:v", "mpeg4", "-g", "2")
    add("raw.avi", "avi", "-c:v", "rawvideo", "-pix_fmt", "bgr24")
    add("mpeg4.mkv", "mkv", "-c:v", "mpeg4", "-bf", "1", "-g", "2")
    add("grey.mkv", "mkv", "-c:v", "ffv1", "-pix_fmt", "gray")
    add("vp8.webm", "webm", "-c:v", "libvpx", "-g", "2")
    add("h264.mkv", "mkv", "-c:v", "libx264", "-bf", "1", "-g", "2", "-x264-params", "info=0")


make_npy()
make_npz()
make_safetensors()
make_gif()
make_tiff()
make_pnm()
make_video()
make_yaml()
make_csv()
make_tf_bundle()
make_torch_file()
make_zarr()
