"""Tests of .ci/run, whose steps are here scripts that end at once, and of the requests that scripts/fuzz.sh refuses: ci_test.py
[-v]"""

import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]


class Steps(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        (self.root / ".ci").mkdir()
        (self.root / "scripts").mkdir()
        shutil.copy(ROOT / ".ci/run", self.root / ".ci/run")
        self.script("test.sh", 'echo "test.sh $*"')
        self.script("fuzz.sh", 'echo "skipped: there is no clang++; install it"; exit 3')
        self.script("lint.py", 'echo "lint.py $*"')

    def script(self, name, body):
        path = self.root / "scripts" / name
        path.write_text(f"#!/bin/bash\n{body}\n", encoding="utf-8")
        path.chmod(0o755)

    def git(self, *words):
        subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *words], cwd=self.root, check=True, capture_output=True)

    def ran(self, **environment):
        """Runs .ci/run. Returns the exit status, the lines, and the last lines without their seconds."""
        clean = {name: value for name, value in os.environ.items() if not name.startswith(("CI_", "GIT_"))}
        done = subprocess.run([self.root / ".ci/run"], capture_output=True, text=True, check=False,
                              env={**clean, "GIT_CEILING_DIRECTORIES": str(self.root.parent), **environment})
        lines = done.stdout.splitlines()
        return done.returncode, lines, [re.sub(r" +\d+ s  ", ": ", line) for line in lines[-5:]]

    def test_every_step_is_printed_with_its_result(self):
        status, lines, table = self.ran()
        self.assertEqual(status, 0)
        self.assertEqual(table, ["ci: tests: passed", "ci: address: passed", "ci: thread: passed",
                                 "ci: lint: skipped: no origin/main to compare with; set CI_BASE",
                                 "ci: fuzz: skipped: there is no clang++; install it"])
        self.assertRegex(lines[-6], r"^ci: in all \d+ min \d+ s$")
        self.assertIn("test.sh ", lines)
        self.assertIn("test.sh --sanitize address io transport", lines)

    def test_a_change_is_linted_where_it_left_its_base(self):
        self.git("init", "-b", "main")
        self.git("add", "-A")
        self.git("commit", "-m", "base")
        self.assertIn("ci: lint: skipped: nothing differs from main, and the clone has no earlier commit",
                      self.ran(CI_BASE="main")[2])
        self.git("checkout", "-b", "change")
        self.script("more.sh", "true")
        self.git("add", "-A")
        self.git("commit", "-m", "change")
        base = subprocess.run(["git", "rev-parse", "main"], cwd=self.root, capture_output=True, text=True,
                              check=True).stdout.strip()
        status, lines, table = self.ran(CI_BASE="main")
        self.assertEqual((status, table[3]), (0, "ci: lint: passed"))
        self.assertIn(f"lint.py --change {base}", lines)
        # Once main has the commit, the commit itself is checked.
        self.git("branch", "-f", "main")
        self.assertIn(f"lint.py --change {base}", self.ran(CI_BASE="main")[1])

    def test_a_failed_step_fails_all_and_the_others_run(self):
        self.script("test.sh", '[[ $2 != address ]]')
        status, _, table = self.ran()
        self.assertEqual((status, table[:3]), (1, ["ci: tests: passed", "ci: address: failed", "ci: thread: passed"]))


class Fuzz(unittest.TestCase):
    def test_wrong_requests_are_refused(self):
        for options, said in ((["soon"], "'soon' is no number of seconds"), (["0"], "'0' is no number"),
                              (["5", "yaml"], "unknown program 'yaml' (known: greeting")):
            with self.subTest(options=options):
                done = subprocess.run([ROOT / "scripts/fuzz.sh", *options], capture_output=True, text=True, check=False)
                self.assertEqual(done.returncode, 2)
                self.assertIn(said, done.stderr)


if __name__ == "__main__":
    unittest.main()
