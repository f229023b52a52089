"""docs/performance.md from the files of `convssm bench --json`. Rows are found by their names; a goal stands in the text of
a row ("goal 0.9"), so that the page and the terminal show the same one."""
import json, math, re

from pathlib import Path

import complexity
from marks import fill, head, row, whole

MODELS = {"convs5": "ConvS5", "convssm_random": "ConvSSM, random state", "convlstm": "ConvLSTM", "convgru": "ConvGRU",
          "s5": "S5", "performer": "Performer", "transformer": "Transformer, cached",
          "transformer_recompute": "Transformer, recomputed"}
CURVES = {"training_time": ("Training: time of a step", "seconds, small models, one clip", "frames of the clip", ["train"]),
          "training_memory": ("Training: memory of a step", "MB of tensors at the peak, small models", "frames of the clip",
                              ["memory"]),
          "generation": ("Generation: time of one frame", "ms, the paper's sizes, one clip", "frames seen before it",
                         ["rollout", "generate"])}


class Rows:
    """Of those of the files that exist, the later one winning row by row: a single group can be measured again without the
    others."""

    def __init__(self, files):
        self.about, self.rows = {}, {}
        for file in filter(Path.exists, files):
            content = json.loads(file.read_text())
            self.rows.update({row["name"]: row for row in content.pop("rows")})
            self.about.update(content)

    def starting_with(self, *prefixes):
        return [row for prefix in prefixes for name, row in self.rows.items() if name.startswith(prefix)]

    def value(self, name):
        return self.rows[name]["value"] if name in self.rows else None


def three(value):
    """Three digits are what a measurement of this kind is good for."""
    if not value:
        return "" if value is None else "0"
    decimals = 2 - math.floor(math.log10(abs(value)))
    return whole(value) if decimals <= 0 else f"{value:.{min(decimals, 6)}f}"


def goal(line):
    found = re.search(r"goal ([0-9.]+)", line["what"])
    return found[1] if found else ""


def ratio(line):
    if not line["reference"]:
        return ""
    return f"{line['ratio']:.2f}" + (f" ± {line['spread']:.2f}" if line["spread"] > 0 else "")


def size(name):
    return "paper's size" if ".paper" in name else "small"


def machine(rows):
    about = {key: rows.about.get(key, "?") for key in ("machine", "threads", "isa", "version")}
    return "{machine}, {threads} threads, {isa}; convssm {version}.\n".format(**about) if rows.rows else ""


def claims(rows):
    def times(above, below):
        above, below = rows.value(above), rows.value(below)
        return above / below if above and below else None

    convs5, rollout = "cost.convs5.generate.1200", [line["value"] for line in rows.starting_with("scaling.rollout.convs5.")]
    lines = [("training: ConvS5 against ConvLSTM", "3x", times("cost.convlstm.train", "cost.convs5.train"),
              "time per frame of a step"),
             ("generation: ConvS5 against a Transformer that recomputes, 1200 frames", "429x",
              times(convs5, "cost.transformer_recompute.generate.1200"), "frames/s"),
             ("the same against a Transformer with a cache", "", times(convs5, "cost.transformer.generate.1200"), "frames/s"),
             ("generation: ConvS5 after 400 frames against after 1200", "1x", times("cost.convs5.generate.400", convs5),
              "frames/s"),
             ("slowest against fastest 100 frames of 1200", "1x", max(rollout) / min(rollout) if rollout else None,
              "medians, all generated")]
    lines = [row([text, paper, f"{three(here)}x", how]) for text, paper, here, how in lines if here]
    return head(["claim", "paper", "here", "what is compared"], True) + "".join(lines) if lines else ""


def cost(rows):
    lines = ""
    for name, title in MODELS.items():
        cells = [three(rows.value(f"cost.{name}.{what}")) for what in ("parameters", "gflops", "gflops.1200", "train", "memory",
                                                                      "generate.400", "generate.800", "generate.1200")]
        lines += row([title, *cells]) if cells[0] else ""
    heads = ["model", "parameters, M", "GFLOPs, frame 3", "GFLOPs, frame 1200", "training, s/frame", "memory of a step, GB",
             "frames/s after 400", "800", "1200"]
    return head(heads) + lines if lines else ""


def peer_title(name):
    """generate.convs5.paper.int8.p50 -> generation, paper's size, int8: median of a frame"""
    title = ("training, " if name.startswith("train") else "generation, ") + size(name) + (", int8" if ".int8" in name else "")
    ends = {".p50": ": median of a frame", ".p99": ": 99 of 100 frames within"}
    return title + ends.get(name[-4:], "")


