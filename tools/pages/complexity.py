"""The paper's complexity table from the rows complexity.<quantity>.<size>.<model>.<frames> of `convssm bench`: exponents over
the number of frames by time and by arithmetic, and the length from which on a training step of ConvS5 is faster than one of
the Transformer."""
import itertools, math, operator

from marks import head, row

MODELS = {"transformer": "Transformer", "convlstm": "ConvLSTM", "convs5": "ConvS5"}
SIZES = {"mini": "small", "paper": "paper's size"}
CLAIMS = {"train": ("a training step", {"transformer": 2, "convlstm": 1, "convs5": 1}),
          "generate": ("a generated frame", {"transformer": 1, "convlstm": 0, "convs5": 0})}
POWERS = ["1", "L", "L²"]
UPPER = 8  # exponents are of the lengths from the longest / 8 on: fixed costs hide them in short clips


def exponent(points):
    """p of y ~ x^p by least squares of logarithms, and its standard error (None: of two points)."""
    logs = [(math.log(x), math.log(y)) for x, y in points]
    n, mean_x, mean_y = len(logs), *(sum(values) / len(logs) for values in zip(*logs))
    width = sum((x - mean_x) ** 2 for x, _ in logs)
    p = sum((x - mean_x) * (y - mean_y) for x, y in logs) / width
    rest = sum((y - mean_y - p * (x - mean_x)) ** 2 for x, y in logs)
    return p, math.sqrt(rest / (n - 2) / width) if n > 2 else None


def solve(matrix, right):
    rows = [[*line, value] for line, value in zip(matrix, right)]
    for i in range(len(rows)):
        pivot = max(range(i, len(rows)), key=lambda j: abs(rows[j][i]))
        rows[i], rows[pivot] = rows[pivot], rows[i]
        for j in range(len(rows)):
            if j != i:
                factor = rows[j][i] / rows[i][i]
                rows[j] = [a - factor * b for a, b in zip(rows[j], rows[i])]
    return [line[-1] / line[i] for i, line in enumerate(rows)]


def terms(points, degree):
    """The parts that 1, x, .., x^degree have in y at the last x, of the sum that is closest to all points by relative error,
    none of them negative. So few terms are tried in every choice."""
    (last_x, last_y), best = points[-1], (math.inf, [])
    for powers in (chosen for n in range(1, degree + 2) for chosen in itertools.combinations(range(degree + 1), n)):
        lines = [[(x / last_x) ** power * last_y / y for power in powers] for x, y in points]  # the sum of each is to be 1
        columns = list(zip(*lines))
        found = solve([[sum(map(operator.mul, one, other)) for other in columns] for one in columns], map(sum, columns))
        error = sum((sum(map(operator.mul, line, found)) - 1) ** 2 for line in lines)
        if min(found) >= 0 and error < best[0]:
            best = error, [dict(zip(powers, found)).get(power, 0) / sum(found) for power in range(degree + 1)]
    return best[1]


def crossing(points):
    """The length from which on a ratio stays below 1, between lengths on straight lines of logarithms: the first length if it
    is below 1 at all of them, infinite if it is not at the last."""
    found = points[0][0] if points[0][1] < 1 else math.inf
    for (a, before), (b, after) in zip(points, points[1:]):
        if after >= 1:
            found = math.inf
        elif before >= 1:
            found = a * (b / a) ** (math.log(before) / math.log(before / after))
    return found


def lines_of(rows, quantity, size, model):
    """The rows by their number of frames, shortest first."""
    lines = rows.starting_with(f"complexity.{quantity}.{size}.{model}.")
    return sorted((int(line["name"].split(".")[-1]), line) for line in lines)


def points_of(rows, quantity, size, model):
    return [(frames, line["value"]) for frames, line in lines_of(rows, quantity, size, model)]


def frame_counts(points):
    """Of the arithmetic of a frame after L, which is exactly a + b L: a and b."""
    (x, first), (y, last) = points[0], points[-1]
    growth = (last - first) / (y - x)
    return first - growth * x, growth


