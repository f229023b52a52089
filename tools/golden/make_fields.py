"""Scores of fields by plain NumPy, checked against outside programs where installed: writes tests/golden/fields.npz.

Nothing is shared with the library. Compared here first: CRPS with properscoring, contingency tables and fractions skill
scores with pysteps, weighted errors and correlations with xskillscore, SSIM of floats without a data range as
scikit-image up to 0.19 had it."""

import importlib
import pathlib
import sys

import numpy as np
from skimage.metrics import structural_similarity


def outside(name):
    try:
        return importlib.import_module(name)
    except ImportError:
        print(f"not compared with {name}: it is not installed")
        return None


def smooth(shape, rng):
    """Patches of rain: smoothed noise, zero in more than half of the field."""
    x = rng.normal(size=shape)
    for axis in (-2, -1):
        for _ in range(4):
            x = (x + np.roll(x, 1, axis) + np.roll(x, -1, axis)) / 3
    return np.maximum(0, 40 * x)


def errors(truth, forecast, weights):
    d = forecast - truth
    total = weights.sum((-2, -1))
    mean = lambda x: (weights * x).sum((-2, -1)) / total
    return np.sqrt(mean(d**2)), mean(np.abs(d)), mean(d)


def acc(truth, forecast, climatology, weights):
    x, y = truth - climatology, forecast - climatology
    s = lambda v: (weights * v).sum((-2, -1))
    return s(x * y) / np.sqrt(s(x * x) * s(y * y))


def counts(truth, forecast, threshold, weights):
    t, f = truth >= threshold, forecast >= threshold
    s = lambda v: (weights * v).sum((-2, -1))
    return np.stack([s(t & f), s(t & ~f), s(~t & f), s(~t & ~f)])


def fractions(event, window):
    H, W = event.shape
    out = np.zeros((H, W))
    for i in range(H):
        for j in range(W):
            y, x = i - window // 2, j - window // 2
            out[i, j] = event[max(y, 0) : max(y + window, 0), max(x, 0) : max(x + window, 0)].sum() / window**2
    return out


def fss(truth, forecast, threshold, window, weights):
    """Of several fields together."""
    difference = reference = 0
    for t, f, w in zip(truth, forecast, weights):
        a, b = (fractions((x >= threshold) & (w > 0), window) for x in (t, f))
        difference += (w * (b - a) ** 2).sum()
        reference += (w * (a**2 + b**2)).sum()
    return 1 - difference / reference


def crps(truth, members, fair):
    M = len(members)
    near = np.abs(members - truth).mean(0)
    apart = np.abs(members[:, None] - members[None]).sum((0, 1))
    return near - apart / (2 * M * (M - 1 if fair else M))


def check_errors(truth, forecast, weights):
    xs, xr = outside("xskillscore"), outside("xarray")
    if xs is None:
        return
    for i, (rmse, mae, bias) in enumerate(zip(*errors(truth, forecast, weights))):
        t, f, w = (xr.DataArray(v[i], dims=["y", "x"]) for v in (truth, forecast, weights))
        kw = dict(dim=["y", "x"], weights=w)
        assert np.isclose(xs.rmse(t, f, **kw), rmse) and np.isclose(xs.mae(t, f, **kw), mae)
        assert np.isclose(abs(xs.me(t, f, **kw)), abs(bias))
    print("rmse, mae, me agree with xskillscore", xs.__version__)


def check_events(truth, forecast, threshold, windows):
    det, spatial = outside("pysteps.verification.detcatscores"), outside("pysteps.verification.spatialscores")
    if det is None:
        return
    one = np.ones_like(truth)
    h, m, fa, _ = counts(truth, forecast, threshold, one).sum(1)
    theirs = det.det_cat_fct(forecast, truth, np.nextafter(threshold, 0), scores=["CSI", "POD", "FAR", "BIAS"])
    ours = {"CSI": h / (h + m + fa), "POD": h / (h + m), "FAR": fa / (h + fa), "BIAS": (h + fa) / (h + m)}
    for name, value in ours.items():
        assert np.isclose(theirs[name], value), (name, theirs[name], value)
    for window in windows:
        theirs = spatial.fss(forecast[0], truth[0], threshold, window)
        assert np.isclose(theirs, fss(truth[:1], forecast[:1], threshold, window, one)), (window, theirs)
    print("CSI, POD, FAR, BIAS, FSS agree with pysteps")


