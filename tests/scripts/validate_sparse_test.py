"""Tests of the experiment sparse: the Python alone, on tools, ip and tc that answer what the test says. No rights needed.

Usage: validate_sparse_test.py
"""

import unittest

from fake_tools import NOTING_TOOL, FakeToolsTest, Verifies

#: Sparse takes 0.1 s and 10 s times the density, dense 1 s: the break-even is 0.09, and planned 0.1.
FAKE_TOOL = NOTING_TOOL + """\
dense = {{}} if "NEVER" in os.environ else {{"dense": {{"above": 0.1, "algorithm": "fp16", "K": 16}}}}
if tool == "hipress-plan":
    text = "schema: hipress.plan/1\\ndense: {{above: 0.1, algorithm: fp16, K: 16}}\\ngradients: []\\n"
    pathlib.Path(value("--output")).write_text(text)
    print(json.dumps(dense))
if tool == "hipress-exec" and os.environ.get("RANK") == "0":
    density = float(value("--density"))
    goes_dense = "dense:" in pathlib.Path(value("--plan")).read_text() and density > 0.1
    seconds = 1.0 if goes_dense else 0.1 + 10 * density
    print(json.dumps({{"each_measured_iteration_s": [seconds], "predicted_iteration_s": 1.1 * seconds,
                       "predicted_iteration_s_p10": 0.9 * seconds, "predicted_iteration_s_p90": 1.2 * seconds,
                       "verified": "WRONG" not in os.environ}}))
"""


class SparseTest(Verifies, FakeToolsTest):
    experiment = "sparse"
    common = ("--nnodes", "2", *FakeToolsTest.common)
    tools = {"hipress-plan": FAKE_TOOL, "hipress-exec": FAKE_TOOL, "hipress-profile": FAKE_TOOL}

    def test_the_measured_break_even_is_laid_beside_the_predicted_one(self):
        said, found = self.run_for_json("--algorithm", "dgc(packing=2,rho=0.01)")
        self.assertEqual(found["break_even"]["predicted"], 0.1)
        self.assertAlmostEqual(found["break_even"]["measured"], 0.09)
        self.assertAlmostEqual(found["times_faster"], 5.0)
        self.assertEqual([case["dense"] for case in found["cases"]], 6 * [False] + [True])
        self.assertEqual(len(found["cases"][0]["iterations_s"]), 2)  # two rounds
        self.assertIn("dense (fp16, K = 16) is faster from density 0.0900 on, measured; 0.1000 predicted, +11.1 %", said)
        self.assertIn("at density 0.01, dense takes 5.0 times as long as sparse", said)
        self.assertIn("error: median 10.0 %, p90 10.0 %", said)
        profiled = "fp16,dgc(packing=2,rho=0.01),dgc(packing=2,rho=0.0625),dgc(packing=2,rho=0.125)"
        self.assertTrue(any(profiled in call for call in self.calls()))

    def test_a_plan_that_never_goes_dense_says_so(self):
        status, _ = self.run_it(NEVER="1")
        self.assertEqual(status, 1)
        self.assertIn("says no density from which on dense is faster", self.complained)

    def test_an_algorithm_without_density_is_refused(self):
        for algorithm in ("onebit", "dgc(rho=x)", "dgc(rho=2)"):
            with self.assertRaises(SystemExit) as raised:
                self.run_it("--algorithm", algorithm)
            self.assertEqual(raised.exception.code, 2)


if __name__ == "__main__":
    unittest.main()
