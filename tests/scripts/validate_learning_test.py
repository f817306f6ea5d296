"""Tests of the experiment learning: its plans, and the tables that it makes of pilots and of measured steps. Trains nothing.

Usage: validate_learning_test.py
"""

import argparse
import contextlib
import csv
import io
import pathlib
import tempfile
import types
import unittest
from unittest import mock

import validate_training_test
from fake_tools import FakeToolsTest
from validation import learning  # found through the path that fake_tools adds
from validation.experiments import learning as experiment
from validation.experiments.training import DDP
from hipress import _pilot_file

JOB = learning.JOBS[0]
GRADIENTS = [["head.bias", [10]], ["head.weight", [10, 256]], ["first.weight", [64, 1, 3, 3]]]


def said(function, *arguments) -> str:
    with contextlib.redirect_stdout(io.StringIO()) as out:
        function(*arguments)
    return out.getvalue()


class Plans(unittest.TestCase):
    def test_jobs_are_twelve_and_half_of_them_are_judged(self):
        self.assertEqual(len({job.name for job in learning.JOBS}), 12)
        self.assertEqual(sum(job.fitted for job in learning.JOBS), 6)
        self.assertEqual({job.ranks for job in learning.JOBS}, {2, 4, 8})

    def test_low_rank_is_for_matrices_that_it_halves(self):
        self.assertEqual(learning.allowed([10]), ["none"])
        # Factors of rank 4 of 64 x 9 have 4·73 = 292 numbers, more than half of 576; those of rank 1 have 73.
        self.assertEqual(learning.allowed([64, 1, 3, 3]), ["none", "int4block", "powersgd(rank=1)", "onebit"])
        self.assertEqual(learning.allowed([10, 256]), list(learning.MIXED))

    def test_plans_differ_and_are_the_same_in_every_run(self):
        plans = [learning.mixed_plan(JOB, GRADIENTS, number) for number in range(1, 6)]
        self.assertEqual(plans, [learning.mixed_plan(JOB, GRADIENTS, number) for number in range(1, 6)])
        self.assertGreater(len(set(plans)), 1)
        for plan in plans:
            self.assertIn("- {name: head.bias, elements: 10, algorithm: none, K: 1}", plan)


class Ratios(unittest.TestCase):
    def test_mixed_plans_are_predicted_from_algorithms_alone(self):
        found = {"steps_ratio": 1.5, "steps_ratio_p10": 1.3, "steps_ratio_p90": 1.8}
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "pilot.yaml"
            rows = [{"plan": "onebit", "ratio": 2.0, "p10": 1.9, "p90": 2.1, "after": 90.0, "runs": 1},
                    {"plan": "a.mixed1.yaml", "ratio": 1.2, "p10": 1.1, "p90": 1.3, "after": 90.0, "runs": 1},
                    {"plan": "a.mixed2.yaml", "ratio": "never", "runs": 1}]
            _pilot_file.write(path, {"schema": 1, "ratios": rows, "plans": [{"plan": "a.mixed1.yaml"}, {"plan": "none"}], "errors": []})
            options = argparse.Namespace(output=pathlib.Path(folder), bench=types.SimpleNamespace(python="python3"), jobs=1, seeds=3)
            with mock.patch.object(learning, "pilot", lambda *_: path), mock.patch.object(learning, "write_plans"), \
                    mock.patch.object(experiment, "predicted", lambda job, _, plan, pilot: pilots.append(pilot) or found):
                pilots: list = []
                table = experiment.ratios_of(JOB, options)
            alone = _pilot_file.read(pilots[0])
        self.assertEqual([row["plan"] for row in alone["ratios"]], ["onebit"])
        self.assertEqual([row["plan"] for row in alone["plans"]], ["none"])
        self.assertEqual(len(table), 1)
        # 1.5 / 1.2 - 1, and 1.2 is below 1.3.
        self.assertAlmostEqual(table[0]["error"], 0.25)
        self.assertEqual((table[0]["half"], table[0]["within"]), ("fitted", 0))
        self.assertEqual(said(experiment.say_ratios, table),
                         "fitted: 1 plans, error median 25.0 %, largest 25.0 %; 0 % within the interval\n")


class Cells(FakeToolsTest):
    experiment = "learning"
    tools = validate_training_test.TrainingTest.tools

    def test_a_time_to_a_loss_is_steps_times_their_ratio(self):
        seconds = {"ddp": 0.2, "ddp+fp16": 0.1, "ddp+powersgd 1": 0.05, "ddp+powersgd 2": 0.06, "ddp+powersgd 4": 0.07, "plan": 0.08}
        ratios = {"ddp": 1.0, "ddp+fp16": 1.0, "ddp+powersgd 1": "never", "ddp+powersgd 2": 2.0, "ddp+powersgd 4": 1.5, "plan": 1.25}
        rows = experiment.rows_of(JOB, 200, seconds, ratios)
        times = {row["arm"]: row["per_ddp_step_s"] for row in rows}
        self.assertEqual(times["ddp+powersgd 1"], "")
        self.assertAlmostEqual(times["ddp+powersgd 2"], 0.12)
        # 0.08·1.25 = 0.1, as fp16, which is the best of DDP.
        self.assertAlmostEqual(next(row for row in rows if row["arm"] == "plan")["over_best_of_ddp"], 1.0)
        self.assertEqual(said(experiment.say_cells, rows),
                         "1 cells: within 3 % of the best of DDP in 1, ahead in 0, more than 3 % behind DDP in 0\n")

    def test_cells_are_measured_once(self):
        """With the tools of validate_training_test, of which a step takes 0.1 s with a plan, 0.12 s with powerSGD and else 0.2 s."""
        ratios = {**dict.fromkeys(learning.ALGORITHMS, 1.0), "powersgd(rank=2)": 1.5, "powersgd(rank=4)": "never"}
        asked = []

        def pilot(job, folder, plans, python, jobs, seeds):
            plans = [str(plan) for plan in plans]
            asked.append(plans)
            rows = [{"plan": plan, "ratio": ratio} for plan, ratio in {**ratios, **dict.fromkeys(plans, 1.1)}.items()]
            _pilot_file.write(folder / "pilot.yaml", {"schema": 1, "ratios": rows})
            return folder / "pilot.yaml"

        with mock.patch.object(learning, "pilot", pilot):
            for _ in range(2):
                status, _ = self.run_it("cells", "--of", JOB.name, "--rates", "200")
                self.assertEqual(status, 0, self.complained)
        with open(self.folder / "out/cells.csv", encoding="utf-8") as file:
            rows = {row["arm"]: row for row in csv.DictReader(file)}
        self.assertEqual(len(rows), len(DDP) + 2)
        self.assertAlmostEqual(float(rows["ddp+powersgd 1"]["per_ddp_step_s"]), 0.12)
        self.assertEqual(rows["ddp+powersgd 4"]["per_ddp_step_s"], "")
        self.assertAlmostEqual(float(rows["plan"]["per_ddp_step_s"]), 0.11)
        # The second run has nothing to do.
        out = self.folder / "out"
        self.assertEqual(asked, [[], [str(out / f"{JOB.name}.200.{arm}.yaml") for arm in ("plan", "time")]])

    def test_the_first_step_of_a_block_does_not_count(self):
        # Medians of blocks are 2, 4 and 9.
        self.assertEqual(experiment.seconds_of([[50, 2, 2, 3], [50, 4, 4, 4], [0, 9, 9, 9]]), 4)


if __name__ == "__main__":
    unittest.main()
