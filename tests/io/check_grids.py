"""Reads what tests/io/grid_writer_test.cpp wrote with xarray, netCDF4, h5py and zarr-python, and compares. Exit code 77: they are not
there, or their zarr-python is older than the store (version 3 of both).

    pip install xarray netCDF4 h5netcdf zarr && python check_grids.py out.nc
"""

import os
import sys

try:
    import h5py
    import netCDF4
    import numpy as np
    import xarray as xr
    import zarr
except ImportError:
    sys.exit(77)

path = sys.argv[1]
if os.path.exists(path + "/zarr.json") and int(zarr.__version__.split(".")[0]) < 3:
    sys.exit(77)
T, I = np.meshgrid(np.arange(5), np.arange(12), indexing="ij")
T2M = np.where(I == 5, np.nan, 280 + T + I / 8).astype("f4").reshape(5, 3, 4)
RAIN = np.where(I == 5, -32768, 100 * T + I).astype("i2").reshape(5, 3, 4)
MASK = np.array([1, 0, 1, 1, 0, 1, 0, 0, 1, 1, 1, 0], bool).reshape(3, 4)
TIMES = np.datetime64("2019-03-01", "ns") + np.arange(5) * np.timedelta64(6, "h")


def check_xarray(data):
    assert dict(data.sizes) == {"time": 5, "latitude": 3, "longitude": 4}, data.sizes
    assert data.attrs["Conventions"] == "CF-1.8" and data.attrs["members"] == 4
    assert data.t2m.dims == ("time", "latitude", "longitude") and data.t2m.attrs["units"] == "K"
    assert data.t2m.dtype == "f4"
    np.testing.assert_array_equal(data.t2m, T2M)
    np.testing.assert_array_equal(data.rain, np.where(RAIN == -32768, np.nan, RAIN * 0.5 + 1))
    np.testing.assert_array_equal(data.time, TIMES)
    np.testing.assert_array_equal(data.latitude, [58, 57.5, 57])
    np.testing.assert_array_equal(data.longitude, [-10, -9.75, -9.5, -9.25])
    assert data.mask.dtype == bool, data.mask.dtype
    np.testing.assert_array_equal(data.mask, MASK)
    assert data.height.shape == () and float(data.height) == 2
    assert float(data.t2m.sel(time="2019-03-01T12", latitude=57.5, longitude=-9.5)) == 282 + 6 / 8


def check_netcdf(path):
    with netCDF4.Dataset(path) as file:
        assert file.dimensions["time"].isunlimited() and file.data_model == "NETCDF4"
        assert file["t2m"].chunking() == [2, 2, 3] and file["t2m"].filters()["zlib"]
        assert file["rain"]._FillValue == -32768 and file["rain"]._FillValue.dtype == "i2"
        assert np.ma.is_masked(file["rain"][0, 1, 1])
        np.testing.assert_array_equal(file["t2m"][:].filled(np.nan), T2M)
        file.set_auto_maskandscale(False)
        np.testing.assert_array_equal(file["rain"][:], RAIN)
        assert netCDF4.num2date(file["time"][4], file["time"].units, file["time"].calendar).isoformat() == "2019-03-02T00:00:00"
    with h5py.File(path) as file:
        np.testing.assert_array_equal(file["t2m"][:], T2M)
        np.testing.assert_array_equal(file["rain"][:], RAIN)
        assert file["t2m"].dims[0][0].name == "/time"


def check_zarr(path):
    group = zarr.open_group(path, mode="r")
    assert sorted(group.keys()) == ["height", "latitude", "longitude", "mask", "rain", "t2m", "time"]
    np.testing.assert_array_equal(group["t2m"][:], T2M)
    np.testing.assert_array_equal(group["rain"][:], RAIN)
    np.testing.assert_array_equal(group["mask"][:], MASK)
    assert group["t2m"].chunks == (2, 2, 3) and group["rain"].fill_value == -32768
    np.testing.assert_array_equal(zarr.open_consolidated(path)["t2m"][:], T2M)  # an error without such metadata


if path.endswith(".nc"):
    for engine in ("netcdf4", "h5netcdf"):
        if engine in xr.backends.list_engines():
            with xr.open_dataset(path, engine=engine) as data:
                check_xarray(data.load())
    check_netcdf(path)
else:
    for consolidated in (True, False):
        check_xarray(xr.open_zarr(path, consolidated=consolidated, chunks=None).load())
    check_zarr(path)
