"""Tests of the experiment schedules: the Python alone, on tools, ip and tc that answer what the test says. No rights needed.

Usage: validate_schedules_test.py
"""

import unittest

from fake_tools import NOTING_TOOL, FakeToolsTest, Verifies
from validation.experiments import schedules  # found through the path that fake_tools adds

#: A period takes 2 s, and 5 % more is predicted.
FAKE_TOOL = NOTING_TOOL + """\
if tool == "hipress-exec" and os.environ.get("RANK") == "0":
    print(json.dumps({{"each_measured_iteration_s": [2.0], "predicted_iteration_s": 2.1,
                       "predicted_iteration_s_p10": 1.9, "predicted_iteration_s_p90": 2.2,
                       "verified": "WRONG" not in os.environ}}))
"""


class SchedulesTest(Verifies, FakeToolsTest):
    experiment = "schedules"
    short = ("--rounds", "1", "--rates", "200")
    tools = {"hipress-exec": FAKE_TOOL, "hipress-profile": FAKE_TOOL}

    def test_every_schedule_is_replayed_at_every_rate(self):
        said, rows = self.run_for_json("--rounds", "1")
        self.assertEqual([(row["rate"], row["schedule"], row["algorithm"], row["gathered"], row["shards_by"]) for row in rows],
                         [(rate, *row) for rate in (200, 50) for row in schedules.SCHEDULES])
        self.assertEqual(rows[0]["iterations_s"], [2.0])
        self.assertAlmostEqual(rows[0]["error"], 0.05)
        self.assertIn("error: median 5.0 %, p90 5.0 %, 20 of 20 inside their interval", said)
        calls = (self.folder / "bin/calls").read_text()
        self.assertIn("--schedule local(steps=12, fragments=4, overlap=1)", calls)
        self.assertIn("--plan all --algorithm int4block", calls)
        self.assertRegex(calls, r"--plan \S+plan_int4block_int8block\.yaml --shards-by ring .*--schedule fsdp ")


if __name__ == "__main__":
    unittest.main()
