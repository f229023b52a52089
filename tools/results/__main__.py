"""The results of docs/results.md: trains, scores and records every row of results/plan.json and of results/*/plan.json.

    python3 tools/results                   all rows without a record; stopped by Ctrl-C or a crash, it goes on where it was
    python3 tools/results convs5 maze/s5    these rows anew, in runs/again, and beside them what the records say
    python3 tools/results --speed           only the generation speeds, with nothing else running
    python3 tools/results --list            the rows, and which have a record
    python3 tools/results --plan results/maze/plan.json        one plan alone; its rows then go by their names in it

A run lives in runs/results/ROW; what the page cites is copied to results/ROW: config, log, scores, strips and record.json.
Rows train side by side, one thread each.
"""
import argparse, os, signal
from pathlib import Path

import speed
from parallel import in_parallel
from plan import Plan, scores
from program import Program, Stopped, say
from rows import MNIST, Maker

ROOT = Path(__file__).resolve().parent.parent.parent
AGAIN = Path("runs/again")


def make_missing(plan, program, options):
    maker = Maker(plan, program, plan.runs, options)
    stale = [name for name, row in plan.rows.items() if plan.is_made(row) and maker.is_stale(row)]
    if stale:
        raise SystemExit(f"error: the records {', '.join(stale)} in {plan.records} were made with other values than the plan "
                         "has now; remove those folders to make them anew, or mend the plan")

    def work(row):
        record = maker.make(row)
        if row["part"] == "sweep" and not record.get("diverged"):
            record["validation"] = {"psnr_f01": plan.judge(plan.runs / row["row"])}
        maker.keep(row, record)

    in_parallel(program, plan.makeable, work, options.jobs)
    if speed.missing(plan):
        speed.measure(plan, program)


def make_again(plan, names, program, options):
    """These rows from scratch (or from where a stop left them), and what they give beside what is recorded."""
    runs = AGAIN / plan.name
    maker, left = Maker(plan, program, runs, options), list(names)
    for name in names:
        maker.train_arguments(plan.rows[name])  # an error comes before anything is removed
    for name in names:
        if maker.is_whole(plan.rows[name]):
            maker.remove(name)

    def work(row):
        maker.make(row)
        left.remove(row["row"])

    in_parallel(program, lambda: [plan.rows[name] for name in left], work, options.jobs)
    for name in names:
        for scoring in maker.kept_scorings(plan.rows[name]):
            show_beside(name, scoring, runs / name / maker.scoring_file(scoring), plan.records / name / f"{scoring}.json")


def show_beside(name, scoring, made, recorded):
    known = dict(scores(recorded)) if recorded.exists() else {}
    title = name if scoring == "metrics" else f"{name} {scoring}"
    for what, values in scores(made):
        for metric, value in values.items():
            before = known.get(what, {}).get(metric)
            print(f"{title:<20} {what:>12}  {metric:<14} {value:9.4f}   recorded "
                  + ("nothing" if before is None else f"{before:9.4f}"))


def positive(text):
    if not text.isdigit() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"expected a whole number of at least 1, got '{text}'")
    return int(text)


