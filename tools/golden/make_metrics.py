"""PSNR, SSIM and pixel sums of pairs of frames, by scikit-image and by plain NumPy: writes tests/golden/metrics.npz.

Neither shares code with the library. The two are compared here first: scikit-image filters the padded frame and crops
it, NumPy sums each of the windows inside the frame."""

import pathlib
import sys

import numpy as np
from skimage.metrics import peak_signal_noise_ratio, structural_similarity


def window():
    g = np.exp(-0.5 * (np.arange(-5, 6) / 1.5) ** 2)
    g2 = np.outer(g, g)
    return g2 / g2.sum()


def ssim_numpy(x, y):
    """Mean over windows and channels, [C,H,W] float64."""
    weights, total = window(), []
    for a, b in zip(x, y):
        for i in range(a.shape[0] - 10):
            for j in range(a.shape[1] - 10):
                u, v = a[i : i + 11, j : j + 11], b[i : i + 11, j : j + 11]
                mu, mv = (weights * u).sum(), (weights * v).sum()
                su, sv = (weights * (u - mu) ** 2).sum(), (weights * (v - mv) ** 2).sum()
                suv = (weights * (u - mu) * (v - mv)).sum()
                total.append((2 * mu * mv + 1e-4) * (2 * suv + 9e-4) / ((mu**2 + mv**2 + 1e-4) * (su + sv + 9e-4)))
    return np.mean(total)


def ssim_skimage(x, y):
    return structural_similarity(x, y, gaussian_weights=True, sigma=1.5, use_sample_covariance=False, data_range=1.0,
                                 channel_axis=0)


def ssim7_numpy(x, y):
    """scikit-image's default: windows of 7x7, all of one weight, variances over n - 1."""
    total = []
    for a, b in zip(x, y):
        for i in range(a.shape[0] - 6):
            for j in range(a.shape[1] - 6):
                u, v = a[i : i + 7, j : j + 7].ravel(), b[i : i + 7, j : j + 7].ravel()
                (su, suv), (_, sv) = np.cov(u, v, ddof=1)
                mu, mv = u.mean(), v.mean()
                total.append((2 * mu * mv + 1e-4) * (2 * suv + 9e-4) / ((mu**2 + mv**2 + 1e-4) * (su + sv + 9e-4)))
    return np.mean(total)


def bytes_of(x):
    return np.rint(255 * x).astype(np.uint8)


def blob(shape, rng):
    """A bright shape on exact black: flat regions are where SSIM loses digits."""
    c, h, w = shape
    yy, xx = np.mgrid[:h, :w]
    y0, x0 = rng.uniform(0.3, 0.7, 2) * (h, w)
    return np.stack([np.clip(1.4 - np.hypot((yy - y0) / 5, (xx - x0) / 7), 0, 1)] * c)


def pairs():
    rng = np.random.default_rng(20240229)
    noise = lambda shape: rng.integers(0, 256, shape) / 255
    a = blob((1, 64, 64), rng)
    yield "blob_moved", a, np.roll(a, (2, -3), (1, 2))
    yield "blob_blank", a, np.zeros_like(a)
    yield "blob_faint", a, np.clip(a + rng.normal(0, 0.003, a.shape), 0, 1)
    yield "noise", noise((1, 40, 23)), noise((1, 40, 23))
    yield "smallest", noise((1, 11, 11)), noise((1, 11, 11))
    b = np.clip(blob((3, 32, 48), rng) * rng.uniform(0.3, 1, (3, 1, 1)) + 0.1, 0, 1)
    yield "colour", b, np.clip(0.9 * b + rng.normal(0, 0.05, b.shape), 0, 1)
    flat = np.full((1, 12, 33), 0.5)
    yield "flat", flat, flat + 1 / 255
    yield "white_black", np.ones((1, 16, 16)), np.zeros((1, 16, 16))


def main():
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parents[2] / "tests/golden")
    out = {}
    for name, truth, forecast in pairs():
        truth, forecast = truth.astype(np.float32), forecast.astype(np.float32)
        x, y = truth.astype(np.float64), forecast.astype(np.float64)
        psnr, ssim = -10 * np.log10(np.mean((x - y) ** 2)), ssim_numpy(x, y)
        assert abs(psnr - peak_signal_noise_ratio(x, y, data_range=1.0)) < 1e-9
        assert abs(ssim - ssim_skimage(x, y)) < 1e-9, (name, ssim, ssim_skimage(x, y))
        ssim7 = structural_similarity(x, y, data_range=1.0, channel_axis=0)
        assert abs(ssim7 - ssim7_numpy(x, y)) < 1e-9, (name, ssim7, ssim7_numpy(x, y))
        out |= {f"{name}.ssim_uniform7": ssim7, f"{name}.mse_sum": ((x - y) ** 2).sum(),
                f"{name}.mae_sum": np.abs(x - y).sum(),
                f"{name}.psnr_u8": peak_signal_noise_ratio(bytes_of(x), bytes_of(y))}
        out |= {f"{name}.truth": truth, f"{name}.forecast": forecast, f"{name}.psnr": psnr,
                f"{name}.ssim": ssim_skimage(x, y)}
        print(f"{name:12} psnr {psnr:9.5f}  ssim {ssim:.8f}")
    np.savez_compressed(folder / "metrics.npz", **out)


main()
