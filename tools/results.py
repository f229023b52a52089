#!/usr/bin/env python3
"""The results of docs/results.md: trains, scores and records every row of results/plan.json.

    tools/results.py                   all rows without a record; stopped by Ctrl-C or a crash, it goes on where it was
    tools/results.py convs5 s5         these rows anew, in runs/again, and beside them what the records say
    tools/results.py --speed           only the generation speeds, all models in turns, on a machine with nothing else to do
    tools/results.py --list            the rows, and which have a record

MNIST and the weights of LPIPS are looked for in --mnist and --weights. A run lives in runs/results/ROW; what the page
cites is copied to results/ROW: config, log, scores, strips and record.json. Rows train side by side, one thread each.
"""
import argparse, datetime, json, os, platform, shutil, signal, statistics, subprocess, sys, threading
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROGRAM = "build/release/bin/convssm"
CONFIGS = Path("configs/laptop")
MNIST_LINK = Path("runs/mnist")
KEPT = ["config.yaml", "log.jsonl", "status.json", "metrics.json"]
STRIPS = [f"samples/evaluate-strip-{i}.png" for i in range(2)]
NUMERIC = 5  # exit code of a training whose loss is no longer a number
SPEED_FRAMES, SPEED_ROUNDS = 600, 5
SPEED_CLIP = ["digits=1", "image_size=32", "digit_size=24", "subpixel=true"]


class Stopped(Exception):
    pass


class Diverged(Exception):
    pass


stopping = threading.Event()
running = set()
output_lock = threading.Lock()


def say(text):
    with output_lock:
        print(f"{datetime.datetime.now():%H:%M:%S} {text}", flush=True)


def call(arguments, log, threads):
    """Runs the program; its lines go to a log. A signal to us reaches it too, and it saves before it ends."""
    if stopping.is_set():
        raise Stopped
    command = [PROGRAM, "--threads", str(threads), *arguments]
    log.parent.mkdir(parents=True, exist_ok=True)
    with open(log, "a") as lines:
        lines.write(f"$ {' '.join(command)}\n")
        lines.flush()
        process = subprocess.Popen(command, stdout=lines, stderr=subprocess.STDOUT, start_new_session=True,
                                   env={**os.environ, "OMP_NUM_THREADS": str(threads)})
        running.add(process)
        if stopping.is_set():  # asked for while it was being started
            process.send_signal(signal.SIGINT)
        code = process.wait()
        running.discard(process)
    if stopping.is_set():
        raise Stopped
    if code == NUMERIC:
        raise Diverged
    if code != 0:
        raise SystemExit(f"error: {' '.join(command)} ended with {code}; its last lines, of {log}:\n"
                         + "".join(open(log).readlines()[-5:]))


def stop(*_):
    stopping.set()
    for process in list(running):
        process.send_signal(signal.SIGINT)


def machine():
    cpu = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), "?")
    memory = next(int(line.split()[1]) for line in open("/proc/meminfo") if line.startswith("MemTotal"))
    return f"{cpu}, {os.cpu_count()} cores, {memory / 2**20:.0f} GiB, {platform.machine()}"


def commit():
    text = subprocess.run(["git", "describe", "--always", "--dirty", "--abbrev=10"], capture_output=True, text=True)
    return text.stdout.strip() or "unknown"


