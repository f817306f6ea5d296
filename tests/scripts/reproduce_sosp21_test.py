"""Tests of scripts/reproduce_sosp21.py with the real hipress-sim and hipress-plan.

usage: reproduce_sosp21_test.py FOLDER_OF_TOOLS [unittest options]
"""

import csv
import dataclasses
import importlib.util
import json
import math
import pathlib
import statistics
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "scripts/reproduce_sosp21.py"
TOOLS = sys.argv.pop(1) if len(sys.argv) > 1 and not sys.argv[1].startswith("-") else None

sys.path.insert(0, str(ROOT / "scripts"))
from sosp21 import calibration, evaluation, setups, simulator, systems  # noqa: E402  (found through the path above)

with open(ROOT / "tests/data/sosp21_throughput.csv", newline="") as file:
    PUBLISHED = list(csv.DictReader(file))
COLUMNS = list(PUBLISHED[0])
GPUS_PER_NODE = {"local": 2, "aws": 8}
LINEAR = [row for row in PUBLISHED if row["system"] == "linear"]
RAW = [row for row in PUBLISHED if row["algorithm"] == "none" and row["system"] != "linear"]
OSS = [row for row in PUBLISHED if "OSS" in row["system"]]
HIPRESS = [row for row in PUBLISHED if "HiPress" in row["system"]]


def nodes(row):
    return int(row["gpus"]) // GPUS_PER_NODE[row["cluster"]]


class ScriptTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def write(self, name, table, columns=tuple(COLUMNS)):
        with open(self.folder / name, "w", newline="") as file:
            writer = csv.DictWriter(file, columns, extrasaction="ignore")
            writer.writeheader()
            writer.writerows(table)
        return str(self.folder / name)

    def run_script(self, given, wanted, *arguments):
        tools = ["--tools", TOOLS] if TOOLS else []
        return subprocess.run([sys.executable, "-B", SCRIPT, "--calibrate", given, "--predict", wanted, *tools,
                               *arguments], capture_output=True, text=True, check=False)

    def predict(self, given, wanted, *arguments, columns=tuple(COLUMNS)):
        out = self.folder / "out.json"
        done = self.run_script(self.write("given.csv", given), self.write("wanted.csv", wanted, columns),
                               "--json", out, *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(out.read_text())

    # Answers:

    def test_every_case_has_its_columns_prediction_and_error(self):
        wanted = [row for row in PUBLISHED if row["cluster"] == "local" and row["model"] == "resnet50"]
        report = self.predict(RAW[:6] + LINEAR, wanted)
        self.assertEqual(len(report["cases"]), len(wanted))
        for case, row in zip(report["cases"], wanted):
            self.assertEqual({name: str(case[name]) for name in COLUMNS if name != "throughput"},
                             {name: row[name] for name in COLUMNS if name != "throughput"})
            self.assertAlmostEqual(case["error"], case["predicted"] / float(row["throughput"]) - 1)
        counted = [abs(case["error"]) for case in report["cases"] if case["system"] != "linear"]
        self.assertAlmostEqual(report["mean_abs_error"], statistics.mean(counted))

    def test_without_throughput_errors_are_null_and_predictions_the_same(self):
        wanted = HIPRESS[:2] + OSS[:2]
        without = self.predict(RAW + LINEAR, wanted, columns=[name for name in COLUMNS if name != "throughput"])
        self.assertEqual([case["error"] for case in without["cases"]], [None] * 4)
        self.assertIsNone(without["mean_abs_error"])
        self.assertEqual([case["predicted"] for case in without["cases"]],
                         [case["predicted"] for case in self.predict(RAW + LINEAR, wanted)["cases"]])

    def test_the_same_request_gives_the_same_bytes(self):
        wanted = HIPRESS[:3] + RAW[:3]
        first = self.predict(RAW + LINEAR, wanted)
        self.assertEqual(json.dumps(first), json.dumps(self.predict(RAW + LINEAR, wanted)))

    def test_compressed_rows_are_not_calibrated_on(self):
        lies = [{**row, "throughput": "1"} for row in OSS + HIPRESS]
        honest, misled = (self.predict(RAW + LINEAR + more, HIPRESS[:2])["calibration"] for more in ([], lies))
        self.assertEqual(honest, misled)

    def test_single_gpus_and_unpublished_sizes(self):
        row = HIPRESS[0]
        report = self.predict(LINEAR, [{**row, "gpus": "1", "throughput": ""}, {**row, "gpus": "6", "throughput": ""}])
        # `linear` is the speed of one GPU times the number of GPUs, so one GPU has half of the throughput of two.
        linear = [float(r["throughput"]) for r in LINEAR if r["cluster"] == "local" and r["model"] == "vgg19"]
        alone, three_nodes = (case["predicted"] for case in report["cases"])
        self.assertAlmostEqual(alone / (linear[0] / 2), 1, delta=0.01)
        self.assertTrue(4 * alone < three_nodes < 6 * alone)

    def test_without_any_row_to_learn_from(self):
        report = self.predict([], [{**row, "throughput": ""} for row in (RAW[0], RAW[-1], OSS[0], HIPRESS[-1])])
        for case in report["cases"]:
            self.assertTrue(0 < case["predicted"] < math.inf)

    # Accuracy. The bounds are the errors that are reached, rounded up.

    def check(self, means, bound):
        self.assertLessEqual(means["mean_abs_error"], bound)
        self.assertLess(means["mean_abs_error"], means["linear"])
        self.assertLess(means["mean_abs_error"], means["best_constant"])

    def test_compressed_rows_from_uncompressed_ones(self):
        means = self.predict(RAW + LINEAR, OSS + HIPRESS)["means"]
        self.check(means["OSS"], 0.1)
        self.check(means["HiPress"], 0.025)

    def test_four_nodes_from_one_and_two(self):
        report = self.predict([row for row in RAW if nodes(row) < 4] + LINEAR, [row for row in RAW if nodes(row) == 4])
        self.check(report["means"]["uncompressed"], 0.095)

    def test_models_from_other_models(self):
        few = ("vgg19", "resnet50")
        report = self.predict([row for row in RAW if row["model"] in few] + LINEAR,
                              [row for row in RAW if row["model"] not in few])
        self.check(report["means"]["uncompressed"], 0.09)

    def test_features_help_in_the_published_order(self):
        report = self.predict(RAW + LINEAR, HIPRESS[:1], "--ablation")
        for topology, (byteps, on_cpu, on_gpu, pipelining, bulk, selection) in report["ablation_ms"].items():
            with self.subTest(topology=topology):
                self.assertTrue(on_cpu > byteps > on_gpu > pipelining > bulk > selection, report["ablation_ms"])

    def test_features_are_taken_away_by_the_switches_of_hipress_sim_alone(self):
        calls = []

        class Recorder(simulator.Simulator):
            def predict(self, jobs):
                calls.extend(jobs)
                return [1.0] * len(jobs)

        lab = calibration.Lab(Recorder(), [])
        known = systems.Calibration(slowdown=0.0, local_s_per_byte=1e-10, bandwidth=7e9)
        evaluation.ablation(lab, {("local", "Ring"): known, ("local", "BytePS"): known}, "PS")
        everything, *others = reversed(calls[2:])
        self.assertEqual([job.switches for job in (everything, *others)],
                         [(), ("--no-selection",), ("--no-bulk", "--no-selection"),
                          ("--no-pipelining", "--no-bulk", "--no-selection")])
        for job in others:
            self.assertEqual(dataclasses.replace(job, switches=()), everything)
        self.assertIn("bulk: {threshold: 1048576B, limit: 1048576B}\nbatch: {threshold: 1048576B, wait: 1ms}\n",
                      everything.plan_yaml("g,64,y,2\nh,5,n,1\n"))
        self.assertIn("- {name: g, elements: 64, algorithm: onebit, K: 2}\n- {name: h, elements: 5, algorithm: none, K: 1}",
                      everything.plan_yaml("g,64,y,2\nh,5,n,1\n"))

    # Wrong requests:

    def refuses(self, text, message, with_throughput=False):
        path = self.folder / "bad.csv"
        path.write_text(text)
        good = self.write("good.csv", RAW[:1])
        done = self.run_script(*((path, good) if with_throughput else (good, path)))
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn(f"{path}:{message}", done.stderr)

    HEADER = ",".join(COLUMNS) + "\n"
    GOOD = "local,MXNet,vgg19,Ring,none,4,358,images/s\n"

    def test_bad_rows_are_refused_with_file_and_line(self):
        for bad, message in ((("vgg19", "vgg91"), "3: unknown model 'vgg91'; known are vgg19"),
                             (("local", "moon"), "3: unknown cluster 'moon'; known are local, aws"),
                             (("Ring", "Rang"), "3: unknown system 'Rang'"),
                             (("none", "onebit"), "3: system 'Ring' is uncompressed"),
                             (("Ring,none", "HiPress-CaSync-PS,magic"), "3: unknown algorithm 'magic'"),
                             ((",4,", ",3,"), "3: gpus must be at most 2 or a multiple of it"),
                             ((",4,", ",-4,"), "3: gpus must be a positive number, got '-4'"),
                             (("358", "fast"), "3: throughput must be a positive number, got 'fast'"),
                             (("358", "nan"), "3: throughput must be a positive number, got 'nan'"),
                             ((",images/s", ""), "3: 8 fields expected, got 7")):
            with self.subTest(bad=bad):
                self.refuses(self.HEADER + self.GOOD + self.GOOD.replace(*bad), message)

    def test_missing_columns_are_refused(self):
        self.refuses(self.HEADER.replace("model,", ""), "1: missing column 'model'")
        self.refuses(self.HEADER.replace("throughput,", ""), "1: missing column 'throughput'", with_throughput=True)
        self.refuses("", "1: missing column 'cluster'")

    def test_missing_files_and_tools_are_named(self):
        good = self.write("good.csv", RAW[:1])
        self.assertEqual(self.run_script(good, "nowhere.csv").returncode, 2)
        done = self.run_script(good, good, "--tools", self.folder)
        self.assertEqual(done.returncode, 1)
        self.assertIn("hipress-sim", done.stderr)

    def test_results_that_cannot_be_written_are_refused_before_a_tool_is_called(self):
        good = self.write("good.csv", RAW[:1])
        unwritable = str(self.folder / "none/out.png")
        asked = [("--json", unwritable, f"{unwritable}: cannot be written")]
        if importlib.util.find_spec("matplotlib"):
            asked += [("--plot", unwritable, f"{unwritable}: cannot be written"), ("--plot", "out.doc", "out.doc: its suffix")]
        for option, path, said in asked:
            with self.subTest(option=option, path=path):
                done = self.run_script(good, good, option, path, "--tools", self.folder)  # the folder has no tools
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertIn(said, done.stderr)


class PartsTest(unittest.TestCase):
    def test_a_line_between_rows_and_expectation(self):
        # Many exact rows on y = 0.04 + 0.1·x outweigh the priors, 0.05 for both parameters.
        xs = [0.5, 1.0, 2.0] * 200
        a, b = calibration.line(xs, [0.04 + 0.1 * x for x in xs], 0.05)
        self.assertAlmostEqual(a, 0.04, places=3)
        self.assertAlmostEqual(b, 0.1, places=3)

    def test_neither_slowdown_nor_summing_is_negative(self):
        self.assertEqual(calibration.line([1.0, 2.0] * 200, [0.3, 0.1] * 200, 0.05)[1], 0)
        self.assertEqual(calibration.line([1.0, 2.0] * 200, [0.1, 0.5] * 200, 0.05)[0], 0)

    def test_collecting_keeps_bytes_and_readiness(self):
        model = setups.load_model("resnet50", "local")
        groups = systems.collect(model.gradients, systems.BULK_BYTES)
        self.assertLess(len(groups), len(model.gradients))
        self.assertEqual(sum(group.elements for group in groups), sum(g.elements for g in model.gradients))
        self.assertEqual(max(group.ready_s for group in groups), max(g.ready_s for g in model.gradients))

    def test_generated_models_keep_shapes(self):
        model = setups.load_model("resnet50", "local")
        setup = systems.Setup(setups.CLUSTERS["local"], model, compute_s=0.0)
        job = simulator.Job("ring", 4, 0.0, setup.model.gradients + (setups.Gradient("group0", 5, 0.0),), 5e9)
        self.assertIn("{name: fc.weight, elements: 2048000, ready: 72.000us, shape: [1000, 2048]}\n", job.model_yaml())
        self.assertIn("{name: group0, elements: 5, ready: 0.000us}\n", job.model_yaml())

    def test_pieces_keep_bytes(self):
        gradient = setups.Gradient("g", 10_000_001, 0.5)
        pieces = systems.pieces((gradient,), systems.BYTEPS_PARTITION_BYTES)
        self.assertEqual(len(pieces), 10)  # 40 000 004 bytes are cut into pieces of at most 4 096 000
        self.assertEqual(sum(piece.elements for piece in pieces), gradient.elements)

    def test_summing_in_the_node_is_serial_and_hides_behind_backward(self):
        # Each gradient has 40 bytes at 0.25 s per byte. Sums run from 0 to 10 s, from 12 to 22 s, and, after a wait for the second,
        # from 22 to 32 s.
        ready = (0.0, 12.0, 13.0)
        later = systems.summed_locally(tuple(setups.Gradient(f"g{t}", 10, t) for t in ready), 0.25)
        self.assertEqual([gradient.ready_s for gradient in later], [10.0, 22.0, 32.0])

    def test_a_sparse_all_gather_costs_its_closed_form(self):
        # The time is (N-1)·α + (P-1)·8ρn/B for n elements, a multiple of 32·N, with ρ = 1 %, α = o + L and codecs that take no
        # time.
        nodes, gpus, n = 4, 8, 12_800_000
        model = setups.Model(0.0, (setups.Gradient("g", n, 0.0),))
        setup = systems.Setup(setups.CLUSTERS["local"], model, compute_s=0.0)
        known = systems.Calibration(slowdown=0.0, local_s_per_byte=0.0, bandwidth=5e9)
        job = systems.sparse_ring_job(setup, setups.System(setups.SPARSE_RING, "RING", "dgc"), nodes, known)
        zero = simulator.Cost(0, 0)
        job = dataclasses.replace(job, codec=simulator.Codec(zero, zero, zero))
        predicted = simulator.Simulator(pathlib.Path(TOOLS) if TOOLS else None).predict([job])[0]
        alpha = simulator.OVERHEAD_S + simulator.LATENCY_S
        expected = (nodes - 1) * alpha + (gpus - 1) * 8 * 0.01 * n / 5e9
        self.assertAlmostEqual(predicted / expected, 1, delta=0.02)

    def test_between_simulated_bandwidths_time_is_a_line_in_their_inverse(self):
        curve = [3 + 2 / rate for rate in calibration.SIMULATED_RATES]
        for rate in (0.02, 0.03, 0.5, 1.0):
            self.assertAlmostEqual(calibration.between(curve, rate), 3 + 2 / rate)

    def test_systems_are_known_by_their_names(self):
        for name, algorithm, kind, baseline in (
                ("Ring", "none", setups.RAW, "Ring"), ("BytePS(OSS-onebit)", "onebit", setups.CPU_ONEBIT, "BytePS"),
                ("Ring(OSS-DGC)", "dgc", setups.SPARSE_RING, "Ring"),
                ("HiPress-CaSync-PS", "onebit", setups.CASYNC, "Ring")):
            system = setups.parse_system(name, algorithm)
            self.assertEqual((system.kind, system.baseline), (kind, baseline))


if __name__ == "__main__":
    unittest.main()
