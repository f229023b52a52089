"""The results of docs/results.md: trains, scores and records every row of results/plan.json.

    python3 tools/results                   all rows without a record; stopped by Ctrl-C or a crash, it goes on where it was
    python3 tools/results convs5 s5         these rows anew, in runs/again, and beside them what the records say
    python3 tools/results --speed           only the generation speeds, with nothing else running
    python3 tools/results --list            the rows, and which have a record

A run lives in runs/results/ROW; what the page cites is copied to results/ROW: config, log, scores, strips and record.json.
Rows train side by side, one thread each.
"""
import argparse, json, os, shutil, signal
from pathlib import Path

import speed
from parallel import in_parallel
from plan import Plan, first_psnr, scores
from program import Program, Stopped
from rows import MNIST, Maker

ROOT = Path(__file__).resolve().parent.parent.parent
RUNS, AGAIN = Path("runs/results"), Path("runs/again")


def make_missing(plan, program, options):
    maker = Maker(plan, program, RUNS, options.threads, options.weights)

    def work(row):
        record = maker.make(row)
        if row["part"] == "sweep" and not record.get("diverged"):
            record["validation"] = {"psnr_f01": first_psnr(RUNS / row["row"], plan.sweep["judged_frames"])}
        maker.keep(row, record)

    in_parallel(program, plan.makeable, work, options.jobs)
    if speed.missing(plan, RUNS):
        speed.measure(plan, program, RUNS)


def make_again(plan, program, options):
    """These rows from scratch (or from where a stop left them), and what they give beside what is recorded."""
    for name in options.rows:
        status = AGAIN / name / "status.json"
        if status.exists() and json.load(open(status)).get("state") == "finished":
            shutil.rmtree(AGAIN / name)
    maker, left = Maker(plan, program, AGAIN, options.threads, options.weights), list(options.rows)

    def work(row):
        maker.make(row)
        left.remove(row["row"])

    in_parallel(program, lambda: [plan.rows[name] for name in left], work, options.jobs)
    for name in options.rows:
        recorded = dict(scores(plan.records / name)) if plan.record(name) else {}
        for frames, values in scores(AGAIN / name):
            for metric, value in values.items():
                known = recorded.get(frames, {}).get(metric)
                print(f"{name:<20} {frames:>5} frames  {metric:<14} {value:9.4f}   recorded "
                      + ("nothing" if known is None else f"{known:9.4f}"))


def parse():
    parser = argparse.ArgumentParser(prog="tools/results", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", nargs="*")
    parser.add_argument("--mnist", help="folder of the four IDX files; by default $MNIST or ../shared/assets/mnist")
    parser.add_argument("--drawn", action="store_true",
                        help="digits drawn by the program instead of MNIST; with --records elsewhere")
    parser.add_argument("--weights",
                        help="folder of the metrics' weights; by default $CONVSSM_WEIGHTS or ../shared/assets/lpips")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="rows side by side (default: the cores)")
    parser.add_argument("--threads", type=int, default=1, help="of each row (default 1)")
    parser.add_argument("--plan", type=Path, default=Path("results/plan.json"))
    parser.add_argument("--records", type=Path, default=Path("results"))
    parser.add_argument("--program", default="build/release/bin/convssm")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--speed", action="store_true")
    return parser.parse_args()


def first_folder(*candidates):
    return next((str(Path(path).resolve()) for path in candidates if path and Path(path).is_dir()), None)


def link_mnist(folder, drawn):
    """The records then name a path that says nothing of this machine."""
    link = MNIST.parent
    link.parent.mkdir(exist_ok=True)
    if link.is_symlink():
        link.unlink()
    if drawn:
        return
    if not folder:
        raise SystemExit("error: no MNIST found; name the folder of its IDX files with --mnist, or say --drawn for digits "
                         "drawn by the program, whose numbers are not those of docs/results.md")
    if not link.exists():
        link.symlink_to(folder)


def main():
    options = parse()
    os.chdir(ROOT)
    options.weights = first_folder(options.weights, os.environ.get("CONVSSM_WEIGHTS"), "../shared/assets/lpips")
    plan = Plan(options.plan, options.records)
    unknown = [name for name in options.rows if name not in plan.rows]
    if unknown:
        raise SystemExit(f"error: no row {', '.join(unknown)}; there are {', '.join(plan.rows)}")
    if options.list:
        for name, row in plan.rows.items():
            print(f"{name:<20} {row['part']:<10} {'recorded' if plan.record(name) else 'to do':<10} {row['label']}")
        return
    if not Path(options.program).exists():
        raise SystemExit(f"error: {options.program} is not there; `make build` makes it")
    link_mnist(first_folder(options.mnist, os.environ.get("MNIST"), "../shared/assets/mnist"), options.drawn)
    program = Program(options.program)
    signal.signal(signal.SIGINT, program.stop)
    signal.signal(signal.SIGTERM, program.stop)
    try:
        if options.speed:
            speed.measure(plan, program, RUNS)
        elif options.rows:
            make_again(plan, program, options)
        else:
            make_missing(plan, program, options)
    except Stopped:
        raise SystemExit("stopped")


if __name__ == "__main__":
    main()
