"""Tests of the experiment training: the Python alone, on tools, ip, tc and a python3 with torch that answer what the test says.
No rights needed.

Usage: validate_training_test.py
"""

import unittest

from fake_tools import FakeToolsTest, NeedsTorch
from validation.experiments import training  # found through the path that fake_tools adds

FAKE_TOOL = """#!{python}
import json, pathlib, sys
pathlib.Path(sys.argv[sys.argv.index("--output") + 1]).write_text("made")
print(json.dumps({{"predicted_iteration_s": 0.105}}))
"""

#: In seconds, ours 0.1 and the best of DDP 0.12.
FAKE_PYTHON = """#!{python}
import json, os, pathlib, sys
words = sys.argv[1:]
if words[0] == "-c":
    sys.exit("NO_TORCH" in os.environ)
if "hipress.capture" in words:
    assert "GLOO_SOCKET_IFNAME" not in os.environ  # alone
    pathlib.Path(words[words.index("--output") + 1]).write_text(CAPTURED)
    sys.exit(0)
assert os.environ["GLOO_SOCKET_IFNAME"] == "eth0" and "--rendezvous" in words
def seconds(words):
    return 0.1 if "--plan" in words else 0.12 if "powersgd" in words else 0.2
ways = [words[i + 1].partition("=") for i, word in enumerate(words) if word == "--way"]
if os.environ["RANK"] != "0":
    sys.exit(0)
if not ways:
    print(json.dumps({{"iterations_s": [seconds(" ".join(words))] * 3}}))
    sys.exit(0)
slower = float(os.environ.get("SLOWER", "1"))
blocks = lambda one: [[9.0, one, one], [9.0, one * slower, one * slower]]
print(json.dumps({{"ways": {{name: {{"blocks_s": blocks(seconds(text)), "losses": [2.5] * 10}} for name, _, text in ways}}}}))
"""

CAPTURED = """# Written by hipress.capture.
name: Small
dtype: float32
forward: 1000.0us  # 900.0us to 1100.0us
optimizer: 1000.0us  # 900.0us to 1100.0us; step() alone 800.0us
threads: 1  # for 5 % of these steps it waited for a core, which is left out
forward_core_time: 990.0us
optimizer_core_time: 980.0us
hook: {backward: 20.0us, after: 30.0us}
gradients:  # in backward order
- {name: last.bias, elements: 10, ready: 5.0us, shape: [10], core_time: 4.0us, bucket: 0}  # 4.0us to 6.0us
- {name: "odd, name", elements: 1000000, ready: 3000.0us, shape: [1000, 1000], bucket: 0}  # 1.0us to 2.0us
"""


def braced(text: str) -> str:
    return repr(text).replace("{", "{{").replace("}", "}}")


class TrainingTest(NeedsTorch, FakeToolsTest):
    experiment = "training"
    tools = {"hipress-plan": FAKE_TOOL, "hipress-profile": FAKE_TOOL, "python_with_torch": FAKE_PYTHON.replace("CAPTURED", braced(CAPTURED))}

    def test_cells_are_measured_and_summed_up(self):
        out, found = self.run_for_json("--models", "text", "--nnodes", "2", "--compute", "paced,real", "--steps", "30")
        cells = found["cells"]
        self.assertEqual([(cell["rate"], cell["compute"]) for cell in cells],
                         [(200, "paced"), (200, "real"), (1000, "paced"), (1000, "real")])
        first = cells[0]
        # Predicted 0.105 s, measured 0.1; bytes over bandwidth: 2 ms optimizer and forward, 3 ms backward, and of 2 ranks each sends 4.00004 MB
        # over 25 MB/s once: 160.0016 ms.
        self.assertAlmostEqual(first["error"], 0.05)
        self.assertAlmostEqual(first["bandwidth_s"], 0.005 + 4.00004e6 / 25e6)
        self.assertTrue(first["best"].startswith("ddp+powersgd"))
        self.assertAlmostEqual(first["ratio"], 1.2)
        self.assertEqual(cells[1]["losses"]["ours"], 2.5)
        self.assertIn("paced: best, or within 3 % of it, in 2 of 2 cells; error of the prediction: median 5.0 %", out)
        self.assertIn("real: best, or within 3 % of it, in 2 of 2 cells", out)

    def test_paced_gradients_have_the_names_of_their_ranks(self):
        text = training.as_scripts_read(training.paced_names(CAPTURED))
        self.assertIn("- {name: weights.1, elements: 10, ready: 5.0us, shape: [10], bucket: 0}\n", text)
        self.assertIn("- {name: weights.0, elements: 1000000, ready: 3000.0us, shape: [1000, 1000], bucket: 0}\n", text)
        self.assertIn("forward: 2.000000ms\n", text)
        self.assertNotIn("#", text)
        for word in ("optimizer", "threads", "core_time", "hook"):
            self.assertNotIn(word, text)

    def test_a_machine_that_changes_its_speed_is_noted(self):
        for slower, changed in (("1", False), ("1.1", False), ("1.3", True)):
            out, found = self.run_for_json("--models", "text", "--nnodes", "2", "--rates", "200", "--compute", "real", SLOWER=slower)
            self.assertEqual(found["cells"][0]["changed_speed"], changed)
            self.assertEqual("changed speed" in out, changed)

    def test_what_there_is_not_is_refused(self):
        for arguments in (("--models", "vgg"), ("--rates", "5"), ("--compute", "imagined"), ("--steps", "5")):
            with self.assertRaises(SystemExit) as raised:
                self.run_it(*arguments)
            self.assertEqual(raised.exception.code, 2, arguments)


if __name__ == "__main__":
    unittest.main()
