"""Tests of hipress-sim sweep and of scripts/plot.py that draws it: plot_test.py [-v] PATH/hipress-sim"""

import math
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SIM = pathlib.Path(sys.argv.pop()).resolve()
sys.path.insert(0, str(ROOT / "python"))
from hipress import _sweep_pictures, _sweep_rows, plot  # noqa: E402  (found through the path above)
from hipress._style import PictureError  # noqa: E402

try:
    import matplotlib
except ImportError:
    matplotlib = None

SPEC = """model: {model}
nodes: [2, 4]
bandwidth: [1Gbps, 10Gbps]
algorithm: [onebit, fp16]
"""


class PlotTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def sweep(self, *more: str, model: str = "model.csv") -> subprocess.CompletedProcess:
        (self.folder / model).write_text("name,elements,ready_us\nbig,4000000,1000\nsmall,100,500\n")
        (self.folder / "spec.yaml").write_text(SPEC.format(model=model))
        return subprocess.run([SIM, "sweep", "spec.yaml", "--output", "sweep.csv", *more], cwd=self.folder,
                              text=True, capture_output=True, timeout=60, check=False)

    def draw(self, *arguments: str) -> subprocess.CompletedProcess:
        return subprocess.run([sys.executable, "-B", ROOT / "scripts/plot.py", *arguments], cwd=self.folder,
                              text=True, capture_output=True, timeout=100, check=False)

    def maps(self, **conditions: str) -> dict:
        """Speed-ups over the plan `none`, which sends every gradient alone, by panel."""
        return _sweep_pictures.maps_of(plot.read_sweep(self.folder / "sweep.csv", conditions), ("none",))

    def test_panels_hold_the_speedups_of_the_sweep(self):
        self.assertEqual(self.sweep().returncode, 0)
        panels = self.maps()
        self.assertEqual(list(panels), ["model.csv, ps, onebit", "model.csv, ps, fp16"])
        for panel in panels.values():
            self.assertEqual(sorted(panel), [(1.25e8, 2), (1.25e8, 4), (1.25e9, 2), (1.25e9, 4)])
        # At 1 Gbit/s, 16 MB take 128 ms per hop. Half of the bytes make it nearly twice as fast; onebit gains more.
        fp16, onebit = panels["model.csv, ps, fp16"], panels["model.csv, ps, onebit"]
        self.assertTrue(1.8 < fp16[1.25e8, 2].middle < 2 < onebit[1.25e8, 2].middle)

    def test_names_that_spreadsheets_would_run_are_read_as_they_are(self):
        name = "=HYPERLINK(1).csv"
        self.assertEqual(self.sweep(model=name).returncode, 0)
        self.assertIn(f"\n'{name},ps,2,", (self.folder / "sweep.csv").read_text())
        self.assertEqual(list(self.maps(model=name, algorithm="fp16")), [f"{name}, ps, fp16"])

    def test_conditions_choose_rows(self):
        self.sweep()
        panels = self.maps(algorithm="fp16", nodes="4")
        self.assertEqual([list(panel) for panel in panels.values()], [[(1.25e8, 4), (1.25e9, 4)]])

    @unittest.skipIf(matplotlib is None, "matplotlib is not installed")
    def test_picture_is_written(self):
        self.sweep()
        for conditions, said in (((), ""), (("nodes=2", "algorithm=onebit"), "model.csv, ps: all pays "),
                                 (("nodes=2", "bandwidth_bytes_per_s=125000000"), "model.csv, ps: fp16 pays ")):
            done = self.draw("sweep.csv", "picture.png", *conditions)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertIn(said, done.stdout)
            self.assertEqual((self.folder / "picture.png").read_bytes()[:8], b"\x89PNG\r\n\x1a\n")

    @unittest.skipIf(matplotlib is None, "matplotlib is not installed")
    def test_a_name_that_says_no_form_of_a_picture_is_refused(self):
        self.sweep()
        for name in ("p.txt", "p", ".png"):
            done = self.draw("sweep.csv", name)
            self.assertEqual((done.returncode, done.stderr),
                             (2, f"plot.py: {name}: its suffix says no form of a picture; give a name that ends in .png, "
                                 ".svg or .pdf\n"))
        self.assertEqual(self.draw("sweep.csv", "p.SVG").returncode, 0)
        self.assertIn("<svg", (self.folder / "p.SVG").read_text())

    def test_where_an_axis_has_one_value_lines_are_drawn(self):
        self.sweep()
        rows = plot.read_sweep(self.folder / "sweep.csv", {"nodes": "2"})
        self.assertEqual(_sweep_rows.axis_of_lines(rows), "bandwidth_bytes_per_s")
        panels = _sweep_pictures.lines_of(rows, "bandwidth_bytes_per_s", "none")
        self.assertEqual(list(panels), ["model.csv, ps"])
        lines = panels["model.csv, ps"]
        self.assertEqual(list(lines), ["onebit", "fp16"])
        self.assertEqual([x for x, _ in lines["fp16"]], [1.25e8, 1.25e9])
        rows = plot.read_sweep(self.folder / "sweep.csv", {"bandwidth_bytes_per_s": "125000000"})
        self.assertEqual(_sweep_rows.axis_of_lines(rows), "nodes")
        self.assertIsNone(_sweep_rows.axis_of_lines(plot.read_sweep(self.folder / "sweep.csv", {})))

    def test_the_break_even_lies_between_two_points(self):
        gbit = 1.25e8
        for speedups, said in (((1.105, 0.905), "pays at 1, no longer at 4 Gbit/s"),
                               ((0.905, 1.105), "pays at 4, not yet at 1 Gbit/s"),
                               ((1.2, 1.1), "pays everywhere"), ((1.0, 1.004), "pays nowhere")):
            points = list(zip((gbit, 4 * gbit), speedups))
            self.assertEqual(_sweep_rows.describe_break_even(points, "bandwidth_bytes_per_s"), said)
        self.assertEqual(_sweep_rows.break_even([(1, 1.2), (2, 1.1), (3, 1.0)]), (2, 3))
        self.assertEqual(_sweep_rows.describe_break_even([(1, 1.1), (2, 1.0), (3, 1.1)], "nodes"), "pays here and there")

    def test_plans_of_a_schedule_have_no_topology_and_algorithm(self):
        row = {"model": "gpt2", "plan": "best", "topology": "ps", "algorithm": "onebit", "schedule": "fsdp", "nodes": "4", "iteration_s": "1"}
        self.assertEqual(_sweep_rows.title_of([row]), "gpt2, plan best, 4 nodes, schedule fsdp")
        self.assertEqual(list(_sweep_rows.panels_of([row], ("nodes",), ("model", "topology", "algorithm"))), ["gpt2, schedule fsdp"])
        self.assertEqual(list(_sweep_rows.panels_of([row], ("nodes", "schedule"), ("model", "topology"))), ["gpt2"])
        means = {**row, "schedule": "ddp"}
        self.assertEqual(_sweep_rows.title_of([means]), "gpt2, plan best, ps, onebit, 4 nodes")

    def test_the_speedup_is_over_the_plan_that_is_asked_for(self):
        point = {**dict.fromkeys(plot.NEEDED, "1"), "speedup_over_ddp": "3"}
        rows = [{**point, "plan": plan, "nodes": nodes, "iteration_s": time}
                for plan, nodes, time in (("none_grouped", "2", "4"), ("best", "2", "2"), ("none_grouped", "4", "9"),
                                          ("best", "4", "3"))]

        def over(plan: str) -> list:
            return [(row["plan"], value.middle) for row, value in _sweep_rows.speedups(rows, plan)]

        self.assertEqual(over("none_grouped"), [("best", 2.0), ("best", 3.0)])
        self.assertEqual([value for _, value in over("ddp")], [3.0] * 4)
        self.assertEqual([value for _, value in over("none")], [1.0] * 4)
        with self.assertRaisesRegex(PictureError, r"over=fp16: .*it has: best, none_grouped"):
            over("fp16")

    def test_the_interval_of_a_speedup_is_of_one_machine_and_of_errors_of_its_own(self):
        point = {**dict.fromkeys(plot.NEEDED, "1"), "iteration_s_p10": "", "iteration_s_p90": ""}
        rows = [{**point, "plan": "ddp_fp16", "iteration_s": "4", "iteration_s_p10": "2", "iteration_s_p90": "9"},
                {**point, "plan": "best", "iteration_s": "2", "iteration_s_p10": "1.5", "iteration_s_p90": "3"}]
        # Without a row of ddp, the speed-up is 4/2, and its interval reaches from 2/1.5 to 9/3.
        (_, value), = _sweep_rows.speedups(rows, "ddp_fp16")
        self.assertEqual([round(part, 9) for part in (value.low, value.middle, value.high)], [1.333333333, 2, 3])
        # The interval of ddp is a factor of e to either side. That of its speed-up over itself, which has the own errors of two
        # predictions, is e^(1/2). A share of 1/(2 sqrt 2) of each half width is therefore a prediction's own error. The half widths
        # of the two plans are ln(9/2)/2 and ln(2)/2.
        e = 2.718281828459045
        ddp = {**point, "plan": "ddp", "iteration_s": "1", "iteration_s_p10": str(1 / e), "iteration_s_p90": str(e),
               "speedup_over_ddp": "1", "speedup_over_ddp_p10": str(e ** -0.5), "speedup_over_ddp_p90": str(e ** 0.5)}
        value = dict((row["plan"], value) for row, value in _sweep_rows.speedups([ddp, *rows], "ddp_fp16"))["best"]
        own = math.hypot(math.log(4.5), math.log(2)) / 2 / (2 * math.sqrt(2))
        self.assertAlmostEqual(value.low, 2 * math.exp(-math.hypot(math.log(1.5), own)))
        self.assertAlmostEqual(value.high, 2 * math.exp(math.hypot(math.log(1.5), own)))

    @unittest.skipIf(matplotlib is None, "matplotlib is not installed")
    def test_break_even_from_plans_made_for_each_point(self):
        self.sweep()  # writes the model
        (self.folder / "spec.yaml").write_text("model: model.csv\nnodes: 2\nbandwidth: [1Gbps, 10Gbps]\n"
                                               "plan: [best_uncompressed, best, ddp]\n")
        done = subprocess.run([SIM, "sweep", "spec.yaml", "--output", "sweep.csv", "--evaluations", "50"], cwd=self.folder,
                              text=True, capture_output=True, timeout=100, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        # Five plans: two searches for each of two links, and ddp for both, which is a plan and the baseline.
        self.assertIn("6 points, 5 plans made", done.stderr)
        found = _sweep_rows.speedups(plot.read_sweep(self.folder / "sweep.csv", {}), "best_uncompressed")
        self.assertTrue(all(value.middle >= 1 for row, value in found if row["plan"] == "best"))
        drawn = self.draw("sweep.csv", "p.png", "over=best_uncompressed", "plan=best")
        self.assertEqual((drawn.returncode, drawn.stderr), (0, ""))
        self.assertRegex(drawn.stdout, "^model.csv, ps: best pays (at|everywhere)")

    def test_wrong_requests_name_the_remedy(self):
        self.sweep("--shard", "2/2")
        for arguments, culprit in ((("sweep.csv", "p.png"), "first has the header"),
                                   (("none.csv", "p.png"), "none.csv: cannot be read"),
                                   (("sweep.csv",), "usage: plot.py")):
            done = self.draw(*arguments)
            self.assertEqual(done.returncode, 2)
            self.assertIn(culprit, done.stderr)
        self.sweep()
        for condition, culprit in (("model=vgg19", "it takes: model.csv"), ("speed=1", "no column 'speed'")):
            done = self.draw("sweep.csv", "p.png", condition)
            self.assertEqual(done.returncode, 2)
            self.assertIn(culprit, done.stderr)
        self.assertFalse((self.folder / "p.png").exists())

    def test_a_file_that_is_cut_or_holds_no_numbers_is_refused_by_line(self):
        self.sweep()
        lines = (self.folder / "sweep.csv").read_text().splitlines(keepends=True)
        head = [line for line in lines if line.startswith("#")]
        header, *rows = lines[len(head):]
        values = dict(zip(header.strip().split(","), rows[1].strip().split(",")))
        wrong = {column: ",".join({**values, column: "many"}.values()) for column in plot.NUMBERS}
        for second, said in ((rows[1][:20], "as many values"), (rows[1].strip() + ",1", "as many values"),
                             *((row, f"{column} must be a number, got 'many'") for column, row in wrong.items())):
            with self.subTest(second=second):
                (self.folder / "cut.csv").write_text("".join(head) + header + rows[0] + second)
                done = self.draw("cut.csv", "p.png")
                self.assertEqual(done.returncode, 2)
                self.assertIn(f"plot.py: cut.csv:{len(head) + 3}: ", done.stderr)
                self.assertIn(said, done.stderr)

    def test_too_many_panels_are_refused(self):
        row = dict.fromkeys(plot.NEEDED, "1")
        with self.assertRaisesRegex(PictureError, "37 panels.*model=vgg19"):
            _sweep_pictures.maps_of([{**row, "model": str(number)} for number in range(37)], ("none",))


@unittest.skipIf(matplotlib is None, "matplotlib is not installed")
class OtherPythonTest(unittest.TestCase):
    """Tests with a python3 without Debian's packages first on the PATH, as in a virtual environment."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "bin").mkdir()
        (self.folder / "bin/python3").symlink_to(os.path.realpath(sys.executable))
        (self.folder / "pyvenv.cfg").write_text(f"home = {pathlib.Path(os.path.realpath(sys.executable)).parent}\n"
                                                "include-system-site-packages = false\n")
        (self.folder / "losses.csv").write_text("average,step,seconds,loss\nddp,0,0.5,3\n")

    def draw(self, **environment: str) -> subprocess.CompletedProcess:
        return subprocess.run([self.folder / "bin/python3", "-B", ROOT / "scripts/plot.py", "losses", "losses.csv", "--output", "p.png"],
                              cwd=self.folder, env={**os.environ, **environment}, text=True, capture_output=True, timeout=100, check=False)

    def test_the_python_that_has_matplotlib_draws(self):
        done = self.draw()
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual((self.folder / "p.png").read_bytes()[:4], b"\x89PNG")

    def test_that_happens_once(self):
        done = self.draw(HIPRESS_STARTED_ANEW="1")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, "^plot.py: No module .*matplotlib.*install Debian's python3-matplotlib")


class ExampleTest(unittest.TestCase):
    def test_shipped_spec_is_understood(self):
        """Runs only the first of many shards: the whole sweep takes half a minute on a busy machine."""
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([SIM, "sweep", ROOT / "examples/sweep.yaml", "--output", "part.csv",
                                   "--shard", "1/72"], cwd=folder, text=True, capture_output=True, timeout=100,
                                  check=False)
            self.assertEqual(done.returncode, 0, done.stderr)
            lines = (pathlib.Path(folder) / "part.csv").read_text().splitlines()
            self.assertEqual(len([line for line in lines if not line.startswith("#")]), 1 + 288 // 72)

    def test_interrupted_sweep_leaves_the_old_file(self):
        with tempfile.TemporaryDirectory() as folder:
            output = pathlib.Path(folder) / "sweep.csv"
            output.write_text("old")
            with subprocess.Popen([SIM, "sweep", ROOT / "examples/sweep.yaml", "--output", output],
                                  text=True, stderr=subprocess.PIPE) as sweep:
                self.assertIn("288 points", sweep.stderr.readline())  # and now it simulates
                sweep.send_signal(signal.SIGINT)
                self.assertEqual(sweep.wait(timeout=60), -signal.SIGINT)
            self.assertLessEqual({path.name for path in pathlib.Path(folder).iterdir()}, {"sweep.csv", "sweep.csv.cache"})
            self.assertEqual(output.read_text(), "old")


if __name__ == "__main__":
    unittest.main()