class Plan:
    def __init__(self, records, options):
        plan = json.load(open("results/plan.json"))
        self.sweep, self.records, self.options = plan["sweep"], records, options
        self.rows = {}
        for place, row in enumerate(plan["rows"]):
            settings = list(row.get("set", []))
            if row["part"] == "ablation":
                row["of"] = plan["ablation"]["of"]
                settings = plan["ablation"]["set"] + settings
            row = {"of": row["row"], **row, "set": settings, "place": place}
            self.rows[row["row"]] = row

    def has_record(self, name):
        return (self.records / name / "record.json").exists()

    def sweep_rows(self, of):
        """The short runs that choose the learning rate of a model. They train and are judged on other clips."""
        return [{"row": f"sweep_{of}_{lr}", "label": f"{self.rows[of]['label']}, lr {lr}", "part": "sweep", "of": of,
                 "lr": lr, "place": 1000 + 10 * self.rows[of]["place"] + i, "set": self.sweep["set"]}
                for i, lr in enumerate(self.sweep["lr"])]

    def best_lr(self, of):
        """The rate with the best PSNR over the shortest horizon on the validation clips."""
        tried = {}
        for row in self.sweep_rows(of):
            if not self.has_record(row["row"]):
                raise SystemExit(f"error: no record of {row['row']}, which chooses the learning rate of {of}; "
                                 "tools/results.py without rows makes it")
            validation = json.load(open(self.records / row["row"] / "record.json")).get("validation", {})
            if validation.get("psnr_f01") is not None:
                tried[row["lr"]] = validation["psnr_f01"]
        if not tried:
            raise SystemExit(f"error: {of} diverged with every learning rate of the plan")
        return max(tried, key=tried.get)

    def data(self):
        return [f"data.images={MNIST_LINK}/train-images-idx3-ubyte.gz"] if MNIST_LINK.exists() else []

    def train_arguments(self, row, run):
        lr = row.get("lr") or self.best_lr(row["of"])
        return ["train", str(CONFIGS / f"{row['of']}.yaml"), "--run", str(run), f"train.lr={lr}",
                *row["set"], *self.data()]

    def make(self, row, runs):
        """Trains and scores a row in runs/ROW, from where it was left; what is known about it."""
        name, run = row["row"], runs / row["row"]
        log, threads = runs / f"{name}.log", self.options.threads
        train = self.train_arguments(row, run)
        self.check_unchanged(run, train)
        evaluate = ["evaluate", str(run)]
        lr = next(text.split("=")[1] for text in train if text.startswith("train.lr="))
        commands = [train, [*evaluate, "--weights", "$CONVSSM_WEIGHTS"] if self.options.weights else evaluate]
        record = {"row": name, "label": row["label"], "part": row["part"], "of": row["of"], "place": row["place"],
                  "lr": float(lr), "commands": [f"convssm --threads {threads} {' '.join(words)}" for words in commands],
                  "commit": commit(), "machine": machine(), "threads": threads}
        say(f"{name}: {' '.join(train)}")
        try:
            call([*train, "--resume"], log, threads)
        except Diverged:
            if row["part"] != "sweep":
                raise SystemExit(f"error: {name} diverged; see {log}")
            return {**record, "diverged": True}
        say(f"{name}: evaluate")
        call(evaluate + (["--weights", self.options.weights] if self.options.weights else []), log, threads)
        if row["part"] == "sweep":
            record["validation"] = next(values for _, values in scores(run))
        return record

    def check_unchanged(self, run, train):
        """A run that was begun with other values must not go on under the name of these."""
        begun, text = run.parent / f"{run.name}.arguments", " ".join(train)
        if run.exists() and begun.exists() and begun.read_text() != text:
            raise SystemExit(f"error: {run} was begun as\n  {begun.read_text()}\nand is now asked for as\n  {text}\n"
                             "remove the folder to begin it anew")
        begun.parent.mkdir(parents=True, exist_ok=True)
        begun.write_text(text)

    def keep(self, record, run):
        """What the page cites. record.json comes last: with it the record is whole."""
        folder = self.records / record["row"]
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        for name in KEPT + ([] if record["part"] == "sweep" else STRIPS):
            if (run / name).exists() or not record.get("diverged"):
                (folder / name).parent.mkdir(exist_ok=True)
                shutil.copy(run / name, folder / name)
        (folder / "record.json").write_text(json.dumps(record, indent=1) + "\n")
        say(f"{record['row']}: recorded in {folder}")


def in_parallel(jobs, work, count):
    """Runs jobs in their order, `count` at a time; the first error stops the others after they have saved."""
    jobs, errors, lock = list(jobs), [], threading.Lock()

    def worker():
        while not stopping.is_set():
            with lock:
                if not jobs:
                    return
                job = jobs.pop(0)
            try:
                work(job)
            except Stopped:
                return
            except (SystemExit, Exception) as error:
                errors.append(error)
                stop()

    workers = [threading.Thread(target=worker) for _ in range(count)]
    for thread in workers:
        thread.start()
    for thread in workers:
        while thread.is_alive():
            thread.join(0.2)
    if errors:
        raise errors[0]
    if stopping.is_set():
        raise SystemExit("stopped; what was running is saved: the same command goes on")


def make_missing(plan):
    runs = Path("runs/results")

    def work(row):
        plan.keep(plan.make(row, runs), runs / row["row"])

    models = [row["row"] for row in plan.rows.values() if row["part"] == "table"]
    sweeps = [row for of in models for row in plan.sweep_rows(of) if not plan.has_record(row["row"])]
    in_parallel(sweeps, work, plan.options.jobs)
    in_parallel([row for row in plan.rows.values() if not plan.has_record(row["row"])], work, plan.options.jobs)


def scores(folder):
    metrics = json.load(open(folder / "metrics.json"))
    names = [name for name in metrics["protocol"]["metrics"]]
    for horizon in metrics["horizons"]:
        model = horizon["rows"][0]
        yield horizon["frames"], {name: model[name]["mean"] for name in names if model.get(name)}


