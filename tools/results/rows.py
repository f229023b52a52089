"""Makes a row: trains, scores, keeps what the page cites."""
import json, os, shutil
from pathlib import Path

from program import Diverged, commit, machine, say

CONFIGS = Path("configs/laptop")
MNIST = Path("runs/mnist/train-images-idx3-ubyte.gz")
KEPT = ["config.yaml", "log.jsonl", "status.json", "metrics.json"]
STRIPS = [f"samples/evaluate-strip-{i}.png" for i in range(2)]
TIMING = ["timing.json", "timing_rates.png", "timing_dropped.png"]


class Maker:
    def __init__(self, plan, program, runs, options):
        self.plan, self.program, self.runs = plan, program, runs
        self.threads, self.weights, self.drawn = options.threads, options.weights, options.drawn

    def train_arguments(self, row):
        lr = row.get("lr") or self.plan.best_rate(row["of"])
        if not lr:
            raise SystemExit(f"error: the runs that choose the learning rate of {row['of']} have no records; "
                             "`make results` without a row makes them")
        data = [] if self.drawn or row.get("drawn") else [f"data.images={MNIST}"]
        return float(lr), ["train", str(CONFIGS / f"{row['of']}.yaml"), "--run", str(self.runs / row["row"]),
                           f"train.lr={lr}", *row["set"], *data]

    def make(self, row):
        """Trains and scores a row from where it was left; its record."""
        name, run = row["row"], self.runs / row["row"]
        lr, train = self.train_arguments(row)
        self.check_unchanged(row, train)
        steps = [train, ["evaluate", str(run), *(["--weights", "$CONVSSM_WEIGHTS"] if self.weights else [])]]
        if row.get("timing"):
            steps.append(["evaluate", str(run), "--timing"])
        record = {"row": name, "label": row["label"], "part": row["part"], "of": row["of"], "place": row["place"], "lr": lr,
                  "commands": [f"convssm --threads {self.threads} {' '.join(words)}" for words in steps],
                  "commit": commit(), "machine": machine(), "threads": self.threads}
        steps[0] = [*train, "--resume"]
        try:
            for words in steps:
                say(f"{name}: {' '.join(words)}")
                self.program.call([self.weights if word == "$CONVSSM_WEIGHTS" else word for word in words],
                                  self.runs / f"{name}.log", self.threads)
        except Diverged:
            if row["part"] != "sweep":
                raise SystemExit(f"error: {name} diverged; see {self.runs / name}.log")
            return {**record, "diverged": True}
        return record

    def check_unchanged(self, row, train):
        """A run that was begun with other values must not go on under the name of these."""
        run, config = self.runs / row["row"], CONFIGS / f"{row['of']}.yaml"
        begun, text = self.runs / f"{row['row']}.begun", " ".join(train) + "\n" + config.read_text()
        if run.exists() and begun.exists() and begun.read_text() != text:
            raise SystemExit(f"error: {run} was begun with other values, see {begun}; now they are\n  {' '.join(train)}\n"
                             f"and those of {config}. Remove the folder to begin it anew")
        begun.parent.mkdir(parents=True, exist_ok=True)
        begun.write_text(text)

    def is_whole(self, row):
        """Whether a run has all that its record needs."""
        last = self.runs / row["row"] / ("timing.json" if row.get("timing") else "metrics.json")
        return last.exists()

    def copy(self, file, to):
        """Without places of this machine: a score that is missing names the folder where its weights are not."""
        content = file.read_bytes()
        if file.suffix == ".json":
            for place, name in ((self.weights, "$CONVSSM_WEIGHTS"), (str(Path.home()), "~")):
                content = content.replace(place.encode(), name.encode()) if place and place != "/" else content
        to.write_bytes(content)

    def keep(self, row, record):
        """What the page cites. record.json comes last: with it the record is whole."""
        run, folder = self.runs / row["row"], self.plan.records / row["row"]
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        for name in KEPT + ([] if row["part"] == "sweep" else STRIPS) + (TIMING if row.get("timing") else []):
            if (run / name).exists() or not record.get("diverged"):
                (folder / name).parent.mkdir(exist_ok=True)
                self.copy(run / name, folder / name)
        (folder / "record.json.new").write_text(json.dumps(record, indent=1) + "\n")
        os.replace(folder / "record.json.new", folder / "record.json")
        say(f"{row['row']}: recorded in {folder}")
