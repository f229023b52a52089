"""docs/results.md and the table of README.md, from the file of `convssm results --json`: everything from the records, so that
a page cannot claim what was not run. The best of a column is bold by its printed digits, so that two equal numbers are never
told apart."""
import json, math, os
from collections import namedtuple
from pathlib import Path

from marks import head, plain, row, short, whole
from timing import timing_tables

KINDS = [["psnr_f01", "psnr_u8"], ["ssim_gauss11", "ssim_uniform7"], ["lpips_alex", "lpips_squeeze", "lpips_vgg"], ["fvd_i3d"]]
STYLES = {"psnr": ("PSNR", 1, 2), "ssim": ("SSIM", 1, 3), "lpips": ("LPIPS", -1, 3), "fvd": ("FVD", -1, 1)}
STRIP_ROWS = {"results": ["convs5", "convlstm", "transformer"], "maze": ["convs5", "transformer", "teco_convs5"],
              "vizdoom": ["convs5", "transformer", "teco_convs5", "teco_transformer"]}

# A row of a table: a model with its seeds, or a forecast without a model, which stands in the scores of the first row.
Line = namedtuple("Line", "label records forecast")
# A column: `value` of a record and the name of its forecast; `better` is +1 for more, -1 for less, 0 where nothing competes.
Column = namedtuple("Column", "title better value text is_score")


def with_fvd(record):
    """FVD is a scoring of its own, on fewer clips: its numbers beside the others of the record."""
    file = Path(record["folder"]) / "fvd.json"
    if file.is_file() and record["metrics"].get("horizons"):
        fvd = json.loads(file.read_text())
        found = scores(fvd)
        for horizon in record["metrics"]["horizons"]:
            for line in horizon["rows"]:
                value = found.get(horizon["frames"], {}).get(line["name"], {}).get("fvd_i3d")
                line.update({} if value is None else {"fvd_i3d": {"mean": value}})
        protocol = record["metrics"]["protocol"]
        protocol["fvd_samples"] = fvd["protocol"]["samples"]
        protocol["metrics"] = {**protocol.get("metrics", {}), **fvd["protocol"].get("metrics", {})}
    return record


def evaluated(record):
    return bool(record["metrics"].get("horizons") or record["metrics"].get("settings"))


def model_lines(records, part):
    lines = []
    for record in records:
        if record["part"] == part and evaluated(record):
            seeds = [other for other in records
                     if other["part"] == "seed" and other["of"] == record["row"] and evaluated(other)]
            lines.append(Line(record["label"], [record, *seeds], None))
    return lines


def seed_label(record):
    return record["label"] + (f", {record['row']}" if record["seed"] is None else f", seed {record['seed']:.0f}")


def scores(metrics):
    """{frames: {forecast: {metric: mean}}}"""
    return {horizon["frames"]: {line["name"]: {metric: value["mean"] for metric, value in line.items() if metric != "name"}
                                for line in horizon["rows"]} for horizon in metrics["horizons"]}


def trivial_lines(lines):
    """The forecasts without a model beside the first of these."""
    first = lines[0].records[0]
    names = dict.fromkeys(name for forecasts in scores(first["metrics"]).values() for name in forecasts)
    return [Line(name, [first], name) for name in names if name != first["metrics"]["protocol"]["model"]]


def metrics_of(lines):
    """One of each kind: the one that most records have, else the one of the paper."""
    found = [{metric for forecasts in scores(record["metrics"]).values() for values in forecasts.values() for metric in values}
             for line in lines for record in line.records]
    counts = [{metric: sum(metric in names for names in found) for metric in kind} for kind in KINDS]
    return [max(count, key=count.get) for count in counts if any(count.values())]


def horizons_of(lines):
    return sorted({frames for line in lines for frames in scores(line.records[0]["metrics"])})


def score_columns(lines, horizons=None, better=True):
    """Of one horizon, or of several, which then stand in the titles."""
    columns = []
    for frames in horizons or horizons_of(lines):
        for metric in metrics_of(lines):
            title, sign, digits = STYLES[metric.split("_")[0]]
            value = lambda record, forecast, frames=frames, metric=metric: scores(record["metrics"]).get(frames, {}).get(
                forecast or record["metrics"]["protocol"]["model"], {}).get(metric)
            title += (" ↑" if sign > 0 else " ↓") + ("" if horizons else f" {frames}")
            columns.append(Column(title, sign if better else 0, value, f"{{:.{digits}f}}".format, True))
    return [column for column in columns if any(values_of(line, column) for line in lines)]


def two_digits(value):
    return f"{value:.{1 if value < 9.95 else 0}f}"


