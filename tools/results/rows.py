"""Makes a row: trains, scores, keeps what the page cites."""
import json, shutil
from pathlib import Path

from program import Diverged, commit, machine, say, write_whole

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

    def evaluate_arguments(self, row):
        """Its own; a metric that is named is an error where its weights are missing, so LPIPS is left out then."""
        return [words if self.weights else words.replace(",lpips_alex", "") for words in row.get("evaluate", [])]

    def make(self, row):
        """Trains and scores a row from where it was left; its record."""
        name, run = row["row"], self.runs / row["row"]
        lr, train = self.train_arguments(row)
        begun = self.begin(row, train)
        steps = [train, ["evaluate", str(run), *self.evaluate_arguments(row),
                          *(["--weights", "$CONVSSM_WEIGHTS"] if self.weights else [])]]
        if row.get("timing"):
            steps.append(["evaluate", str(run), "--timing"])
        record = {"row": name, "label": row["label"], "part": row["part"], "of": row["of"], "place": row["place"], "lr": lr,
                  "commands": [f"convssm --threads {self.threads} {' '.join(words)}" for words in steps],
                  "commit": begun, "machine": machine(), "threads": self.threads}
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

    def begin(self, row, train):
        """The commit that a run was begun at. One begun with other values must not go on under the name of these."""
        run, config, file = self.runs / row["row"], CONFIGS / f"{row['of']}.yaml", self.begun_file(row["row"])
        now = {"train": " ".join(train), "config": config.read_text()}
        begun = json.loads(file.read_text()) if file.exists() else {}
        if run.exists() and {key: begun.get(key) for key in now} != now:
            raise SystemExit(f"error: {run} was begun with other values, see {file}; now they are\n  {' '.join(train)}\n"
                             f"and those of {config}. Remove the folder to begin it anew")
        if not run.exists():
            begun = {**now, "commit": commit()}
            file.parent.mkdir(parents=True, exist_ok=True)
            write_whole(file, json.dumps(begun, indent=1) + "\n")
        return begun["commit"]

    def begun_file(self, name):
        return self.runs / f"{name}.begun"

    def remove(self, name):
        shutil.rmtree(self.runs / name)
        self.begun_file(name).unlink(missing_ok=True)

    def is_stale(self, row):
        """Whether the record was trained with other values than the plan has now."""
        record = self.plan.record(row["row"])
        if not record or not (row.get("lr") or self.plan.best_rate(row["of"])):
            return False
        made = record["commands"][0].split(" train ", 1)[1]
        return made != " ".join(self.train_arguments(row)[1][1:])

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
        write_whole(folder / "record.json", json.dumps(record, indent=1) + "\n")
        say(f"{row['row']}: recorded in {folder}")
