#!/usr/bin/env python3
"""Tests that a program of a plan or sweep file runs only if the command line vouches for it.

usage: trust_test.py FOLDER-OF-THE-TOOLS CACHE
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

TOOLS, CACHE = (os.path.abspath(path) for path in sys.argv[1:3])

SIGNS = """void SignsEncode(float* g, uint8* c) {
  uint<1>* q = map(g, [](float v) { return v < 0 ? 1 : 0; });
  c = concat(q);
}
void SignsDecode(uint8* c, float* g) {
  uint<1>* q;
  extract(c, q);
  g = map(q, [](int s) { return 1 - 2 * s; });
}
"""
PLAN = """schema: hipress.plan/1
topology: ps
nodes: 2
gradients:
  - {{name: a, elements: 64, algorithm: {algorithm}, K: 1}}
"""
PROFILED = """schema: hipress.sweep/1
model: m.csv
nodes: 2
"""


class Trust(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.write("m.csv", "a,64\n")
        self.write("signs.pse", SIGNS)
        self.write("other.pse", SIGNS)
        self.write("plan.yaml", PLAN.format(algorithm="signs.pse"))

    def write(self, name, text):
        (self.folder / name).write_text(text, encoding="utf-8")

    def run_tool(self, tool, *words, **variables):
        return subprocess.run([f"{TOOLS}/{tool}", *words], cwd=self.folder, capture_output=True, text=True, check=False,
                              timeout=250, env={**os.environ, "HIPRESS_CACHE": CACHE, **variables})

    def replay(self, plan="plan.yaml", *more, **variables):
        return self.run_tool("hipress-exec", "--input", "m.csv", "--plan", plan, "--nnodes", "2", "--transport", "memory",
                             "--iterations", "1", "--warmup", "0", *more, **variables)

    def is_refused(self, done, place, program="signs.pse"):
        self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
        for part in (place, f"'{program}'", "--algorithm", "--trust-plan"):
            self.assertIn(part, done.stderr)

    def test_every_tool_refuses_a_plans_own_program_and_names_both_remedies(self):
        place = "plan.yaml:5: gradient 'a'"
        nothing = str(self.folder / "untouched")  # the cache, which a compilation would create
        self.is_refused(self.replay(HIPRESS_CACHE=nothing), place)
        simulated = ("--input", "m.csv", "--nnodes", "2")
        self.is_refused(self.run_tool("hipress-sim", *simulated, "--plan", "plan.yaml", HIPRESS_CACHE=nothing), place)
        for option in ("--plan", "--compare"):
            self.is_refused(self.run_tool("hipress-plan", *simulated, option, "plan.yaml", "--explain", "--profile",
                                          "sosp21", HIPRESS_CACHE=nothing), place)
        self.assertFalse(pathlib.Path(nothing).exists())

    def test_the_older_form_of_a_plan_is_no_way_around(self):
        self.write("plan.txt", "a,64,y,1,signs.pse\n")
        self.is_refused(self.replay("plan.txt"), "plan.txt:1: gradient 'a'")

    def test_sweeps_are_data_too(self):
        self.write("a.yaml", PROFILED + "algorithm: signs.pse\n")
        self.write("p.yaml", PROFILED + "plan: signs.pse\n")
        self.write("f.yaml", PROFILED + "plan: ./plan.yaml\n")
        for spec, place in (("a.yaml", "a.yaml:4:"), ("p.yaml", "p.yaml:4:"), ("f.yaml", "plan.yaml:5:")):
            with self.subTest(spec=spec):
                self.is_refused(self.run_tool("hipress-sim", "sweep", spec, "--output", "x.csv"), place)
                # The program is compiled, and refused later, since the profile has no costs of it.
                named = self.run_tool("hipress-sim", "sweep", spec, "--output", "x.csv", "--algorithm", "signs.pse")
                self.assertIn("has no costs of algorithm 'signs.pse'", named.stderr)

    def test_the_same_program_on_the_command_line_vouches_for_it(self):
        for named in ("signs.pse", "./signs.pse", str(self.folder / "signs.pse")):
            done = self.replay("plan.yaml", "--algorithm", named)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("verified: yes", done.stdout)

    def test_another_program_does_not(self):
        self.is_refused(self.replay("plan.yaml", "--algorithm", "other.pse"), "plan.yaml:5:")
        self.is_refused(self.replay("plan.yaml", "--algorithm", "no-such.pse"), "plan.yaml:5:")

    def test_trust_plan_vouches_for_all(self):
        done = self.replay("plan.yaml", "--trust-plan")
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_beside_a_link_to_a_named_program_no_other_half_is_compiled(self):
        encoder, decoder = SIGNS.split("void SignsDecode")
        mine, theirs = self.folder / "mine", self.folder / "theirs"
        mine.mkdir()
        theirs.mkdir()
        (mine / "SignsEncode.pse").write_text(encoder, encoding="utf-8")
        (mine / "SignsDecode.pse").write_text("void SignsDecode" + decoder, encoding="utf-8")
        (theirs / "SignsEncode.pse").symlink_to(mine / "SignsEncode.pse")
        (theirs / "SignsDecode.pse").write_text("this is not compiled", encoding="utf-8")
        self.write("plan.yaml", PLAN.format(algorithm="theirs/SignsEncode.pse"))
        done = self.replay("plan.yaml", "--algorithm", "mine/SignsEncode.pse")
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_a_name_that_would_end_a_comment_of_generated_code_is_refused(self):
        name = ("x\n#include <cstdlib>\n#include <thread>\n"
                "static std::jthread t{std::system, \"touch PWNED\"};\n#define Q .pse")
        self.write(name, SIGNS)
        quoted = '"' + name.replace('"', '\\"').replace("\n", "\\n") + '"'
        self.write("plan.yaml", PLAN.format(algorithm=quoted))
        for more in (("--trust-plan",), ("--algorithm", name), ()):
            done = self.replay("plan.yaml", *more)
            self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
            self.assertIn(r"'x\x0a#include", done.stderr)
            self.assertIn("plan.yaml:5:", done.stderr)
            self.assertEqual(re.findall(r"[\x00-\x09\x0b-\x1f]", done.stderr), [])
            self.assertEqual(done.stderr.count("\n"), 1)
        done = self.replay("all", "--algorithm", name)
        self.assertEqual(done.returncode, 2)
        self.assertIn("control characters", done.stderr)
        self.assertFalse((self.folder / "PWNED").exists())


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