COSTS = {"parameters": ("parameters", lambda value: f"{value / 1e6:.{2 if value < 1e7 else 1}f} M"),
         "lr": ("lr", short),
         "training, min": ("training_minutes", two_digits),
         "generation, frames/s": ("frames_per_second", lambda value: two_digits(value) if value < 9.95 else whole(value))}


def cost_columns(lines, titles=COSTS):
    """None is the best: times of one run on a shared machine."""
    columns = [Column(title, 0, lambda record, forecast, key=COSTS[title][0]: None if forecast else record[key],
                      COSTS[title][1], False) for title in titles]
    return [column for column in columns if any(values_of(line, column) for line in lines)]


def values_of(line, column):
    values = [column.value(record, line.forecast) for record in line.records]
    return [value for value in values if value is not None and math.isfinite(value)]


def mean(values):
    return sum(values) / len(values)


def best_of(lines, column):
    means = [mean(values) for values in (values_of(line, column) for line in lines) if values]
    texts = {column.text(value) for value in means}
    return column.text(max(means, key=lambda value: column.better * value)) if column.better and len(texts) > 1 else None


def cell(line, column, best, spread):
    values = values_of(line, column)
    if not values:
        return "" if line.forecast and not column.is_score else "–"
    text = column.text(mean(values))
    text = f"**{text}**" if text == best else text
    return text + (f" ± {column.text((max(values) - min(values)) / 2)}" if spread and len(values) > 1 else "")


def table(lines, columns, spread=False, rivals=None):
    """`rivals`: the lines of which one is the best, by default all."""
    best = [best_of(rivals or lines, column) for column in columns]
    return head(["model", *(column.title for column in columns)]) + "".join(
        row([plain(line.label), *(cell(line, column, winner, spread) for column, winner in zip(columns, best))]) for line in lines)


def table_block(records):
    lines = model_lines(records, "table")
    if not lines:
        return ""
    out = table(lines, cost_columns(lines))
    for frames in horizons_of(lines):
        out += f"\n**The first {frames} generated frames**\n\n"
        out += table(lines + trivial_lines(lines), score_columns(lines, [frames]), spread=True)
    names = ", ".join(f"{line.label} {len(line.records)}" for line in lines if len(line.records) > 1)
    return out + (f"\n± is half the range between seeds ({names}), their mean stands before it; other rows are one run.\n"
                  if names else "")


def short_block(records):
    """The scores alone, in one table."""
    lines = model_lines(records, "table")
    return table(lines + trivial_lines(lines), score_columns(lines)) if lines else ""


def seeds_block(records):
    lines = [Line(seed_label(record), [record], None) for line in model_lines(records, "table") if len(line.records) > 1
             for record in line.records]
    return table(lines, score_columns(lines, better=False)) if lines else ""


def short_runs_block(records, part):
    lines = model_lines(records, part)
    return table(lines, cost_columns(lines, ["parameters", "training, min"]) + score_columns(lines)) if lines else ""


def rates_block(records):
    """Rows of the table beside runs with other rates."""
    lines = []
    for line in model_lines(records, "table"):
        own = line.records[0]
        tried = [Line(line.label, other.records, None) for other in model_lines(records, "rate")
                 if other.records[0]["of"] == own["row"]]
        if tried:
            tried.insert(0, Line(seed_label(own) if len(line.records) > 1 else line.label, [own], None))
            lines += sorted(tried, key=lambda one: one.records[0]["lr"] or 0)
    return table(lines, cost_columns(lines, ["lr"]) + score_columns(lines, better=False)) if lines else ""


def sweep_block(records):
    """Scores of short runs by learning rate; the chosen rate is that of the row itself."""
    tried = {}
    for record in records:
        if record["part"] == "sweep" and record["lr"]:
            score = ("diverged" if record["diverged"] else f"{record['validation_psnr']:.2f}" if record["validation_psnr"]
                     else f"loss {short(record['validation_loss'])}" if record["validation_loss"] else None)
            if score:
                tried.setdefault(record["of"], {})[short(record["lr"])] = score
    rates = sorted({rate for scores in tried.values() for rate in scores}, key=float)
    rows = {record["row"]: record for record in records if record["part"] == "table"}
    out = head(["model", *(f"lr {rate}" for rate in rates)])
    for name in [name for name in rows if name in tried] + [name for name in tried if name not in rows]:
        chosen = short(rows[name]["lr"]) if name in rows else None
        cells = [tried[name].get(rate, "") for rate in rates]
        out += row([plain(rows[name]["label"] if name in rows else name),
                    *(f"**{text}**" if text and rate == chosen else text for text, rate in zip(cells, rates))])
    return out if tried else ""


