"""Tests of the experiment local: the Python alone, on ip, tc and a python3 with torch that answer what the test says. No rights
needed.

Usage: validate_local_test.py
"""

import unittest

from fake_tools import FakeToolsTest, NeedsTorch

#: A step takes 1 s alone, and by local updates 1.3 s where the third of four fragments is sent, 1.1 s otherwise.
FAKE_PYTHON = """#!{python}
import json, os, pathlib, sys
if sys.argv[1] == "-c":
    sys.exit("NO_TORCH" in os.environ)
assert os.environ["WORLD_SIZE"] == "2" and "--rendezvous" in sys.argv
if os.environ["RANK"] == "0":
    pathlib.Path(__file__).with_name("calls").write_text(" ".join(sys.argv))
    turns = int(sys.argv[sys.argv.index("--turns") + 1])
    print(json.dumps({{"alone": [1.0] * turns, "local": [1.3 if turn % 4 == 2 else 1.1 for turn in range(turns)]}}))
"""


class LocalTest(NeedsTorch, FakeToolsTest):
    experiment = "local"
    tools = {"python_with_torch": FAKE_PYTHON}
    common = ()

    def test_local_updates_are_laid_beside_computing_alone(self):
        said, found = self.run_for_json("--rounds", "2", "--periods", "3", "--overlap", "2")
        # Three of four turns of each period take 1.1 s a step: (3 * 1.1 + 1.3) / 4.
        self.assertIn("round 2: alone 1.000 s a step, by local updates 1.150: 1.150 times\n", said)
        self.assertIn("6 periods: median 1.150 times, p10 1.150, p90 1.150; at most 1.1 is the target\n", said)
        self.assertIn("the machine's load was", self.complained)
        self.assertEqual(found["schedule"], "local(steps=20, fragments=4, overlap=2)")
        calls = "".join(self.calls())
        self.assertIn("--schedule local(steps=20, fragments=4, overlap=2) --plan fp4block --warmups 3 --iterations 5 --turns 24", calls)


if __name__ == "__main__":
    unittest.main()
