"""A campaign of faults against the program, for as long as it is given: kills at random system calls, calls that fail with a
full disk or an I/O error, damaged files of every kind through the command line. What must hold: exit codes that are
documented, in bounded time and memory; results that are whole or not there; the same bits when it is run again.
A trial is a function of the seed and its number: --seed S --trial N gives it again. What failed is kept below --out, with
the commands to repeat it.
  tools/torture --seconds 3600"""
import argparse, collections, concurrent.futures, os, pathlib, random, shlex, shutil, subprocess, sys, time

import files
from trials import Failure, Trial, environment, made, names_below

ROOT = pathlib.Path(__file__).resolve().parents[2]


def parse():
    parser = argparse.ArgumentParser(prog="tools/torture", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=600, help="how long trials are begun")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**9))
    parser.add_argument("--trial", type=int, help="only this one, whose folder is kept, in --out/again")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--program", default=ROOT / "build/release/bin/convssm", type=pathlib.Path)
    parser.add_argument("--out", default=ROOT / "out/torture", type=pathlib.Path)
    return parser.parse_args()


class Campaign:
    def __init__(self, options):
        self.o = options
        self.program = str(options.program.resolve())
        self.out = options.out.resolve() / ("again" if options.trial is not None else "")
        self.template, self.faults = self.out / "template", str(self.out / "faults")
        self.references = {}
        self.counts, self.failed = collections.Counter(), []

    def prepare(self):
        if self.out.exists() and any(self.out.iterdir()) and not pathlib.Path(self.faults).exists():
            raise SystemExit(f"error: {self.out} holds files that are not of this program; give another --out")
        shutil.rmtree(self.out, ignore_errors=True)
        self.out.mkdir(parents=True)
        subprocess.run(["c++", "-std=c++20", "-O1", f"-I{ROOT}", "-o", self.faults,
                        str(ROOT / "tools/torture/faults.cpp")], check=True)
        files.make(self.template, lambda command: self.must(command, self.template), ROOT / "fuzz/seeds")
        for name, command, result in files.WRITERS:
            folder = self.out / "reference"
            shutil.copytree(self.template, folder)
            line = [self.faults, "output.txt", "0", "0", "0", "300", self.program, *shlex.split(command)]
            done = subprocess.run(line, cwd=folder, env=environment(), check=True, stdout=subprocess.PIPE, text=True)
            code, calls = map(int, done.stdout.split())
            if code != 0:
                raise SystemExit(f"error: {command} ended with {code}: {(folder / 'output.txt').read_text()}")
            self.references[name] = made(folder, result), names_below(folder), calls
            shutil.rmtree(folder)

    def must(self, command, folder):
        subprocess.run([self.program, *shlex.split(command)], cwd=folder, env=environment(), check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)

    def trial(self, number):
        """What it was, and why it failed or None. In a thread of its own."""
        trial = Trial(number, self.o.seed, self.program, self.faults, self.template, self.references,
                      self.out / f"trial-{number}", keep=self.o.trial is not None)
        try:
            trial.run()
            return f"{trial.kind}: {trial.result}", None
        except Exception as failure:  # Failure, or one of the campaign's own
            text = str(failure) if isinstance(failure, Failure) else repr(failure)
            trial.folder.mkdir(exist_ok=True)
            (trial.folder / "failure.txt").write_text(f"{text}\n")
            return f"{trial.kind}: FAILED", f"{text}; {trial.folder}/commands.txt"

    def count(self, number, result):
        what, failure = result
        self.counts[what] += 1
        if failure:
            self.failed.append(number)
            print(f"trial {number}, {what}: {failure}", flush=True)

    def run(self):
        if self.o.trial is not None:
            return self.count(self.o.trial, self.trial(self.o.trial))
        end, number = time.monotonic() + self.o.seconds, 0
        with concurrent.futures.ThreadPoolExecutor(self.o.jobs) as pool:
            while time.monotonic() < end:
                numbers = range(number, number + 4 * self.o.jobs)
                for one, result in zip(numbers, pool.map(self.trial, numbers)):
                    self.count(one, result)
                number += 4 * self.o.jobs

    def report(self):
        trials = sum(self.counts.values())
        for what, count in sorted(self.counts.items()):
            print(f"{count:7} {what}")
        kinds = collections.Counter()
        for what, count in self.counts.items():
            kinds[what.split(":")[0]] += count
        print(f"seed {self.o.seed}: {trials} trials ({', '.join(f'{n} {kind}' for kind, n in sorted(kinds.items()))}), "
              f"{len(self.failed)} failed{': ' + ', '.join(map(str, self.failed)) if self.failed else ''}")


def main():
    campaign = Campaign(parse())
    print(f"seed {campaign.o.seed}", flush=True)
    campaign.prepare()
    campaign.run()
    campaign.report()
    return 1 if campaign.failed else 0


if __name__ == "__main__":
    sys.exit(main())
