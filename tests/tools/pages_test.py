"""The pages, tools/pages: blocks from records and rows that were never measured."""
import json, math, shutil, subprocess, sys, tempfile, unittest
from pathlib import Path

SOURCE = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(SOURCE / "tools/pages"))
sys.dont_write_bytecode = True

import complexity, fields, marks, models, performance, results, timing, worlds


def metrics(psnr, lpips):
    def horizon(frames, later):
        scores = {"core": (psnr - later, lpips + later / 10), "copy last frame": (15, 0.5), "blank frame": (17, 0.9)}
        return {"frames": frames, "rows": [{"name": name, "psnr_f01": {"mean": a, "std": 0.5}, "lpips_alex": {"mean": b}}
                                           for name, (a, b) in scores.items()]}

    return {"protocol": {"model": "core", "samples": 32, "context": 10,
                         "metrics": {"lpips_alex": {"weights": {"alexnet": "12ab"}}}},
            "horizons": [horizon(2, 0), horizon(4, 1)], "curves": {"frames": [1, 2], "psnr_f01": {"core": [21, 20]}}}


def record(row, label, part="table", of=None, psnr=20, lpips=0.1, **values):
    return {"folder": f"results/{row}", "row": row, "label": label, "part": part, "of": of or row, "parameters": 158675,
            "lr": 0.001, "seed": 1, "training_minutes": 10.0, "frames_per_second": None, "validation_psnr": None,
            "validation_loss": None, "diverged": False, "metrics": metrics(psnr, lpips), "status": {"version": "0.1"},
            "record": {"commit": "abc1", "machine": "A Machine", "threads": 1, "commands": [f"train {row}"]}, **values}


def records():
    return [record("convs5", "ConvS5", frames_per_second=812.4),
            record("convs5_seed2", "ConvS5", "seed", "convs5", 21, 0.2, seed=2),
            record("a_lstm", "ConvLSTM", psnr=20.25, lpips=0.05),
            record("no_gelu", "without GELU", "ablation", "convs5", 19, 0.3),
            record("a_lstm_slow", "ConvLSTM, lr 1e-4", "rate", "a_lstm", 18, 0.4, lr=1e-4),
            record("s1", "s1", "sweep", "convs5", validation_psnr=19.5),
            record("s2", "s2", "sweep", "convs5", lr=0.004, validation_psnr=18.25),
            record("s3", "s3", "sweep", "convs5", lr=0.01, diverged=True, metrics={}, status={})]


TIMING = {"protocol": {"samples": 64, "context": 25, "frames": 75},
          "rates": {"rate": [4, 4 / 3], "lines": [{"name": "rescaled", "psnr_f01": {"mean": [20.123, None]},
                                                   "ssim_gauss11": {"mean": [0.5, 0.25]}}]},
          "dropped": {"probability": [0.6], "lines": [{"name": "held", "psnr_f01": {"mean": [17]},
                                                       "ssim_gauss11": {"mean": [0.25]}}]}}


def bench_row(name, value, reference=0, what="", unit="frames/s"):
    return {"name": name, "value": value, "unit": unit, "reference": reference, "ratio": reference / value,
            "spread": 0.25 if reference else 0, "what": what}


BENCH = {"machine": "A Processor", "threads": 2, "isa": "AVX2", "version": "9.9", "rounds": 5, "rows": [
    bench_row("limit.train.convs5.mini", 200, 100, "its convolutions alone; goal 0.75"),
    bench_row("cost.convs5.parameters", 21.68),
    bench_row("cost.convs5.train", 0.5),
    bench_row("cost.convs5.generate.1200", 40),
    bench_row("cost.convlstm.train", 1.75),
    bench_row("cost.transformer_recompute.generate.1200", 0.2),
    bench_row("generate.convs5.paper", 50, 10, "PyTorch 1.13 (contiguous); goal 5"),
    bench_row("difference.convs5.paper.loss", 1e-6),
    bench_row("scaling.train.convs5.25", 0.1),
    bench_row("scaling.train.convs5.800", 3.2),
    bench_row("scaling.train.transformer.25", 0.2)]}


