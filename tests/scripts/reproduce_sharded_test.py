"""Tests of scripts/reproduce_sharded.py with the real hipress-sim, and of scripts/transformer_models.py.

usage: reproduce_sharded_test.py FOLDER_OF_TOOLS [unittest options]
"""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "scripts/reproduce_sharded.py"
MODELS = ROOT / "scripts/transformer_models.py"
TOOLS = pathlib.Path(sys.argv.pop(1)).resolve() if len(sys.argv) > 1 and not sys.argv[1].startswith("-") else None

sys.path.insert(0, str(ROOT / "scripts"))
import transformer_models  # noqa: E402  (found through the path above)


def run(*command):
    return subprocess.run([sys.executable, "-B", *map(str, command)], capture_output=True, text=True, check=False)


class ReproductionTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory() as folder:
            cls.done = run(SCRIPT, "--tools", TOOLS, "--json", pathlib.Path(folder) / "found.json")
            assert cls.done.returncode == 0, cls.done.stderr
            cls.found = json.loads((pathlib.Path(folder) / "found.json").read_text())

    def test_the_page_has_what_it_prints(self):
        page = (ROOT / "docs/sharded-training.md").read_text()
        for line in self.done.stdout.splitlines():
            if line.startswith("| "):
                self.assertIn(line + "\n", page)

    def test_one_row_is_calibrated_and_speedups_are_within_15_percent_but_for_one(self):
        rows = self.found["rows"]
        self.assertAlmostEqual(rows[-1]["predicted_zero3"], 48, delta=0.01)
        missed = [(row["model"], row["gbit_per_s"], row["tokens"]) for row in rows if abs(row["miss"]) > 0.15]
        self.assertEqual(missed, [("gpt_138b", 400, 1024)])
        for row in rows:
            self.assertGreater(row["predicted_speedup"], 1)
            if row["gbit_per_s"] == 400:
                self.assertLess(abs(row["miss_of_text"]), 0.05)
            else:
                self.assertIsNone(row["miss_of_text"])

    def test_a_quarter_of_the_bandwidth_nearly_does_for_zeropp(self):
        beside = self.found["zeropp_at_200_over_zero3_at_800"]
        self.assertLess(abs(beside["gpt_18b"]), 0.10)
        self.assertLess(abs(beside["gpt_138b"]), 0.12)

    def test_backward_prefetch_gains_what_is_published(self):
        gains = self.found["prefetch_gains"]
        self.assertTrue(0.10 <= gains["1"] <= 0.25, gains)
        self.assertTrue(0 < gains["2"] < gains["1"], gains)

    def test_what_makes_no_sense_is_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            nothing = run(SCRIPT, "--tools", folder)
            self.assertEqual(nothing.returncode, 2)
            self.assertIn("no hipress-sim in", nothing.stderr)
            nowhere = run(SCRIPT, "--tools", TOOLS, "--json", f"{folder}/none/found.json")
            self.assertEqual(nowhere.returncode, 2)
            self.assertIn("found.json", nowhere.stderr)


class ModelsTest(unittest.TestCase):
    def test_sizes_are_those_published(self):
        published = {"llama3_8b": 8.03, "llama3_70b": 70.6, "llama3_405b": 405.9, "gpt_18b": 18.4, "gpt_138b": 138,
                     "gpt_175b": 175, "t5_11b": 11.3}
        self.assertEqual(set(published), set(transformer_models.SHAPES))
        for name, billions in published.items():
            self.assertAlmostEqual(transformer_models.elements_of(name) / 1e9, billions, delta=0.005 * billions)

    def test_a_step_is_shared_out_by_elements_of_matrices(self):
        text = transformer_models.model_yaml("llama3_8b", 3.0)
        self.assertIn("forward: 1s\n", text)
        ready = [float(line.split("ready: ")[1].split("s}")[0]) for line in text.splitlines() if "ready: " in line]
        self.assertEqual(ready, sorted(ready))
        self.assertAlmostEqual(ready[-1], 2)
        self.assertEqual(ready[-1], ready[-2])  # the look-up of embeddings takes no time
        self.assertIn("forward: 0.75s\n", transformer_models.model_yaml("llama3_8b", 3.0, checkpointing=True))

    def answer(self, tool, model, gpus, *options):
        """Answer of the tool about that model on hosts of 8 GPUs."""
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "model.yaml").write_text(model)
            (pathlib.Path(folder) / "gpus.yaml").write_text(
                f"nodes: {gpus // 8}\ngpus_per_node: 8\ngpu_link: {{bandwidth: 300GB/s, overhead: 5us}}\n"
                "link: {bandwidth: 400Gbps, overhead: 5us, latency: 5us}\n")
            done = subprocess.run([f"{TOOLS}/{tool}", "--input", "model.yaml", "--cluster", "gpus.yaml", "--profile",
                                   "h100-400g", "--json", *options], cwd=folder, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def test_plans_of_large_models_say_how_far_from_the_bound_they_are(self):
        for name, step_s, gpus in (("llama3_8b", 1.0, 8), ("llama3_8b", 1.0, 512), ("llama3_70b", 4.0, 64), ("llama3_70b", 4.0, 512)):
            plan = self.answer("hipress-plan", transformer_models.model_yaml(name, step_s), gpus, "--algorithm",
                               "int8block,int4block", "--gpu-memory", "80GB", "--schedule", "BEST")
            self.assertTrue(0 <= plan["gap"] < 0.05, (name, gpus, plan["gap"]))
            self.assertLessEqual(plan["peak_memory_bytes"], 80e9)
            self.assertEqual(plan["left_out"][0]["schedule"], "ddp")

    def test_thousands_of_gpus_are_simulated_as_one(self):
        model = transformer_models.model_yaml("llama3_405b", 20.0)
        hsdp = self.answer("hipress-sim", model, 16384, "--plan", "none", "--schedule", "hsdp(shard=512)")
        self.assertEqual((hsdp["folding"], hsdp["orbits"]), ("exact", 1))
        layers = transformer_models.model_yaml("llama3_8b", 1.0, layers=100)
        for plan in ("none", "zeropp"):
            fsdp = self.answer("hipress-sim", layers, 1024, "--plan", plan, "--schedule", "fsdp")
            self.assertEqual((fsdp["folding"], fsdp["orbits"]), ("exact", 1))

    def test_it_writes_files_and_refuses_what_makes_no_sense(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "model.yaml"
            self.assertEqual(run(MODELS, "t5_11b", "--layers", 2, "--step", "250ms", "--output", path).returncode, 0)
            self.assertIn("decoder.1.cross_attention.q.weight", path.read_text())
        for arguments, why in ((("gpt_18b", "--step", "4"), "time with unit"), (("gpt5",), "invalid choice"),
                               (("gpt_18b", "--layers", "0"), "at least 1"), ((), "give a model")):
            refused = run(MODELS, *arguments)
            self.assertEqual(refused.returncode, 2)
            self.assertIn(why, refused.stderr)


if __name__ == "__main__":
    unittest.main()
