"""Makes the GRIB files in grib/ with eccodes' own Python package. A value is a function of its place and time, so that the tests can check
every one without these files' own words: value() below.

    pip install numpy eccodes && python make_grib_data.py
"""

import itertools
import pathlib

import eccodes as ec
import numpy as np

FOLDER = pathlib.Path(__file__).parent / "grib"
LATITUDES, LONGITUDES = [52, 51, 50], [-4, -2, 0, 2]


def value(latitude, longitude, more=0):
    return latitude * 100 + longitude + 10 + more


def points(west=0, north=0, columns_first=0, turns=0):
    """Those of the grid in the order of a file, by the definition of its scanning mode."""
    rows = LATITUDES[::-1] if north else LATITUDES
    columns = LONGITUDES[::-1] if west else LONGITUDES
    lines = [[(y, x) for y in rows] for x in columns] if columns_first else [[(y, x) for x in columns] for y in rows]
    return [point for i, line in enumerate(lines) for point in (line[::-1] if turns and i % 2 else line)]


def message(edition, keys, more=0, west=0, north=0, columns_first=0, turns=0, missing=()):
    handle = ec.codes_grib_new_from_samples(f"GRIB{edition}")
    grid = points(west, north, columns_first, turns)
    own = {
        "Ni": 4, "Nj": 3, "iDirectionIncrementInDegrees": 2, "jDirectionIncrementInDegrees": 1,
        "latitudeOfFirstGridPointInDegrees": LATITUDES[-1 if north else 0],
        "latitudeOfLastGridPointInDegrees": LATITUDES[0 if north else -1],
        "longitudeOfFirstGridPointInDegrees": LONGITUDES[-1 if west else 0],
        "longitudeOfLastGridPointInDegrees": LONGITUDES[0 if west else -1],
        "iScansNegatively": west, "jScansPositively": north, "jPointsAreConsecutive": columns_first,
        "dataDate": 20200228, "dataTime": 1800, "bitsPerValue": 16,
    }  # fmt: skip
    if edition == 2:
        own["alternativeRowScanning"] = turns
    for key, given in {**own, **keys}.items():
        ec.codes_set(handle, key, given)
    values = np.array([value(y, x, more) for y, x in grid], float)
    if missing:
        ec.codes_set(handle, "bitmapPresent", 1)
        ec.codes_set(handle, "missingValue", 1e20)
        values[list(missing)] = 1e20
    ec.codes_set_values(handle, values)
    return handle


def write(name, handles):
    with open(FOLDER / f"{name}.grib", "wb") as file:
        for handle in handles:
            ec.codes_write(handle, file)


# Levels, times, steps and members; another variable without members, the first one on another kind of level.
def cube():
    times = [(20200228, 1800), (20200301, 630)]
    for (i, (date, time)), (j, step), number, (k, level) in itertools.product(
        enumerate(times), enumerate([0, 6]), [0, 1], enumerate([850, 500])
    ):
        keys = {"productDefinitionTemplateNumber": 1, "typeOfLevel": "isobaricInhPa", "level": level, "shortName": "t"}
        keys |= {"dataDate": date, "dataTime": time, "forecastTime": step, "perturbationNumber": number}
        yield message(2, keys, 1000 * i + 2000 * j + 4000 * number + 8000 * k)
    for i, (date, time) in enumerate(times):
        keys = {"shortName": "2t", "dataDate": date, "dataTime": time}
        yield message(2, keys, 1000 * i)
        yield message(2, {**keys, "shortName": "t", "typeOfLevel": "surface"}, 2000 * i)


# Edition 1: sums since the start, with points that have no value; steps of ten minutes.
def first():
    for i, step in enumerate([3, 6, 9]):
        yield message(1, {"shortName": "tp", "stepType": "accum", "stepRange": f"0-{step}"}, 100 * i, missing=(1, 5 + i))
    for i, step in enumerate([10, 20, 90]):
        yield message(1, {"shortName": "2t", "unitOfTimeRange": 0, "P1": step}, 500 * i)