class Marks(unittest.TestCase):
    def test_fills_the_blocks_of_its_prefix_alone(self):
        text = "a\n<!-- x one -->\nold\n<!-- end -->\nb\n<!-- y one -->\nkept\n<!-- end -->\n"
        self.assertEqual(marks.fill(text, "x", {"one": lambda: "new \\1\n"}), text.replace("old", "new \\1"))
        self.assertEqual(marks.fill(text, "x", {"one": lambda: ""}), text)

    def test_refuses_what_it_does_not_know(self):
        make = {"one": lambda: "new\n"}
        for text in ("<!-- x two -->\n<!-- end -->\n", "<!-- x one -->\n",
                     "<!-- x one -->\n<!-- x one -->\n<!-- end -->\n"):
            with self.assertRaises(SystemExit):
                marks.fill(text, "x", make)

    def test_numbers(self):
        for value, text in ((0.01234, "0.01234"), (123456, "123456"), (3e-5, "3e-5"), (0.001, "0.001"), (0, "0"), (100, "100"),
                            (float("nan"), "–"), (None, "–")):
            self.assertEqual(marks.short(value), text)
        self.assertEqual(marks.whole(1120.5), "1,121")


class Results(unittest.TestCase):
    def test_the_table_has_means_over_seeds_and_bold_is_best(self):
        table = results.table_block(records())
        self.assertIn("| model | parameters | lr | training, min | generation, frames/s |\n|---|---:|---:|---:|---:|\n"
                      "| ConvS5 | 0.16 M | 0.001 | 10 | 812 |\n| ConvLSTM | 0.16 M | 0.001 | 10 | – |\n\n", table)
        self.assertIn("**The first 2 generated frames**\n\n| model | PSNR ↑ | LPIPS ↓ |\n", table)
        self.assertIn("| ConvS5 | **20.50** ± 0.50 | 0.150 ± 0.050 |\n| ConvLSTM | 20.25 | **0.050** |\n"
                      "| copy last frame | 15.00 | 0.500 |\n| blank frame | 17.00 | 0.900 |\n", table)
        self.assertIn("± is half the range between seeds (ConvS5 2)", table)
        self.assertNotIn("GELU", table)

    def test_a_trivial_forecast_may_be_the_best(self):
        table = results.short_block([record("weak", "weak", psnr=16.5, lpips=0.2)])
        self.assertIn("| weak | 16.50 | **0.200** | 15.50 | **0.300** |\n", table)
        self.assertIn("| blank frame | **17.00** | 0.900 | **17.00** | 0.900 |\n", table)

    def test_seeds_ablations_and_learning_rates(self):
        seeds = results.seeds_block(records())
        self.assertIn("| model | PSNR ↑ 2 | LPIPS ↓ 2 | PSNR ↑ 4 | LPIPS ↓ 4 |", seeds)
        self.assertIn("| ConvS5, seed 1 | 20.00 | 0.100 | 19.00 | 0.200 |\n| ConvS5, seed 2 | 21.00 |", seeds)
        ablations = results.short_runs_block(records(), "ablation")
        self.assertIn("| without GELU | 0.16 M | 10 | 19.00 | 0.300 |", ablations)
        self.assertNotIn("Conv", ablations)  # rows of the table may have trained longer
        self.assertEqual(results.sweep_block(records()), "| model | lr 0.001 | lr 0.004 | lr 0.01 |\n|---|---:|---:|---:|\n"
                         "| ConvS5 | **19.50** | 18.25 | diverged |\n")
        rates = results.rates_block(records())
        self.assertIn("| ConvLSTM | 1e-4 | 18.00 | 0.400 | 17.00 | 0.500 |\n| ConvLSTM | 0.001 | 20.25 |", rates)
        self.assertNotIn("ConvS5", rates)  # no other rate at full length

    def test_says_where_it_comes_from(self):
        about = results.about_block(records())
        self.assertIn("A Machine, 1 thread; convssm 0.1, commit abc1.\n32 clips of the test split, 10 frames of context; "
                      "PSNR is `psnr_f01`, LPIPS is `lpips_alex`; weights of metrics alexnet `12ab`.\n", about)
        rows = results.rows_block(records(), "docs")
        self.assertIn("- ConvS5: [convs5](../results/convs5), `make results ROW=convs5`\n", rows)
        self.assertIn("- ConvS5, seed 2: [convs5_seed2]", rows)
        self.assertIn("train a_lstm\n", rows)
        self.assertNotIn("ROW=s1", rows)

    def test_fvd_is_a_scoring_of_its_own(self):
        one = record("convs5", "ConvS5")
        with tempfile.TemporaryDirectory() as folder:
            one["folder"] = folder
            rows = [{"name": line["name"], "fvd_i3d": {"mean": 12.34}} for line in one["metrics"]["horizons"][0]["rows"][:2]]
            fvd = {"protocol": {"samples": 8, "metrics": {"fvd_i3d": {"weights": {"i3d": "34cd"}}}},
                   "horizons": [{"frames": 2, "rows": rows}]}
            Path(folder, "fvd.json").write_text(json.dumps(fvd))
            one = results.with_fvd(one)
        self.assertIn("| ConvS5 | **20.00** | **0.100** | 12.3 |\n", results.table_block([one]))
        self.assertIn("32 clips of the test split (8 of them for FVD)", results.about_block([one]))
        self.assertIn("i3d `34cd`", results.about_block([one]))

    def test_without_records_there_is_nothing(self):
        pictures = results.Pictures([], Path("docs"))
        for name, make in results.blocks([], pictures, Path("docs/results.md")).items():
            self.assertEqual(make(), "", name)
        self.assertEqual(pictures.made, {})

    def test_the_timing_study_is_two_tables(self):
        text = timing.timing_tables(TIMING)
        for part in ("| frame rate | rescaled |\n|---|---:|\n| 4x | 20.12, 0.500 |\n| 1.33x | -, 0.250 |\n\n",
                     "| 60 % | 17.00, 0.250 |\n", "64 test clips", "interval 25 to 75"):
            self.assertIn(part, text)


