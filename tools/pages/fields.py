"""The tables of measured fields in docs/results.md: scores in units of every forecast, a table for each horizon of a data set, and curves
over lead time. From the records of results/fields, whose rows are named by data set and model: era5_convs5."""
import functools, json, math
from pathlib import Path

from marks import short
from results import Column, Line, cost_columns, evaluated, model_lines, rows_block, sweep_block, table

DATA = {"era5": ("temperature at 2 m, K", "hours"), "rain": ("rain of ten minutes, mm", "frames of ten minutes"),
        "sst": ("temperature of the sea, degrees C", "months")}
# The scores of a variable, each with its title, and whether more or less of it is better; 0: nothing competes.
SCORES = [("rmse", "RMSE", -1), ("mae", "MAE", -1), ("bias", "bias", 0), ("acc", "ACC", 1), ("crps", "CRPS", -1), ("crps_fair", "CRPS, fair", -1),
          ("spread_skill", "spread / skill", 0)]
EVENTS = [("csi", "CSI", 1), ("far", "FAR", -1)]


@functools.lru_cache(maxsize=None)
def skill(folder):
    return json.loads(Path(folder, "metrics.json").read_text()).get("skill", {})


def dataset(record):
    return record["of"].split("_")[0]


def scores_of(record, forecast, frames):
    """Of the only variable, within so many frames."""
    rows = next((one["rows"] for one in skill(record["folder"]).get("horizons", []) if one["frames"] == frames), [])
    name = forecast or record["metrics"]["protocol"]["model"]
    return next((next(iter(row["variables"].values())) for row in rows if row["name"] == name), {})


def event_of(scores, threshold):
    return next((event for event in scores.get("events", []) if event["threshold"] == threshold), {})


def columns_of(lines, frames):
    arrow = {1: " ↑", -1: " ↓", 0: ""}

    def column(title, better, find):
        return Column(title + arrow[better], better, lambda record, forecast: find(scores_of(record, forecast, frames)),
                      lambda value: short(float(f"{value:.3g}")), True)

    columns = [column(title, better, lambda scores, key=key: scores.get(key)) for key, title, better in SCORES]
    for threshold in next(iter(skill(lines[0].records[0]["folder"])["variables"]))["thresholds"]:
        columns += [column(f"{title}, {short(threshold)}", better,
                           lambda scores, key=key, threshold=threshold: event_of(scores, threshold).get(key))
                    for key, title, better in EVENTS]
        windows = event_of(scores_of(lines[0].records[0], None, frames), threshold).get("fss", {})
        columns += [column(f"FSS, {short(threshold)}, {window} px", 1, lambda scores, window=window, threshold=threshold:
                           event_of(scores, threshold).get("fss", {}).get(window)) for window in sorted(windows, key=int)]

    def is_there(one):
        values = [one.value(record, line.forecast) for line in lines for record in line.records]
        return any(value is not None and math.isfinite(value) for value in values)

    return [one for one in columns if is_there(one)]


def trivial_lines(lines):
    first = lines[0].records[0]
    names = [row["name"] for row in skill(first["folder"])["horizons"][0]["rows"]]
    return [Line(name, [first], name) for name in names if name != first["metrics"]["protocol"]["model"]]


def of_dataset(records, name):
    return [line for line in model_lines(records, "table") if dataset(line.records[0]) == name and skill(line.records[0]["folder"])]


def table_block(records, name):
    lines = of_dataset(records, name)
    if not lines:
        return "No row is recorded.\n"
    lines = [line._replace(label=line.label.split(",")[0]) for line in lines]
    out = table(lines, cost_columns(lines))
    everyone, protocol = lines + trivial_lines(lines), lines[0].records[0]["metrics"]["protocol"]
    for horizon in skill(lines[0].records[0]["folder"])["horizons"]:
        out += f"\n**{DATA[name][0]}: the first {horizon['frames']} {DATA[name][1]}** ({protocol['samples']} windows)\n\n"
        out += table(everyone, columns_of(everyone, horizon["frames"]), spread=True)
    names = ", ".join(f"{line.label} {len(line.records)}" for line in lines if len(line.records) > 1)
    return out + (f"\n± is half the range between seeds ({names}), their mean stands before it; other rows are one run.\n"
                  if names else "")


def curves(records):
    """(title, {forecaster: its error at every lead time}) of each data set."""
    for name, (title, unit) in DATA.items():
        lines = of_dataset(records, name)
        drawn = {}
        for line in lines + (trivial_lines(lines) if lines else []):
            record = line.records[0]
            own = next(iter(skill(record["folder"])["curves"]["variables"].values()))["rmse"]
            drawn[line.label.split(",")[0]] = own[line.forecast or record["metrics"]["protocol"]["model"]]
        if drawn:
            yield f"{title}\n(ahead: {unit})", drawn


def draw(records, file):
    """The error over lead time, a picture for all data sets."""
    from matplotlib.figure import Figure
    panels = list(curves(records))
    names = list(dict.fromkeys(name for _, drawn in panels for name in drawn))
    figure = Figure(figsize=(3.4 * len(panels), 3.2), layout="constrained")
    for axes, (title, drawn) in zip(figure.subplots(1, len(panels), squeeze=False)[0], panels):
        for name, values in drawn.items():
            values = [math.nan if value is None else value for value in values]
            axes.plot(range(1, len(values) + 1), values, "-" if name.startswith("Conv") else "--", label=name,
                      color=f"C{names.index(name)}")
        axes.set_title(title, fontsize="small")
        axes.set_ylim(bottom=0)
        axes.grid(alpha=0.25)
    figure.axes[0].legend(fontsize="x-small", frameon=False)  # for all of them
    figure.axes[0].set_ylabel("RMSE")
    figure.savefig(file, dpi=130, metadata={"Software": None})


def blocks(records, page):
    picture = "![Error over lead time](results_fields.png)\n"
    return {**{name: (lambda name=name: table_block(records, name)) for name in DATA}, "sweep": lambda: sweep_block(records),
            "rows": lambda: rows_block(records, page.parent, "fields/"),
            "curves": lambda: picture if any(map(evaluated, records)) else ""}
