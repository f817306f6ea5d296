"""Tests the public interface's annotations: mypy --strict finds no error in a program that uses all of it."""

import importlib.util
import inspect
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import hipress
import ranks

PROGRAM = pathlib.Path(__file__).parent / "public_surface.py"
PACKAGE = pathlib.Path(hipress.__file__).parent


class Annotations(unittest.TestCase):
    @unittest.skipIf(importlib.util.find_spec("mypy") is None, "needs mypy")
    def test_a_program_is_clean_under_mypy_strict(self):
        with tempfile.TemporaryDirectory() as cache:
            done = subprocess.run([sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "--cache-dir", cache,
                                   str(PROGRAM)],
                                  env={**os.environ, "MYPYPATH": str(PACKAGE.parent)}, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_the_program_uses_all_that_is_public(self):
        used = set(re.findall(r"hipress\.(\w+)", PROGRAM.read_text()))
        self.assertEqual(set(hipress.__all__) - used, set())
        self.assertTrue((PACKAGE / "py.typed").is_file())

    @unittest.skipIf(ranks.MISSING is not None, str(ranks.MISSING))
    def test_all_that_is_public_is_documented(self):
        missing = []
        for name in hipress.__all__:
            found = getattr(hipress, name)
            members = vars(found).items() if inspect.isclass(found) else ()
            missing += [name] if not inspect.getdoc(found) else []
            missing += [f"{name}.{member}" for member, value in members if not member.startswith("_") and
                        (inspect.isfunction(value) or isinstance(value, property)) and not inspect.getdoc(value)]
        self.assertEqual(missing, [])


if __name__ == "__main__":
    unittest.main()