class Performance(unittest.TestCase):
    def rows(self, *contents):
        with tempfile.TemporaryDirectory() as folder:
            files = [Path(folder, f"{i}.json") for i in range(len(contents))]
            for file, content in zip(files, contents):
                file.write_text(json.dumps(content))
            return performance.Rows(files)

    def test_replaces_blocks_and_keeps_the_text(self):
        text = "# Title\n<!-- bench limit -->\nold\n<!-- end -->\n<!-- bench kernels -->\nkept\n<!-- end -->\nafter\n"
        filled = performance.filled(text, self.rows(BENCH), "p", self.rows())
        self.assertIn("# Title\n<!-- bench limit -->\n| ConvS5 |", filled)
        self.assertIn("| training, small | 200 | 100 | 0.50 ± 0.25 | 0.75 |\n<!-- end -->\n", filled)
        self.assertIn("<!-- bench kernels -->\nkept\n<!-- end -->\nafter\n", filled)  # no rows of it
        self.assertEqual(performance.filled(filled, self.rows(BENCH), "p", self.rows()), filled)

    def test_compares_the_claims_of_the_paper(self):
        claims = performance.claims(self.rows(BENCH))
        self.assertIn("| 3x | 3.50x |", claims)
        self.assertIn("| 429x | 200x |", claims)
        self.assertNotIn("with a cache", claims)  # not measured

    def test_shows_rows_of_the_peer_with_their_goal(self):
        peer = performance.peer(self.rows(BENCH))
        self.assertIn("| generation, paper's size | 50.0 frames/s | 10.0 frames/s | 0.20 ± 0.25 | 5 |", peer)
        self.assertIn("PyTorch 1.13 (contiguous). Both have", peer)
        self.assertIn("loss of the paper's model 1.0e-06.\n", peer)

    def test_has_one_line_of_a_curve_per_model(self):
        rows = self.rows(BENCH)
        self.assertEqual(performance.lines_of(rows, ["train"]), {("train", "convs5"): [(25, 0.1), (800, 3.2)],
                                                                 ("train", "transformer"): [(25, 0.2)]})
        self.assertEqual(performance.curves(rows, "p"), "![Training: time of a step](p_training_time.png)\n")
        self.assertEqual(performance.machine(rows), "A Processor, 2 threads, AVX2; convssm 9.9.\n")

    def test_shows_models_against_the_first(self):
        def of(name, times):
            speed = {"reference": 100 if times != 1 else 0, "ratio": times, "spread": 0.01}
            return [bench_row(f"models.{name}.parameters", 0.5), {**bench_row(f"models.{name}.train", 842), **speed},
                    {**bench_row(f"models.{name}.generate", 1250.8), **speed}, bench_row(f"models.{name}.state", 68),
                    {**bench_row(f"models.{name}.growth", 1), "value": 0}]

        page = "text\n<!-- models speed -->\n<!-- end -->\nafter\n"
        filled = models.filled(page, self.rows({**BENCH, "rows": of("pixel.convs5", 1) + of("cwvae", 4.94)}))
        self.assertIn("| `pixel.convs5` | 0.500 | 842 | 1,251 | 68.0 | 0 |\n", filled)
        self.assertIn("| `cwvae` | 0.500 | 842 (4.9) | 1,251 (4.9) | 68.0 | 0 |\n<!-- end -->\nafter\n", filled)

    def test_later_files_replace_rows(self):
        rows = self.rows(BENCH, {"rows": [bench_row("cost.convs5.train", 0.25), bench_row("new", 1)]})
        self.assertEqual(len(rows.rows), len(BENCH["rows"]) + 1)
        self.assertEqual(rows.value("cost.convs5.train"), 0.25)
        self.assertEqual(rows.about["isa"], "AVX2")


