"""The results of docs/results.md: trains, scores and records every row of results/plan.json.

    python3 tools/results                   all rows without a record; stopped by Ctrl-C or a crash, it goes on where it was
    python3 tools/results convs5 s5         these rows anew, in runs/again, and beside them what the records say
    python3 tools/results --speed           only the generation speeds, with nothing else running
    python3 tools/results --list            the rows, and which have a record

A run lives in runs/results/ROW; what the page cites is copied to results/ROW: config, log, scores, strips and record.json.
Rows train side by side, one thread each.
"""
import argparse, os, signal
from pathlib import Path

import speed
from parallel import in_parallel
from plan import Plan, first_psnr, scores
from program import Program, Stopped, say
from rows import MNIST, Maker

ROOT = Path(__file__).resolve().parent.parent.parent
RUNS, AGAIN = Path("runs/results"), Path("runs/again")


def make_missing(plan, program, options):
    maker = Maker(plan, program, RUNS, options)
    stale = [name for name in plan.rows if maker.is_stale(plan.rows[name])]
    if stale:
        raise SystemExit(f"error: the records {', '.join(stale)} in {plan.records} were made with other values than the plan "
                         "has now; remove those folders to make them anew, or mend the plan")

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
    maker, left = Maker(plan, program, AGAIN, options), list(options.rows)
    for name in options.rows:
        maker.train_arguments(plan.rows[name])  # an error comes before anything is removed
    for name in options.rows:
        if maker.is_whole(plan.rows[name]):
            maker.remove(name)

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


def positive(text):
    if not text.isdigit() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"expected a whole number of at least 1, got '{text}'")
    return int(text)


def parse():
    parser = argparse.ArgumentParser(prog="tools/results", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", nargs="*")
    parser.add_argument("--mnist", help="folder of the four IDX files, by default $MNIST or ../shared/assets/mnist")
    parser.add_argument("--drawn", action="store_true",
                        help="digits drawn by the program instead of MNIST; with --records elsewhere")
    parser.add_argument("--weights",
                        help="folder of the metrics' weights, by default $CONVSSM_WEIGHTS, ../shared/assets/lpips or the "
                             "user's (convssm weights)")
    parser.add_argument("--jobs", type=positive, default=os.cpu_count(), help="rows side by side (default: the cores)")
    parser.add_argument("--threads", type=positive, default=1, help="of each row (default 1)")
    parser.add_argument("--plan", type=Path, help="by default results/plan.json")
    parser.add_argument("--records", type=Path, help="folder of the records, by default results")
    parser.add_argument("--program", type=Path, help="by default build/release/bin/convssm")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--speed", action="store_true")
    return parser.parse_args()


def folder_of(option, given, *defaults):
    """The folder that was named, which must be there, or the first default that is."""
    if given and not Path(given).is_dir():
        raise SystemExit(f"error: {option} {given} is not a folder")
    return next((str(Path(path).resolve()) for path in (given, *defaults) if path and Path(path).is_dir()), None)


def user_weights():
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local/share") / "convssm/weights"


def link_mnist(folder):
    """The records then name a path that says nothing of this machine."""
    if not folder or not (Path(folder) / MNIST.name).is_file():
        raise SystemExit(f"error: no {MNIST.name} in {folder or 'the usual places'}; name the folder of MNIST's four files "
                         "with --mnist, or say --drawn for digits drawn by the program, whose numbers are not those of "
                         "docs/results.md")
    link = MNIST.parent
    if link.exists() and link.resolve() == Path(folder).resolve():
        return
    if link.is_dir() and not link.is_symlink():
        raise SystemExit(f"error: {link} is a folder, and a link to {folder} is to stand there; move it away, or use its files "
                         f"with --mnist {link}")
    link.parent.mkdir(exist_ok=True)
    link.unlink(missing_ok=True)
    link.symlink_to(folder)


def needs_mnist(plan, options):
    rows = [plan.rows[name] for name in options.rows] if options.rows else plan.makeable()
    return not options.drawn and not options.speed and any(not row.get("drawn") for row in rows)


def main():
    options = parse()
    assets = ROOT.parent / "shared/assets"
    options.weights = folder_of("--weights", options.weights, os.environ.get("CONVSSM_WEIGHTS"), assets / "lpips",
                                user_weights())
    mnist = folder_of("--mnist", options.mnist, os.environ.get("MNIST"), assets / "mnist")
    options.program = str((options.program or ROOT / "build/release/bin/convssm").resolve())
    if options.drawn and not options.records:
        raise SystemExit("error: --drawn needs --records with another folder: results/ holds those of MNIST")
    options.plan = (options.plan or ROOT / "results/plan.json").resolve()
    options.records = options.records.resolve() if options.records else Path("results")
    os.chdir(ROOT)
    plan = Plan(options.plan, options.records)
    unknown = [name for name in options.rows if name not in plan.rows]
    if unknown:
        raise SystemExit(f"error: no row {', '.join(unknown)}; there are {', '.join(plan.rows)}")
    if options.list:
        lister = Maker(plan, None, RUNS, options)
        for name, row in plan.rows.items():
            state = "to do" if not plan.record(name) else "stale" if lister.is_stale(row) else "recorded"
            print(f"{name:<20} {row['part']:<10} {state:<10} {row['label']}")
        return
    if not Path(options.program).exists():
        raise SystemExit(f"error: {options.program} is not there; `make build` makes it")
    if needs_mnist(plan, options):
        link_mnist(mnist)
    if not options.weights:
        say("no weights of metrics (see convssm weights): LPIPS is left out")
    program = Program(options.program)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, program.stop)
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