def make_again(plan, names):
    """These rows from scratch (or from where a stop left them), and what they give beside what is recorded."""
    runs = Path("runs/again")
    for name in names:
        status = runs / name / "status.json"
        if status.exists() and json.load(open(status)).get("state") == "finished":
            shutil.rmtree(runs / name)
    in_parallel([plan.rows[name] for name in names], lambda row: plan.make(row, runs), plan.options.jobs)
    for name in names:
        recorded = dict(scores(plan.records / name)) if plan.has_record(name) else {}
        for frames, values in scores(runs / name):
            for metric, value in values.items():
                known = recorded.get(frames, {}).get(metric)
                print(f"{name:<20} {frames:>5} frames  {metric:<14} {value:9.4f}   recorded "
                      + ("nothing" if known is None else f"{known:9.4f}"))


def measure_speed(plan):
    """Frames per second of `convssm generate`, one clip after another, all models in turns, with all cores."""
    runs, cores = Path("runs/results"), os.cpu_count()
    models = [row["row"] for row in plan.rows.values() if row["part"] == "table" and (runs / row["row"]).exists() and plan.has_record(row["row"])]
    clip, log = Path("runs/context.npy"), runs / "speed.log"
    if not models:
        raise SystemExit("error: no trained run in runs/results; tools/results.py makes them")
    call(["data", "make", str(clip), *SPEED_CLIP, "--clips", "1", "--frames", "25", "--split", "test", "--force"], log, cores)
    rates = {name: [] for name in models}
    for _ in range(SPEED_ROUNDS):
        for name in models:
            out = runs / "speed.npy"
            call(["generate", str(runs / name), "--context", str(clip), "--frames", str(SPEED_FRAMES), "--out", str(out),
                  "--force"], log, cores)
            rates[name].append(last_rate(log))
    for name, rounds in rates.items():
        value = {"frames_per_second": statistics.median(rounds), "rounds": rounds, "frames": SPEED_FRAMES,
                 "threads": cores, "machine": machine(), "commit": commit()}
        (plan.records / name / "speed.json").write_text(json.dumps(value, indent=1) + "\n")
        print(f"{name:<20} {value['frames_per_second']:8.0f} frames/s  ({min(rounds):.0f} to {max(rounds):.0f})")


def last_rate(log):
    """Of a line such as "generate: 600 in 2.1s, 290.1/s, frames" or with 1.29k/s."""
    line = [line for line in open(log) if line.startswith(f"generate: {SPEED_FRAMES} in ")][-1]
    rate = line.split("/s")[0].split(", ")[-1]
    return float(rate[:-1]) * 1000 if rate.endswith("k") else float(rate)


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", nargs="*")
    parser.add_argument("--mnist", help="folder of the four IDX files; by default $MNIST or ../shared/assets/mnist")
    parser.add_argument("--drawn", action="store_true", help="digits drawn by the program instead of MNIST; "
                                                             "with --records elsewhere")
    parser.add_argument("--weights", help="folder of the metrics' weights; by default $CONVSSM_WEIGHTS or ../shared/assets/lpips")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="rows side by side (default: the cores)")
    parser.add_argument("--threads", type=int, default=1, help="of each row (default 1)")
    parser.add_argument("--records", type=Path, default=Path("results"))
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--speed", action="store_true")
    return parser.parse_args()


def first_folder(*candidates):
    return next((str(Path(path).resolve()) for path in candidates if path and Path(path).is_dir()), None)


def link_mnist(folder, drawn):
    """The records then name a path that says nothing of this machine."""
    MNIST_LINK.parent.mkdir(exist_ok=True)
    if MNIST_LINK.is_symlink():
        MNIST_LINK.unlink()
    if folder and not MNIST_LINK.exists():
        MNIST_LINK.symlink_to(folder)
    elif not folder and not drawn:
        raise SystemExit("error: no MNIST found; name the folder of its IDX files with --mnist, or say --drawn for digits "
                         "drawn by the program, whose numbers are not those of docs/results.md")


def main():
    os.chdir(ROOT)
    options = parse()
    options.weights = first_folder(options.weights, os.environ.get("CONVSSM_WEIGHTS"), "../shared/assets/lpips")
    plan = Plan(options.records, options)
    unknown = [name for name in options.rows if name not in plan.rows]
    if unknown:
        raise SystemExit(f"error: no row {', '.join(unknown)}; there are {', '.join(plan.rows)}")
    if options.list:
        for name, row in plan.rows.items():
            print(f"{name:<20} {row['part']:<10} {'recorded' if plan.has_record(name) else 'to do':<10} {row['label']}")
        return
    if not Path(PROGRAM).exists():
        raise SystemExit(f"error: {PROGRAM} is not there; `make build` makes it")
    link_mnist(first_folder(options.mnist, os.environ.get("MNIST"), "../shared/assets/mnist"), options.drawn)
    signal.signal(signal.SIGINT, stop)
    signal.signal(signal.SIGTERM, stop)
    try:
        if options.speed:
            measure_speed(plan)
        elif options.rows:
            make_again(plan, options.rows)
        else:
            make_missing(plan)
    except Stopped:
        raise SystemExit("stopped")


if __name__ == "__main__":
    main()
