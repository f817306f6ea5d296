"""Tests of scripts/plot_broadcast.py: where lines cross, and what it says of a tool that fails.

Usage: plot_broadcast_test.py
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
import plot_broadcast  # noqa: E402  (found through the path above)


class BreakEvenTest(unittest.TestCase):
    def test_lines_cross_between_two_sizes(self):
        # 1/2, then 2 times as fast: on a logarithmic scale in the middle of 100 and 10000.
        self.assertAlmostEqual(plot_broadcast.break_even([100, 10000], [2, 1], [1, 2]), 1000)
        # 4 times as slow, then 2 times as fast: two thirds of the way.
        self.assertAlmostEqual(plot_broadcast.break_even([1, 1000], [4, 1], [1, 2]), 100)

    def test_the_last_crossing_counts(self):
        self.assertAlmostEqual(plot_broadcast.break_even([1, 10, 100, 10000], [1, 2, 2, 1], [2, 1, 1, 2]), 1000)

    def test_who_is_always_or_never_faster(self):
        self.assertEqual(plot_broadcast.break_even([5, 50], [1, 1], [2, 2]), 5)
        self.assertIsNone(plot_broadcast.break_even([5, 50], [1, 2], [2, 2]))

    def test_pairs_are_named(self):
        lines = {("chain", "none"): [4, 4], ("binomial", "none"): [2, 8], ("scatter_allgather", "none"): [1, 1],
                 ("chain", "fp16"): [8, 2], ("chain_p2p", "fp16"): [9, 3]}
        self.assertEqual(plot_broadcast.break_evens([10 ** 6, 4 * 10 ** 6], lines),
                         ["chain is faster than binomial from 2 MB on", "chain is faster than scatter_allgather never",
                          "chain with fp16 is faster than chain from 2 MB on",
                          "chain with fp16 is faster than chain_p2p with fp16 from the smallest on"])


class RunTest(unittest.TestCase):
    def run_it(self, tool: str) -> tuple[int, str]:
        said = io.StringIO()
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "hipress-plan")
            path.write_text(f"#!/bin/sh\n{tool}\n")
            path.chmod(path.stat().st_mode | stat.S_IXUSR)
            with mock.patch.object(sys, "argv", ["plot_broadcast.py", f"{folder}/picture.png", "--tools", folder]), \
                 mock.patch("picture.start_where_matplotlib_is"), contextlib.redirect_stderr(said):
                return plot_broadcast.main(), said.getvalue()

    def test_a_request_that_the_tool_refuses_is_wrong(self):
        status, said = self.run_it("echo unknown profile >&2; exit 2")
        self.assertEqual(status, 2)
        self.assertIn("unknown profile", said)

    def test_a_tool_that_fails_is_a_failure(self):
        self.assertEqual(self.run_it("exit 3")[0], 1)


if __name__ == "__main__":
    unittest.main()
