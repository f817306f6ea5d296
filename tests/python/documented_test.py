"""Runs docs/pytorch-training.md as printed: its blocks of sh, in a folder with the tree's folders in it.

Usage: documented_test.py BUILD
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

try:
    import torch  # noqa: F401  (whether there is one)
except ImportError:
    print("skipped: this python3 has no torch (Debian package python3-torch)")
    sys.exit(0)

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / "build/release"


class DocumentedTest(unittest.TestCase):
    def test_the_commands_do_what_the_page_says(self):
        blocks = re.findall(r"^```sh\n(.*?)^```", (ROOT / "docs/pytorch-training.md").read_text(), re.MULTILINE | re.DOTALL)
        self.assertEqual(len(blocks), 4)
        with tempfile.TemporaryDirectory() as folder:
            place = pathlib.Path(folder)
            for name in ("python", "examples", "scripts"):
                (place / name).symlink_to(ROOT / name)
            (place / "build").mkdir()
            (place / "build/release").symlink_to(BUILD)
            (place / "bin").mkdir()
            (place / "bin/python3").symlink_to(sys.executable)
            done = subprocess.run(["sh", "-e", "-c", "\n".join(blocks)], cwd=place, capture_output=True, text=True,
                                  env={**os.environ, "PATH": f"{place}/bin:{os.environ['PATH']}"})
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.assertIn("ready:", (place / "model.yaml").read_text())
            self.assertRegex(done.stdout, "compress")
            self.assertRegex(done.stdout, r"digits, 4 ranks, hipress plan.yaml: [\d.]+ ms a step, training loss [\d.]+, accuracy")
            self.assertRegex(done.stdout, r"digits, 4 ranks, ddp: ")
            self.assertGreater((place / "losses.png").stat().st_size, 10000)


if __name__ == "__main__":
    BUILD = pathlib.Path(sys.argv.pop(1)).resolve()
    unittest.main()
