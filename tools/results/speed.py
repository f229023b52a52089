"""Frames per second of `convssm generate`, all models in turns."""
import json, os, statistics
from pathlib import Path

from program import commit, machine, write_whole

ROUNDS = 5
# By default: the file of a context, the options of its clip, what else `generate` is told, how many frames it makes.
MOVING_DIGITS = {"clip": "context.npy", "make": ["digits=1", "image_size=32", "digit_size=24", "subpixel=true", "--frames", "25"],
                 "generate": [], "frames": 2000}


def measure(plan, program):
    """One clip after another with all cores; needs a machine with nothing else to do."""
    runs = plan.runs
    models = [name for name in plan.models() if plan.record(name) and (runs / name).exists()]
    if not models:
        raise SystemExit(f"error: no trained run in {runs}; `make results` makes them")
    about = {**MOVING_DIGITS, **plan.speed}
    cores, clip, log, frames = os.cpu_count(), runs / about["clip"], runs / "speed.log", about["frames"]
    program.call(["data", "make", str(clip), *about["make"], "--clips", "1", "--split", "test", "--force"], log, cores)
    rates = {name: [] for name in models}
    for _ in range(ROUNDS):
        for name in models:
            before = log.stat().st_size
            program.call(["generate", str(runs / name), "--context", str(clip), *about["generate"], "--frames", str(frames), "--out",
                          str(runs / "speed.npy"), "--force"], log, cores)
            rates[name].append(rate_in(log, before, frames))
    for name, rounds in rates.items():
        value = {"frames_per_second": statistics.median(rounds), "rounds": rounds, "frames": frames,
                 "threads": cores, "machine": machine(), "commit": commit()}
        write_whole(plan.records / name / "speed.json", json.dumps(value, indent=1) + "\n")
        print(f"{name:<20} {value['frames_per_second']:8.0f} frames/s  ({min(rounds):.0f} to {max(rounds):.0f})")


def rate_in(log, begin, frames):
    """Of a line such as "generate: 2000 in 6.9s, 290.1/s, frames" or with 1.29k/s, behind this place of the log."""
    text = log.read_bytes()[begin:].decode()
    lines = [line for line in text.splitlines() if line.startswith(f"generate: {frames} in ")]
    if not lines:
        raise SystemExit(f"error: the program did not say how fast it was, see the end of {log}")
    rate = lines[-1].split("/s")[0].split(", ")[-1]
    return float(rate[:-1]) * 1000 if rate.endswith("k") else float(rate)


def missing(plan):
    """Whether a trained model has no speed yet."""
    if plan.speed is None:
        return False
    return any(plan.record(name) and (plan.runs / name).exists() and not (plan.records / name / "speed.json").exists()
               for name in plan.models())