class Worlds(unittest.TestCase):
    """Rows of a world: two settings, scores of places that were seen before, other scorings beside metrics.json."""

    def setUp(self):
        self.root = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.root)

    def scored(self, psnr, fvd=False):
        def rows(offset=0):
            scores = {"core": psnr + offset, "copy last frame": 10.0, "tokenizer ceiling": 26.0}
            return [{"name": name, **({"fvd_i3d": {"mean": 100 - value}} if fvd else
                                      {"psnr_f01": {"mean": value}, "ssim_gauss11": {"mean": value / 50},
                                       "lpips_alex": {"mean": value / 100}})}
                    for name, value in scores.items()]

        def setting(context, frames, actions):
            return {"context": context, "frames": frames, "actions": actions, "samples": 8, "name": f"{context}+{frames}",
                    "horizons": [{"frames": frames, "rows": rows(), "seen_before": {"share": 0.5, "rows": rows(1)},
                                  "never_seen": {"share": 0.5, "rows": rows(-1)}}]}

        return {"protocol": {"model": "core"}, "settings": [setting(36, 39, True), setting(9, 66, False)]}

    def row(self, name, label, psnr, part="table", of=None):
        folder = self.root / name
        folder.mkdir()
        fvd = self.scored(psnr, fvd=True)
        (folder / "fvd.json").write_text(json.dumps({**fvd, "settings": fvd["settings"][1:]}))  # of one setting alone
        loop = self.scored(psnr)["settings"][0]["horizons"]  # of one context and horizon, without settings
        (folder / "loop.json").write_text(json.dumps({"protocol": {"model": "core"}, "horizons": loop}))
        (folder / "metrics.json").write_text(json.dumps(self.scored(psnr)))
        return record(name, label, part, of, folder=str(folder), metrics=self.scored(psnr))

    def test_tables(self):
        records = [self.row("a", "A", 15), self.row("a2", "A", 16, "seed", "a"), self.row("b", "B", 14),
                   self.row("small", "small", 12, "ablation", "a")]
        text = worlds.table_block(records)
        self.assertIn("**39 frames after 36, their actions given** (8 clips)", text)
        self.assertIn("**66 frames after 9, without actions** (8 clips)", text)
        self.assertIn("| model | PSNR ↑ | SSIM ↑ | LPIPS ↓ |\n", text)
        self.assertIn("| A | **15.50** ± 0.50 | **0.310** ± 0.010 | 0.155 ± 0.005 |\n", text)
        self.assertIn("| model | PSNR ↑ | SSIM ↑ | LPIPS ↓ | FVD ↓ |", text)
        self.assertIn("| A | **15.50** ± 0.50 | **0.310** ± 0.010 | 0.155 ± 0.005 | **84.5** ± 0.5 |", text)
        self.assertIn("| tokenizer ceiling | 26.00 | 0.520 | 0.260 | 74.0 |", text)
        short = worlds.short_block([self.row("convs5", "A", 15.5)] + records, "maze")
        self.assertNotIn("| B |", short)
        self.assertIn("| model | PSNR ↑ | SSIM ↑ | LPIPS ↓ | FVD, without actions ↓ |\n", short)
        self.assertIn("| A | **15.50** | **0.310** | 0.155 | **84.5** |\n", short)
        memory = worlds.memory_block(records)
        self.assertIn("SSIM, seen before ↑ | LPIPS, seen before ↓ | SSIM, never seen ↑ | LPIPS, never seen ↓ | SSIM, loop ↑", memory)
        self.assertIn("| B | 0.300 | 0.150 | 0.260 | 0.130 | 0.280 | 0.140 |", memory)
        self.assertIn("| A | **0.330** ± 0.010 |", memory)
        self.assertIn("| small | 0.16 M | 10 | 12.00 | 0.240 | 0.120 | 0.260 | 88.0 |", worlds.short_runs_block(records, "ablation"))
        pictures = results.Pictures(records, Path("docs"), Path("results/maze"))
        blocks = worlds.blocks(records, "maze", pictures, Path("docs/results.md"))
        self.assertIn("![PSNR over the horizon](maze_psnr.png)", blocks["curves"]())
        self.assertEqual(pictures.made[Path("docs/maze_lpips.png")], ["--only", "a,b", "--metric", "lpips_alex", "--chart"])
        self.assertEqual(blocks["strips"](), "")
        self.assertEqual(worlds.blocks([record("s1", "s1", "sweep")], "maze", pictures, Path("docs/results.md"))["table"](),
                         "No row is recorded.\n")
        self.assertIn("`make results ROW=maze/b`", blocks["rows"]())
        self.assertEqual(worlds.table_block([]) + worlds.memory_block([]) + worlds.short_runs_block([], "ablation"), "")


