"""Tests of scripts/gaps.py on a tool that answers what the test says: gaps_test.py [-v]"""

import contextlib
import io
import json
import os
import pathlib
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
import gaps  # noqa: E402  (found through the path above)

#: Says gaps of 1 % with the profile's link, 2 % with 25 Gbit/s and 9 % with 10; none for search secopa. Refuses what
#: is no file as wrong, but for model "broken".
TOOL = """#!/usr/bin/env python3
import json, os, sys
at = lambda option: sys.argv[sys.argv.index(option) + 1]
if at("--input") == "broken":
    sys.exit("no such model")
if at("--input").endswith(".yaml") and not os.path.exists(at("--input")):
    print("cannot be read", file=sys.stderr)
    sys.exit(2)
link = open(at("--cluster")).read() if "--cluster" in sys.argv else ""
gap = 0.02 if "25Gbps" in link else 0.09 if "10Gbps" in link else 0.01
if "secopa" in sys.argv:
    gap = None
print(json.dumps({"predicted_iteration_s": 1 + (gap or 0), "lower_bound_s": gap and 1, "gap": gap, "search_s": 2,
                  "evaluations": len(sys.argv), "more": 1}))
"""


class GapsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.tool = self.folder / "hipress-plan"
        self.tool.write_text(TOOL)
        self.tool.chmod(0o755)

    def run_script(self, *arguments: str):
        """Exit status, standard output and standard error."""
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            status = gaps.main(["--tool", str(self.tool), *arguments])
        return status, out.getvalue(), err.getvalue()

    def test_every_case_is_listed_and_summed_up(self):
        table = self.folder / "table.json"
        status, out, _ = self.run_script("--models", "lstm,vgg16", "--json", str(table), "--", "--network", "port")
        self.assertEqual(status, 0)
        said = json.loads(table.read_text())
        # Two models and two topologies: four cases of each link.
        self.assertEqual((said["cases"], said["median"], said["p90"], said["max"]), (12, 0.02, 0.09, 0.09))
        self.assertEqual({row["bandwidth"] for row in said["rows"]}, {"profile", "25Gbps", "10Gbps"})
        self.assertEqual(said["options"], ["--network", "port"])
        self.assertEqual(len(out.splitlines()), 13)
        self.assertIn("median 2.00 %, p90 9.00 %, at most 9.00 %", out)

    def test_a_tool_that_fails_is_quoted(self):
        status, _, err = self.run_script("--models", "broken")
        self.assertEqual(status, 1)
        self.assertIn("no such model", err)

    def test_a_model_of_ones_own_is_looked_for_from_the_current_folder(self):
        (self.folder / "mine.yaml").write_text("name: mine\n")
        before = pathlib.Path.cwd()
        self.addCleanup(os.chdir, before)
        os.chdir(self.folder)
        status, out, err = self.run_script("--models", "mine.yaml")
        self.assertEqual((status, err, len(out.splitlines())), (0, "", 7))
        self.assertIn("mine.yaml ", out)
        status, _, err = self.run_script("--models", "none.yaml")
        self.assertEqual(status, 2)
        self.assertIn("cannot be read", err)

    def test_wrong_requests_are_refused_with_a_remedy(self):
        unwritable = str(self.folder / "none/table.json")
        for arguments, said in ((("--", "--search", "secopa"), "says no lower bound; let it search by simulating"),
                                (("--json", unwritable), f"{unwritable}: cannot be written: No such file")):
            status, out, err = self.run_script("--models", "lstm", *arguments)
            self.assertEqual((status, out), (2, ""))
            self.assertIn(said, err)
        status, _, err = self.run_script("--tool", str(self.folder / "none"))
        self.assertEqual(status, 1)
        self.assertIn("scripts/build.sh demo", err)

    def test_percentiles_are_values_that_occur(self):
        self.assertEqual(gaps.percentile([3, 1, 2], 90), 3)
        self.assertEqual(gaps.percentile(list(range(1, 11)), 90), 9)


if __name__ == "__main__":
    unittest.main()