def peer(rows):
    lines = rows.starting_with("generate.convs5.", "train.convs5.")
    if not lines:
        return ""
    out = head(["ConvS5", "convssm", "PyTorch", "ratio", "goal"])
    for line in lines:
        reference = f"{three(line['reference'])} {line['unit']}" if line["reference"] > 0 else line["what"]
        out += row([peer_title(line["name"]), f"{three(line['value'])} {line['unit']}", reference, ratio(line), goal(line)])
    versions = [re.match(r"[^)]*[^;]*", line["what"])[0] for line in lines if line["what"].startswith("PyTorch ")]
    differences = [f"{line['name'].split('.')[-1]} of the {size(line['name']).split()[0]} model {line['value']:.1e}"
                   for line in rows.starting_with("difference.convs5.")]
    if versions:
        out += f"\n{versions[-1]}."
    if differences:
        out += (" Both have the same parameters; they differ by (frames in [-1,1], loss and norm of gradients relative): "
                f"{', '.join(differences)}.")
    return out + "\n" if versions or differences else out


def limit(rows):
    lines = [row([("training, " if ".train." in line["name"] else "generation, ") + size(line["name"]), three(line["value"]),
                  three(line["reference"]), ratio(line), goal(line)]) for line in rows.starting_with("limit.")]
    return head(["ConvS5", "whole, ms", "its convolutions alone, ms", "part", "goal"]) + "".join(lines) if lines else ""


def conv(rows):
    lines = ""
    for line in rows.starting_with("conv."):
        if line["unit"] != "relative":
            error = rows.rows.get(line["name"].removesuffix(".train") + ".error")
            lines += row([f"`{line['name']}`", f"{three(line['value'])} ms", f"{three(line['reference'])} ms", ratio(line),
                          f"{error['value']:.1e}, {error['reference']:.1e}" if error else ""])
    heads = ["convolution", "Winograd", "direct", "ratio", "error of Winograd, of direct"]
    return head(heads, True) + lines if lines else ""


def kernels(rows):
    lines = [row([f"`{line['name']}`", f"{three(line['value'])} {line['unit']}", ratio(line), goal(line),
                  line["what"].split(";")[0]]) for line in rows.starting_with("scan.", "layer.", "memory.", "metrics.")]
    return head(["row", "value", "ratio", "goal", "the reference"], True) + "".join(lines) if lines else ""


def lines_of(rows, quantities):
    """{(quantity, model): [(frames, value)]} of the rows scaling.<quantity>.<model>.<frames>"""
    lines = {}
    for line in rows.starting_with(*(f"scaling.{quantity}." for quantity in quantities)):
        _, quantity, model, frames = line["name"].split(".")
        lines.setdefault((quantity, model), []).append((float(frames), line["value"]))
    return lines


def line_name(quantity, model):
    if quantity == "rollout":
        return MODELS[model] + ", all generated"
    return "Transformer" if model == "transformer" and quantity != "generate" else MODELS[model]  # in training there is one


def curves(rows, stem):
    return "\n".join(f"![{title}]({stem}_{name}.png)\n" for name, (title, _, _, quantities) in CURVES.items()
                     if lines_of(rows, quantities))


def draw(rows, page):
    """Both axes are logarithmic: a straight line then shows its power."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import LogLocator
    for name, (title, hint, x_label, quantities) in CURVES.items():
        lines = lines_of(rows, quantities)
        if not lines:
            continue
        figure = Figure(figsize=(7.6, 4.4), layout="constrained")
        axes = figure.add_subplot(xscale="log", yscale="log", xlabel=x_label)
        for (quantity, model), points in lines.items():
            axes.plot(*zip(*points), "o--" if model.endswith("_recompute") else "o-", markersize=3,
                      color=f"C{list(MODELS).index(model)}", label=line_name(quantity, model))
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            axis.set_major_formatter("{x:g}")
            axis.set_minor_locator(LogLocator(subs=()))
        axes.grid(alpha=0.25)
        axes.legend(fontsize="small", frameon=False)
        figure.suptitle(f"{title} ({hint})", fontsize="medium")
        figure.savefig(page.parent / f"{page.stem}_{name}.png", dpi=150, metadata={"Software": None})


def complexity_of(rows):
    """With its machine: it may be measured on another one than the rest of the page."""
    text = complexity.block(rows)
    return text and f"{text}\n{machine(rows)}"


def filled(text, rows, stem, lengths):
    """`lengths`: the rows of the group complexity."""
    make = {"machine": machine, "claims": claims, "cost": cost, "peer": peer, "limit": limit, "conv": conv, "kernels": kernels}
    blocks = {name: (lambda function=function: function(rows)) for name, function in make.items()}
    return fill(text, "bench", {**blocks, "curves": lambda: curves(rows, stem), "complexity": lambda: complexity_of(lengths)})
