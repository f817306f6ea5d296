"""Runs docs/pytorch-training.md and docs/tutorial.md as printed: their blocks of sh, in a folder with the tree's folders in it. The
build is that of HIPRESS_TOOLS."""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import ranks

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("HIPRESS_TOOLS", ROOT / "build/release/bin")).resolve().parent


def setUpModule() -> None:
    ranks.require_torch()


class DocumentedTest(unittest.TestCase):
    def run_page(self, place: pathlib.Path, page: str, count: int) -> str:
        """What the page's blocks of sh, so many, print in a folder."""
        blocks = re.findall(r"^```sh\n(.*?)^```", (ROOT / page).read_text(), re.MULTILINE | re.DOTALL)
        self.assertEqual(len(blocks), count)
        for name in ("python", "examples", "scripts"):
            (place / name).symlink_to(ROOT / name)
        (place / "build").mkdir()
        (place / "build/release").symlink_to(BUILD)
        (place / "bin").mkdir()
        # No link: a virtual environment's python3 knows by its path that it is one.
        (place / "bin/python3").write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
        (place / "bin/python3").chmod(0o755)
        done = subprocess.run(["sh", "-e", "-c", "\n".join(blocks)], cwd=place, capture_output=True, text=True,
                              env={**os.environ, "PATH": f"{place}/bin:{os.environ['PATH']}"})
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def test_training(self):
        with tempfile.TemporaryDirectory() as folder:
            place = pathlib.Path(folder)
            printed = self.run_page(place, "docs/pytorch-training.md", 4)
            self.assertIn("ready:", (place / "model.yaml").read_text())
            self.assertRegex(printed, "compress")
            self.assertRegex(printed, r"digits, 4 ranks, hipress plan.yaml: [\d.]+ ms a step, training loss [\d.]+, accuracy")
            self.assertRegex(printed, r"digits, 4 ranks, ddp: ")
            self.assertGreater((place / "losses.png").stat().st_size, 10000)


    def test_tutorial(self):
        with tempfile.TemporaryDirectory() as folder:
            place = pathlib.Path(folder)
            printed = self.run_page(place, "docs/tutorial.md", 6)
            self.assertRegex(printed, r"verified: yes|verified +yes|all values verified")
            self.assertIn("traceEvents", (place / "timeline.json").read_text())
            self.assertEqual(len((place / "SeCoPaPlan.txt").read_text().splitlines()), 38)  # VGG19's gradients
            self.assertRegex(printed, r"digits, 2 ranks, hipress plan.yaml: [\d.]+ ms a step, training loss [\d.]+, accuracy")
            self.assertRegex(printed, r"digits, 2 ranks, ddp: ")
            self.assertGreater((place / "losses.png").stat().st_size, 10000)


if __name__ == "__main__":
    unittest.main()
