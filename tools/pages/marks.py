"""Pages of which people write the text and this the numbers, between <!-- results table --> and <!-- end -->."""
import math, re

MARKS = r"(<!-- {} (\S+) -->\n)(.*?)(<!-- end -->)"


def fill(text, prefix, blocks):
    """Each block made anew by the function of its name; one that gives "" leaves what is there."""
    begun = text.count(f"<!-- {prefix} ")
    found = re.findall(MARKS.format(prefix), text, re.DOTALL)
    if begun != len(found) or any(f"<!-- {prefix} " in content for _, _, content, _ in found):
        raise SystemExit(f"error: a block of '{prefix}' has no <!-- end --> behind it")
    unknown = [name for _, name, _, _ in found if name not in blocks]
    if unknown:
        raise SystemExit(f"error: unknown block '{prefix} {unknown[0]}'; known are {', '.join(blocks)}")
    return re.sub(MARKS.format(prefix), lambda m: m[1] + (blocks[m[2]]() or m[3]) + m[4], text, flags=re.DOTALL)


def row(cells):
    return f"| {' | '.join(cells)} |\n"


def head(cells, last_is_text=False):
    """Words on the left, numbers on the right."""
    lines = ["---"] + ["---:"] * (len(cells) - 1)
    if last_is_text:
        lines[-1] = "---"
    return row(cells) + f"|{'|'.join(lines)}|\n"


def plain(text):
    """Text that does not end its cell."""
    return text.replace("|", "\\|").replace("\n", " ")


def short(value):
    """Four significant digits: 0.01234, 123456, 3e-5."""
    if value is None or not math.isfinite(value):
        return "–"
    size = abs(value)
    if size != 0 and (size < 1e-3 or size >= 1e9):
        digits, exponent = f"{value:.2e}".split("e")
        return f"{digits.rstrip('0').rstrip('.')}e{int(exponent)}"
    decimals = 0 if size < 1e-9 else min(max(3 - math.floor(math.log10(size)), 0), 6)
    text = f"{value:.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def whole(value):
    return f"{math.floor(value + 0.5):,}"