class Fields(unittest.TestCase):
    """Scores in units: of a model with two seeds, and of forecasts without a model."""
    def setUp(self):
        self.folder = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        self.records = [self.field_record("rain_convs5", "table", 1, 0.25), self.field_record("rain_convs5_seed2", "seed", 2, 0.75)]

    def field_record(self, row, part, seed, rmse):
        def scores(error, csi):
            return {"rain": {"rmse": error, "bias": -0.5, "acc": None, "events": [
                {"threshold": 2.0, "csi": csi, "far": None, "fss": {"15": 0.75, "3": 0.5}}]}}

        rows = [{"name": "core", "variables": scores(rmse, 0.5)}, {"name": "advection", "variables": scores(0.625, 0.25)}]
        curve = {"rmse": {"core": [rmse, None], "advection": [0.5, 0.75]}}
        own = {**metrics(20, 0.1), "skill": {"variables": [{"name": "rain", "units": "mm", "thresholds": [2.0]}],
                                             "horizons": [{"frames": 2, "rows": rows}],
                                             "curves": {"frames": [1, 2], "variables": {"rain": curve}}}}
        (self.folder / row).mkdir()
        (self.folder / row / "metrics.json").write_text(json.dumps(own))
        return {**record(row, "ConvS5, rain", part, "rain_convs5", seed=seed), "folder": str(self.folder / row), "metrics": own}

    def test_a_table_for_each_horizon(self):
        table = fields.table_block(self.records, "rain")
        self.assertIn("**rain of ten minutes, mm: the first 2 frames of ten minutes** (32 windows)\n\n"
                      "| model | RMSE ↓ | bias | CSI, 2 ↑ | FSS, 2, 3 px ↑ | FSS, 2, 15 px ↑ |\n", table)
        self.assertIn("| ConvS5 | **0.5** ± 0.25 | -0.5 ± 0 | **0.5** ± 0 | 0.5 ± 0 | 0.75 ± 0 |\n"
                      "| advection | 0.625 | -0.5 | 0.25 | 0.5 | 0.75 |\n", table)
        self.assertEqual(fields.table_block(self.records, "sst"), "No row is recorded.\n")

    def test_curves_over_lead_time(self):
        self.assertEqual(list(fields.curves(self.records)), [("rain of ten minutes, mm\n(ahead: frames of ten minutes)",
                                                              {"ConvS5": [0.25, None], "advection": [0.5, 0.75]})])


