"""Makes the NetCDF files in netcdf/ with netCDF4 (the C library's own Python package) and, for links to other files, h5py.

    pip install numpy netCDF4 h5py && python make_netcdf_data.py

Arrays count upwards from 0, modulo 120, so that the tests can check every value.
"""

import pathlib

import h5py
import netCDF4
import numpy as np

FOLDER = pathlib.Path(__file__).parent / "netcdf"
CODES = {"NETCDF3_CLASSIC": ["i1", "i2", "i4", "f4", "f8"]}
ALL = ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f4", "f8"]


def counted(code, shape):
    return (np.arange(int(np.prod(shape))) % 120).astype(code).reshape(shape)


def make(name, kind, records):
    with netCDF4.Dataset(FOLDER / f"{name}.nc", "w", format=kind) as file:
        file.title = "counted"
        file.numbers = np.array([1.5, -2.0])
        file.createDimension("time", None if records else 4)
        file.createDimension("y", 3)
        file.createDimension("x", 5)
        codes = CODES.get(kind, CODES["NETCDF3_CLASSIC"] if "64BIT_OFFSET" in kind else ALL)
        for code in codes:
            variable = file.createVariable(code, code, ("time", "y", "x"))
            variable.units = "K"
            variable.setncattr("scale_factor", np.float32(0.5))
            variable.set_auto_maskandscale(False)
            variable[:] = counted(code, (4, 3, 5))
        fixed = file.createVariable("fixed", "i2", ("y", "x"))
        fixed[:] = counted("i2", (3, 5))
        file.createVariable("scalar", "i4", ())[...] = 7
        text = file.createVariable("text", "S1", ("x",))
        text[:] = np.array(list("abcde"), "S1")


def make_groups():
    with netCDF4.Dataset(FOLDER / "groups.nc", "w", format="NETCDF4") as file:
        file.createDimension("time", 6)
        group = file.createGroup("radar").createGroup("rain")
        group.createDimension("x", 7)
        packed = group.createVariable("rate", "u2", ("time", "x"), zlib=True, shuffle=True, chunksizes=(2, 4))
        packed[:] = counted("u2", (6, 7))
        packed.setncattr_string("places", ["here", "there"])
        file.createVariable("words", str, ("time",))[:] = np.array(list("abcdef"), object)
        pair = file.createCompoundType(np.dtype([("a", "f4"), ("b", "i4")]), "pair")
        file.createVariable("pairs", pair, ("time",))
        file.createVariable("summed", "f4", ("time",), fletcher32=True)[:] = counted("f4", (6,))


def make_links():
    with h5py.File(FOLDER / "links.nc", "w") as file:
        file["own"] = counted("f4", (3,))
        file["elsewhere"] = h5py.ExternalLink("groups.nc", "summed")
        file.create_dataset("outside", (4,), "u1", external=[("/etc/passwd", 0, 4)])


FOLDER.mkdir(exist_ok=True)
make("classic", "NETCDF3_CLASSIC", False)
make("records", "NETCDF3_CLASSIC", True)
make("offsets", "NETCDF3_64BIT_OFFSET", True)
make("data64", "NETCDF3_64BIT_DATA", True)
make("four", "NETCDF4", True)
make_groups()
make_links()
with netCDF4.Dataset(FOLDER / "one_record.nc", "w", format="NETCDF3_CLASSIC") as one:
    one.createDimension("time", None)
    one.createDimension("x", 3)
    one.createVariable("v", "i1", ("time", "x"))[:] = counted("i1", (5, 3))
