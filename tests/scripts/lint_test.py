"""Tests of scripts/lint.py in a checkout of two libraries: lint_test.py [-v]"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]

#: Fake of clang-format: complains of files with the word UGLY.
FORMATTER = """#!/bin/sh
[ "$1" != --version ] || { echo "Debian clang-format version 14.0.6"; exit; }
shift
for file; do
  ! grep -q UGLY "$file" || echo "$file:1:1: warning: code should be clang-formatted [-Wclang-format-violations]" >&2
done
"""
#: Fake of clang-tidy: finds a mistake in each file with the word BAD, and one in io/one.hpp whenever it checks a file that includes
#: it.
CHECKER = """#!/bin/sh
[ "$1" != --version ] || { echo "LLVM version 14.0.6"; exit; }
folder=$2 file=$4
echo "$file" >>"$LOG"
grep -q "\\"$file\\"" "$folder/compile_commands.json" && ! grep -q "pch" "$folder/compile_commands.json" || exit 9
found=0
if grep -q BAD "$file"; then echo "$file:1:1: error: bad [bad]"; echo "BAD"; found=1; fi
if grep -q BAD "$ROOT_OF_TEST/io/one.hpp"; then
  echo "$ROOT_OF_TEST/io/one.hpp:1:1: error: bad [bad]"; found=1
fi
exit $found
"""


class LintTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name).resolve() / "checkout"
        self.bin = self.root.parent / "bin"
        self.log = self.root.parent / "log"
        self.write("io/one.hpp", "int one();\n")
        self.write("io/one.cpp", '#include "io/one.hpp"\n')
        self.write("io/table.hpp", "int table();\n")
        self.write("sim/two.cpp", '#include "io/one.hpp"\n#include "io/table.hpp"\n')
        self.write("sim/three.cpp", '#include "io/table.hpp"\n')
        self.write("kernels/four.cu", "int four();\n")
        self.write("scripts/lint.py", (ROOT / "scripts/lint.py").read_text())
        self.write(".gitignore", "/build/\n")
        build = self.root / "build/release"
        # Each file is compiled for two instruction sets; CMake adds nothing.cpp and the precompiled header.
        compiled = [build / "nothing.cpp", *(self.root / name for name in ("io/one.cpp", "sim/two.cpp", "sim/three.cpp"))] * 2
        self.write("build/release/compile_commands.json", json.dumps(
            [{"directory": str(build), "file": str(file),
              "command": f"c++ -O3 -Winvalid-pch -include {build}/CMakeFiles/x.dir/cmake_pch.hxx -o x.o -c {file}"}
             for file in compiled]))
        self.provide("clang-format-14", FORMATTER)
        self.provide("clang-tidy", CHECKER)
        for words in ("init -q", "add .", "-c user.name=x -c user.email=x@x commit -q -m first"):
            subprocess.run(["git", *words.split()], cwd=self.root, check=True)

    def write(self, name: str, text: str) -> None:
        file = self.root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def provide(self, name: str, text: str) -> None:
        self.bin.mkdir(exist_ok=True)
        (self.bin / name).write_text(text)
        (self.bin / name).chmod(0o755)

    def lint(self, *options: str) -> subprocess.CompletedProcess:
        """Runs lint.py with git, a shell, and the fakes of clang's tools."""
        self.log.write_text("")
        tools = self.root.parent / "tools"
        tools.mkdir(exist_ok=True)
        for name in ("git", "sh", "grep"):
            if not (tools / name).exists():
                (tools / name).symlink_to(shutil.which(name))
        environment = {**os.environ, "PATH": f"{self.bin}:{tools}", "LOG": str(self.log), "ROOT_OF_TEST": str(self.root)}
        return subprocess.run([sys.executable, "-B", self.root / "scripts/lint.py", *options], cwd=self.root, env=environment,
                              capture_output=True, text=True, check=False)

    def looked_at(self) -> list:
        return sorted(os.path.relpath(name, self.root) for name in self.log.read_text().split())

    def test_nothing_is_found_where_nothing_is(self):
        done = self.lint()
        self.assertEqual((done.returncode, done.stdout), (0, ""), done.stderr)
        self.assertEqual(self.looked_at(), ["io/one.cpp", "sim/three.cpp", "sim/two.cpp"])
        self.assertIn("lint: 6 files, 0 of them badly formatted; 0 findings in what 3 of them are compiled of", done.stderr)

    def test_sources_of_a_unity_build_are_looked_at_one_by_one(self):
        build = self.root / "build/release"
        unity = build / "sim/CMakeFiles/sim.dir/Unity/unity_0_cxx.cxx"
        names = [self.root / name for name in ("sim/two.cpp", "sim/three.cpp")]
        self.write(str(unity.relative_to(self.root)), "".join(f'#include "{name}"\n' for name in names))
        self.write("build/release/compile_commands.json", json.dumps(
            [{"directory": str(build), "file": str(unity), "command": f"c++ -O3 -o {unity}.o -c {unity}"}]))
        self.write("sim/three.cpp", "BAD\n")
        done = self.lint()
        self.assertEqual((done.returncode, self.looked_at()), (1, ["sim/three.cpp", "sim/two.cpp"]), done.stderr)
        self.assertIn(f"{self.root}/sim/three.cpp:1:1: error", done.stdout)

    def test_a_mistake_of_a_header_is_told_once(self):
        self.write("io/one.hpp", "BAD\n")
        self.write("sim/three.cpp", "BAD\n")
        done = self.lint("--jobs", "1")
        self.assertEqual(done.returncode, 1)
        self.assertEqual(sorted(re.findall(r"^\S+: error", done.stdout, re.MULTILINE)),
                         [f"{self.root}/io/one.hpp:1:1: error", f"{self.root}/sim/three.cpp:1:1: error"])
        self.assertIn("2 findings", done.stderr)

    def test_bad_format_is_told_with_its_remedy(self):
        self.write("kernels/four.cu", "UGLY\n")
        for options in ((), ("--format",)):
            done = self.lint(*options)
            self.assertEqual(done.returncode, 1)
            self.assertEqual(done.stdout, "kernels/four.cu: not as clang-format writes it: clang-format -i kernels/four.cu\n")

    def test_a_change_is_looked_at_through_what_includes_it(self):
        self.assertEqual((self.lint("--change", "HEAD").returncode, self.looked_at()), (0, []))
        self.write("sim/three.cpp", "int three();\n")
        self.write("io/one.hpp", "int one(int);\n")
        self.write("sim/new.hpp", "BAD\n")  # not in git yet, and not included anywhere
        self.assertEqual((self.lint("--change", "HEAD").returncode, self.looked_at()), (0, ["io/one.cpp", "sim/three.cpp"]))
        self.write("io/table.hpp", "int table(int);\n")  # no source has the same name
        self.write("sim/three.cpp", '#include "io/table.hpp"\n')
        self.assertEqual((self.lint("--change", "HEAD").returncode, self.looked_at()), (0, ["io/one.cpp", "sim/three.cpp"]))
        self.assertEqual((self.lint("sim/two.cpp").returncode, self.looked_at()), (0, ["sim/two.cpp"]))


if __name__ == "__main__":
    unittest.main()
