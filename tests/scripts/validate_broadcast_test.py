"""Tests of the experiment broadcast: the Python alone, on tools, ip, tc and a python3 with torch that answer what the test
says. No rights needed.

Usage: validate_broadcast_test.py
"""

import importlib.util
import struct
import unittest

from fake_tools import NOTING_TOOL, FakeToolsTest, NeedsTorch, Verifies
from validation.experiments import broadcast  # found through the path that fake_tools adds

#: A plan holds its arguments; a replay of it takes 1 s raw, and compressed a quarter of that.
FAKE_TOOL = NOTING_TOOL + """\
if tool == "hipress-plan":
    pathlib.Path(value("--output")).write_text(value("--algorithm"))
    print(json.dumps({{"algorithm": value("--algorithm"), "chunks": 7}}))
if tool == "hipress-exec" and os.environ.get("RANK") == "0":
    seconds = 1.0 if pathlib.Path(value("--plan")).read_text() == "none" else 0.25
    print(json.dumps({{"each_measured_iteration_s": [seconds], "predicted_iteration_s": 1.1 * seconds,
                       "predicted_iteration_s_p10": 0.9 * seconds, "predicted_iteration_s_p90": 1.2 * seconds,
                       "verified": "WRONG" not in os.environ}}))
"""

#: gloo's broadcast takes 2 s.
FAKE_PYTHON = """#!{python}
import json, os, sys
if sys.argv[1] == "-c":
    sys.exit("NO_TORCH" in os.environ)
if sys.argv[2].endswith("weights.py"):
    os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
assert os.environ["WORLD_SIZE"] and "--rendezvous" in sys.argv
if os.environ["RANK"] == "0":
    print(json.dumps({{"iterations_s": [2.0], "verified": True, "torch": "1"}}))
"""


class BroadcastTest(NeedsTorch, Verifies, FakeToolsTest):
    experiment = "broadcast"
    short = ("--nnodes", "2", "--rounds", "1")
    tools = {"hipress-plan": FAKE_TOOL, "hipress-exec": FAKE_TOOL, "hipress-profile": FAKE_TOOL, "python_with_torch": FAKE_PYTHON}

    def test_ours_are_laid_beside_gloos_and_predictions_beside_measurements(self):
        said, found = self.run_for_json("--nnodes", "3,2", "--codecs", "tbq(tau=0.5)", "--rounds", "2")
        ways = [("gloo", "none"), ("chain", "none"), ("chain", "tbq(tau=0.5)")]
        self.assertEqual([(case["nnodes"], case["topology"], case["codec"]) for case in found["cases"]],
                         [(nnodes, *way) for nnodes in (3, 2) for way in ways])
        chain = found["cases"][2]
        self.assertEqual((chain["measured_s"], chain["chunks"], chain["iterations_s"]), (0.25, 7, [0.25, 0.25]))
        self.assertAlmostEqual(chain["below_gloo"], 0.875)
        self.assertAlmostEqual(chain["error"], 0.1)
        self.assertIn("N = 3: the raw chain is 50.0 % below gloo's broadcast\n", said)
        self.assertIn("N = 2: the chain with tbq(tau=0.5) is 87.5 % below gloo's broadcast\n", said)
        self.assertIn("error: median 10.0 %, p90 10.0 %, 4 of 4 inside their interval", said)

    def test_a_lossless_codec_gets_weights_of_bf16(self):
        if importlib.util.find_spec("numpy") is None:
            self.skipTest("this python3 has no numpy")
        status, said = self.run_it(*self.short, "--codecs", "fp16", "--lossless", "packed", "--bytes", "4000")
        self.assertEqual(status, 0, said)
        self.assertIn("N = 2: the chain with packed is 75.0 % below the raw one, of bf16 weights\n", said)
        root, other = ((self.folder / f"out/weights_2/rank{rank}/0.f32").read_bytes() for rank in (0, 1))
        self.assertEqual((len(root), other), (8000, bytes(8000)))
        numbers = struct.unpack("<2000f", root)
        self.assertAlmostEqual(sum(number * number for number in numbers) / 2000, 0.02 ** 2, delta=5e-5)
        self.assertTrue(all(root[4 * i:4 * i + 2] == b"\0\0" for i in range(2000)))
        calls = (self.folder / "bin/calls").read_text()
        self.assertIn("--dtype bfloat16 --topology chain --algorithm packed", calls)
        self.assertIn(f"--gradients {self.folder}/out/weights_2", calls)

    def test_codecs_are_separated_by_commas_outside_parentheses(self):
        self.assertEqual(broadcast.algorithms("fp16,dgc(rho=0.1,momentum=0),tbq"),
                         ["fp16", "dgc(rho=0.1,momentum=0)", "tbq"])


if __name__ == "__main__":
    unittest.main()
