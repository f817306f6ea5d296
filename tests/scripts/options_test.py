"""Tests of scripts/options.py, and that commands that measure for long refuse at once what they cannot do: options_test.py
[-v]"""

import argparse
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
from options import at_least  # noqa: E402  (found through the path above)


class AtLeastTest(unittest.TestCase):
    def test_numbers_that_are_not_less_are_taken(self):
        self.assertEqual([at_least(1)(text) for text in ("1", "12")], [1, 12])
        self.assertEqual([at_least(0, float)(text) for text in ("0", "2.5")], [0, 2.5])

    def test_others_are_refused(self):
        for least, kind, text, said in ((1, int, "0", "an integer of at least 1, got '0'"),
                                        (1, int, "1.5", "an integer of at least 1, got '1.5'"),
                                        (0, int, "-1", "an integer of at least 0, got '-1'"),
                                        (0, float, "nan", "a number of at least 0, got 'nan'"),
                                        (0, float, "inf", "a number of at least 0, got 'inf'"),
                                        (0, float, "", "a number of at least 0, got ''")):
            with self.subTest(text=text), self.assertRaisesRegex(argparse.ArgumentTypeError, f"^must be {said}$"):
                at_least(least, kind)(text)


class RequestsTest(unittest.TestCase):
    """Of experiments on a machine without `ip`, where a request that is not refused is skipped, with exit status 0."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def refuses(self, experiment: str, options: tuple, said: str) -> None:
        with self.subTest(experiment=experiment, options=options):
            done = subprocess.run([sys.executable, "-B", str(ROOT / "scripts/validate.py"), experiment, "--tools", str(self.folder),
                                   *options], env={**os.environ, "PATH": str(self.folder)}, text=True,
                                  capture_output=True, timeout=60, check=False)
            self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
            self.assertIn(said, done.stderr)
            self.assertNotIn("Traceback", done.stderr)

    def test_numbers_that_make_no_sense(self):
        for experiment in ("networks", "plans", "link"):
            self.refuses(experiment, ("--rounds", "0"), "--rounds: must be an integer of at least 1, got '0'")
        for experiment in ("networks", "plans"):
            self.refuses(experiment, ("--iterations", "0"), "--iterations: must be an integer of at least 1, got '0'")
        self.refuses("networks", ("--again", "-1"), "--again: must be an integer of at least 0, got '-1'")
        self.refuses("plans", ("--budget", "nan"), "--budget: must be a number of at least 0, got 'nan'")
        self.refuses("link", ("--ranks", "1"), "--ranks: must be an integer of at least 2, got '1'")
        self.refuses("link", ("--rate", "0"), "--rate: must be an integer of at least 1, got '0'")

    def test_results_that_cannot_be_written(self):
        json, file = self.folder / "none/out.json", self.folder / "file"
        file.write_text("")
        for experiment in ("networks", "plans"):
            output = ("--output", str(self.folder / "out"))
            self.refuses(experiment, (*output, "--json", str(json)), f"{json}: cannot be written: No such file")
            self.refuses(experiment, ("--output", str(file)), f"{file}: no files can be written there: ")
        self.refuses("link", ("--json", str(json)), f"{json}: cannot be written: No such file")


if __name__ == "__main__":
    unittest.main()
