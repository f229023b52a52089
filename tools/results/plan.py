"""What a plan asks for, what the records already hold, and what can be made next. results/plan.json is that of the moving digits;
results/NAME/plan.json, that of another benchmark, has its records beside it:

    configs, runs   folders of the configs of its models and of its runs
    recordings      link to the recordings of the benchmark, which are no part of the project
    prepare         commands that come before all rows (`of`: those of these configs), each with the file that it makes
    sweep           learning rates and settings of the short runs that choose one. With `judged_frames` they are scored, and judged by
                    the PSNR of so many first frames; without, by the PSNR of the last validation of the training
    evaluate        arguments of every scoring
    parts           of the rows of a part: the config (`of`) and settings (`set`) they start from, and how they are scored (`evaluate`:
                    {name: arguments}; `metrics` in the run itself, others in folders of their names). `seed` is as `table`
    speed           clip of which generation is measured: see speed.py; null: it is not
    rows            each with its part, label, settings; `evaluate`: arguments of its own in every scoring; `lr`: no sweep
"""
import json, statistics
from pathlib import Path


def scores(file):
    """(frames and setting, {metric: mean}) of the model for each horizon of a scoring, of each setting if it has some."""
    metrics = json.load(open(file))
    for setting in metrics.get("settings", [metrics]):
        for horizon in setting["horizons"]:
            model, what = horizon["rows"][0], f"{horizon['frames']} frames" + (f", {setting['name']}" if "name" in setting else "")
            yield what, {name: model[name]["mean"] for name in metrics["protocol"]["metrics"] if model.get(name)}


def first_psnr(folder, frames):
    """The PSNR of the model over the first frames it generates."""
    metrics = json.load(open(folder / "metrics.json"))
    model = metrics["horizons"][0]["rows"][0]["name"]
    return statistics.mean(metrics["curves"]["psnr_f01"][model][:frames])


def last_validation(folder):
    """The PSNR of the last validation of a training."""
    lines = [json.loads(line) for line in open(folder / "log.jsonl")]
    return next(line["validation"]["psnr_f01"] for line in reversed(lines) if "validation" in line)


class Plan:
    def __init__(self, path, records):
        plan = json.load(open(path))
        self.sweep, self.records = plan["sweep"], records
        self.configs, self.runs = Path(plan.get("configs", "configs/laptop")), Path(plan.get("runs", "runs/results"))
        self.recordings = Path(plan["recordings"]) if "recordings" in plan else None
        self.speed = plan.get("speed", {})
        self.prepare, self.mnist = plan.get("prepare", []), "configs" not in plan
        self.rows = {}
        for place, row in enumerate(plan["rows"]):
            part = plan.get("parts", {}).get("table" if row["part"] == "seed" else row["part"], {})
            scorings = {name: [*plan.get("evaluate", []), *arguments, *row.get("evaluate", [])]
                        for name, arguments in part.get("evaluate", {"metrics": []}).items()}
            self.rows[row["row"]] = {"of": part.get("of", row["row"]), **row, "set": part.get("set", []) + row.get("set", []),
                                     "evaluate": scorings, "place": place}

    def record(self, name):
        """What is known about a finished row, or nothing."""
        path = self.records / name / "record.json"
        return json.load(open(path)) if path.exists() else None

    def is_made(self, row):
        """Whether a record has all scorings that the plan asks for."""
        record = self.record(row["row"])
        return record is not None and set(row["evaluate"]) <= set(record.get("scored", ["metrics"]))

    def models(self):
        return [name for name, row in self.rows.items() if row["part"] == "table"]

    def sweep_row(self, of, lr):
        """A short run that helps to choose the learning rate of a model. It trains and is judged on other clips."""
        place = 1000 + 10 * self.rows[of]["place"] + (self.sweep["lr"] + self.sweep["beyond"]).index(lr)
        return {"row": f"sweep_{of}_{lr}", "label": f"{self.rows[of]['label']}, lr {lr}", "part": "sweep", "of": of,
                "lr": lr, "place": place, "set": self.sweep["set"] + self.rows[of].get("sweep", []),
                "evaluate": {"metrics": []} if "judged_frames" in self.sweep else {}}

    def judge(self, folder):
        frames = self.sweep.get("judged_frames")
        return first_psnr(folder, frames) if frames else last_validation(folder)

    def rates(self, of):
        """The learning rates to try, each with the PSNR of its first forecasts: None as long as it has no record.

        Those of the paper, then the ones beyond them for as long as the highest is the best.
        """
        tried = {lr: self.validation(of, lr) for lr in self.sweep["lr"]}
        for lr in self.sweep["beyond"]:
            if None in tried.values() or max(tried, key=tried.get) != list(tried)[-1]:
                break
            tried[lr] = self.validation(of, lr)
        return tried

    def validation(self, of, lr):
        record = self.record(self.sweep_row(of, lr)["row"])
        if record is None:
            return None
        return record.get("validation", {}).get("psnr_f01", float("-inf"))  # nothing of one that diverged

    def best_rate(self, of):
        """The rate that the records choose, None as long as some are missing."""
        tried = self.rates(of)
        if None in tried.values():
            return None
        if max(tried.values()) == float("-inf"):
            raise SystemExit(f"error: {of} diverged with every learning rate of the plan")
        return max(tried, key=tried.get)

    def makeable(self):
        """The rows without a record that can be made now, in the order they are wanted."""
        for name, row in self.rows.items():
            if not row.get("lr"):
                for lr, value in self.rates(row["of"]).items():
                    if value is None:
                        yield self.sweep_row(row["of"], lr)
            if not self.is_made(row) and (row.get("lr") or self.best_rate(row["of"])):
                yield row
