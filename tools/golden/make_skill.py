"""An evaluation of made-up fields in units, from the formulas alone: writes tests/golden/skill.json.

The fields are those of tests/evaluate/field_clips.h: three test clips, context 3, forecasts of 6 frames by a model of three
futures (future i of a frame k ahead is 0.9^k times the last frame + 0.05 (i - 1), in [-1,1]), by the last frame and by the
climatology. Everything is in float64; the library keeps frames in float32."""

import json
import pathlib
import sys

import numpy as np

H, W, K, N, CLIPS, FUTURES, TRAIN = 18, 20, 3, 6, 3, 3, 80
THRESHOLDS, WINDOWS = {"rain": [0.5, 2.0]}, [1, 3]
Y, X = np.mgrid[:H, :W].astype(float)


def field(n):
    t2m = 280 - 0.5 * Y + 4 * np.sin(np.pi / 2 * (n % 4)) + 0.1 * X + 3 * np.sin(0.9 * n + 0.4 * X + 0.2 * Y)
    rain = np.maximum(0, 6 * np.sin(0.35 * (X - n)) * np.cos(0.3 * Y) - 1)
    return np.stack([t2m, rain])


def measured(n):
    y, x = np.mgrid[:H, :W]
    return np.stack([(7 * n + 5 * c + 3 * y + x * x) % 11 != 0 for c in range(2)])


def to_frame(v):
    log = lambda x: np.log(x + 0.1)
    return np.stack([2 * (v[0] - 250) / 60 - 1, 2 * (log(v[1]) - log(0)) / (log(10) - log(0)) - 1])


def to_units(f):
    log = lambda x: np.log(x + 0.1)
    return np.stack([250 + 30 * (f[0] + 1), np.exp(log(0) + (log(10) - log(0)) * (f[1] + 1) / 2) - 0.1])


def climatology(n):
    frames = [k for k in range(TRAIN) if k % 4 == n % 4]
    values, valid = np.stack([field(k) for k in frames]), np.stack([measured(k) for k in frames])
    every, known = np.stack([field(k) for k in range(TRAIN)]), np.stack([measured(k) for k in range(TRAIN)])
    own, total = (values * valid).sum(0), valid.sum(0)
    return np.where(total >= 3, own / np.maximum(total, 1), (every * known).sum(0) / known.sum(0))


def last_measured(n):
    """Of frames n - K .. n - 1, in units; 0 in [-1,1] where none was."""
    out, found = to_units(np.zeros((2, H, W))), np.zeros((2, H, W), bool)
    for k in range(n - 1, n - 1 - K, -1):
        here = measured(k) & ~found
        out, found = np.where(here, field(k), out), found | here
    return out


def fractions(event, window):
    padded = np.pad(event.astype(float), window)
    out = np.zeros(event.shape)
    for dy in range(window):
        for dx in range(window):
            y, x = window - window // 2 + dy, window - window // 2 + dx
            out += padded[y : y + H, x : x + W]
    return out / window**2


def scores(name, cases):
    """cases: (truth, climatology, valid, futures), a field each, of one variable."""
    rows = np.cos(np.radians(70 - 4 * np.arange(H)))
    rows = (rows / rows.mean())[:, None]
    total = square = absolute = error = accs = fields = 0
    pairs = [(t, u, v * rows, f) for t, u, v, futures in cases for f in futures]
    for t, u, w, f in pairs:
        total, error = total + w.sum(), error + (w * (f - t)).sum()
        square, absolute = square + (w * (f - t) ** 2).sum(), absolute + (w * abs(f - t)).sum()
        x, y = t - u, f - u
        if (w * y * y).sum() > 0:
            accs += (w * x * y).sum() / np.sqrt((w * x * x).sum() * (w * y * y).sum())
            fields += 1
    out = {"rmse": np.sqrt(square / total), "mae": absolute / total, "bias": error / total,
           "acc": accs / fields if fields else None}
    for threshold in THRESHOLDS.get(name, []):
        h = m = fa = 0
        fss = {}
        for t, u, w, f in pairs:
            a, b = t >= threshold, f >= threshold
            h, m, fa = h + (w * (a & b)).sum(), m + (w * (a & ~b)).sum(), fa + (w * (~a & b)).sum()
        for window in WINDOWS:
            d = r = 0
            for t, u, w, f in pairs:
                a, b = (fractions((v >= threshold) & (w > 0), window) for v in (t, f))
                d, r = d + (w * (a - b) ** 2).sum(), r + (w * (a * a + b * b)).sum()
            fss[str(window)] = 1 - d / r
        with np.errstate(invalid="ignore"):  # nothing by nothing is null in the file
            out.setdefault("events", []).append({"threshold": threshold, "csi": h / (h + m + fa), "pod": h / (h + m),
                                                 "far": fa / (h + fa), "frequency_bias": (h + fa) / (h + m), "fss": fss})
    M = len(cases[0][3])
    if M > 1:
        weight = crps = fair = variance = skill = 0
        ranks = np.zeros(M + 1)
        for t, u, v, futures in cases:
            w, f = v * rows, np.stack(futures)
            apart = abs(f[:, None] - f[None]).sum((0, 1))
            near = abs(f - t).mean(0)
            weight, crps = weight + w.sum(), crps + (w * (near - apart / (2 * M * M))).sum()
            fair += (w * (near - apart / (2 * M * (M - 1)))).sum()
            variance, skill = variance + (w * f.var(0, ddof=1)).sum(), skill + (w * (f.mean(0) - t) ** 2).sum()
            for r in range(M + 1):
                ranks[r] += (w * ((f < t).sum(0) == r)).sum()
        spread, skill = np.sqrt((M + 1) / M * variance / weight), np.sqrt(skill / weight)
        out |= {"crps": crps / weight, "crps_fair": fair / weight, "spread": spread, "rmse_of_mean": skill,
                "spread_skill": spread / skill, "rank_histogram": list(ranks / weight)}
    return out


def main():
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parents[2] / "tests/golden")

    def futures(forecaster, n, k):  # the frame n + k - 1, k ahead of the context that ends before n
        if forecaster == "copy last frame":
            return [last_measured(n)]
        if forecaster == "climatology":
            return [climatology(n + k - 1)]
        last = np.where(measured(n - 1), to_frame(field(n - 1)), 0)
        return [to_units(0.9**k * last + 0.05 * (i - 1)) for i in range(FUTURES)]

    out = {}
    for forecaster in ("scripted", "copy last frame", "climatology"):
        for c, name in enumerate(("t2m", "rain")):
            def cases(leads):
                for clip in range(CLIPS):
                    n = 1000 + 37 * clip + K
                    for k in leads:
                        t = n + k - 1
                        yield field(t)[c], climatology(t)[c], measured(t)[c], [f[c] for f in futures(forecaster, n, k)]
            for label, leads in {"to 2": (1, 2), "to 6": range(1, 7), "at 4": (4,)}.items():
                out.setdefault(label, {}).setdefault(forecaster, {})[name] = scores(name, list(cases(leads)))
    text = json.dumps(out)
    short = json.loads(text, parse_float=lambda v: float(f"{float(v):.9g}"), parse_constant=lambda v: None)
    text = json.dumps(short, indent=1)
    (folder / "skill.json").write_text(text + "\n")
    print(json.dumps(out["to 2"]["scripted"], indent=1))


main()
