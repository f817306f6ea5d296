"""Tests of hipress.capture and python -m hipress.capture, whose files hipress-plan takes.

Usage: capture_test.py TOOLS
"""

import json
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import unittest

try:
    import torch
except ImportError:
    print("skipped: this python3 has no torch (Debian package python3-torch)")
    sys.exit(0)
import hipress

TOOLS = pathlib.Path(".")
SCRIPT = """import sys, torch
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(int(sys.argv[1])):
    optimizer.zero_grad()
    model(torch.randn(4, 8)).square().mean().backward()
    optimizer.step()
print("trained", step + 1)
"""


class Slow(torch.autograd.Function):
    """Passes a value on; backward takes 20 ms."""

    @staticmethod
    def forward(context, value):
        return value * 1.0

    @staticmethod
    def backward(context, gradient):
        time.sleep(0.02)
        return gradient


class Sleepy(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = torch.nn.Linear(8, 16), torch.nn.Linear(16, 2)
        self.unused = torch.nn.Parameter(torch.zeros(3))

    def forward(self, values):
        return {"scores": self.second(Slow.apply(self.first(values)))}


def train(model: torch.nn.Module, optimizer: torch.optim.Optimizer, steps: int) -> None:
    for _ in range(steps):
        optimizer.zero_grad()
        model(torch.randn(4, 8))["scores"].square().mean().backward()
        optimizer.step()


class CaptureTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def plan(self, model: pathlib.Path) -> dict:
        done = subprocess.run([TOOLS / "hipress-plan", "--input", model, "--topology", "RING", "--nnodes", "2", "--output",
                               self.folder / "plan.yaml", "--json"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def test_gradients_come_with_shapes_and_the_times_at_which_they_were_ready(self):
        file = self.folder / "model.yaml"
        model = Sleepy()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        with hipress.capture(model, file, batch=4, optimizer=optimizer):
            train(model, optimizer, 6)
        text = file.read_text()
        ready = {name: float(time_us) for name, time_us in re.findall(r'name: "([^"]+)".*ready: ([\d.]+)us', text)}
        self.assertEqual(set(ready), {"first.weight", "first.bias", "second.weight", "second.bias"})
        self.assertGreaterEqual(ready["first.weight"] - ready["second.weight"], 19e3)  # the sleep lies between them
        self.assertIn("shape: [16, 8]", text)
        self.assertIn("batch: 4", text)
        self.assertIn("1 parameters had no gradient", text)
        self.assertIn("The optimizer's step takes", text)
        self.plan(file)
        self.assertNotIn("step", vars(optimizer))

    def test_nothing_is_written_of_too_few_steps_or_after_an_error(self):
        file = self.folder / "model.yaml"
        model = Sleepy()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        with self.assertRaisesRegex(ValueError, "saw 1 steps with a backward after 2 for warm-up"):
            with hipress.capture(model, file):
                train(model, optimizer, 3)
        with self.assertRaises(KeyError), hipress.capture(model, file):
            train(model, optimizer, 6)
            raise KeyError
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_a_script_is_captured_as_it_is(self):
        (self.folder / "train.py").write_text(SCRIPT)
        done = subprocess.run([sys.executable, "-m", "hipress.capture", "--steps", "4", "--output", "out.yaml", "train.py", "9"],
                              cwd=self.folder, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout, "trained 9\n")
        self.assertIn("written to out.yaml", done.stderr)
        self.assertEqual(len(re.findall(r"ready:", (self.folder / "out.yaml").read_text())), 4)
        self.assertIn("Captured from 4 training steps", (self.folder / "out.yaml").read_text())
        self.plan(self.folder / "out.yaml")

    def test_a_missing_script_and_too_few_steps_are_refused(self):
        for arguments, text in ((["none.py"], "there is no script 'none.py'"), (["--steps", "1", "x"], "--steps must be at least 2")):
            done = subprocess.run([sys.executable, "-m", "hipress.capture", *arguments], capture_output=True, text=True)
            self.assertEqual(done.returncode, 2)
            self.assertIn(text, done.stderr)


if __name__ == "__main__":
    TOOLS = pathlib.Path(sys.argv.pop(1)).resolve()
    unittest.main()
