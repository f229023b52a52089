"""The work of `convssm bench --only fields` in xarray, and in h5py where a file is HDF5. It is run by that command, which holds the text of
this file:

    python3 -c peer_fields.py

It prints its version, then does what it is told, a line of JSON each: {"open": path, "variable": name, "with": "xarray" or "h5py"}, then
{"read": [first frames], "count": frames} as often as wanted, and {"sum": ..., "count": ...}, which reads the same and answers with the sum
of what was measured. A folder is one dataset, its files in the order of their names."""
import glob, json, os, sys, warnings

import numpy as np
import xarray as xr

warnings.filterwarnings("ignore")


def opened(path, variable):
    if os.path.isdir(path) and not path.rstrip("/").endswith(".zarr"):
        time = next((name for name in ("time", "valid_time") if name in xr.open_dataset(sorted(glob.glob(path + "/*"))[0])), "time")
        return xr.open_mfdataset(sorted(glob.glob(path + "/*")), combine="nested", concat_dim=time)[variable]
    if path.rstrip("/").endswith(".zarr"):
        return xr.open_zarr(path, chunks=None)[variable]
    if path.endswith((".grib", ".grb")):
        return xr.open_dataset(path, engine="cfgrib", cache=False, backend_kwargs={"indexpath": ""})[variable]
    return xr.open_dataset(path, cache=False)[variable]


def is_hdf5(path):
    if os.path.isdir(path):
        return False
    with open(path, "rb") as file:
        return file.read(4) == b"\x89HDF"


def main():
    print(f"xarray {xr.__version__}", flush=True)
    source = None
    for line in sys.stdin:
        task = json.loads(line)
        answer = []
        if "open" in task and task["with"] == "h5py":
            if is_hdf5(task["open"]):
                import h5py
                source = h5py.File(task["open"])[task["variable"]]
            answer = [int(is_hdf5(task["open"]))]
        elif "open" in task:
            source = opened(task["open"], task["variable"])
        else:
            firsts, total = task.get("read", task.get("sum")), 0.0
            for first in firsts:
                window = np.asarray(source[first:first + task["count"]])
                if "sum" in task:
                    total += float(np.nansum(window, dtype="float64"))
            answer = [total] if "sum" in task else []
        print("done", *answer, flush=True)


main()
