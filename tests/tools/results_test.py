"""The driver of the results, tools/results, with a program that only leaves the files of a run."""
import json, os, shutil, signal, subprocess, sys, tempfile, time, unittest
from pathlib import Path

SOURCE = Path(__file__).resolve().parent.parent.parent

PLAN = {
    "sweep": {"lr": ["1e-4", "5e-4", "1e-3"], "beyond": ["3e-3", "1e-2"], "judged_frames": 2, "set": ["train.steps=3"]},
    "parts": {"ablation": {"of": "a", "set": ["train.steps=5"]},
              "variant": {"of": "a", "set": ["train.steps=5"], "evaluate": {"metrics": ["evaluate.metrics=[psnr_f01,lpips_alex]"]}}},
    "rows": [{"row": "a", "label": "A", "part": "table", "timing": True},
             {"row": "b", "label": "B", "part": "table"},
             {"row": "a_seed2", "label": "A", "part": "seed", "of": "a", "set": ["seed=2"]},
             {"row": "small", "label": "small A", "part": "ablation", "set": ["model.core.kernel_b=1"]}],
}


class Results(unittest.TestCase):
    def setUp(self):
        self.root = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.root)
        shutil.copytree(SOURCE / "tools/results", self.root / "tools/results")
        (self.root / "results").mkdir()
        (self.root / "configs/laptop").mkdir(parents=True)
        for model in ("a", "b"):
            (self.root / f"configs/laptop/{model}.yaml").write_text("seed: 1\n")
        self.write_plan(PLAN)

    def write_plan(self, plan):
        (self.root / "results/plan.json").write_text(json.dumps(plan))

    def start(self, *arguments, **environment):
        # From elsewhere: it finds the project by its own place.
        command = [sys.executable, str(self.root / "tools/results"), "--program", str(SOURCE / "tests/tools/stand_in.py"),
                   "--drawn", "--records", str(self.root / "results"), *arguments]
        process = subprocess.Popen(command, cwd="/", text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                   env={**os.environ, **environment})
        self.addCleanup(process.kill)
        return process

    def run_driver(self, *arguments, code=0, **environment):
        process = self.start(*arguments, **environment)
        output, _ = process.communicate(timeout=60)
        self.assertEqual(process.returncode, code, output)
        return output

    def calls(self):
        path = self.root / "calls.txt"
        lines = path.read_text().splitlines() if path.exists() else []
        path.unlink(missing_ok=True)
        return lines

    def record(self, row):
        return json.loads((self.root / "results" / row / "record.json").read_text())

    def test_makes_every_row_with_the_best_rate(self):
        self.run_driver()
        for row in ("a", "b", "a_seed2", "small"):
            self.assertEqual(self.record(row)["lr"], 3e-3)
            for name in ("config.yaml", "log.jsonl", "status.json", "metrics.json", "samples/evaluate-strip-1.png"):
                self.assertTrue((self.root / "results" / row / name).exists(), name)
        self.assertEqual(self.record("sweep_b_1e-3")["validation"], {"psnr_f01": 22})
        self.assertTrue(self.record("sweep_b_1e-2")["diverged"])
        self.assertTrue((self.root / "results/a/timing_rates.png").exists())
        self.assertFalse((self.root / "results/b/timing.json").exists())
        speed = json.loads((self.root / "results/b/speed.json").read_text())
        self.assertEqual((speed["frames_per_second"], len(speed["rounds"])), (1200, 5))
        small = next(line for line in self.calls() if line.startswith("train") and "runs/results/small" in line)
        self.assertIn("configs/laptop/a.yaml --run runs/results/small train.lr=3e-3 train.steps=5 model.core.kernel_b=1", small)

    def test_rates_beyond_are_tried_only_behind_the_best(self):
        self.write_plan({**PLAN, "sweep": {**PLAN["sweep"], "lr": ["1e-4", "3e-3", "1e-3"], "beyond": ["5e-4"]}})
        self.run_driver()
        self.assertEqual(self.record("a")["lr"], 3e-3)
        self.assertFalse((self.root / "results/sweep_a_5e-4").exists())

    def test_a_row_may_have_a_rate_of_its_own(self):
        row = {"row": "a_slow", "label": "A, lr 1e-4", "part": "rate", "of": "a", "lr": "1e-4"}
        self.write_plan({**PLAN, "rows": [*PLAN["rows"], row]})
        self.run_driver()
        self.assertEqual((self.record("a_slow")["lr"], self.record("a_slow")["part"]), (1e-4, "rate"))
        self.assertEqual(self.record("a")["lr"], 3e-3)

    def test_what_has_a_record_is_not_made_again(self):
        self.run_driver()
        self.calls()
        self.run_driver()
        self.assertEqual(self.calls(), [])
        shutil.rmtree(self.root / "results/a_seed2")
        self.run_driver()
        self.assertEqual([line.split()[0] for line in self.calls()], ["train", "evaluate"])

    def test_a_stop_loses_nothing(self):
        self.stop_when(self.start("--jobs", "2", STAND_IN_WAITS="train"), "runs/results/*/waits", 2)
        self.assertEqual(list(self.root.glob("results/*/record.json")), [])
        self.calls()
        self.run_driver()
        self.assertTrue(self.record("b"))
        self.assertEqual(len(list(self.root.glob("runs/results/*/waits"))), 2)  # what was begun is still there

    def test_an_error_of_one_row_stops_the_others_after_they_have_saved(self):
        output = self.run_driver("--jobs", "2", code=1, STAND_IN_WAITS="train", STAND_IN_FAILS="sweep_a_5e-4")
        self.assertIn("ended with 3", output)
        self.assertIn("out of luck", output)
        self.assertEqual([path.parent.name for path in self.root.glob("runs/results/*/waits")], ["sweep_a_1e-4"])
        self.assertEqual(list(self.root.glob("results/*/record.json")), [])

    def test_a_row_again_that_was_stopped_while_it_was_scored_goes_on(self):
        self.run_driver()
        self.stop_when(self.start("b", STAND_IN_WAITS="evaluate"), "runs/again/b/waits", 1)
        self.run_driver("b")
        self.assertTrue((self.root / "runs/again/b/waits").exists())
        self.run_driver("b")
        self.assertFalse((self.root / "runs/again/b/waits").exists())  # a whole one begins anew

    def stop_when(self, process, pattern, count):
        for _ in range(300):
            if len(list(self.root.glob(pattern))) == count:
                break
            time.sleep(0.1)
        else:
            self.fail(f"not {count} of {pattern} after half a minute")
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=30)
        self.assertEqual(process.returncode, 1)
        self.assertIn("the same command goes on", output)

    def test_a_changed_plan_does_not_go_on_under_the_old_name(self):
        self.run_driver()
        shutil.rmtree(self.root / "results/small")
        self.write_plan({**PLAN, "parts": {"ablation": {"of": "a", "set": ["train.steps=6"]}}})
        self.assertIn("was begun with other values", self.run_driver(code=1))
        self.write_plan(PLAN)
        (self.root / "configs/laptop/a.yaml").write_text("seed: 3\n")
        self.assertIn("the records a, a_seed2 in", self.run_driver(code=1))
        for row in ("a", "a_seed2"):
            shutil.rmtree(self.root / "results" / row)
        self.assertIn("was begun with other values", self.run_driver(code=1))

    def test_a_record_that_the_plan_no_longer_means_is_not_taken_for_it(self):
        self.run_driver()
        self.write_plan({**PLAN, "parts": {"ablation": {"of": "a", "set": ["train.steps=6"]}}})
        self.assertIn("small                ablation   stale", self.run_driver("--list"))
        self.assertIn("the records small in", self.run_driver(code=1))
        self.assertEqual(self.record("small")["commands"][0].count("train.steps=5"), 1)

    def test_a_variant_is_trained_as_an_ablation_and_scored_its_own_way(self):
        row = {"row": "gate", "label": "gate", "part": "variant", "set": ["model.core.output_gate=swish"]}
        self.write_plan({**PLAN, "rows": [*PLAN["rows"], row]})
        weights = self.root / "weights"
        weights.mkdir()
        self.run_driver("--weights", str(weights), HOME=str(self.root))
        train, evaluate = self.record("gate")["commands"]
        self.assertIn("configs/laptop/a.yaml", train)
        self.assertIn("train.steps=5 model.core.output_gate=swish", train)
        self.assertIn("evaluate.metrics=[psnr_f01,lpips_alex]", evaluate)
        shutil.rmtree(self.root / "results/gate")
        shutil.rmtree(self.root / "runs/results/gate")
        self.run_driver(HOME=str(self.root))  # no weights: a metric that is named would be an error
        self.assertIn("evaluate.metrics=[psnr_f01]", self.record("gate")["commands"][1])

    def test_records_name_no_place_of_this_machine(self):
        weights = self.root / "weights"
        weights.mkdir()
        self.run_driver("--weights", str(weights), HOME=str(self.root))
        text = (self.root / "results/b/metrics.json").read_text()
        self.assertIn('"lpips": "not in $CONVSSM_WEIGHTS"', text)
        self.assertIn("--weights $CONVSSM_WEIGHTS", self.record("b")["commands"][1])
        for path in self.root.glob("results/*/*.json"):
            self.assertNotIn(str(self.root), path.read_text(), path)

    def test_speeds_alone(self):
        self.run_driver()
        (self.root / "results/b/speed.json").unlink()
        self.calls()
        self.assertIn("1200 frames/s", self.run_driver("--speed"))
        self.assertTrue((self.root / "results/b/speed.json").exists())
        self.assertEqual({line.split()[0] for line in self.calls()}, {"data", "generate"})
        self.assertIn("did not say how fast", self.run_driver("--speed", code=1, STAND_IN_SAYS="nothing"))

    def test_one_row_again_beside_its_record(self):
        self.assertIn("have no records", self.run_driver("a", code=1))
        self.run_driver()
        self.calls()
        output = self.run_driver("a")
        self.assertIn("psnr_f01         23.0000   recorded   23.0000", output)
        self.assertIn("train configs/laptop/a.yaml --run runs/again/a train.lr=3e-3 --resume", self.calls())
        self.assertIn("no row c; there are a, b, a_seed2, small", self.run_driver("c", code=1))
        self.assertEqual(self.run_driver("--list").count("recorded"), 4)

    def test_needs_mnist_or_the_word_that_it_does_not(self):
        def refused(*arguments):
            process = subprocess.run([sys.executable, str(self.root / "tools/results"), "--program", "/bin/true", *arguments],
                                     capture_output=True, text=True)
            self.assertEqual(process.returncode, 1)
            return process.stderr

        empty = self.root / "empty"
        empty.mkdir()
        self.assertIn("no train-images-idx3-ubyte.gz in", refused("--mnist", str(empty)))
        self.assertIn("/nowhere is not a folder", refused("--mnist", "/nowhere"))
        self.assertIn("--drawn needs --records", refused("--drawn"))
        self.assertIn("--drawn needs --records", refused("--drawn", "a"))
        (self.root / "runs/mnist").mkdir(parents=True)
        (empty / "train-images-idx3-ubyte.gz").write_text("")
        self.assertIn("runs/mnist is a folder", refused("--mnist", str(empty)))

    def test_a_drawn_row_needs_no_mnist_and_nothing_does_when_all_is_recorded(self):
        drawn = {"row": "drawn", "label": "drawn", "part": "model", "of": "a", "drawn": True}
        folder = self.root / "digits"
        folder.mkdir()
        (folder / "train-images-idx3-ubyte.gz").write_text("")
        self.write_plan({**PLAN, "rows": [*PLAN["rows"], drawn]})

        def make(mnist):
            command = [sys.executable, str(self.root / "tools/results"), "--program",
                       str(SOURCE / "tests/tools/stand_in.py"), "--mnist", str(mnist)]
            return subprocess.run(command, capture_output=True, text=True, env={**os.environ, "MNIST": ""})

        self.assertEqual(make(folder).returncode, 0)
        trained = {line.split()[3]: line for line in self.calls() if line.startswith("train")}
        self.assertNotIn("data.images", trained["runs/results/drawn"])
        self.assertIn("data.images=runs/mnist/train-images-idx3-ubyte.gz", trained["runs/results/a"])
        (folder / "train-images-idx3-ubyte.gz").unlink()
        self.assertEqual(make(folder).returncode, 0)
        self.assertEqual(self.calls(), [])

    def test_a_benchmark_of_its_own_folder(self):
        """Its configs, runs, what comes before its rows, several scorings, and rates judged by the trainings themselves."""
        (self.root / "configs/maze").mkdir()
        (self.root / "configs/maze/m.yaml").write_text("seed: 1\n")
        (self.root / "results/maze").mkdir()
        plan = {"configs": "configs/maze", "runs": "runs/maze",
                "prepare": [{"makes": "runs/maze/tokenizer", "command": ["train", "t.yaml", "--run", "runs/maze/tokenizer", "train.lr=1e-3"]},
                            {"makes": "runs/maze/other", "of": ["n"], "command": ["train", "t.yaml", "--run", "runs/maze/other", "train.lr=1e-3"]}],
                "sweep": {"lr": ["1e-4", "1e-3"], "beyond": [], "set": ["train.steps=3"]},
                "parts": {"table": {"evaluate": {"metrics": ["evaluate.samples=4"], "fvd": ["evaluate.metrics=[fvd_i3d]"],
                                                 "loop": ["data.protocol=loop"]}}},
                "rows": [{"row": "m", "label": "M", "part": "table", "evaluate": ["evaluate.batch=2"]}]}
        (self.root / "results/maze/plan.json").write_text(json.dumps(plan))
        weights = self.root / "weights"
        weights.mkdir()
        arguments = ["--plan", str(self.root / "results/maze/plan.json"), "--records", str(self.root / "results/maze"),
                     "--weights", str(weights)]
        self.run_driver(*arguments)
        calls = [line for line in self.calls() if not line.startswith(("data", "generate"))]
        self.assertIn("--run runs/maze/tokenizer", calls[0])
        self.assertEqual(sum("tokenizer" in line for line in calls), 1)
        self.assertFalse(any("runs/maze/other" in line for line in calls))  # of no row that is made
        self.assertEqual([line.split()[1] for line in calls if line.startswith("evaluate")], ["runs/maze/m"] * 3)
        self.assertIn("evaluate runs/maze/m evaluate.metrics=[fvd_i3d] evaluate.batch=2 --out runs/maze/m/fvd --features runs/features "
                      f"--weights {weights}", calls)
        for name in ("metrics.json", "fvd.json", "loop.json"):
            self.assertTrue((self.root / "results/maze/m" / name).exists(), name)
        record = json.loads((self.root / "results/maze/m/record.json").read_text())
        self.assertEqual((record["lr"], len(record["commands"])), (1e-3, 4))
        self.run_driver(*arguments)
        self.assertEqual(self.calls(), [])
        again = self.run_driver(*arguments, "m")
        self.assertIn("m                    4 frames, 2+4  psnr_f01         22.0000   recorded   22.0000", again)
        self.assertIn("m fvd                4 frames, 2+4  psnr_f01         22.0000   recorded   22.0000", again)
        plan["rows"][0]["evaluate"] = ["evaluate.batch=3"]
        (self.root / "results/maze/plan.json").write_text(json.dumps(plan))
        self.assertIn("m                    table      stale", self.run_driver(*arguments, "--list"))
        plan["rows"][0]["evaluate"] = ["evaluate.batch=2"]
        plan["parts"]["table"]["evaluate"]["retrieval"] = ["data.protocol=retrieval"]  # a scoring that the record does not have
        (self.root / "results/maze/plan.json").write_text(json.dumps(plan))
        self.assertIn("m                    table      to do", self.run_driver(*arguments, "--list"))
        self.run_driver(*arguments)
        self.assertTrue((self.root / "results/maze/m/retrieval.json").exists())
        shutil.rmtree(self.root / "results/maze/m")
        shutil.rmtree(self.root / "runs/maze/m")
        shutil.rmtree(self.root / "runs/again/maze", ignore_errors=True)
        plan["prepare"][0]["command"][-1] = "train.lr=5e-4"
        (self.root / "results/maze/plan.json").write_text(json.dumps(plan))
        self.assertIn("runs/maze/tokenizer was made by", self.run_driver(*arguments, code=1))
        plan["prepare"][0]["command"][-1] = "train.lr=1e-3"
        (self.root / "results/maze/plan.json").write_text(json.dumps(plan))
        without = arguments[:4]
        self.run_driver(*without, HOME=str(self.root), CONVSSM_WEIGHTS="")  # FVD is left out
        self.assertFalse((self.root / "results/maze/m/fvd.json").exists())
        self.calls()
        self.run_driver(*without, HOME=str(self.root), CONVSSM_WEIGHTS="")
        self.assertEqual(self.calls(), [])

    def test_recordings_are_linked(self):
        """Those of a benchmark that names a link to them: records then say nothing of this machine."""
        (self.root / "results/doom").mkdir()
        (self.root / "results/doom/plan.json").write_text(json.dumps({**PLAN, "configs": "configs/laptop", "recordings": "runs/doom/seen"}))
        arguments = ["--plan", str(self.root / "results/doom/plan.json"), "--records", str(self.root / "results/doom")]
        self.assertIn("name their folder with --recordings", self.run_driver(*arguments, code=1))
        (self.root / "films").mkdir()
        self.run_driver(*arguments, "--recordings", str(self.root / "films"))
        self.assertEqual((self.root / "runs/doom/seen").resolve(), (self.root / "films").resolve())

    def test_rows_of_other_benchmarks_go_by_their_folder(self):
        (self.root / "results/maze").mkdir()
        (self.root / "results/maze/plan.json").write_text(json.dumps({**PLAN, "configs": "configs/maze", "rows": PLAN["rows"][:2]}))
        command = [sys.executable, str(self.root / "tools/results"), "--list"]
        output = subprocess.run(command, capture_output=True, text=True).stdout
        self.assertIn("maze/b               table      to do", output)
        refused = subprocess.run([*command, "maze/c"], capture_output=True, text=True)
        self.assertIn("no row maze/c; there are a, b, a_seed2, small, maze/a, maze/b", refused.stderr)

    def test_numbers_are_checked(self):
        for option in ("--jobs", "--threads"):
            self.assertIn("at least 1, got '0'", self.run_driver(option, "0", code=2))


if __name__ == "__main__":
    unittest.main()