def about_block(records):
    """Machine, program, clips, weights of metrics."""
    lines = model_lines(records, "table")
    if not lines:
        return ""

    def machine(record):
        name, threads = record["record"].get("machine") or record["status"].get("machine"), record["record"].get("threads")
        return f"{name}, {threads} thread{'s' if threads > 1 else ''}" if name and threads else name

    def each(values):
        return list(dict.fromkeys(value for value in values if value))

    machines, commits = each(map(machine, records)), each(record["record"].get("commit") for record in records)
    versions = each(record["status"].get("version") for record in records)
    out = "".join(f"{name}; " for name in machines) + f"convssm {', '.join(versions) or 'of an unknown version'}"
    if commits:
        out += f", commit{'s' if len(commits) > 1 else ''} {', '.join(commits)}"
    names, protocol = metrics_of(lines), lines[0].records[0]["metrics"]["protocol"]
    conventions = ", ".join(f"{STYLES[name.split('_')[0]][0]} is `{name}`" for name in names)
    weights = each(f"{file} `{checksum}`" for name in names for line in lines for file, checksum in
                   line.records[0]["metrics"]["protocol"].get("metrics", {}).get(name, {}).get("weights", {}).items())
    fewer = f" ({protocol['fvd_samples']} of them for FVD)" if "fvd_samples" in protocol else ""
    return (f"{out}.\n{protocol['samples']} clips of the test split{fewer}, {protocol['context']} frames of context; {conventions}"
            + (f"; weights of metrics {', '.join(weights)}" if weights else "") + ".\n")


def rows_block(records, folder, benchmark=""):
    """All rows but those of the sweep, with links to their records and the commands that made them."""
    records = [record for record in records if record["part"] != "sweep"]
    out = "".join(f"- {seed_label(record) if record['part'] == 'seed' else record['label']}: [{record['row']}]"
                  f"({os.path.relpath(record['folder'], folder)}), `make results ROW={benchmark}{record['row']}`\n" for record in records)
    commands = "".join(f"{command}\n" for record in records for command in record["record"].get("commands", []))
    return out + (f"\n<details><summary>The commands that this runs</summary>\n\n```\n{commands}```\n\n</details>\n"
                  if commands else "")


class Pictures:
    """The pictures that the blocks of pages ask for: a file and how it is made of the records in `source`, when all blocks are there."""

    def __init__(self, records, folder, source=Path("results")):
        self.records, self.folder, self.source, self.made = records, folder, source, {}

    def link(self, name, title, page, make):
        file = self.folder / f"{self.source.name}_{name}.png"
        self.made[file] = make
        return f"![{title}]({os.path.relpath(file, page.parent)})\n"

    def curves(self, page):
        lines = model_lines(self.records, "table")
        drawn = [metric for metric in metrics_of(lines)  # some are of whole clips
                 if any(metric in line.records[0]["metrics"].get("curves", {}) for line in lines)]
        return "\n".join(self.link(metric.split("_")[0], f"{STYLES[metric.split('_')[0]][0]} over the horizon", page,
                                   ["--metric", metric, "--chart"]) for metric in drawn)

    def strips(self, page):
        drawn = {line.records[0]["row"] for line in model_lines(self.records, "table")
                 if (Path(line.records[0]["folder"]) / "samples/evaluate-strip-0.png").is_file()}
        rows = [row for row in STRIP_ROWS[self.source.name] if row in drawn]
        return self.link("strips", "truth above, forecasts below it", page, ["--only", ",".join(rows), "--strips"]) if rows else ""

    def timing(self, page):
        for folder in (Path(record["folder"]) for record in self.records):
            if (folder / "timing.json").is_file():
                parts = [timing_tables(json.loads((folder / "timing.json").read_text()))]
                parts += [self.link(name, title, page, folder / f"{name}.png")
                          for name, title in (("timing_rates", "other frame rates"), ("timing_dropped", "dropped frames"))
                          if (folder / f"{name}.png").is_file()]
                return "\n".join(parts)
        return ""


def blocks(records, pictures, page):
    make = {"machine": about_block, "table": table_block, "short": short_block, "seeds": seeds_block,
            "ablations": lambda records: short_runs_block(records, "ablation"),
            "variants": lambda records: short_runs_block(records, "variant"),
            "latents": lambda records: short_runs_block(records, "latent"), "sweep": sweep_block, "rates": rates_block}
    return {**{name: (lambda function=function: function(records)) for name, function in make.items()},
            "rows": lambda: rows_block(records, page.parent), "curves": lambda: pictures.curves(page),
            "strips": lambda: pictures.strips(page), "timing": lambda: pictures.timing(page)}
