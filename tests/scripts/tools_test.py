"""What every command-line tool answers: tools_test.py PATH/hipress-x"""

import pathlib
import subprocess
import sys
import unittest

TOOL = pathlib.Path(sys.argv.pop())


def run(*arguments: str) -> subprocess.CompletedProcess:
    return subprocess.run([TOOL, *arguments], text=True, capture_output=True, timeout=60, check=False)


class ToolTest(unittest.TestCase):
    def test_help_opens_with_an_example(self):
        done = run("--help")
        self.assertEqual(done.returncode, 0)
        first, second = done.stdout.splitlines()[:2]
        self.assertEqual(first, "Example:")
        self.assertRegex(second, rf"^  {TOOL.name} ")

    def test_version_names_the_build(self):
        done = run("--version")
        self.assertEqual(done.returncode, 0)
        self.assertRegex(done.stdout, rf"^{TOOL.name} \d+\.\d+\.\d+ \(git \S+, CUDA \S+, NCCL \S+\)\n$")

    def test_unknown_option_is_a_wrong_request(self):
        done = run("--no-such-option")
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertRegex(done.stderr, rf"^{TOOL.name}: .* \(see {TOOL.name} --help\)\n$")


if __name__ == "__main__":
    unittest.main()