class Complexity(unittest.TestCase):
    LENGTHS = [625, 1250, 2500, 5000]

    def rows(self, *lines):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "rows.json")
            file.write_text(json.dumps({**BENCH, "rows": list(lines)}))
            return performance.Rows([file, Path(folder, "missing.json")])

    def times(self, quantity, model, time, ratio=None, spread=0.0):
        return [{**bench_row(f"complexity.{quantity}.{model}.{L}", time(L)), "reference": 1 if ratio else 0,
                 "ratio": ratio(L) if ratio else 0, "spread": spread} for L in self.LENGTHS]

    def test_finds_the_exponent_of_a_power(self):
        for p in (0, 1, 1.5, 2):
            found, error = complexity.exponent([(L, 3 * L ** p) for L in self.LENGTHS])
            self.assertAlmostEqual(found, p)
            self.assertAlmostEqual(error, 0)

    def test_leaves_short_clips_out_of_the_exponent(self):
        for longest in (5000, 5007):
            points = [(L, 1) for L in (39, 312, 625, longest)]
            self.assertEqual(complexity.upper(points), points[2:])

    def test_has_the_standard_error_of_the_exponent(self):
        # y = x plus 0.1, -0.2, 0.1 in logarithms at log x = 0, 1, 2: of slope 1, and rest 0.06 with one degree of freedom.
        points = [(math.exp(x), math.exp(x + d)) for x, d in ((0, 0.1), (1, -0.2), (2, 0.1))]
        found, error = complexity.exponent(points)
        self.assertAlmostEqual(found, 1)
        self.assertAlmostEqual(error, math.sqrt(0.06 / 2))
        self.assertIsNone(complexity.exponent(points[:2])[1])

    def test_parts_of_the_terms_at_the_longest(self):
        def parts(a, b, c):
            return complexity.terms([(L, a + b * L + c * L * L) for L in self.LENGTHS], 2)

        for found, known in ((parts(5000, 2, 1e-3), [1 / 8, 1 / 4, 5 / 8]), (parts(0, 3, 0), [0, 1, 0]),
                             (parts(7, 0, 0), [1, 0, 0]), (parts(0, 0, 2), [0, 0, 1])):
            for one, other in zip(found, known):
                self.assertAlmostEqual(one, other)
        falling = complexity.terms([(L, 1 / L) for L in self.LENGTHS], 1)  # no term is negative
        self.assertEqual(falling, [1, 0])

    def test_crosses_where_the_lines_do(self):
        def of(ratio):
            return complexity.crossing([(L, ratio(L)) for L in self.LENGTHS])

        self.assertAlmostEqual(of(lambda L: math.sqrt(1000 / L)), 1000)
        self.assertAlmostEqual(of(lambda L: (3000 / L) ** 2), 3000)
        self.assertEqual(of(lambda L: 0.9), 625)
        self.assertEqual(of(lambda L: 1), math.inf)
        self.assertEqual(of(lambda L: L / 1000), math.inf)
        # Faster for a while is not faster from there on.
        self.assertAlmostEqual(complexity.crossing([(10, 2), (20, 0.5), (40, 2), (160, 0.5), (320, 0.4)]), 80)
        self.assertEqual(complexity.crossing([(10, 2), (20, 0.5), (40, 2)]), math.inf)

    def test_says_when_a_step_is_faster_and_how_surely(self):
        def of(ratio, spread=0.0):
            return complexity.crossover_in_time(self.rows(*self.times("train.mini", "transformer", float, ratio, spread)))

        step = "By time, a training step of the small ConvS5 is"
        self.assertEqual(of(lambda L: 1500 / L), f"{step} faster than one of the small Transformer from 1,500 frames on.")
        self.assertEqual(of(lambda L: 2), f"{step} not faster than one of the small Transformer up to 5,000 frames.")
        self.assertEqual(of(lambda L: 0.5), f"{step} faster than one of the small Transformer at every length from 625 on.")
        self.assertIn("up to 5,000 frames (the spread of their ratio allows below 625 to beyond 5,000).", of(lambda L: 1.05, 0.1))
        # 2, 1, 0.5 and 0.25, less and more a quarter: 1.75, 0.75 and 1.25, 0.75.
        early = 625 * 2 ** (math.log(1.75) / math.log(1.75 / 0.75))
        late = 1250 * 2 ** (math.log(1.25) / math.log(1.25 / 0.75))
        self.assertIn(f"from 1,250 frames on (the spread of their ratio allows {early:.0f} to {round(late, -1):,.0f}).",
                      of(lambda L: 1250 / L, 0.25))
        self.assertEqual(complexity.crossover_in_time(self.rows()), "")

    def test_counts_cross_where_their_sums_do(self):
        def of(convs5, transformer):
            return complexity.crossing_of_counts(self.rows(*self.times("flops.mini", "convs5", convs5),
                                                           *self.times("flops.mini", "transformer", transformer)), "mini")

        # 200 L against 100 L + L (L + 1) / 2: equal at 199. Beyond the lengths counted: 20,000 L.
        self.assertAlmostEqual(of(lambda L: 200, lambda L: 100 + L), 199)
        self.assertAlmostEqual(of(lambda L: 20000, lambda L: L), 39999)
        self.assertEqual(of(lambda L: 2, lambda L: 1), math.inf)
        self.assertEqual(of(lambda L: 1, lambda L: 2), 0)
        self.assertEqual(of(lambda L: 1, lambda L: 2 + L), 0)
        self.assertIsNone(complexity.crossing_of_counts(self.rows(), "mini"))

    def test_a_table_with_the_claims_and_the_machine(self):
        rows = self.rows(*self.times("train.mini", "transformer", lambda L: L * L, lambda L: 2),
                         *self.times("generate.paper", "convs5", lambda L: 30),
                         *self.times("flops.paper", "transformer", lambda L: 5000 + L))
        text = performance.filled("<!-- bench complexity -->\nold\n<!-- end -->\n", self.rows(), "p", rows)
        for part in ("| a training step, small | Transformer | O(L²) | 2.00 ± 0.00 | 100.0 % | – | – |\n",
                     "| a generated frame, paper's size | ConvS5 | O(1) | 0.00 ± 0.00 | 0.0 % | – | – |\n",
                     "| a training step, paper's size | Transformer | O(L²) | – | – | 1.16 | 33.3 % |\n",
                     "Exponents are fitted from 625 to 5,000 frames.", "up to 5,000 frames.\n\nA Processor, 2 threads"):
            self.assertIn(part, text)
        self.assertNotIn("old", text)
        self.assertNotIn("ConvLSTM", text)  # not measured

    def test_without_rows_the_page_stays(self):
        page = "<!-- bench complexity -->\nold\n<!-- end -->\n"
        self.assertEqual(performance.filled(page, self.rows(), "p", self.rows()), page)


