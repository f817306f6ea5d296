"""Tests of the experiment lowrank: the Python alone, on tools, ip, tc and a python3 with torch that answer what the test
says. No rights needed.

Usage: validate_lowrank_test.py
"""

import unittest

from fake_tools import FakeToolsTest, NeedsTorch, Verifies
from validation.experiments import lowrank  # found through the path that fake_tools adds

FAKE_TOOL = """#!{python}
import json, os, pathlib, sys
name = pathlib.Path(sys.argv[0]).name
if os.environ.get("RANK", "0") == "0":
    with open(pathlib.Path(__file__).resolve().parent / "calls", "a") as calls:
        print(name, *sys.argv[1:], file=calls)
if "--output" in sys.argv:
    pathlib.Path(sys.argv[sys.argv.index("--output") + 1]).write_text("schema: hipress.profile/1\\n")
fp16 = "fp16" in sys.argv
print(json.dumps({{"predicted_iteration_s": 2.02, "predicted_iteration_s_p10": 1.99, "predicted_iteration_s_p90": 2.1,
                   "each_measured_iteration_s": [40.0 if fp16 else 2.0] * 3, "verified": "WRONG" not in os.environ}}))
"""

#: As a rank; asked with -c, it has torch unless the environment says otherwise. Buckets of 5 MB, batched, are the fastest.
FAKE_PYTHON = """#!{python}
import json, os, sys
if sys.argv[1] == "-c":
    sys.exit("NO_TORCH" in os.environ)
options = sys.argv
model = json.load(open(options[options.index("--model") + 1]))
assert options[options.index("--powersgd") + 1] == "4" and len(model["gradients"][-1]["shape"]) > 1
best = options[options.index("--bucket-mb") + 1] == "5" and "--batched" in options
if os.environ["RANK"] == "0":
    print(json.dumps({{"iterations_s": [3.0 if best else 5.0] * 3}}))
"""


class LowRankTest(NeedsTorch, Verifies, FakeToolsTest):
    experiment = "lowrank"
    short = ("--models", "resnet50", "--rates", "1000")
    tools = {"hipress-exec": FAKE_TOOL, "hipress-plan": FAKE_TOOL, "hipress-profile": FAKE_TOOL, "python_with_torch": FAKE_PYTHON}

    def test_ours_is_laid_beside_the_best_of_ddp_and_beside_its_prediction(self):
        said, found = self.run_for_json("--models", "resnet50")
        self.assertEqual([(case["model"], case["rate"]) for case in found["cases"]], [("resnet50", 200), ("resnet50", 1000)])
        case = found["cases"][0]
        self.assertAlmostEqual(case["ratio"], 1.5)
        self.assertAlmostEqual(case["error"], 0.01)
        self.assertTrue(case["inside"])
        self.assertEqual(len(case["ddp"]), 2 * len(lowrank.BUCKETS))
        self.assertIn("DDP with its hook over ours: median 1.50, least 1.50", said)
        self.assertIn("error: median 1.0 %, p90 1.0 %, 2 of 2 inside their interval", said)
        self.assertIn("alone: 20.0 times as fast as the ring in fp16", said)
        plans = [call for call in self.calls() if call.startswith("hipress-plan")]
        self.assertEqual(len(plans), 2)
        self.assertIn("--algorithm powersgd(rank=4,ef=2)", plans[0])


if __name__ == "__main__":
    unittest.main()
