"""Tests of hipress-plan --required-bandwidth and of scripts/plot.py that draws it: plot_required_test.py [-v] PATH/hipress-plan"""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PLAN = pathlib.Path(sys.argv.pop()).resolve()

try:
    import matplotlib
except ImportError:
    matplotlib = None

SCHEDULES = ("ddp", "local(steps=20)", "local(steps=20,fragments=4,overlap=1)")


def model(layers: int) -> str:
    """Model with equal layers and a step of 30 ms."""
    lines = ["name: alike", "forward: 10ms", "gradients:"]
    for place in range(layers):
        lines.append(f"- {{name: blocks.{layers - 1 - place}.weight, elements: 1000000, ready: {20000 * (place + 1) / layers:.3f}us}}")
    return "\n".join(lines) + "\n"


class RequiredBandwidthTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "model.yaml").write_text(model(8))

    def run_tool(self, *arguments: str) -> subprocess.CompletedProcess:
        nodes = () if "--nnodes" in arguments else ("--nnodes", "4")
        return subprocess.run([PLAN, "--input", "model.yaml", *nodes, "--topology", "ring", "--profile", "h100-100g",
                               "--output", "plan.yaml", *arguments], cwd=self.folder, text=True, capture_output=True, timeout=120,
                              check=False)

    def ask(self, *arguments: str) -> dict:
        done = self.run_tool(*arguments, "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def schedules(self) -> list:
        return [part for schedule in SCHEDULES for part in ("--schedule", schedule)]

    def test_rows_come_schedule_by_schedule_and_give_the_utilization(self):
        rows = self.ask("--required-bandwidth", "--utilization", "50%, 90%", *self.schedules())["required_bandwidth"]
        self.assertEqual([(row["schedule"], row["algorithm"], row["utilization"]) for row in rows],
                         [(schedule, "none", busy) for schedule in SCHEDULES for busy in (0.5, 0.9)])
        for row in rows:
            self.assertIsNone(row["reason"])
            self.assertLessEqual(row["bits_per_s_p10"], row["bits_per_s"])
            self.assertLessEqual(row["bits_per_s"], row["bits_per_s_p90"])
            sim = subprocess.run([PLAN.with_name("hipress-sim"), "--input", "model.yaml", "--plan", "none", "--nnodes", "4",
                                  "--topology", "ring", "--profile", "h100-100g", "--schedule", row["schedule"], "--steady=8",
                                  "--bandwidth", f"{row['bits_per_s'] / 1e9:.6f}Gbit/s", "--json"], cwd=self.folder, text=True,
                                 capture_output=True, timeout=60, check=False)
            self.assertEqual(sim.returncode, 0, sim.stderr)
            self.assertAlmostEqual(json.loads(sim.stdout)["utilization"], row["utilization"], delta=0.005)

    def test_algorithms_are_rows_of_their_own(self):
        rows = self.ask("--required-bandwidth", "--utilization", "80%", "--algorithm", "fp16,int4block", "--schedule",
                        "local(steps=20)")["required_bandwidth"]
        self.assertEqual([row["algorithm"] for row in rows], ["fp16", "int4block"])
        self.assertLess(rows[1]["bits_per_s"], rows[0]["bits_per_s"])

    def test_what_no_bandwidth_reaches_is_null_with_a_reason(self):
        rows = self.ask("--required-bandwidth", "--utilization", "99%", "--latency", "10ms")["required_bandwidth"]
        self.assertIsNone(rows[0]["bits_per_s"])
        self.assertIn("at any bandwidth", rows[0]["reason"])

    def test_schedules_are_compared_and_the_plan_says_the_one_that_is_chosen(self):
        answer = self.ask("--bandwidth", "200Mbit/s", "--evaluations", "30", *self.schedules())
        self.assertEqual([row["schedule"] for row in answer["schedules"]],
                         ["ddp", "local(steps=20)", "local(steps=20, fragments=4, overlap=1)"])
        busy = [row["utilization"] for row in answer["schedules"]]
        self.assertEqual(busy, sorted(busy))
        self.assertEqual(answer["chosen"], "local(steps=20, fragments=4, overlap=1)")
        self.assertEqual(answer["schedules"][0]["gives_up"], "")
        self.assertIn("1 step late", answer["schedules"][2]["gives_up"])
        self.assertIn("schedule: local(steps=20, fragments=4, overlap=1)", (self.folder / "plan.yaml").read_text())
        sim = subprocess.run([PLAN.with_name("hipress-sim"), "--input", "model.yaml", "--plan", "plan.yaml", "--profile", "h100-100g",
                              "--bandwidth", "200Mbit/s", "--json"], cwd=self.folder, text=True, capture_output=True, timeout=60,
                             check=False)
        self.assertEqual(sim.returncode, 0, sim.stderr)
        self.assertEqual(json.loads(sim.stdout)["iteration_s"], answer["schedules"][2]["predicted_iteration_s"])

    def test_what_makes_no_sense_is_refused_with_a_remedy(self):
        for arguments, words in (
                (["--schedule", "local(steps=0)"], "steps must be a whole number from 1"),
                (["--schedule", "local(steps=10, fragments=9)"], "of a model of 8 layers: give at most that many"),
                (["--schedule", "local(steps=10, overlap=10)"], "give an overlap of at most 9"),
                (["--schedule", "local(steps=10, pattern=random)"], "strided or sequential"),
                (["--schedule", "sometimes"], "known are ddp, local"),
                (["--required-bandwidth", "--utilization", "0%"], "above 0% and below 100%"),
                (["--required-bandwidth", "--utilization", "100%"], "above 0% and below 100%"),
                (["--required-bandwidth", "--utilization", "half"], "must be percentages"),
                (["--required-bandwidth", "--utilization", "0.5"], "must be percentages"),
                (["--required-bandwidth", "--nnodes", "1"], "at least two nodes"),
                (["--utilization", "50%"], "--required-bandwidth: give that too")):
            with self.subTest(arguments):
                done = self.run_tool(*arguments)
                self.assertEqual(done.returncode, 2, done.stdout)
                self.assertIn(words, done.stderr)
                self.assertFalse((self.folder / "plan.yaml").exists())

    @unittest.skipUnless(matplotlib, "matplotlib is missing")
    def test_the_curves_are_drawn(self):
        answer = self.ask("--required-bandwidth", *self.schedules())
        (self.folder / "required.json").write_text(json.dumps(answer))
        done = subprocess.run([sys.executable, ROOT / "scripts/plot.py", "required.json", "curves.svg"], cwd=self.folder, text=True,
                              capture_output=True, timeout=60, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("<svg", (self.folder / "curves.svg").read_text())
        for text, words in (("[]", "is not what hipress-plan"), ("{", "is not what hipress-plan"),
                            ('{"required_bandwidth": []}', "no bandwidth reaches")):
            (self.folder / "required.json").write_text(text)
            done = subprocess.run([sys.executable, ROOT / "scripts/plot.py", "required.json", "none.svg"], cwd=self.folder, text=True,
                                  capture_output=True, timeout=60, check=False)
            self.assertEqual(done.returncode, 2)
            self.assertIn(words, done.stderr)


if __name__ == "__main__":
    unittest.main()