def counts(rows, quantity, size, model):
    """The arithmetic of a frame after L frames, or the sum of the L frames of a clip."""
    points = points_of(rows, "flops", size, model)
    if quantity == "generate" or len(points) < 2:
        return points
    a, b = frame_counts(points)
    return [(L, a * L + b * L * (L + 1) / 2) for L, _ in points]


def crossing_of_counts(rows, size):
    """From where on the sum of ConvS5's frames is less than that of the Transformer's: 0 from the first, infinite never.
    None: not counted."""
    convs5, transformer = (points_of(rows, "flops", size, model) for model in ("convs5", "transformer"))
    if len(convs5) < 2 or len(transformer) < 2:
        return None
    (a, b), (c, d) = frame_counts(convs5), frame_counts(transformer)
    if d <= b:
        return 0 if a + b < c + d else math.inf
    return max(2 * (a - c) / (d - b) - 1, 0)


def upper(points):
    return [(x, y) for x, y in points if (x + 1) * UPPER > points[-1][0]]  # lengths are halved to whole frames


def cells(points, degree, exact):
    """Exponent, for what is measured with its standard error, and the part of the highest term at the longest length."""
    if len(points) < 3:
        return ["–", "–"]
    p, error = exponent(upper(points))
    return [f"{round(p, 2) + 0:.2f}" + ("" if exact or error is None else f" ± {error:.2f}"),
            f"{100 * terms(points, degree)[-1]:.1f} %"]


def table(rows):
    lines, lengths = "", set()
    for quantity, (title, claims) in CLAIMS.items():
        for (size, size_title), (model, claim) in itertools.product(SIZES.items(), claims.items()):
            time, count = points_of(rows, quantity, size, model), counts(rows, quantity, size, model)
            degree = max(claims.values())
            found = [*cells(time, degree, False), *cells(count, degree, True)]
            if set(found) != {"–"}:
                lines += row([f"{title}, {size_title}", MODELS[model], f"O({POWERS[claim]})", *found])
                lengths.update(time + count)
    heads = ["cost of", "model", "paper", "exponent, time", "highest term, time", "exponent, arithmetic",
             "highest term, arithmetic"]
    if not lines:
        return ""
    from_, to = (f"{edge(upper(sorted(lengths)))[0]:,}" for edge in (min, max))
    return (head(heads) + lines + f"\nExponents are fitted from {from_} to {to} frames. The highest term, L² of a training "
            f"step and L of a generated frame, is its part at {to} frames.\n")


def whole_frames(length):
    """Three digits."""
    unit = 10 ** max(math.floor(math.log10(length)) - 2, 0)
    return f"{round(length / unit) * unit:,}"


def since(length, shortest):
    return f"at every length from {shortest:,} on" if length <= shortest else f"from {whole_frames(length)} frames on"


def end(length, shortest, longest):
    """Of an interval."""
    if length == math.inf:
        return f"beyond {longest:,}"
    return f"below {shortest:,}" if length <= shortest else whole_frames(length)


def crossover_in_time(rows):
    lines = [(L, line) for L, line in lines_of(rows, "train", "mini", "transformer") if line["reference"]]
    if len(lines) < 2:
        return ""
    ends = lines[0][0], lines[-1][0]
    found, early, late = (crossing([(L, max(line["ratio"] + sign * line["spread"], 1e-9)) for L, line in lines])
                          for sign in (0, -1, 1))
    low, high = end(early, *ends), end(late, *ends)
    faster, when = ("not faster", f"up to {ends[1]:,} frames") if found == math.inf else ("faster", since(found, ends[0]))
    return (f"By time, a training step of the small ConvS5 is {faster} than one of the small Transformer {when}" +
            ("" if low == high else f" (the spread of their ratio allows {low} to {high})") + ".")


def crossover_in_counts(rows):
    found = {title: crossing_of_counts(rows, size) for size, title in SIZES.items()}
    parts = [f"{'never' if length == math.inf else since(length, 1)} ({title})" for title, length in found.items()
             if length is not None]
    return f"By arithmetic it is less work {' and '.join(parts)}." if parts else ""


def block(rows):
    crossover = " ".join(part for part in (crossover_in_time(rows), crossover_in_counts(rows)) if part)
    return "\n".join(part for part in (table(rows), crossover and crossover + "\n") if part)
