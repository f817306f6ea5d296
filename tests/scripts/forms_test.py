"""Tests of files of PyTorch and NumPy that are refused as models: the command in the refusal makes a file that is read.

    forms_test.py FOLDER_OF_TOOLS [-v]
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

TOOLS = pathlib.Path(sys.argv.pop(1)).resolve()

try:
    import numpy
    import torch
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

#: Weights and biases of the layers below, without the norm's running statistics.
PARAMETERS = 3 * 4 * 9 + 4 + 2 * 4 + 4 * 5 + 5


def model() -> torch.nn.Module:
    return torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.Linear(4, 5))


class FormsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "bin").mkdir()
        # A link would not do: a virtual environment's python3 finds its environment by its own path.
        (self.folder / "bin/python3").write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
        (self.folder / "bin/python3").chmod(0o755)

    def run_import(self, name: str):
        return subprocess.run([TOOLS / "hipress-import", name], cwd=self.folder, capture_output=True, text=True, check=False)

    def check(self, name: str, form: str, parameters: int = PARAMETERS) -> None:
        """Requires that the file is refused as this form, and that the command makes a listing with that number of parameters."""
        refused = self.run_import(name)
        self.assertEqual(refused.returncode, 2, refused.stdout)
        found = re.search(rf"{re.escape(form)}.* and is not read; this makes a file to give instead: (.*)", refused.stderr)
        self.assertIsNotNone(found, refused.stderr)
        environment = {**os.environ, "PATH": f"{self.folder}/bin:{os.environ['PATH']}"}
        made = subprocess.run(found[1], shell=True, cwd=self.folder, env=environment, capture_output=True, text=True, check=False)
        self.assertEqual(made.returncode, 0, made.stderr)
        listed = subprocess.run([TOOLS / "hipress-import", "listing.txt", "--json"], cwd=self.folder, capture_output=True,
                                text=True, check=False)
        self.assertEqual(listed.returncode, 0, listed.stderr)
        self.assertIn(f'"elements": {parameters}', listed.stdout)

    def test_pickles(self):
        torch.save(model().state_dict(), self.folder / "a.pt")
        self.check("a.pt", "PyTorch's pickle")
        torch.save({"state_dict": model().state_dict(), "epoch": 3}, self.folder / "checkpoint.bin")
        self.check("checkpoint.bin", "PyTorch's pickle")
        torch.save(model().state_dict(), self.folder / "old.pt", _use_new_zipfile_serialization=False)
        self.check("old.pt", "PyTorch's pickle")

    def test_torchscript(self):
        torch.jit.trace(model()[0], torch.zeros(1, 3, 8, 8)).save(self.folder / "scripted.pt")
        self.check("scripted.pt", "TorchScript's archive", 3 * 4 * 9 + 4)

    def test_numpy(self):
        numpy.savez(self.folder / "a.npz", weight=numpy.zeros((4, 5)), bias=numpy.zeros(5))
        self.check("a.npz", "NumPy's archive", 25)

    def test_listings_as_python_prints_them(self):
        for text in ("\n".join(f"{name} {tuple(one.shape)}" for name, one in model().named_parameters()),
                     "\n".join(f"{name} {one.shape}" for name, one in model().named_parameters()),
                     "\n".join(str((name, one.shape)) for name, one in model().named_parameters()),
                     "\n".join(f"{name}\t{list(one.shape)}\t{one.dtype}" for name, one in model().named_parameters())):
            (self.folder / "listing.txt").write_text(text + "\n")
            done = subprocess.run([TOOLS / "hipress-import", "listing.txt", "--json"], cwd=self.folder, capture_output=True,
                                  text=True, check=False)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn(f'"elements": {PARAMETERS}', done.stdout)
        (self.folder / "printed.txt").write_text(f"{model()}\n")
        self.assertIn("as print() shows it", self.run_import("printed.txt").stderr)


if __name__ == "__main__":
    unittest.main()
