"""The tables of worlds in docs/results.md, `maze` and `vizdoom`: scores in two settings, with and without actions, what comes back of
places that were seen before, and protocols that test a memory. From the records of results/NAME, as results.py."""
import functools, json
from pathlib import Path

from results import STRIP_ROWS, STYLES, Column, Line, cost_columns, model_lines, rows_block, sweep_block, table

PROTOCOLS = ["retrieval", "loop", "reasoning"]
QUALITY = ["psnr_f01", "ssim_gauss11", "lpips_alex"]


@functools.lru_cache(maxsize=None)
def read(path):
    return json.loads(path.read_text()) if path.is_file() else {}


def horizon(record, file, setting):
    """Of a setting of one scoring: its rows, and apart those of frames of places that were seen before or never. A scoring may have
    some of the settings alone; one without settings is of its own clips."""
    scored = read(Path(record["folder"]) / f"{file}.json")
    if "settings" not in scored:
        return scored["horizons"][0] if scored.get("horizons") else {}
    name = record["metrics"]["settings"][setting]["name"]
    return next((one["horizons"][0] for one in scored["settings"] if one["name"] == name), {})


def score_column(file, setting, metric, part=None, title=None, better=True):
    name, sign, digits = STYLES[metric.split("_")[0]]

    def value(record, forecast):
        rows = horizon(record, file, setting)
        rows = rows.get(part, {}) if part else rows
        model = read(Path(record["folder"]) / f"{file}.json").get("protocol", {}).get("model")
        return next((row.get(metric, {}).get("mean") for row in rows.get("rows", []) if row["name"] == (forecast or model)), None)

    return Column(f"{title or name} {'↑' if sign > 0 else '↓'}", sign if better else 0, value, f"{{:.{digits}f}}".format, True)


def has(lines, column):
    return any(column.value(record, line.forecast) is not None for line in lines for record in line.records)


def trivial_lines(lines):
    first = lines[0].records[0]
    model = first["metrics"]["protocol"]["model"]
    names = [row["name"] for row in horizon(first, "metrics", 0).get("rows", [])]
    return [Line(name, [first], name) for name in names if name != model]


def forecasts(lines):
    """All but the best that the tokenizer allows, which has seen the truth."""
    return [line for line in lines if line.forecast != "tokenizer ceiling"]


def described(record, setting):
    about = record["metrics"]["settings"][setting]
    actions = "their actions given" if about.get("actions") else "without actions"
    return f"**{about['frames']} frames after {about['context']}, {actions}** ({about['samples']} clips)\n\n"


def table_block(records):
    lines = model_lines(records, "table")
    if not lines:
        return ""
    out = table(lines, cost_columns(lines))
    everyone = lines + trivial_lines(lines)
    for setting in range(len(lines[0].records[0]["metrics"]["settings"])):
        columns = [score_column("metrics", setting, metric) for metric in QUALITY] + [score_column("fvd", setting, "fvd_i3d")]
        out += "\n" + described(lines[0].records[0], setting)
        out += table(everyone, [column for column in columns if has(everyone, column)], spread=True, rivals=forecasts(everyone))
    names = ", ".join(f"{line.label} {len(line.records)}" for line in lines if len(line.records) > 1)
    return out + (f"\n± is half the range between seeds ({names}), their mean stands before it; other rows are one run.\n"
                  if names else "")


def short_block(records, name):
    """For README: scores with actions, and FVD as the paper has it, without, of the models whose strips are shown."""
    lines = [line for line in model_lines(records, "table") if line.records[0]["row"] in STRIP_ROWS[name]]
    if not lines:
        return ""
    everyone = lines + [line for line in trivial_lines(lines) if line.forecast != "blank frame"]
    columns = [score_column("metrics", 0, metric) for metric in QUALITY] + [score_column("fvd", 1, "fvd_i3d", title="FVD, without actions")]
    return table(everyone, [column for column in columns if has(everyone, column)], rivals=forecasts(everyone))


def memory_block(records):
    """Seen before and never seen with actions, then the protocols. Not by PSNR: where a copy of the last frame is right to the last bit, it
    has 100 dB."""
    lines = model_lines(records, "table")
    if not lines:
        return ""
    everyone, metrics = lines + trivial_lines(lines), (("ssim_gauss11", "SSIM"), ("lpips_alex", "LPIPS"))
    columns = [score_column("metrics", 0, metric, part, f"{title}, {words}")
               for part, words in (("seen_before", "seen before"), ("never_seen", "never seen")) for metric, title in metrics]
    columns += [score_column(name, 0, metric, None, f"{title}, {name}") for name in PROTOCOLS for metric, title in metrics]
    return table(everyone, [column for column in columns if has(everyone, column)], spread=True, rivals=forecasts(everyone))


def short_runs_block(records, part):
    lines = model_lines(records, part)
    if not lines:
        return ""
    columns = [score_column("metrics", 0, metric) for metric in QUALITY] + [
        score_column("metrics", 0, "ssim_gauss11", "seen_before", "SSIM, seen before"), score_column("fvd", 1, "fvd_i3d")]
    return table(lines, cost_columns(lines, ["parameters", "training, min"]) + [c for c in columns if has(lines, c)])


def curves_block(records, pictures, page):
    """Over the frames generated with actions."""
    if not model_lines(records, "table"):
        return ""
    return "\n".join(pictures.link(metric.split("_")[0], f"{STYLES[metric.split('_')[0]][0]} over the horizon", page,
                                   ["--only", ",".join(record["row"] for record in records if record["part"] == "table"),
                                    "--metric", metric, "--chart"]) for metric in QUALITY)


def blocks(records, name, pictures, page):
    make = {"table": table_block, "short": lambda records: short_block(records, name), "memory": memory_block, "sweep": sweep_block,
            "ablations": lambda records: short_runs_block(records, "ablation")}
    nothing = "No row is recorded.\n" if records else ""  # otherwise numbers of rows that are gone would stay
    return {**{name: (lambda function=function: function(records) or nothing) for name, function in make.items()},
            "curves": lambda: curves_block(records, pictures, page), "strips": lambda: pictures.strips(page),
            "rows": lambda: rows_block(records, page.parent, f"{name}/")}
