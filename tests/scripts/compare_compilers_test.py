"""Tests of scripts/compare_compilers.sh on simulators that answer what a test says: compare_compilers_test.py [-v]"""

import os
import pathlib
import subprocess
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts/compare_compilers.sh"

#: Prints a report and writes the same into the files that it is asked for; fails where its arguments match a pattern.
SIMULATOR = """#!/bin/sh
case "$*" in {fails}) echo "out of memory" >&2; exit {status} ;; esac
report='{{"answer": {answer}}}'
for word; do
  case $option in --trace | --output) echo "$report" >"$word" ;; esac
  option=$word
done
echo "$report"
"""


class CompareCompilersTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name).resolve()
        self.bin, self.tools, self.clang = (self.folder / name for name in ("bin", "tools", "clang"))
        self.provide(self.bin / "clang++", "#!/bin/sh\n")
        self.provide(self.bin / "cmake", "#!/bin/sh\n")
        self.provide_simulator(self.tools)
        self.provide_simulator(self.clang / "bin")

    def provide(self, program: pathlib.Path, text: str):
        program.parent.mkdir(parents=True, exist_ok=True)
        program.write_text(text)
        program.chmod(0o755)

    def provide_simulator(self, folder: pathlib.Path, answer: str = "42", fails: str = "never", status: int = 1):
        self.provide(folder / "hipress-sim", SIMULATOR.format(answer=answer, fails=fails, status=status))

    def compare(self, *options: object) -> subprocess.CompletedProcess:
        environment = {**os.environ, "PATH": f"{self.bin}:/usr/bin:/bin"}
        return subprocess.run([SCRIPT, *(options or ("--tools", self.tools, "--clang", self.clang))], cwd=self.folder,
                              env=environment, capture_output=True, text=True, check=False)

    def test_the_same_bytes_pass(self):
        done = self.compare()
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        # Ten command lines, a report and a trace each, and the sweep.
        self.assertEqual([line.split()[0] for line in done.stdout.splitlines()], ["same"] * 21)

    def test_other_bytes_are_told(self):
        self.provide_simulator(self.clang / "bin", answer="43")
        done = self.compare()
        self.assertEqual(done.returncode, 1)
        self.assertIn("21 outputs differ", done.stderr)

    def test_a_tool_that_fails_is_quoted_and_is_no_wrong_request(self):
        for fails in ("*--json*", "*--trace*", "sweep*"):
            for status in (1, 2, 3):
                for folder in (self.tools, self.clang / "bin"):
                    with self.subTest(fails=fails, status=status, folder=folder.name):
                        self.provide_simulator(folder, fails=fails, status=status)
                        done = self.compare()
                        self.assertEqual(done.returncode, 1)
                        self.assertIn(f"{folder}/hipress-sim", done.stderr)
                        self.assertIn("out of memory", done.stderr)
                        self.provide_simulator(folder)

    def test_a_build_that_fails_is_no_wrong_request(self):
        self.provide(self.bin / "cmake", "#!/bin/sh\nexit 2\n")
        done = self.compare()
        self.assertEqual(done.returncode, 1)
        self.assertIn("cannot build", done.stderr)

    def test_a_folder_of_tools_that_is_not_there_is_refused_and_not_made(self):
        typo = self.folder / "typo"
        done = self.compare("--tools", typo)
        self.assertEqual(done.returncode, 2)
        self.assertIn(f"no folder {typo}", done.stderr)
        self.assertFalse(typo.exists())


if __name__ == "__main__":
    unittest.main()
