"""Makes the files of this folder with NumPy and safetensors, the reference writers of their formats.

    pip install numpy safetensors && python make_data.py

All arrays count upwards from 0 (or -2 for signed types) so that the tests can check every value.
"""

import io
import pathlib
import zipfile

import numpy as np
from safetensors.numpy import save_file

FOLDER = pathlib.Path(__file__).parent
CODES = ["b1", "u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", "f2", "f4", "f8", "c8", "c16"]


def counted(code, shape=(2, 3)):
    count = int(np.prod(shape))
    start = -2 if code[0] in "ifc" else 0
    values = np.arange(start, start + count)
    if code[0] == "c":
        values = values + 1j * (values + 10)
    if code[0] == "b":
        values = values % 2
    return values.astype(code).reshape(shape)


def save(name, array, version=None):
    with open(FOLDER / name, "wb") as file:
        np.lib.format.write_array(file, array, version=version)


def make_npy():
    for code in CODES:
        save(f"little_{code}.npy", counted(code))
    for code in CODES:
        if code[1:] != "1":
            save(f"big_{code}.npy", counted(code).astype(">" + code))
    save("fortran_f4.npy", np.asfortranarray(counted("f4", (2, 3, 4))))
    save("fortran_big_c16.npy", np.asfortranarray(counted("c16", (3, 2, 1, 2)).astype(">c16")))
    save("scalar.npy", np.array(2.5, "f8"))
    save("empty.npy", np.zeros((3, 0, 2), "f4"))
    save("version_2.npy", counted("f4"), version=(2, 0))
    save("version_3.npy", counted("f4"), version=(3, 0))
    save("vector.npy", counted("i8", (5,)))
    save("structured.npy", np.zeros(2, [("a", "<f4"), ("b", "<i4")]))
    save("text.npy", np.array(["one", "two"]))
    save("bytes.npy", np.array([b"one", b"two"]))
    save("dates.npy", np.array(["2001-01-01"], "M8[D]"))
    save("raw.npy", np.zeros(3, "V2"))
    save("long_double.npy", np.zeros(2, "g"))
    save("objects.npy", np.array([{}, None], "O"))


class Unseekable(io.RawIOBase):
    """A pipe: zipfile then writes sizes after the data, in data descriptors."""

    def __init__(self, file):
        self.file = file

    def writable(self):
        return True

    def write(self, data):
        return self.file.write(data)


def make_npz():
    arrays = {code: counted(code) for code in CODES}
    np.savez(FOLDER / "stored.npz", **arrays)
    arrays |= {"zeros": np.zeros((100, 100), "f4"), "fortran": np.asfortranarray(counted("i4"))}
    np.savez_compressed(FOLDER / "compressed.npz", **arrays)
    np.savez(FOLDER / "none.npz")
    with open(FOLDER / "streamed.npz", "wb") as file:
        np.savez_compressed(Unseekable(file), a=counted("f4"), b=counted("i2"))
    with zipfile.ZipFile(FOLDER / "mixed.npz", "w") as archive:
        archive.writestr("readme.txt", "not an array")
        data = io.BytesIO()
        np.save(data, counted("f4"))
        archive.writestr("folder/größe.npy", data.getvalue())
        archive.comment = b"PK\5\6 a comment that looks like an end record"
    with zipfile.ZipFile(FOLDER / "bzip2.npz", "w", zipfile.ZIP_BZIP2) as archive:
        archive.writestr("a.npy", data.getvalue())


def make_safetensors():
    arrays = {code: counted(code) for code in CODES if code != "c16"}
    arrays["scalar"] = np.array(2.5, "f4")
    arrays["empty"] = np.zeros((3, 0), "f4")
    save_file(arrays, FOLDER / "python.safetensors", metadata={"format": "np", "größe": "1 \"m\"\n"})
    save_file({}, FOLDER / "none.safetensors")


make_npy()
make_npz()
make_safetensors()
