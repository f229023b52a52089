"""The speeds of docs/models.md, from the file of `convssm bench --only models --json`."""
from marks import fill, head, row
from performance import machine, three


def speed(rows):
    names = [line["name"][len("models."):-len(".train")] for line in rows.rows.values() if line["name"].endswith(".train")]

    def cell(name, quantity):
        line = rows.rows[f"models.{name}.{quantity}"]
        against = f" ({line['ratio']:.2g})" if line["reference"] and name != names[0] else ""
        return three(line["value"]) + against

    quantities = ["parameters", "train", "generate", "state", "growth"]
    lines = [row([f"`{name}`", *(cell(name, quantity) for quantity in quantities)]) for name in names]
    titles = ["model", "parameters, M", "training, frames/s", "generation, frames/s", "state after 17 frames, KiB",
              "more for each frame, KiB"]
    return machine(rows) + "\n" + head(titles) + "".join(lines)


def filled(page, rows):
    return fill(page, "models", {"speed": lambda: speed(rows)})
