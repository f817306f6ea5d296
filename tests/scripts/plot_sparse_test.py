"""Tests of scripts/plot_sparse.py: where lines cross, and what it says of a tool that fails.

Usage: plot_sparse_test.py
"""

import contextlib
import io
import pathlib
import stat
import sys
import tempfile
import unittest
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
import plot_sparse  # noqa: E402  (found through the path above)


class CrossingTest(unittest.TestCase):
    def test_lines_cross_between_two_densities(self):
        # Twice as fast, then twice as slow: in the middle of 0.01 and 1 on a logarithmic scale.
        self.assertAlmostEqual(plot_sparse.crossing([0.01, 1], [1, 4], 2), 0.1)
        self.assertAlmostEqual(plot_sparse.crossing([0.001, 0.1, 0.2], [3, 1, 4], 2), 0.1 * 2 ** 0.5)  # the last one counts

    def test_who_is_always_or_never_faster(self):
        self.assertEqual(plot_sparse.crossing([0.01, 1], [3, 4], 2), 0.01)
        self.assertIsNone(plot_sparse.crossing([0.01, 1], [1, 2], 2))

    def test_break_evens_are_said(self):
        times = [100 * density for density in plot_sparse.DENSITIES]
        self.assertEqual(plot_sparse.break_evens({2: times}, {"none": 50, "fp16": 200}),
                         ["packing=2: the fp32 ring is faster from density 0.5 on",
                          "packing=2: the fp16 ring is faster at no density"])


class RunTest(unittest.TestCase):
    def run_it(self, tool: str) -> tuple[int, str]:
        said = io.StringIO()
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "hipress-sim")
            path.write_text(f"#!/bin/sh\n{tool}\n")
            path.chmod(path.stat().st_mode | stat.S_IXUSR)
            with mock.patch.object(sys, "argv", ["plot_sparse.py", f"{folder}/picture.png", "--tools", folder]), \
                 mock.patch("picture.start_where_matplotlib_is"), contextlib.redirect_stderr(said):
                return plot_sparse.main(), said.getvalue()

    def test_a_request_that_the_tool_refuses_is_wrong(self):
        status, said = self.run_it("echo unknown profile >&2; exit 2")
        self.assertEqual(status, 2)
        self.assertIn("unknown profile", said)

    def test_a_tool_that_fails_is_a_failure(self):
        self.assertEqual(self.run_it("exit 3")[0], 1)


if __name__ == "__main__":
    unittest.main()