def check_ensemble(truth, members):
    ps, xs, xr = outside("properscoring"), outside("xskillscore"), outside("xarray")
    if ps is not None:
        assert np.allclose(ps.crps_ensemble(truth, np.moveaxis(members, 0, -1)), crps(truth, members, False))
        print("CRPS agrees with properscoring")
    sc = outside("scores.probability")
    if sc is not None:
        dims = ["n", "y", "x"]
        f, t = xr.DataArray(members, dims=["m", *dims]), xr.DataArray(truth, dims=dims)
        for method, fair in (("ecdf", False), ("fair", True)):
            theirs = sc.crps_for_ensemble(f, t, "m", method=method, preserve_dims="all")
            assert np.allclose(theirs, crps(truth, members, fair)), method
        print("CRPS, ordinary and fair, agrees with scores")


def main():
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parents[2] / "tests/golden")
    rng = np.random.default_rng(20261119)
    shape = (2, 14, 18)
    as_stored = lambda v: v.astype(np.float32).astype(np.float64)
    truth = as_stored(smooth(shape, rng))
    forecast = as_stored(np.maximum(0, np.roll(truth, (1, 2), (1, 2)) + rng.normal(0, 0.7, shape)))
    climatology = as_stored(smooth(shape, rng).mean(0, keepdims=True).repeat(2, 0))
    members = as_stored(np.maximum(0, truth + rng.normal(0.3, 2, (5, *shape))))
    valid = rng.random(shape) > 0.2
    latitudes = np.linspace(62, 36, shape[1])
    rows = np.cos(np.radians(latitudes))
    rows /= rows.mean()
    weights = valid * rows[:, None]
    threshold, windows = 2.0, (1, 2, 3, 5)

    check_errors(truth, forecast, weights)
    check_events(truth, forecast, threshold, windows)
    check_ensemble(truth, members)
    rmse, mae, bias = errors(truth, forecast, weights)
    mean = lambda v: (weights * v).sum() / weights.sum()
    x = rng.random((3, 9, 12)).astype(np.float32)
    y = np.clip(x + rng.normal(0, 0.2, x.shape), 0, 1).astype(np.float32)
    f64 = lambda v: v.astype(np.float64)
    out = {
        "truth": truth.astype(np.float32), "forecast": forecast.astype(np.float32),
        "climatology": climatology.astype(np.float32), "members": members.astype(np.float32), "valid": valid,
        "latitudes": latitudes, "weights": weights, "rmse": rmse, "mae": mae, "bias": bias,
        "acc": acc(truth, forecast, climatology, weights), "counts": counts(truth, forecast, threshold, weights),
        "fss": np.array([fss(truth, forecast, threshold, w, weights) for w in windows]),
        "fss_all": np.array([fss(truth, forecast, threshold, w, np.ones(shape)) for w in windows]),
        "windows": np.array(windows), "crps": crps(truth, members, False), "crps_fair": crps(truth, members, True),
        "mean_crps": mean(crps(truth, members, False)), "mean_crps_fair": mean(crps(truth, members, True)),
        "spread": np.sqrt(6 / 5 * mean(members.var(0, ddof=1))),
        "skill": np.sqrt(mean((members.mean(0) - truth) ** 2)),
        "ssim_truth": x, "ssim_forecast": y,
        "ssim_openstl": structural_similarity(f64(x), f64(y), data_range=2, channel_axis=0),
    }
    np.savez_compressed(folder / "fields.npz", **{k: np.asarray(v) for k, v in out.items()})
    print({k: np.round(v, 5).tolist() for k, v in out.items() if np.size(v) < 9})


main()
