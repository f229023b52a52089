"""Makes a row: trains, scores, keeps what the page cites."""
import hashlib, json, os, shutil, threading
from pathlib import Path

from program import Diverged, commit, machine, say, write_whole

MNIST = Path("runs/mnist/train-images-idx3-ubyte.gz")
KEPT = ["config.yaml", "log.jsonl", "status.json"]
STRIPS = [f"samples/evaluate-strip-{i}.png" for i in range(2)]
FEATURES = "runs/features"  # of clips, for FVD: those of the truth serve all rows
TIMING = ["timing.json", "timing_rates.png", "timing_dropped.png"]


class Maker:
    def __init__(self, plan, program, runs, options):
        self.plan, self.program, self.runs = plan, program, runs
        self.prepared = threading.Lock()
        self.threads, self.weights, self.drawn = options.threads, options.weights, options.drawn

    def train_arguments(self, row):
        lr = row.get("lr") or self.plan.best_rate(row["of"])
        if not lr:
            raise SystemExit(f"error: the runs that choose the learning rate of {row['of']} have no records; "
                             "`make results` without a row makes them")
        data = [] if self.drawn or row.get("drawn") or not self.plan.mnist else [f"data.images={MNIST}"]
        return float(lr), ["train", str(self.plan.configs / f"{row['of']}.yaml"), "--run", str(self.runs / row["row"]),
                           f"train.lr={lr}", *row["set"], *data]

    def scorings(self, row):
        """The commands. A metric that is named is an error where its weights are missing, so LPIPS and FVD are left out then."""
        run, commands = self.runs / row["row"], []
        for name, arguments in row["evaluate"].items():
            if name in self.left_out(row):
                continue
            arguments = [words if self.weights else words.replace(",lpips_alex", "") for words in arguments]
            out = [] if name == "metrics" else ["--out", str(run / name)]
            fvd = ["--features", FEATURES] if any("fvd_i3d" in words for words in arguments) else []
            weights = ["--weights", "$CONVSSM_WEIGHTS"] if self.weights else []
            commands.append(["evaluate", str(run), *arguments, *out, *fvd, *weights])
        return commands + ([["evaluate", str(run), "--timing"]] if row.get("timing") else [])

    def left_out(self, row):
        return [name for name, arguments in row["evaluate"].items()
                if "evaluate.metrics=[fvd_i3d]" in arguments and not self.weights]

    def kept_scorings(self, row):
        return [name for name in row["evaluate"] if name not in self.left_out(row)]

    @staticmethod
    def scoring_file(name):
        """In a run."""
        return "metrics.json" if name == "metrics" else f"{name}/metrics.json"

    def prepare(self, row):
        """What all rows need, or those of some configs, such as a tokenizer and the codes of its clips."""
        file = self.runs / "prepared.json"  # what each of them was made by
        with self.prepared:
            for step in self.plan.prepare:
                if row["of"] not in step.get("of", [row["of"]]):
                    continue
                done, words = json.loads(file.read_text()) if file.exists() else {}, " ".join(step["command"])
                if not Path(step["makes"]).exists():
                    say(words)
                    self.program.call(step["command"], self.runs / "prepare.log", os.cpu_count())
                elif words not in done.get(step["makes"], [words]):
                    raise SystemExit(f"error: {step['makes']} was made by\n  {' and '.join(done[step['makes']])}\nand the plan now "
                                     f"says\n  {words}\nRemove it to make it anew")
                done[step["makes"]] = list(dict.fromkeys([*done.get(step["makes"], []), words]))
                file.parent.mkdir(parents=True, exist_ok=True)
                write_whole(file, json.dumps(done, indent=1) + "\n")

    def make(self, row):
        """Trains and scores a row from where it was left; its record."""
        name, run = row["row"], self.runs / row["row"]
        lr, train = self.train_arguments(row)
        begun = self.begin(row, train)
        steps = [train, *self.scorings(row)]
        record = {"row": name, "label": row["label"], "part": row["part"], "of": row["of"], "place": row["place"], "lr": lr,
                  "scored": list(row["evaluate"]), "left_out": self.left_out(row),
                  "commands": [f"convssm --threads {self.threads} {' '.join(words)}" for words in steps],
                  "config": self.config_hash(row), "commit": begun, "machine": machine(), "threads": self.threads}
        steps[0] = [*train, "--resume"]
        self.prepare(row)
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
        run, config, file = self.runs / row["row"], self.plan.configs / f"{row['of']}.yaml", self.begun_file(row["row"])
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

    def config_hash(self, row):
        return hashlib.sha256((self.plan.configs / f"{row['of']}.yaml").read_bytes()).hexdigest()[:16]

    def is_stale(self, row):
        """Whether the record was trained or scored with other values than the plan and the config have now."""
        record = self.plan.record(row["row"])
        if not record or not (row.get("lr") or self.plan.best_rate(row["of"])):
            return False
        if record.get("config", self.config_hash(row)) != self.config_hash(row):
            return True

        def plain(words):  # metrics whose weights are missing are left out of a scoring
            return words.replace(",lpips_alex", "").replace(" --weights $CONVSSM_WEIGHTS", "")

        train, *scorings = (command.split(" ", 3)[3] for command in record["commands"])
        now = [plain(" ".join(words)) for words in self.scorings(row)]
        return train != " ".join(self.train_arguments(row)[1]) or any(plain(words) not in now for words in scorings)

    def is_whole(self, row):
        """Whether a run has all that its record needs."""
        run = self.runs / row["row"]
        return all((run / self.scoring_file(name)).exists() for name in self.kept_scorings(row)) and (not row.get("timing") or (run / "timing.json").exists())

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
        scored = [] if record.get("diverged") else row["evaluate"]
        files = {name: name for name in KEPT + (TIMING if row.get("timing") else [])}
        for name in [name for name in scored if name not in record["left_out"]]:
            files[self.scoring_file(name)] = f"{name}.json"
        if "metrics" in scored and row["part"] != "sweep":
            files |= {name: name for name in STRIPS}
        for name, kept in files.items():
            if (run / name).exists() or not record.get("diverged"):
                (folder / kept).parent.mkdir(exist_ok=True)
                self.copy(run / name, folder / kept)
        write_whole(folder / "record.json", json.dumps(record, indent=1) + "\n")
        say(f"{row['row']}: recorded in {folder}")
