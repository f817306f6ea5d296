"""Tests of the experiment buckets: the Python alone, on tools, ip, tc and a python3 with torch that answer what the test
says. No rights needed.

Usage: validate_buckets_test.py
"""

import unittest

from fake_tools import NOTING_TOOL, FakeToolsTest, NeedsTorch, Verifies
from validation.experiments import buckets  # found through the path that fake_tools adds
from validation.ranks import ToolError

#: hipress-plan advises a cap of 5 to resnet50, and the default to others.
FAKE_TOOL = NOTING_TOOL + """
if tool == "hipress-profile":
    sys.exit(0)
advice = "bucket_cap_mb 5 saves 2.0 % of 1s with 25" if "resnet50" in value("--input") else "bucket_cap_mb 25, as now, is best: 1s"
print(json.dumps({{"in_words": ["without compression, this job is bound by the network: …", advice]}}))
"""

#: As a rank; asked with -c, it has torch. A cap of 5 takes 1.0 s, 25 takes 1.02, all others 2.
FAKE_PYTHON = """#!{python}
import json, os, sys
if sys.argv[1] == "-c":
    sys.exit("NO_TORCH" in os.environ)
caps = [sys.argv[i + 1] for i, word in enumerate(sys.argv) if word == "--bucket-mb"]
seconds = {{"5": [1.0, 1.1, 0.9], "25": [1.02] if "lstm" not in str(sys.argv) else [1.2]}}
if os.environ["RANK"] == "0":
    print(json.dumps({{"by_bucket_mb": {{cap + ".0": seconds.get(cap, [2.0]) for cap in caps}},
                       "verified": "WRONG" not in os.environ}}))
"""


class BucketsTest(NeedsTorch, Verifies, FakeToolsTest):
    experiment = "buckets"
    short = ("--jobs", "1")
    tools = {"hipress-plan": FAKE_TOOL, "hipress-profile": FAKE_TOOL, "python_with_torch": FAKE_PYTHON}

    def test_the_advised_cap_is_laid_beside_the_fastest(self):
        said, found = self.run_for_json("--jobs", "3")
        cases = {case["model"]: case for case in found["cases"]}
        self.assertEqual([cases[name]["advised"] for name in ("resnet50", "bert_base", "lstm")], [5, 25, 25])
        # 1.02 s is 2 % behind 1 s, 1.2 s is 20 %: more than the 3 % that count as equal.
        self.assertAlmostEqual(cases["bert_base"]["behind"], 0.02)
        self.assertEqual([cases[name]["right"] for name in ("resnet50", "bert_base", "lstm")], [True, True, False])
        self.assertEqual((found["right"], found["jobs"]), (2, 3))
        self.assertIn("within 3 % of the fastest in 2 of 3 jobs", said)
        self.assertEqual("\n".join(self.calls()).count("--advise"), 3)

    def test_advice_without_buckets_is_an_error(self):
        with self.assertRaisesRegex(ToolError, "nothing of bucket_cap_mb"):
            buckets.advised_cap(["this job is bound by computation"])

    def test_jobs_of_one_network_stand_together(self):
        networks = [job[1:] for job in buckets.JOBS]
        self.assertEqual(len(networks), 10)
        self.assertEqual(len([1 for a, b in zip(networks, networks[1:]) if a != b]) + 1, len(set(networks)))


if __name__ == "__main__":
    unittest.main()