class Pages(unittest.TestCase):
    """The whole of `tools/pages results`, with a program that writes its arguments where a picture is to be."""

    def setUp(self):
        self.root = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.root)
        shutil.copytree(SOURCE / "tools/pages", self.root / "tools/pages")
        (self.root / "docs").mkdir()
        strip = self.root / "results/convs5/samples/evaluate-strip-0.png"
        strip.parent.mkdir(parents=True)
        strip.write_text("")
        (self.root / "results/convs5/timing.json").write_text(json.dumps(TIMING))
        (self.root / "results/convs5/timing_rates.png").write_text("rates")
        (self.root / "records.json").write_text(json.dumps(records()))
        program = self.root / "program"
        program.write_text(f"#!{sys.executable}\nimport shutil, sys\nif '--json' in sys.argv: shutil.copy('records.json', "
                           "sys.argv[-1])\nelse: open(sys.argv[-1], 'w').write(' '.join(sys.argv[1:]))\n")
        program.chmod(0o755)

    def fill(self, docs, readme, code=0):
        (self.root / "docs/results.md").write_text("".join(f"<!-- results {name} -->\nold\n<!-- end -->\n" for name in docs))
        (self.root / "README.md").write_text("".join(f"<!-- results {name} -->\nold\n<!-- end -->\n" for name in readme))
        process = subprocess.run([sys.executable, str(self.root / "tools/pages"), "results", "--program",
                                  str(self.root / "program")], capture_output=True, text=True, cwd="/")
        self.assertEqual(process.returncode, code, process.stderr)
        return (self.root / "docs/results.md").read_text(), (self.root / "README.md").read_text()

    def picture(self, name):
        return (self.root / f"docs/results_{name}.png").read_text()

    def test_are_filled_with_pictures_in_docs(self):
        page, readme = self.fill(["machine", "table", "seeds", "curves", "strips", "ablations", "sweep", "rates", "rows", "timing"],
                                 ["strips", "short"])
        self.assertNotIn("old", page + readme)
        for part in ("](results_psnr.png)", "](results_strips.png)", "](results_timing_rates.png)"):
            self.assertIn(part, page)
        self.assertIn("](docs/results_strips.png)", readme)
        self.assertNotIn("results_lpips.png", page)  # no curve of it
        self.assertEqual(self.picture("timing_rates"), "rates")
        self.assertIn("--metric psnr_f01 --chart docs/", self.picture("psnr"))
        self.assertIn("--only convs5 --strips docs/", self.picture("strips"))

    def test_with_an_unknown_block_write_nothing(self):
        page, _ = self.fill(["strips", "speed"], [], code=1)
        self.assertIn("old", page)
        self.assertFalse((self.root / "docs/results_strips.png").exists())


if __name__ == "__main__":
    unittest.main()
