"""Tests of scripts/plot_broadcast.py: where lines cross, and what it says of a tool that fails.

Usage: plot_broadcast_test.py
"""

import unittest

from fake_tools import FakeToolOfPictureTest
import plot_broadcast  # found through the path that fake_tools adds


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


class RunTest(FakeToolOfPictureTest):
    def test_a_tool_that_refuses_or_fails_is_passed_on(self):
        self.check_failures(plot_broadcast, "hipress-plan")


if __name__ == "__main__":
    unittest.main()
