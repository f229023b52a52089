"""Fills the marked blocks of the pages, <!-- results table --> to <!-- end -->, and makes their pictures.

    python3 tools/pages results        docs/results.md and README.md, from the records under results/; blocks of `maze` and
                                       `vizdoom` from those of results/maze and results/vizdoom, of `fields` from results/fields
    python3 tools/pages performance    docs/performance.md, from docs/performance.json, performance_cost.json and
                                       performance_complexity.json
    python3 tools/pages models         docs/models.md, from docs/models_speed.json

What stands outside of the blocks stays, and a block without records too.
"""
import argparse, json, os, shutil, subprocess, tempfile
from pathlib import Path

import fields, models, performance, worlds
from marks import fill
from results import Pictures, blocks, with_fvd

BENCHMARKS = ["maze", "vizdoom"]  # of worlds, each with its records in a folder of results/
ROOT = Path(__file__).resolve().parent.parent.parent


def run(program, folder, *words):
    process = subprocess.run([program, "results", folder, *map(str, words)], capture_output=True, text=True)
    if process.returncode != 0:
        raise SystemExit(f"error: {program} results failed\n{process.stderr}")


def read_records(program, folder):
    with tempfile.TemporaryDirectory() as scratch:
        run(program, folder, "--json", f"{scratch}/records.json")
        return [with_fvd(record) for record in json.loads(Path(scratch, "records.json").read_text())]


def fill_results(program):
    """All blocks are made before anything is written: an error leaves the pages as they were."""
    records = read_records(program, "results")
    drawn, pages = [Pictures(records, Path("docs"))], [Path("docs/results.md"), Path("README.md")]
    texts = [fill(page.read_text(), "results", blocks(records, drawn[0], page)) for page in pages]
    for name in BENCHMARKS:
        if any(Path("results", name).glob("*/record.json")):
            drawn.append(Pictures(read_records(program, f"results/{name}"), Path("docs"), Path("results", name)))
            texts = [fill(text, name, worlds.blocks(drawn[-1].records, name, drawn[-1], page)) for text, page in zip(texts, pages)]
    measured = read_records(program, "results/fields") if any(Path("results/fields").glob("*/record.json")) else []
    if measured:
        texts = [fill(text, "fields", fields.blocks(measured, page)) for text, page in zip(texts, pages)]
        drawing(lambda: fields.draw(measured, Path("docs/results_fields.png")))
    for pictures in drawn:
        for path, make in pictures.made.items():
            if isinstance(make, Path):
                shutil.copyfile(make, path)
            else:
                run(program, pictures.source, *make, path)
    for page, text in zip(pages, texts):
        page.write_text(text)


def drawing(draw):
    try:
        draw()
    except ImportError:
        raise SystemExit("error: the curves need matplotlib: tools/setup.sh --pages installs it for /usr/bin/python3")


def fill_performance():
    page = Path("docs/performance.md")
    rows = performance.Rows([Path("docs/performance.json"), Path("docs/performance_cost.json")])
    lengths = performance.Rows([Path("docs/performance_complexity.json")])
    page.write_text(performance.filled(page.read_text(), rows, page.stem, lengths))
    drawing(lambda: performance.draw(rows, page))


def fill_models():
    page = Path("docs/models.md")
    page.write_text(models.filled(page.read_text(), performance.Rows([Path("docs/models_speed.json")])))


def main():
    parser = argparse.ArgumentParser(prog="tools/pages", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("page", choices=["results", "performance", "models"])
    parser.add_argument("--program", type=Path, default=ROOT / "build/release/bin/convssm")
    options = parser.parse_args()
    program = options.program.resolve()
    os.chdir(ROOT)
    {"results": lambda: fill_results(program), "performance": fill_performance, "models": fill_models}[options.page]()


if __name__ == "__main__":
    main()