def parse():
    parser = argparse.ArgumentParser(prog="tools/results", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", nargs="*")
    parser.add_argument("--mnist", help="folder of the four IDX files, by default $MNIST or ../shared/assets/mnist")
    parser.add_argument("--recordings", help="folder of the recordings that a benchmark asks for, by default ../shared/assets/NAME")
    parser.add_argument("--drawn", action="store_true",
                        help="digits drawn by the program instead of MNIST; with --records elsewhere")
    parser.add_argument("--weights",
                        help="folder of the metrics' weights, by default $CONVSSM_WEIGHTS, the user's (convssm weights) or "
                             "../shared/assets/lpips, which has none of FVD")
    parser.add_argument("--jobs", type=positive, default=os.cpu_count(), help="rows side by side (default: the cores)")
    parser.add_argument("--threads", type=positive, default=1, help="of each row (default 1)")
    parser.add_argument("--plan", type=Path, help="by default results/plan.json and those of the folders beside it")
    parser.add_argument("--records", type=Path, help="folder of the records, by default that of the plan")
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
    if not folder or not (Path(folder) / MNIST.name).is_file():
        raise SystemExit(f"error: no {MNIST.name} in {folder or 'the usual places'}; name the folder of MNIST's four files "
                         "with --mnist, or say --drawn for digits drawn by the program, whose numbers are not those of "
                         "docs/results.md")
    link_folder(MNIST.parent, folder, "--mnist")


def link_recordings(plan, named, assets):
    """Of a benchmark that has some."""
    if not plan.recordings:
        return
    folder = folder_of("--recordings", named, assets / plan.records.name)
    if not folder:
        raise SystemExit(f"error: the rows of {plan.records} need recordings with train/ and test/; name their folder with "
                         "--recordings")
    link_folder(plan.recordings, folder, "--recordings")


def link_folder(link, folder, option):
    """The records then name a path that says nothing of this machine."""
    if link.exists() and link.resolve() == Path(folder).resolve():
        return
    if link.is_dir() and not link.is_symlink():
        raise SystemExit(f"error: {link} is a folder, and a link to {folder} is to stand there; move it away, or use its files "
                         f"with {option} {link}")
    link.parent.mkdir(parents=True, exist_ok=True)
    link.unlink(missing_ok=True)
    link.symlink_to(folder)


def needs_mnist(plan, names, options):
    rows = [plan.rows[name] for name in names] if names else [] if options.rows else plan.makeable()
    return plan.mnist and not options.drawn and not options.speed and any(not row.get("drawn") for row in rows)


def read_plans(options):
    """Each with the rows of it that are asked for: `maze/convs5` is the row convs5 of results/maze/plan.json."""
    files = [options.plan] if options.plan else [Path("results/plan.json"), *sorted(Path("results").glob("*/plan.json"))]
    if options.records and not options.plan:
        files = files[:1]
    plans = {}
    for file in files:
        plan = Plan(file, options.records or (file.parent.relative_to(ROOT) if file.parent.is_relative_to(ROOT) else file.parent))
        plan.name = "" if len(files) == 1 or file == files[0] else file.parent.name
        prefix = f"{plan.name}/" if plan.name else ""
        plans[prefix] = plan
    known = {prefix + name: (prefix, name) for prefix, plan in plans.items() for name in plan.rows}
    unknown = [name for name in options.rows if name not in known]
    if unknown:
        raise SystemExit(f"error: no row {', '.join(unknown)}; there are {', '.join(known)}")
    return [(plan, [known[name][1] for name in options.rows if known[name][0] == prefix]) for prefix, plan in plans.items()]


def show_list(plans, options):
    for plan, _ in plans:
        lister = Maker(plan, None, plan.runs, options)
        for name, row in plan.rows.items():
            state = "to do" if not plan.is_made(row) else "stale" if lister.is_stale(row) else "recorded"
            title = f"{plan.name}/{name}" if plan.name else name
            print(f"{title:<20} {row['part']:<10} {state:<10} {row['label']}")


def main():
    options = parse()
    assets = ROOT.parent / "shared/assets"
    options.weights = folder_of("--weights", options.weights, os.environ.get("CONVSSM_WEIGHTS"), user_weights(),
                                assets / "lpips")
    mnist = folder_of("--mnist", options.mnist, os.environ.get("MNIST"), assets / "mnist")
    options.program = str((options.program or ROOT / "build/release/bin/convssm").resolve())
    if options.drawn and not options.records:
        raise SystemExit("error: --drawn needs --records with another folder: results/ holds those of MNIST")
    options.plan = options.plan.resolve() if options.plan else None
    options.records = options.records.resolve() if options.records else None
    os.chdir(ROOT)
    plans = read_plans(options)
    if options.list:
        return show_list(plans, options)
    if not Path(options.program).exists():
        raise SystemExit(f"error: {options.program} is not there; `make build` makes it")
    if any(needs_mnist(plan, names, options) for plan, names in plans):
        link_mnist(mnist)
    if not options.weights:
        say("no weights of metrics (see convssm weights): LPIPS and FVD are left out")
    program = Program(options.program)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, program.stop)
    try:
        for plan, names in plans:
            if names or not options.rows and any(plan.makeable()):
                link_recordings(plan, options.recordings, assets)
            if options.speed:
                if plan.speed is not None:
                    speed.measure(plan, program)
            elif names:
                make_again(plan, names, program, options)
            elif not options.rows:
                make_missing(plan, program, options)
    except Stopped:
        raise SystemExit("stopped")


if __name__ == "__main__":
    main()