def scans():
    for edition in (1, 2):
        for west, north, columns_first, turns in itertools.product([0, 1], [0, 1], [0, 1], [0, 1][:edition]):
            yield message(edition, {"shortName": "2t"}, 0, west, north, columns_first, turns)


# A message of three fields, of which the third has the bitmap of the second.
def several():
    multi = ec.codes_grib_multi_new()
    for i, (name, missing) in enumerate([("u", ()), ("v", (2,)), ("w", (2,))]):
        handle = message(2, {"typeOfLevel": "isobaricInhPa", "level": 500, "shortName": name}, 100 * i, missing=missing)
        ec.codes_grib_multi_append(handle, 0 if i == 0 else 4, multi)
    with open(FOLDER / "several.grib", "wb") as file:
        ec.codes_grib_multi_write(multi, file)


def packings():
    level = {"typeOfLevel": "isobaricInhPa", "level": 500}
    yield message(2, {**level, "shortName": "u", "bitsPerValue": 32}, 1 / 3)
    for precision, name in [(1, "v"), (2, "w")]:
        handle = message(2, {**level, "shortName": name})
        ec.codes_set(handle, "packingType", "grid_ieee")
        ec.codes_set(handle, "precision", precision)
        ec.codes_set_values(handle, np.array([value(y, x, 1 / 3) for y, x in points()]))
        yield handle
    for packing, name in [("grid_ccsds", "q"), ("grid_complex_spatial_differencing", "r"), ("grid_jpeg", "z")]:
        handle = message(2, {**level, "shortName": name})
        ec.codes_set(handle, "packingType", packing)
        yield handle


# A Gaussian grid, and a map around the north pole.
def grids():
    gaussian = ec.codes_grib_new_from_samples("regular_gg_pl_grib2")
    for key, given in {"N": 2, "Ni": 8, "Nj": 4, "iDirectionIncrementInDegrees": 45, "shortName": "u"}.items():
        ec.codes_set(gaussian, key, given)
    roots = np.degrees(np.arcsin(np.polynomial.legendre.leggauss(4)[0]))[::-1]
    for key, given in {"latitudeOfFirst": roots[0], "latitudeOfLast": roots[-1], "longitudeOfFirst": 0, "longitudeOfLast": 315}.items():
        ec.codes_set(gaussian, key + "GridPointInDegrees", given)
    ec.codes_set_values(gaussian, np.arange(32.0))
    yield gaussian
    pole = ec.codes_grib_new_from_samples("polar_stereographic_pl_grib2")
    keys = {"shapeOfTheEarth": 6, "Nx": 3, "Ny": 2, "DxInMetres": 300_000, "DyInMetres": 200_000, "LaDInDegrees": 60}
    keys |= {"orientationOfTheGridInDegrees": 10, "latitudeOfFirstGridPointInDegrees": 50, "longitudeOfFirstGridPointInDegrees": 5}
    for key, given in {**keys, "jScansPositively": 1, "shortName": "v"}.items():
        ec.codes_set(pole, key, given)
    ec.codes_set_values(pole, np.arange(6.0))
    yield pole
    radius, rotation = 6_371_229, np.radians(10)
    scale = radius * (1 + np.sin(np.radians(60)))
    r = scale * np.tan(np.radians(90 - 50) / 2)
    angle = np.radians(5) - rotation
    x, y = np.meshgrid(r * np.sin(angle) + 300_000 * np.arange(3), -r * np.cos(angle) + 200_000 * np.arange(2))
    latitudes = 90 - 2 * np.degrees(np.arctan(np.hypot(x, y) / scale))
    longitudes = np.degrees(np.arctan2(x, -y) + rotation)
    print("latitudes", np.round(latitudes, 6).tolist(), "longitudes", np.round(longitudes, 6).tolist(), "roots", np.round(roots, 6).tolist())


FOLDER.mkdir(exist_ok=True)
for make in (cube, first, scans, packings, grids):
    write(make.__name__, make())
several()
write("reduced", [ec.codes_grib_new_from_samples("reduced_ll_sfc_grib2")])
