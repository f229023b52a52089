#!/usr/bin/env python3
"""Takes the place of the program in tests: leaves the files of a run, and says what it was asked for in calls.txt."""
import json, os, signal, sys, time
from pathlib import Path

RATES = {"1e-4": 20, "5e-4": 21, "1e-3": 22, "3e-3": 23, "1e-2": None}  # PSNR of a run with it; None: it diverges


def value_of(words, key):
    return next((word.split("=", 1)[1] for word in words if word.startswith(key + "=")), None)


def wait_in(verb, run):
    """Until a signal, if the test asks for it in this verb."""
    if os.environ.get("STAND_IN_WAITS") == verb:
        signal.signal(signal.SIGINT, lambda *_: sys.exit(130))
        (run / "waits").write_text("")
        time.sleep(60)


def wait_for_the_other(run):
    while not list(run.parent.glob("*/waits")):
        time.sleep(0.05)


def train(words):
    run = Path(words[words.index("--run") + 1])
    rate = value_of(words, "train.lr")
    run.mkdir(parents=True, exist_ok=True)
    (run / "config.yaml").write_text(f"lr: {rate}\n")
    (run / "log.jsonl").write_text(json.dumps({"validation": {"psnr_f01": RATES[rate]}}) + "\n{}\n")
    if os.environ.get("STAND_IN_FAILS") == run.name:
        wait_for_the_other(run)
        print("out of luck")
        return 3
    if RATES[rate] is None:
        return 5
    wait_in("train", run)
    (run / "status.json").write_text('{"state": "finished"}\n')
    return 0


def evaluate(words):
    run = Path(words[1])
    wait_in("evaluate", run)
    if "--timing" in words:
        for name in ("timing.json", "timing_rates.png", "timing_dropped.png"):
            (run / name).write_text("{}")
        return 0
    psnr = RATES[(run / "config.yaml").read_text().split()[1]]
    if "--out" in words:
        run = Path(words[words.index("--out") + 1])
        run.mkdir(exist_ok=True)
    metrics = {"protocol": {"metrics": {"psnr_f01": {}}},
               "horizons": [{"frames": 4, "rows": [{"name": "core", "psnr_f01": {"mean": psnr}}]}],
               "curves": {"psnr_f01": {"core": [psnr + 1, psnr - 1, 0, 0]}}}
    if "m" in run.parts:  # the row of a benchmark of worlds, which has settings
        metrics["settings"] = [{"name": "2+4", "horizons": metrics.pop("horizons")}]
    if "--weights" in words:
        metrics["left_out"] = {"lpips": "not in " + words[words.index("--weights") + 1]}
    (run / "metrics.json").write_text(json.dumps(metrics))
    (run / "samples").mkdir(exist_ok=True)
    for i in range(2):
        (run / f"samples/evaluate-strip-{i}.png").write_text("")
    return 0


def main():
    words = sys.argv[3:]  # behind --threads N
    with open("calls.txt", "a") as calls:
        calls.write(" ".join(words) + "\n")
    if words[0] == "train":
        return train(words)
    if words[0] == "evaluate":
        return evaluate(words)
    if words[0] == "generate" and not os.environ.get("STAND_IN_SAYS"):
        print("generate: 2000 in 1.7s, 1.2k/s, frames")
    return 0


sys.exit(main())
