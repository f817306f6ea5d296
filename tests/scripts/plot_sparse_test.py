"""Tests of scripts/plot_sparse.py: where lines cross, and what it says of a tool that fails.

Usage: plot_sparse_test.py
"""

import unittest

from fake_tools import FakeToolOfPictureTest
import plot_sparse  # found through the path that fake_tools adds


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


class RunTest(FakeToolOfPictureTest):
    def test_a_tool_that_refuses_or_fails_is_passed_on(self):
        self.check_failures(plot_sparse, "hipress-sim")


if __name__ == "__main__":
    unittest.main()
