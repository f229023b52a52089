"""Small Zarr stores by zarr-python, numcodecs and xarray: writes tests/io/data/zarr/*.zarr, and what they hold as *.npz.

An array of a store has its name in the .npz file of that store too, with the values that zarr-python reads back, in the byte
order of this machine; where it is not there, its values are those under the name of its group. Lossless ones are compared with
what was written before."""

import json
import pathlib
import shutil
import sys
import warnings

import numcodecs
import numpy as np
import xarray as xr
import zarr
import zarr.codecs as zc
import zarr.codecs.numcodecs as zn

warnings.filterwarnings("ignore")
ROOT = pathlib.Path(__file__).resolve().parents[2] / "tests/io/data/zarr"
random = np.random.default_rng(1)


def shrink(path, consolidated):
    """The metadata without blanks and empty parts; what is consolidated is not kept a second time."""

    def clean(value):
        if not isinstance(value, dict):
            return value
        if value.get("consolidated_metadata", {}).get("metadata") == {}:
            value.pop("consolidated_metadata")
        empty = {"attributes": {}, "storage_transformers": [], "configuration": {}}
        return {key: clean(part) for key, part in value.items()
                if not (key in empty and empty[key] == part) and not (key.endswith("/.zattrs") and part == {})}
    for file in path.rglob("*"):
        if file.name in (".zarray", ".zattrs", ".zgroup", ".zmetadata", "zarr.json"):
            if consolidated and file.name != ".zmetadata" and file != path / "zarr.json":
                file.unlink()
            else:
                file.write_text(json.dumps(clean(json.loads(file.read_text())), separators=(",", ":")))


class Store:
    def __init__(self, root, name, version, **group):
        self.path, self.version, self.values = root / f"{name}.zarr", version, {}
        zarr.create_group(self.path, zarr_format=version, attributes=group)

    def add(self, name, data, chunks, keep=True, write=None, lossy=False, **options):
        data = np.asarray(data)
        options.setdefault("compressors", None)
        dtype = options.pop("dtype", data.dtype)
        array = zarr.create_array(self.path, name=name, shape=data.shape, dtype=dtype, chunks=chunks,
                                  zarr_format=self.version, **options)
        for part in write if write is not None else [...]:
            array[part] = data[part]
        found = np.asarray(array[...])
        if write is None and not lossy:
            np.testing.assert_array_equal(found, data)
        if keep:
            self.keep(name, found.astype(found.dtype.newbyteorder("=")))

    def keep(self, name, found):
        """Under the name of the group if it is the first there, and not again if it is the same as that."""
        group = name.rpartition("/")[0]
        first = self.values.setdefault(group, found) if group else None
        if first is not found and (first is None or first.dtype != found.dtype or not np.array_equal(first, found)):
            self.values[name] = found

    def finish(self, consolidate):
        if consolidate:
            zarr.consolidate_metadata(self.path, zarr_format=self.version)
        shrink(self.path, consolidate)
        np.savez_compressed(self.path.with_suffix(".npz"), **self.values)


def small(dtype, shape=(7,)):
    dtype = np.dtype(dtype)
    count = np.arange(np.prod(shape)).reshape(shape)
    if dtype.kind == "b":
        return (count % 3 == 0).astype(dtype)
    if dtype.kind == "u":
        return (count * 37 % 251 + (count << (8 * dtype.itemsize - 9 if dtype.itemsize > 1 else 0))).astype(dtype)
    return (count * 13 % 101 - 50 + (0.25 if dtype.kind == "f" else 0)).astype(dtype)


