"""Tests of the experiment ddp: the Python alone, on tools, ip, tc and a python3 with torch that answer what the test
says. No rights needed.

Usage: validate_ddp_test.py
"""

import argparse
import unittest

from fake_tools import ROOT, FakeToolsTest, NeedsTorch, Verifies
from options import some_of  # found through the path that fake_tools adds
from validation import cases

FAKE_TOOL = """#!{python}
import json, pathlib, sys
with open(pathlib.Path(__file__).resolve().parent / "calls", "a") as calls:
    print(pathlib.Path(sys.argv[0]).name, *sys.argv[1:], file=calls)
if "--output" in sys.argv:
    pathlib.Path(sys.argv[sys.argv.index("--output") + 1]).write_text("schema: hipress.profile/1\\n")
print(json.dumps({{"iteration_s": 2.04, "iteration_s_p10": 1.9, "iteration_s_p90": 2.1}}))
"""

#: As a rank; asked with -c, it has torch unless the environment says otherwise.
FAKE_PYTHON = """#!{python}
import json, os, sys
if sys.argv[1] == "-c":
    sys.exit("NO_TORCH" in os.environ)
assert os.environ["WORLD_SIZE"] and "--rendezvous" in sys.argv
model = json.load(open(sys.argv[sys.argv.index("--model") + 1]))
assert model["forward_s"] > 0 and model["gradients"][0]["elements"] >= 1
if os.environ["RANK"] == "0":
    print(json.dumps({{"iterations_s": [2.0, 2.2, 1.9], "verified": "WRONG" not in os.environ, "torch": "1",
                       "bucket_bytes": [1]}}))
"""


class DdpTest(NeedsTorch, Verifies, FakeToolsTest):
    experiment = "ddp"
    short = ("--models", "resnet50", "--nnodes", "2")
    tools = {"hipress-sim": FAKE_TOOL, "hipress-profile": FAKE_TOOL, "python_with_torch": FAKE_PYTHON}

    def test_predictions_are_laid_beside_measurements(self):
        said, found = self.run_for_json()
        self.assertEqual([(case["model"], case["nnodes"]) for case in found["cases"]],
                         [("resnet50", 2), ("bert_base", 2), ("resnet50", 4), ("bert_base", 4)])
        case = found["cases"][0]
        self.assertEqual((case["measured_s"], case["predicted_s"], case["predicted_s_p90"]), (2.0, 2.04, 2.1))
        self.assertAlmostEqual(case["error"], 0.02)
        self.assertAlmostEqual(found["worst_abs_error"], 0.02)
        self.assertIn("error: median 2.0 %, worst 2.0 %", said)
        calls = "\n".join(self.calls())
        self.assertEqual(calls.count("hipress-sim"), 4)
        self.assertEqual(calls.count("--plan ddp"), 4)
        self.assertIn("--transport gloo", calls)

    def test_lists_take_what_there_is(self):
        parse = some_of((2, 4), int)
        self.assertEqual(parse("4,2"), [4, 2])
        with self.assertRaisesRegex(argparse.ArgumentTypeError, "must be some of 2, 4, got '3'"):
            parse("2,3")

    def test_the_ranks_get_what_the_simulator_gets(self):
        text = (ROOT / "models/resnet50.yaml").read_text()
        scaled = cases.gradients_of(cases.scaled_model(text, cases.Scale(0.5, 2)))
        whole = cases.gradients_of(text)
        self.assertEqual(len(scaled["gradients"]), len(whole["gradients"]))
        self.assertAlmostEqual(scaled["forward_s"], 2 * whole["forward_s"])
        self.assertAlmostEqual(scaled["gradients"][-1]["ready_s"], 2 * whole["gradients"][-1]["ready_s"])
        self.assertEqual(scaled["gradients"][1]["elements"], 1024000)


if __name__ == "__main__":
    unittest.main()
