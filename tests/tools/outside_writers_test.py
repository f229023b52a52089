"""Three commands from a file that another program wrote to a scored forecast, for every kind of file of docs/own_data.md. Kinds whose
writer is not installed are left out with a message; `tools/setup.sh --writers` installs them."""
import importlib.util, json, math, os, shutil, subprocess, sys, tempfile, unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
PROGRAM = Path(os.environ.get("CONVSSM_PROGRAM", ROOT / "build/release/bin/convssm"))
SHORT = ["train.steps=4", "train.batch=1", "train.frames=8", "train.sample_interval=0", "train.save_interval=4", "train.log_interval=2"]
SCORED = ["evaluate.context=4", "evaluate.horizons=[2,3]", "evaluate.samples=2", "evaluate.chunk=2"]


def needs(*modules):
    missing = [name for name in modules if importlib.util.find_spec(name) is None]
    return unittest.skipIf(missing, f"no {', '.join(missing)} for this Python")


def needs_ffmpeg(test):
    return unittest.skipIf(shutil.which("ffmpeg") is None, "no ffmpeg")(test)


def wave(frames=90, height=24, width=32):
    """A bump that goes round, [T,H,W] in 0 to 1."""
    import numpy as np
    y, x = np.mgrid[0:height, 0:width]
    at = np.arange(frames)[:, None, None] * 0.3
    return np.exp(-((y - height / 2 - 6 * np.sin(at)) ** 2 + (x - width / 2 - 8 * np.cos(at)) ** 2) / 20).astype("float32")


