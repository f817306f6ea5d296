"""Tests of the requests that bench_codecs refuses: bench_codecs_test.py PATH/bench_codecs [-v]"""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

BENCH = pathlib.Path(sys.argv.pop(1)).resolve()


class BenchCodecsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.rows = pathlib.Path(folder.name) / "rows.json"

    def bench(self, *options: object) -> subprocess.CompletedProcess:
        return subprocess.run([BENCH, "--size", "0.1", "--budget", "0", *map(str, options)], capture_output=True,
                              text=True, timeout=110, check=False)

    def test_chosen_cases_are_written(self):
        done = self.bench("--only", "fp16.decode", "--json", self.rows)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([row["case"] for row in json.loads(self.rows.read_text())["rows"]],
                         ["fp16.decode", "fp16.decode_add"])

    def test_a_name_of_no_case_is_refused(self):
        done = self.bench("--only", "typo", "--json", self.rows)
        self.assertEqual(done.returncode, 2)
        self.assertIn("no case's name contains 'typo'", done.stderr)
        self.assertFalse(self.rows.exists())

    def test_a_file_that_cannot_be_written_is_refused_before_anything_is_timed(self):
        done = self.bench("--json", self.rows / "none.json")
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("choose a folder that exists", done.stderr)


if __name__ == "__main__":
    unittest.main()
