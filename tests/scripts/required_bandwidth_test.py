"""Tests that hipress-plan's command line finds the bandwidths in Streaming DiLoCo's table 4."""

import csv
import json
import math
import pathlib
import subprocess
import sys
import tempfile
import unittest
from concurrent.futures import ThreadPoolExecutor

SOURCE = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(sys.argv.pop(1)) if len(sys.argv) > 1 else SOURCE / "build/release/bin"
GRID_STEP = 10 ** (4 / 49)  # 50 points from 0.1 to 1000 Gbit/s


def cells():
    with open(SOURCE / "tests/data/streaming_diloco_table4.csv", newline="") as table:
        return list(csv.DictReader(table))


def model_of(cell, folder):
    """Writes a model with equal layers, whose forward takes a third of the step. It is in bf16 if 16 bits are sent, otherwise in
    fp32."""
    layers = int(cell["layers"])
    dtype = "bfloat16" if cell["bits"] == "16" else "float32"
    elements = int(float(cell["parameters"]) / layers)
    path = folder / f"{cell['model']}_{dtype}.yaml"
    if not path.exists():
        step_s = float(cell["step_s"])
        rows = [f"- {{name: blocks.{layer}.weight, elements: {elements}, ready: {2 * step_s / 3 * (layers - layer) / layers:.9g}s}}"
                for layer in reversed(range(layers))]
        path.write_text(f"name: m\ndtype: {dtype}\nforward: {step_s / 3:.9g}s\ngradients:\n" + "\n".join(rows) + "\n")
    return path


def schedule_of(cell):
    if cell["method"] == "ddp":
        return "ddp"
    return (f"local(steps={cell['local_steps']}, fragments={cell['fragments']}, every={cell['fragment_every_steps']}, "
            f"overlap={cell['overlap_steps']})")


class Table(unittest.TestCase):
    def found(self, cell, folder, machines):
        command = [BIN / "hipress-plan", "--input", model_of(cell, folder), "--nnodes", "2", "--latency", "0s", "--overhead", "0s",
                   "--network", "port", "--schedule", schedule_of(cell), "--required-bandwidth", "--utilization",
                   f"{100 * float(cell['utilization']):g}%", "--json", *machines]
        if cell["method"] != "ddp":
            command += ["--topology", "ring"]
        if cell["bits"] == "4":
            command += ["--algorithm", "fp4block(block=2048)"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)["required_bandwidth"][0]["bits_per_s"]

    def check(self, machines):
        wrong = []
        with tempfile.TemporaryDirectory() as name, ThreadPoolExecutor(2) as pool:
            folder, table = pathlib.Path(name), cells()
            self.assertEqual(len(table), 75)
            for cell in table:
                model_of(cell, folder)
            for cell, bits_per_s in zip(table, pool.map(lambda cell: self.found(cell, folder, machines), table)):
                published = float(cell["gbit_s"])
                steps = math.log(bits_per_s / 1e9 / published) / math.log(GRID_STEP)
                # The published bandwidth is the largest insufficient one of the grid, with one decimal.
                rounding = math.log(1 + 0.05 / published) / math.log(GRID_STEP)
                if not -1 - rounding < steps <= 1 + rounding:
                    wrong.append((cell["model"], schedule_of(cell), cell["bits"], cell["utilization"], published, bits_per_s / 1e9))
        self.assertEqual(wrong, [])

    def test_without_a_profile(self):
        self.check([])

    def test_with_an_estimated_profile(self):
        self.check(["--profile", "h100-100g"])


if __name__ == "__main__":
    unittest.main()
