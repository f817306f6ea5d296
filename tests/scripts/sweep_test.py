"""Tests of hipress-sim sweep: refusals, interrupts, resumed sweeps, job arrays and output: sweep_test.py [-v] PATH/hipress-sim"""

import csv
import json
import os
import pathlib
import random
import signal
import stat
import subprocess
import sys
import tempfile
import time
import unittest

SIM = pathlib.Path(sys.argv.pop()).resolve()

MODEL = "name,elements,ready_us\nbig,4000000,1000\nmiddle,70000,800\nsmall,100,500\n"
SPEC = """model: model.csv
topology: [ps, ring]
nodes: [2, 4, 8]
plan: [none, all, best]
algorithm: [onebit, fp16]
bandwidth: {from: 1Gbps, to: 100Gbps, points: 3, scale: log}
"""
# Fake of `sbatch --wait`: runs the tasks of an array one after the other on this machine, and fills in the patterns of file names.
# Then it waits for the file that SWEEP_TEST_WAIT names.
SBATCH = """#!/usr/bin/env python3
import os, pathlib, re, subprocess, sys, time
options = dict(word.split("=", 1) for word in sys.argv[1:] if word.startswith("--") and "=" in word)
first, last = map(int, options["--array"].split("-"))
failed = 0
for task in range(first, last + 1):
    known = {"%%": "%", "%a": str(task), "%j": "4711"}
    with open(re.sub("%.", lambda found: known[found[0]], options["--output"]), "w") as log:
        failed |= subprocess.run(["sh", "-c", sys.argv[sys.argv.index("--wrap") + 1]], stderr=log,
                                 env={**os.environ, "SLURM_ARRAY_TASK_ID": str(task)}).returncode
while "SWEEP_TEST_WAIT" in os.environ and not pathlib.Path(os.environ["SWEEP_TEST_WAIT"]).exists():
    time.sleep(0.01)
sys.exit(1 if failed else 0)
"""


class SweepTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "model.csv").write_text(MODEL)
        (self.folder / "spec.yaml").write_text(SPEC)

    def command(self, output: str, *more: str) -> list:
        return [SIM, "sweep", "spec.yaml", "--output", output, "--evaluations", "30", *more]

    def sweep(self, output: str, *more: str, **environment: str) -> subprocess.CompletedProcess:
        return subprocess.run(self.command(output, *more), cwd=self.folder, text=True, capture_output=True, timeout=100,
                              check=False, env={**os.environ, **environment})

    def read(self, name: str) -> str:
        return (self.folder / name).read_text()

    def whole(self) -> str:
        done = self.sweep("whole.csv", "--cache", "none")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertFalse((self.folder / "whole.csv.cache").exists())
        return self.read("whole.csv")

    def test_killed_at_any_moment_and_resumed_it_is_the_same_file(self):
        began = time.monotonic()
        whole = self.whole()
        took = time.monotonic() - began
        draw = random.Random(7)
        for _ in range(10):
            with subprocess.Popen(self.command("s.csv"), cwd=self.folder, stderr=subprocess.DEVNULL) as sweep:
                try:
                    sweep.wait(timeout=draw.uniform(0.05, 0.5) * took)
                except subprocess.TimeoutExpired:
                    sweep.send_signal(signal.SIGKILL)
        done = self.sweep("s.csv")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.read("s.csv"), whole)
        again = self.sweep("s.csv")
        self.assertIn(" 0 simulations", again.stderr)
        self.assertIn("108 of the points are known from s.csv.cache", again.stderr)
        self.assertEqual(self.read("s.csv"), whole)

    def test_an_interrupt_says_what_is_kept(self):
        (self.folder / "spec.yaml").write_text(SPEC.replace("points: 3", "points: 300"))
        with subprocess.Popen(self.command("s.csv", "--jobs", "1"), cwd=self.folder, text=True,
                              stderr=subprocess.PIPE) as sweep:
            while not list(self.folder.glob("s.csv.cache/*.yaml")):  # one plan is made, many are not
                time.sleep(0.01)
            sweep.send_signal(signal.SIGINT)
            said = sweep.stderr.read()
        self.assertEqual(sweep.returncode, -signal.SIGINT)
        self.assertRegex(said, "interrupted; simulated points are kept in s.csv.cache, and the same command continues")
        self.assertFalse((self.folder / "s.csv").exists())

    def path_with_sbatch(self) -> str:
        sbatch = self.folder / "bin/sbatch"
        sbatch.parent.mkdir()
        sbatch.write_text(SBATCH)
        sbatch.chmod(sbatch.stat().st_mode | stat.S_IXUSR)
        return f"{sbatch.parent}:{os.environ['PATH']}"

    def test_an_array_of_four_joins_to_the_same_file(self):
        whole = self.whole()
        path = self.path_with_sbatch()
        for name in ("100%j %%a.csv", "new\nline $HOME `id` \"x\".csv"):
            done = self.sweep(name, "--slurm", "4", PATH=path)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(self.read(name), whole)
            self.assertEqual(list(self.folder.glob("*.part-*")), [])
        done = self.sweep("a b's.csv", "--slurm", "4", PATH=path)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.read("a b's.csv"), whole)
        self.assertEqual(list(self.folder.glob("*.part-*")), [])
        # If a task fails, its log is left, and no output.
        (self.folder / "model.csv").write_text("name,elements,ready_us\nbig,0,1000\n")
        failed = self.sweep("f.csv", "--slurm", "2", PATH=path)
        self.assertEqual(failed.returncode, 1, failed.stderr)
        self.assertRegex(failed.stderr, r"f\.csv\.part-[0-9a-f]{16}-\*\.log")
        logs = list(self.folder.glob("f.csv.part-*-1.log"))
        self.assertEqual(len(logs), 1)
        self.assertIn("model.csv:2", logs[0].read_text())
        self.assertFalse((self.folder / "f.csv").exists())

    def test_two_arrays_of_one_output_do_not_mix(self):
        whole = self.whole()
        path = self.path_with_sbatch()
        # The first array ends only after the second has written the output and removed its parts.
        with subprocess.Popen(self.command("s.csv", "--slurm", "4"), cwd=self.folder, text=True, stderr=subprocess.PIPE,
                              env={**os.environ, "PATH": path, "SWEEP_TEST_WAIT": str(self.folder / "go")}) as first:
            while len(list(self.folder.glob("s.csv.part-*.log"))) < 4:
                time.sleep(0.01)
            second = self.sweep("s.csv", "--slurm", "4", PATH=path)
            self.assertEqual(second.returncode, 0, second.stderr)
            self.assertEqual(self.read("s.csv"), whole)
            (self.folder / "go").touch()
            said = first.stderr.read()
        self.assertEqual(first.returncode, 0, said)
        self.assertEqual(self.read("s.csv"), whole)
        self.assertEqual(list(self.folder.glob("*.part-*")), [])

    def test_what_the_spec_does_not_use_is_refused_or_said(self):
        done = self.sweep("s.csv", "--algorithm", "int4block")
        self.assertEqual(done.returncode, 2)
        self.assertIn("--algorithm 'int4block' is no program (x.pse)", done.stderr)
        (self.folder / "spec.yaml").write_text("model: model.csv\nplan: none\n")
        program = pathlib.Path(__file__).resolve().parent.parent / "kernels/data/Spread.pse"
        done = self.sweep("s.csv", "--trust-plan", "--algorithm", str(program))
        self.assertEqual(done.returncode, 0, done.stderr)
        for option in ("--evaluations", "--trust-plan", "--algorithm"):
            self.assertIn(f"{option} has no effect", done.stderr)

    def test_slurm_refuses_what_it_cannot_do(self):
        empty = self.folder / "empty"
        empty.mkdir()
        for arguments, culprit in ((("s.csv",), "there is no sbatch"), (("s.csv", "--shard", "1/2"), "leave --shard out"),
                                   (("s.csv", "--json"), "leave out --json"),
                                   (("/dev/null",), "give --output FILE.csv"), (("a\\b.csv",), "backslash")):
            done = self.sweep(*arguments, "--slurm", "2", PATH=str(empty))
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(culprit, done.stderr)
        (self.folder / "spec.yaml").write_text("model: model.csv\nnodez: 3\n")
        done = self.sweep("s.csv", "--slurm", "2", PATH=str(empty))
        self.assertEqual(done.returncode, 2)
        self.assertIn("spec.yaml:2", done.stderr)

    def test_json_needs_no_output(self):
        def run(*arguments: str) -> subprocess.CompletedProcess:
            return subprocess.run([SIM, "sweep", "spec.yaml", "--evaluations", "30", *arguments], cwd=self.folder, text=True,
                                  capture_output=True, timeout=100, check=False)

        neither = run()
        self.assertEqual((neither.returncode, neither.stdout), (2, ""))
        self.assertIn("--output is required", neither.stderr)
        printed = json.loads(run("--json").stdout)
        self.assertEqual([path.name for path in self.folder.iterdir()].count("spec.yaml.cache"), 0)
        rows = [line.split(",") for line in self.whole().splitlines() if not line.startswith("#")]
        self.assertEqual(printed["columns"], rows[0])
        self.assertEqual([["" if value is None else str(value) for value in row[:4]] for row in printed["rows"]],
                         [row[:4] for row in rows[1:]])

    def test_intervals_are_those_of_a_single_prediction(self):
        lines = [line for line in self.whole().splitlines() if not line.startswith("#")]
        rows = [row for row in csv.DictReader(lines) if row["plan"] in ("none", "all") and row["nodes"] == "4"]
        self.assertEqual(len(rows), 24)
        for row in rows:
            bandwidth = f"{float(row['bandwidth_bytes_per_s']):.0f}B/s"
            done = subprocess.run([SIM, "--input", "model.csv", "--plan", row["plan"], "--topology", row["topology"],
                                   "--nnodes", "4", "--algorithm", row["algorithm"], "--profile", "sosp21",
                                   "--bandwidth", bandwidth, "--json"],
                                  cwd=self.folder, text=True, capture_output=True, timeout=60, check=True)
            single = json.loads(done.stdout)
            for key in ("iteration_s", "iteration_s_p10", "iteration_s_p90"):
                self.assertAlmostEqual(float(row[key]) / single[key], 1, delta=1e-5, msg=f"{key} of {row}")
            self.assertLess(float(row["speedup_over_ddp_p10"]), float(row["speedup_over_ddp_p90"]))

    def test_the_file_says_what_it_was_made_of(self):
        head = [line for line in self.whole().splitlines() if line.startswith("#")]
        self.assertRegex(head[0], r"^# hipress \d+\.\d+")
        self.assertTrue(any(line.startswith("# model model.csv: ") for line in head), head)
        self.assertTrue(any(line.startswith("# profile sosp21: ") for line in head), head)
        without = self.sweep("n.csv", "--no-intervals", "--cache", "none")
        self.assertEqual(without.returncode, 0, without.stderr)
        rows = csv.DictReader(line for line in self.read("n.csv").splitlines() if not line.startswith("#"))
        self.assertEqual({row["iteration_s_p10"] for row in rows}, {""})


if __name__ == "__main__":
    unittest.main()