def smooth(shape, dtype="f4"):
    """Compresses well, but is not constant."""
    grid = np.indices(shape).sum(0)
    return (grid * grid // 3 - 40).astype(dtype)


TYPES = ["b1", "u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", "f2", "f4", "f8"]
EDGES = {"shape": (5, 7), "chunks": (3, 4)}


def make_v2(root):
    s = Store(root, "v2", 2, title="version 2", count=3, nested={"a": 1}, levels=[1, 2.5])
    for code in TYPES:
        s.add(f"types/little_{code}", small("<" + code), 7)
        if np.dtype(code).itemsize > 1:
            s.add(f"types/big_{code}", small(">" + code), 7)
    packed = smooth((8, 16), "i4")
    for name, codec in {"zlib": numcodecs.Zlib(5), "gzip": numcodecs.GZip(5), "zstd": numcodecs.Zstd(3),
                        "zstd_sum": numcodecs.Zstd(3, checksum=True), "lz4": numcodecs.LZ4()}.items():
        s.add(f"codecs/{name}", packed, (8, 12), compressors=codec)
    for inner in ["blosclz", "lz4", "lz4hc", "zlib", "zstd"]:
        for shuffle in range(3) if inner == "lz4" else [1]:
            codec = numcodecs.Blosc(inner, 9, shuffle)
            s.add(f"codecs/blosc_{inner}_{shuffle}", packed, (8, 12), compressors=codec)
    s.add("codecs/blosc_plain", random.integers(0, 255, 20, "u1"), 20, compressors=numcodecs.Blosc("lz4", 0))
    s.add("codecs/big_blosc", packed.astype(">i4"), (8, 16), compressors=numcodecs.Blosc("zstd", 3))
    edge = smooth(EDGES["shape"])
    f = numcodecs
    for name, dtype, filters in [
        ("shuffle", "<f4", [f.Shuffle(4)]), ("shuffle_big", ">f8", [f.Shuffle(8)]),
        ("delta_i2_i1", "<i2", [f.Delta("<i2", "<i1")]), ("delta_u8", "<u8", [f.Delta("<u8")]),
        ("delta_f4", "<f4", [f.Delta("<f4")]), ("delta_big", ">i4", [f.Delta(">i4", ">i2")]),
        ("scaled_f8_u1", "<f8", [f.FixedScaleOffset(-50, 1, "<f8", "<u1")]),
        ("scaled_f4_i2", "<f4", [f.FixedScaleOffset(3.25, 10, "<f4", "<i2")]),
        ("scaled_f4_f4", "<f4", [f.FixedScaleOffset(3.3, 0.7, "<f4", "<f4")]),
        ("scaled_delta", ">f4", [f.FixedScaleOffset(0.5, 4, ">f4", ">i4"), f.Delta(">i4", "<i2"), f.Shuffle(2)]),
        ("bitround", "<f4", [f.BitRound(8)]), ("quantize", "<f8", [f.Quantize(1, "<f8")]),
    ]:
        s.add(f"filters/{name}", edge.astype(dtype), EDGES["chunks"], filters=filters, lossy=True,
              compressors=numcodecs.Zlib(1) if "big" in name else None)
    s.add("filters/unknown", small("u1"), 7, keep=False, filters=[f.Fletcher32()])
    s.add("codecs/unknown", small("u1"), 7, keep=False, compressors=numcodecs.BZ2())
    s.add("order/f", edge, EDGES["chunks"], order="F")
    s.add("order/f_big_3d", smooth((4, 5, 6), ">i2"), (2, 5, 4), order="F", compressors=numcodecs.Zlib(1))
    s.add("order/f_filtered", smooth((5, 6), "i4"), (5, 4), order="F", filters=[f.Delta("<i4", "<i2")])
    s.add("keys/slash", edge, EDGES["chunks"], chunk_key_encoding={"name": "v2", "separator": "/"})
    s.add("keys/deep/er/dot", edge, EDGES["chunks"])
    for name, dtype, fill in [("nan", "f4", np.nan), ("inf", "f8", np.inf), ("minus_inf", "f2", -np.inf), ("null", "f4", None),
                              ("number", "i2", -9999), ("large", "u8", 2**64 - 3), ("true", "b1", True), ("half", "f2", 1 / 3)]:
        s.add(f"missing/{name}", small(dtype, (6, 4)), (2, 3), write=[np.s_[:2], np.s_[4:, 3:]], fill_value=fill)
    s.add("missing/all", np.zeros((3, 3), "i4"), (2, 2), write=[], fill_value=7)
    s.add("shapes/scalar", np.float32(2.5), ())
    s.add("shapes/empty", np.zeros((0, 3), "f4"), (1, 2))
    s.add("shapes/one_chunk", edge, (9, 11))
    s.add("shapes/five", smooth((2, 3, 1, 4, 3), "u1"), (1, 2, 1, 3, 3), compressors=numcodecs.Zlib(1))
    s.add("others/complex", np.ones(2, "c8"), 2, keep=False)
    s.add("others/bytes", np.array([b"abc"]), 1, keep=False)
    s.add("others/text", np.array(["abc"]), 1, keep=False)
    s.add("others/times", np.array([0], "M8[ns]"), 1, keep=False)
    s.add("others/structure", np.zeros(1, [("a", "<f4"), ("b", "<i2")]), 1, keep=False)
    s.finish(consolidate=True)


def make_v3(root):
    s = Store(root, "v3", 3, title="version 3", count=3, nested={"a": 1})
    for code in ["b1", "i1", "u2", "i2", "u8", "f2", "f8"]:
        s.add(f"types/little_{code}", small(code), 7)
        if code in ("i2", "f8"):
            s.add(f"types/big_{code}", small(code), 7, serializer=zc.BytesCodec(endian="big"))
    packed = smooth((8, 16), "i4")
    for name, codecs in {
        "gzip": [zc.GzipCodec(level=5)], "zstd": [zc.ZstdCodec(level=3)], "zstd_sum": [zc.ZstdCodec(level=3, checksum=True)],
        "crc32c": [zc.Crc32cCodec()], "gzip_crc32c": [zc.GzipCodec(), zc.Crc32cCodec()],
        "crc32c_zstd": [zc.Crc32cCodec(), zc.ZstdCodec()], "blosc_lz4": [zc.BloscCodec(cname="lz4", typesize=4)],
        "blosc_zstd": [zc.BloscCodec(cname="zstd", shuffle="bitshuffle", typesize=4)], "zlib": [zn.Zlib(level=3)],
        "lz4": [zn.LZ4()], "shuffle_zlib": [zn.Shuffle(elementsize=4), zn.Zlib(level=3)],
    }.items():
        s.add(f"codecs/{name}", packed, (8, 12), compressors=codecs)
    s.add("codecs/unknown", small("u1"), 7, keep=False, compressors=[zn.BZ2(level=1)])
    s.add("codecs/delta", packed, (8, 12), filters=[zn.Delta(dtype="<i4", astype="<i2")], compressors=[zc.ZstdCodec()])
    edge = smooth(EDGES["shape"])
    s.add("codecs/scaled", edge, EDGES["chunks"], lossy=True,
          filters=[zn.FixedScaleOffset(offset=1.5, scale=8, dtype="<f4", astype="<i4")])
    s.add("order/transposed", edge, EDGES["chunks"], filters=[zc.TransposeCodec(order=(1, 0))])
    s.add("order/turned", smooth((4, 5, 6), "i2"), (2, 5, 4), filters=[zc.TransposeCodec(order=(2, 0, 1))],
          serializer=zc.BytesCodec(endian="big"), compressors=[zc.ZstdCodec()])
    s.add("order/twice", smooth((4, 5, 3), "u1"), (2, 4, 3),
          filters=[zc.TransposeCodec(order=(1, 2, 0)), zc.TransposeCodec(order=(0, 2, 1))])
    for encoding in ["default", "v2"]:
        for word, separator in [("dot", "."), ("slash", "/")]:
            s.add(f"keys/{encoding}_{word}", edge, EDGES["chunks"], chunk_key_encoding={"name": encoding, "separator": separator})
    for name, dtype, fill in [("nan", "f4", np.nan), ("minus_inf", "f2", -np.inf), ("true", "b1", True), ("float", "f8", 0.1)]:
        s.add(f"missing/{name}", small(dtype, (6, 4)), (2, 3), write=[np.s_[:2], np.s_[4:, 3:]], fill_value=fill)
    s.add("shapes/scalar", np.float32(2.5), ())
    s.add("shapes/scalar_v2", np.float32(3.5), (), chunk_key_encoding={"name": "v2", "separator": "."})
    s.add("shapes/empty", np.zeros((0, 3), "f4"), (1, 2))
    s.add("others/complex", np.ones(2, "c8"), 2, keep=False)
    s.add("others/text", np.array(["abc"]), 1, keep=False)
    s.add("others/times", np.array([0], "M8[ns]"), 1, keep=False)
    s.add("names/some", edge, EDGES["chunks"], dimension_names=["y", None])
    shards = {"shards": (4, 8), "chunks": (2, 4)}
    wide = smooth((10, 13), "i2")
    s.add("shards/plain", wide, **shards)
    s.add("shards/blosc_crc", wide, **shards, compressors=[zc.BloscCodec(cname="lz4"), zc.Crc32cCodec()])
    s.add("shards/turned", wide, **shards, filters=[zc.TransposeCodec(order=(1, 0))], serializer=zc.BytesCodec(endian="big"))
    s.add("shards/missing", wide, **shards, write=[np.s_[:2, :4], np.s_[6:, 8:]], fill_value=-5)
    s.add("shards/deep", smooth((3, 5, 4), "f4"), shards=(2, 6, 4), chunks=(1, 3, 4), compressors=[zc.ZstdCodec()])
    for word, index in [("start", [zc.BytesCodec(endian="little"), zc.Crc32cCodec()]), ("big", [zc.BytesCodec(endian="big")])]:
        codec = zc.ShardingCodec(chunk_shape=(2, 4), codecs=[zc.BytesCodec(), zc.ZstdCodec()], index_codecs=index,
                                 index_location="start" if word == "start" else "end")
        s.add(f"shards/index_{word}", wide, (4, 8), serializer=codec)
    inner = zc.ShardingCodec(chunk_shape=(2, 4), codecs=[zc.BytesCodec()])
    s.add("shards/nested", wide, (4, 8), keep=False, serializer=zc.ShardingCodec(chunk_shape=(4, 4), codecs=[inner]))
    s.finish(consolidate=True)


def make_walked(root):
    """Without consolidated metadata, and stores of one array."""
    for version in (2, 3):
        s = Store(root, f"walked_v{version}", version, title="walked")
        s.add("top", smooth((5, 3)), (5, 3), attributes={"units": "K"})
        s.add("radar/rain", smooth((4, 3)), (2, 3), attributes={"units": "mm"})
        s.add("radar/north/rain", smooth((2, 3)), (2, 2))
        s.finish(consolidate=False)
        data = smooth((5, 3))
        array = zarr.create_array(root / f"array_v{version}.zarr", shape=data.shape, dtype="f4", chunks=(2, 3),
                                  zarr_format=version, compressors=None, attributes={"units": "K"})
        array[...] = data
        np.savez_compressed(root / f"array_v{version}.npz", data=data)


def make_xarray(root):
    for version in (2, 3):
        values = smooth((4, 3, 5), "f8") / 7
        values[0, 0, 0] = values[3, 2, 1] = np.nan
        coordinates = {
            "time": ("time", np.datetime64("2020-01-01", "ns") + np.arange(4) * np.timedelta64(6, "h")),
            "latitude": ("latitude", np.array([50, 47.5, 45], "f4"), {"units": "degrees_north"}),
            "longitude": ("longitude", np.linspace(0, 10, 5), {"units": "degrees_east"}),
        }
        dims = ("time", "latitude", "longitude")
        attributes = {"units": "K", "missing_value": np.nan, "valid_range": [-50.0, 60.0], "flags": ["a", "b"], "steps": 6}
        data = xr.Dataset({"t2m": (dims, values, attributes), "sst": (dims, values.astype("f4")),
                           "mask": (("latitude", "longitude"), values[1] > 0), "name": ("latitude", ["a", "b", "c"])},
                          coordinates, {"title": "made by xarray", "version": 7})
        chunks = {"chunks": (2, 3, 3)}
        encoding = {"t2m": {"dtype": "i2", "scale_factor": 0.01, "add_offset": 20.0, "_FillValue": -32768, **chunks},
                    "sst": {"_FillValue": np.float32(-999), **chunks}}
        path = root / f"xarray_v{version}.zarr"
        data.to_zarr(path, zarr_format=version, encoding=encoding, consolidated=True)
        data[["sst"]].to_zarr(path, group="ocean", mode="a", zarr_format=version, consolidated=True)
        zarr.consolidate_metadata(path, zarr_format=version)
        group = zarr.open_group(path, mode="r")
        raw = {name: np.asarray(group[name][...]) for name in ["t2m", "sst", "mask", "time", "latitude", "longitude", "ocean/sst"]}
        decoded = xr.open_zarr(path).t2m.values
        shrink(path, consolidated=True)
        np.savez_compressed(root / f"xarray_v{version}.npz", **raw, **{"decoded/t2m": decoded})


def main():
    root = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir(parents=True)
    make_v2(root)
    make_v3(root)
    make_walked(root)
    make_xarray(root)
    files = [file for file in root.rglob("*") if file.is_file()]
    print(f"{len(files)} files, {sum(file.stat().st_size for file in files)} bytes")


if __name__ == "__main__":
    main()
