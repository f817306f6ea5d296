"""Captures the scripts in public/ under one rank and under two. Prints captured times beside those that the scripts measured."""

import importlib.metadata
import importlib.util
import os
import pathlib
import re
import socket
import subprocess
import sys
import tempfile
import unittest

import ranks

FOLDER = pathlib.Path(__file__).parent / "public"
#: Scripts: name, required package besides torch, micro-steps, name of one gradient, number of gradients.
SCRIPTS = (("gpt_accumulation", None, 4, "blocks.0.attention.qkv.weight", 52), ("trainer_class", None, 1, "0.weight", 6),
           ("resnet", None, 1, "3.first_norm.bias", 38), ("gan", None, 1, "9.weight", 10), ("embedding_gru", None, 1, "bag.weight", 12),
           ("accelerate_loop", "accelerate", 3, "2.bias", 6), ("trainer", "transformers", 2, "transformer.wte.weight", 40),
           ("lightning_module", "lightning", 1, "encoder.0.weight", 8))
#: Scripts with buffers of truth values, which gloo cannot broadcast before PyTorch 2.
BOOL_BUFFERS = {"gpt_accumulation"}
STEPS = int(os.environ.get("HIPRESS_CAPTURE_STEPS", "16"))


def setUpModule() -> None:
    ranks.require_torch()


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


def seconds(text: str, key: str) -> float:
    return float(re.search(rf"(?m)^{key}: ([\d.]+)us", text)[1]) * 1e-6


def captured(script: pathlib.Path, folder: pathlib.Path, count: int) -> tuple:
    """Captures a script under `count` ranks. Returns the model file, the time of a step by the script's own clock in seconds, and
    the messages."""
    output = folder / f"{count}.yaml"
    port = free_port()
    jobs = []
    for rank in range(count):
        launched = {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(count), "LOCAL_WORLD_SIZE": str(count),
                    "NODE_RANK": "0", "GROUP_RANK": "0", "TORCHELASTIC_RUN_ID": "test", "MASTER_ADDR": "127.0.0.1",
                    "MASTER_PORT": str(port)}
        jobs.append(subprocess.Popen([sys.executable, "-B", "-W", "ignore", "-m", "hipress.capture", "--output", output, script,
                                      str(STEPS)], env={**os.environ, "OMP_NUM_THREADS": "1", **launched}, cwd=folder, text=True,
                                     stdout=subprocess.PIPE, stderr=subprocess.PIPE))
    said = [job.communicate(timeout=300) for job in jobs]
    for job, (_, error) in zip(jobs, said):
        if job.returncode != 0:
            raise AssertionError(error)
    return output, float(re.search(r"(?m)^step ([\d.]+)$", said[0][0])[1]), said[0][1]


class Public(unittest.TestCase):
    def check(self, name: str, micro_steps: int, gradient: str, gradients: int) -> None:
        with tempfile.TemporaryDirectory() as temporary:
            folder = pathlib.Path(temporary)
            alone, step, _ = captured(FOLDER / f"{name}.py", folder, 1)
            together, _, said = captured(FOLDER / f"{name}.py", folder, 2)
            self.assertIn("the 2 ranks of this DistributedDataParallel do not average", said)
            texts = [path.read_text() for path in (alone, together)]
            listed = [sorted(re.findall(r"(?m)^- \{name: \"?([\w.]+)\"?, elements: (\d+)", text)) for text in texts]
            self.assertEqual(listed[0], listed[1])
            self.assertEqual(len(listed[0]), gradients)
            self.assertIn(gradient, dict(listed[0]))
            for text in texts:
                self.assertIn(f"micro_steps: {micro_steps}\n", re.sub(r"  # .* had another number", "", text))
            self.print(name, texts, step, micro_steps)
            tools = os.environ.get("HIPRESS_TOOLS")
            if tools:
                done = subprocess.run([f"{tools}/hipress-sim", "--input", together, "--plan", "none", "--nnodes", "2", "--json"],
                                      capture_output=True, text=True, check=False)
                self.assertEqual(done.returncode, 0, done.stderr)

    def print(self, name: str, texts: list, step: float, micro_steps: int) -> None:
        parts = [(seconds(text, "forward"), max(map(float, re.findall(r"ready: ([\d.]+)us", text))) * 1e-6, seconds(text, "optimizer"))
                 for text in texts]
        predicted = micro_steps * (parts[0][0] + parts[0][1]) + parts[0][2]
        print(f"{name}: a step of one rank {1e3 * predicted:.1f} ms predicted, {1e3 * step:.1f} ms measured "
              f"({100 * (predicted / step - 1):+.1f} %); two ranks over one: " +
              ", ".join(f"{part} {two / one:.2f}" for part, one, two in zip(("forward", "last ready", "optimizer"), *parts)))


def _test(name: str, package, *facts):
    def test(self):
        if package is not None and importlib.util.find_spec(package) is None:
            self.skipTest(f"no {package} for this python3: pip install {package}")
        if name in BOOL_BUFFERS and importlib.metadata.version("torch").startswith("1."):
            self.skipTest("gloo of PyTorch 1 broadcasts no truth values")
        self.check(name, *facts)

    return test


for _script, _package, *_facts in SCRIPTS:
    setattr(Public, f"test_{_script}", _test(_script, _package, *_facts))


if __name__ == "__main__":
    unittest.main()