@unittest.skipUnless(PROGRAM.exists(), f"{PROGRAM} is not built")
class OutsideWriters(unittest.TestCase):
    def setUp(self):
        self.folder = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)

    def run_program(self, *words):
        done = subprocess.run([PROGRAM, *words], cwd=self.folder, capture_output=True, text=True,
                              env={**os.environ, "OMP_NUM_THREADS": "1"})
        self.assertEqual(done.returncode, 0, f"{' '.join(map(str, words))}\n{done.stdout}\n{done.stderr}")
        return done.stdout

    def three_commands(self, name, *settings, forecast="future.npy"):
        """What `data inspect` says, after the training, the scores and a forecast that it leads to."""
        self.run_program("data", "inspect", name, *settings, "--config", "own.yaml", "--json", "found.json")
        self.run_program("train", "own.yaml", "--run", "run", *SHORT)
        self.run_program("evaluate", "run", *SCORED)
        self.run_program("generate", "run", "--context", name, "--context-frames=-6", "--frames", "5", "--out", forecast)
        scores = json.loads((self.folder / "run/metrics.json").read_text())
        self.assertTrue(math.isfinite(scores["horizons"][0]["rows"][0]["psnr_f01"]["mean"]))
        return json.loads((self.folder / "found.json").read_text())

    @needs("numpy", "netCDF4")
    def test_netcdf(self):
        import netCDF4, numpy as np
        for kind in ("NETCDF4", "NETCDF3_64BIT_OFFSET"):
            with self.subTest(kind):
                shutil.rmtree(self.folder / "run", ignore_errors=True)
                for left in ("own.yaml", "future.nc"):
                    (self.folder / left).unlink(missing_ok=True)
                with netCDF4.Dataset(self.folder / "t.nc", "w", format=kind) as file:
                    for axis, size in (("time", None), ("lat", 24), ("lon", 32)):
                        file.createDimension(axis, size)
                    time = file.createVariable("time", "f8", ("time",))
                    time.units, time.calendar = "hours since 2020-02-27 00:00", "noleap"
                    lat, lon = file.createVariable("lat", "f4", ("lat",)), file.createVariable("lon", "f4", ("lon",))
                    lat.units, lon.units = "degrees_north", "degrees_east"
                    field = file.createVariable("t2m", "i2", ("time", "lat", "lon"), fill_value=-32768)
                    field.scale_factor, field.add_offset, field.units = 0.001, 280.0, "K"
                    lat[:], lon[:], time[:] = np.linspace(58, 50, 24), np.linspace(-10, 2, 32), np.arange(90)
                    values = np.ma.array(280 + 20 * wave(), mask=False)
                    values.mask[3, 0, 0] = True
                    field[:] = values
                found = self.three_commands("t.nc", "forcings=[hour, sun]", forecast="future.nc")
                self.assertAlmostEqual(found["high"], 300, places=2)
                self.assertEqual(found["nan"], 1)
                with netCDF4.Dataset(self.folder / "future.nc") as file:
                    self.assertEqual(file["t2m"].shape, (5, 24, 32))
                    self.assertEqual(file["t2m"].units, "K")
                    dates = netCDF4.num2date(file["time"][:], file["time"].units, file["time"].calendar)
                    self.assertEqual(str(dates[0]), "2020-03-02 18:00:00")  # no leap day
                    np.testing.assert_allclose(file["lat"][:], np.linspace(58, 50, 24), rtol=1e-6)

    @needs("numpy", "xarray", "zarr")
    def test_zarr(self):
        import numpy as np, xarray as xr
        data = xr.Dataset({"u": (("time", "level", "y", "x"), np.stack([wave(), 1 - wave()], 1))},
                          {"time": np.datetime64("2020-01-01T00", "ns") + np.arange(90) * np.timedelta64(10, "m"), "level": [850.0, 500.0]})
        data.level.attrs["positive"] = "down"
        data.to_zarr(self.folder / "u.zarr")
        found = self.three_commands("u.zarr", "variables=[u@500]", forecast="future.zarr")
        self.assertEqual(found["channels"], 1)
        ahead = xr.open_zarr(self.folder / "future.zarr")
        self.assertEqual(ahead["u@500"].shape, (5, 24, 32))
        self.assertEqual(str(ahead.time.values[0])[:16], "2020-01-01T15:00")

    @needs("numpy", "eccodes")
    def test_grib(self):
        import eccodes, numpy as np
        with open(self.folder / "t.grib", "wb") as file:
            for hour, values in enumerate(280 + 20 * wave()):
                message = eccodes.codes_grib_new_from_samples("regular_ll_sfc_grib2")
                for key, value in {"Ni": 32, "Nj": 24, "latitudeOfFirstGridPointInDegrees": 58, "latitudeOfLastGridPointInDegrees": 46.5,
                                   "longitudeOfFirstGridPointInDegrees": 0, "longitudeOfLastGridPointInDegrees": 15.5,
                                   "iDirectionIncrementInDegrees": 0.5, "jDirectionIncrementInDegrees": 0.5,
                                   "dataDate": 20200227 + hour // 24 if hour < 72 else 20200301, "dataTime": hour % 24 * 100,
                                   "shortName": "2t", "bitsPerValue": 16}.items():
                    eccodes.codes_set(message, key, value)
                eccodes.codes_set_values(message, values.astype("float64").ravel())
                eccodes.codes_write(message, file)
                eccodes.codes_release(message)
        found = self.three_commands("t.grib", "forcings=[hour, latitude]", forecast="future.npy")
        self.assertEqual((found["longest"], found["height"], found["width"]), (90, 24, 32))
        self.assertAlmostEqual(found["high"], 300, places=1)
        self.assertIn("2020-02-27 00:00:00 to 2020-03-01 17:00:00, a frame every 1 hour", json.dumps(found["notes"]))

    @needs("numpy", "h5py")
    def test_hdf5_as_sevir_has_it(self):
        import h5py
        with h5py.File(self.folder / "vil.h5", "w") as file:  # [N,H,W,T]
            clips = (255 * wave(30)).astype("uint8").transpose(1, 2, 0)
            file["vil"] = [clips] * 12
        found = self.three_commands("vil.h5", "key=vil", "layout=NHWT")
        self.assertEqual((found["clips"], found["longest"], found["height"], found["width"]), (12, 30, 24, 32))

    @needs("numpy")
    def test_arrays_as_openstl_has_them(self):
        import numpy as np
        np.save(self.folder / "mnist_test_seq.npy", np.stack([(255 * wave(20)).astype("uint8")] * 12, 1))  # [T,N,H,W]
        found = self.three_commands("mnist_test_seq.npy", "layout=TNHW")
        self.assertEqual((found["clips"], found["longest"]), (12, 20))

    @needs("numpy")
    @needs_ffmpeg
    def test_videos_and_pictures(self):
        frames = (255 * wave()).astype("uint8").tobytes()
        for name, codec in (("a.mp4", ["-c:v", "libx264"]), ("a.avi", ["-c:v", "mjpeg"]), ("a.mkv", ["-c:v", "ffv1"]),
                            ("a.webm", ["-c:v", "libvpx"]), ("a.gif", []), ("png/%04d.png", []), ("tif/%04d.tif", []), ("pgm/%04d.pgm", [])):
            with self.subTest(name):
                shutil.rmtree(self.folder / "run", ignore_errors=True)
                for left in ("own.yaml", "future.npy"):
                    (self.folder / left).unlink(missing_ok=True)
                (self.folder / name).parent.mkdir(exist_ok=True)
                subprocess.run(["ffmpeg", "-loglevel", "error", "-f", "rawvideo", "-pix_fmt", "gray", "-s", "32x24", "-r", "10", "-i", "-",
                                *codec, name], input=frames, cwd=self.folder, check=True)
                found = self.three_commands(name.split("/")[0])
                self.assertEqual((found["longest"], found["height"], found["width"]), (90, 24, 32))


if __name__ == "__main__":
    sys.exit(unittest.main())
