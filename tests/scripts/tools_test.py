"""Tests that hold for every command-line tool: tools_test.py PATH/hipress-x"""

import pathlib
import resource
import subprocess
import sys
import tempfile
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

    def test_options_are_described_in_one_style(self):
        """Descriptions begin with a capital, have no full stop at the end, and give the default in brackets."""
        lines = run("--help").stdout.splitlines()
        described = 0
        for line, following in zip(lines, [*lines[1:], ""]):
            if not line.startswith("  -"):
                continue
            text = line[30:].strip() if len(line) > 30 and line[29] == " " else following.strip()
            with self.subTest(line.split()[0]):
                self.assertRegex(text, "^[A-Z0-9]")
                self.assertNotRegex(text, r"\.$|; default:|\(default [^:]")
            described += 1
        self.assertGreaterEqual(described, 5)

    def test_version_names_the_build(self):
        done = run("--version")
        self.assertEqual(done.returncode, 0)
        self.assertRegex(done.stdout, rf"^{TOOL.name} \d+\.\d+\.\d+ \(git \S+, CUDA \S+, NCCL \S+\)\n$")

    def test_unknown_option_is_a_wrong_request(self):
        done = run("--no-such-option")
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertRegex(done.stderr, rf"^{TOOL.name}: .* \(see {TOOL.name} --help\)\n$")

    @unittest.skipUnless(TOOL.name == "hipress-profile", "of the tool that measures")
    def test_wherever_threads_or_memory_end_it_says_so(self):
        # Stacks have 64 MiB, and the address space has room for only a few of them.
        stack = 64 << 20
        _, most = resource.getrlimit(resource.RLIMIT_STACK)

        def limited(*arguments: str, stacks: int) -> subprocess.CompletedProcess:
            def limit() -> None:
                resource.setrlimit(resource.RLIMIT_STACK, (stack, most))
                resource.setrlimit(resource.RLIMIT_AS, (stacks * stack, stacks * stack))

            return subprocess.run([TOOL, *arguments], text=True, capture_output=True, timeout=60, check=False,
                                  preexec_fn=limit)

        if limited("--version", stacks=3).returncode != 0:
            self.skipTest("this build does not start with little address space, as with a sanitizer")
        with tempfile.TemporaryDirectory() as folder:
            for stacks in (3, 4, 5, 6):
                done = limited("--quick", "--algorithm", "fp16", "--output", f"{folder}/profile.yaml", stacks=stacks)
                self.assertEqual(done.returncode, 1, done.stderr)
                self.assertRegex(done.stderr, r"hipress-profile: (out of memory|.* cannot start a thread)")


if __name__ == "__main__":
    unittest.main()
