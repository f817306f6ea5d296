"""Runs the commands and programs in docs/pytorch-training.md and docs/tutorial.md as printed, with the build of HIPRESS_TOOLS."""

import os
import pathlib
import sys
import tempfile
import unittest

import ranks

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOOLS = pathlib.Path(os.environ.get("HIPRESS_TOOLS", ROOT / "build/release/bin")).resolve()
sys.path.insert(0, str(ROOT / "tests/scripts"))
import documented_pages  # noqa: E402  (found through the path above)


def setUpModule() -> None:
    ranks.require_torch()


class DocumentedTest(unittest.TestCase):
    def test_training(self):
        with tempfile.TemporaryDirectory() as folder:
            place = pathlib.Path(folder)
            printed = documented_pages.run("docs/pytorch-training.md", place, TOOLS)
            self.assertIn("ready:", (place / "model.yaml").read_text())
            self.assertRegex(printed, "compress")
            self.assertRegex(printed, r"digits, 4 ranks, hipress plan.yaml: [\d.]+ ms a step, training loss [\d.]+, accuracy")
            self.assertRegex(printed, r"digits, 4 ranks, ddp: ")
            # The script with torch.multiprocessing learns its linear map.
            self.assertRegex(printed, r"2 ranks, loss 0\.0\d")
            self.assertGreater((place / "losses.png").stat().st_size, 10000)

    def test_tutorial(self):
        with tempfile.TemporaryDirectory() as folder:
            place = pathlib.Path(folder)
            printed = documented_pages.run("docs/tutorial.md", place, TOOLS)
            self.assertRegex(printed, r"verified: yes|verified +yes|all values verified")
            self.assertIn("traceEvents", (place / "timeline.json").read_text())
            self.assertEqual((place / "vgg19.yaml").read_text().count("- {name: "), 38)  # VGG19's gradients
            self.assertRegex(printed, r"digits, 2 ranks, hipress plan.yaml: [\d.]+ ms a step, training loss [\d.]+, accuracy")
            self.assertRegex(printed, r"digits, 2 ranks, ddp: ")
            self.assertGreater((place / "losses.png").stat().st_size, 10000)


if __name__ == "__main__":
    unittest.main()
