#!/usr/bin/env python3
"""Tests programs compiled at run time: which cached files are used, and how the compiler is ended.

usage: cache_test.py FOLDER-OF-THE-TOOLS
"""
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

TOOLS = os.path.abspath(sys.argv[1])
PROGRAM = """void SignsEncode(float* g, uint8* c) {{
  uint<1>* q = map(g, [](float v) {{ return v < {bound} ? 1 : 0; }});
  c = concat(q);
}}
void SignsDecode(uint8* c, float* g) {{
  uint<1>* q;
  extract(c, q);
  g = map(q, [](int s) {{ return 1 - 2 * s; }});
}}
"""
# A compiler that never ends, with a child that ignores SIGTERM and SIGHUP.
SLOW = """#!/bin/sh
(trap '' TERM HUP; while :; do sleep 1; done) &
echo $! $$ > {pids}.new
touch "$TMPDIR/ccleft.s"
mv {pids}.new {pids}
wait
"""


def works(pid):
    """True if a process runs and is not a zombie."""
    try:
        return ") Z " not in pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="ascii")
    except OSError:
        return False


def wait_until(condition, seconds=60):
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.01)
    return condition()


class Folder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.cache = self.folder / "cache"
        (self.folder / "m.csv").write_text("a,64\n", encoding="utf-8")
        for name, bound in (("one", 0), ("two", 1)):
            (self.folder / f"{name}.pse").write_text(PROGRAM.format(bound=bound), encoding="utf-8")

    def command(self, program="one.pse", *more):
        return [f"{TOOLS}/hipress-exec", "--input", "m.csv", "--plan", "all", "--algorithm", program, "--nnodes", "2",
                "--transport", "memory", "--iterations", "1", "--warmup", "0", *more]

    def environment(self, **variables):
        return {**os.environ, "HIPRESS_CACHE": str(self.cache), **variables}

    def replay(self, program="one.pse", *more, **variables):
        return subprocess.run(self.command(program, *more), cwd=self.folder, capture_output=True, text=True, check=False,
                              timeout=250, env=self.environment(**variables))

    def verifies(self, done):
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("verified: yes", done.stdout)


class Cache(Folder):
    def libraries(self):
        return sorted(self.cache.glob("*.so"))

    def refused(self, *parts):
        done = self.replay()
        self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
        for part in (*parts, "set HIPRESS_CACHE to a folder of yours"):
            self.assertIn(part, done.stderr)

    def test_the_folder_is_its_users_alone_whatever_the_umask(self):
        before = os.umask(0)
        self.addCleanup(os.umask, before)
        self.verifies(self.replay())
        self.assertEqual(self.cache.stat().st_mode & 0o777, 0o700)
        for file in self.cache.iterdir():
            self.assertEqual(file.stat().st_mode & 0o077, 0, file)
        self.assertEqual(list((self.cache / "work").iterdir()), [])

    def test_a_program_is_compiled_once(self):
        calls = self.folder / "calls"
        compiler = self.folder / "counting.sh"
        real = os.environ.get("CXX") or "c++"
        compiler.write_text(f'#!/bin/sh\necho >> {calls}\nexec {real} "$@"\n', encoding="utf-8")
        compiler.chmod(0o700)
        for _ in range(2):
            self.verifies(self.replay(CXX=str(compiler)))
        self.assertEqual(calls.read_text(encoding="ascii"), "\n")

    def test_damaged_libraries_are_made_anew(self):
        self.verifies(self.replay())
        [library] = self.libraries()
        good = library.read_bytes()
        for damaged in (b"", good[:5000], good[:-1], good + b"x", b"\x7fELF" + bytes(20000)):
            library.write_bytes(damaged)
            self.verifies(self.replay())
            self.assertNotEqual(library.read_bytes(), damaged)

    def test_another_programs_library_under_this_ones_name_is_not_run(self):
        self.verifies(self.replay("one.pse"))
        [one] = self.libraries()
        self.verifies(self.replay("two.pse"))
        [two] = [library for library in self.libraries() if library != one]
        wrong, right = one.read_bytes(), two.read_bytes()
        self.assertNotEqual(wrong, right)
        two.write_bytes(wrong)
        self.verifies(self.replay("two.pse"))
        self.assertNotEqual(two.read_bytes(), wrong)
        # Even with the manifest of program one, its library is not run as program two.
        two.write_bytes(wrong)
        two.with_suffix(".manifest").write_bytes(one.with_suffix(".manifest").read_bytes())
        self.verifies(self.replay("two.pse"))
        self.assertNotEqual(two.read_bytes(), wrong)

    def test_a_library_that_others_can_write_to_is_refused(self):
        self.verifies(self.replay())
        [library] = self.libraries()
        library.chmod(0o666)
        self.refused(library.name, "can be written to by every user")
        library.chmod(0o600)
        library.with_suffix(".manifest").chmod(0o622)
        self.refused(".manifest")

    def test_a_folder_that_others_can_write_to_is_refused(self):
        self.cache.mkdir()
        for mode in (0o777, 0o1777):
            self.cache.chmod(mode)
            self.refused("can be written to by every user")

    def test_xdg_cache_home_is_no_exception(self):
        self.cache.mkdir()
        self.cache.chmod(0o777)
        done = self.replay(HIPRESS_CACHE="", XDG_CACHE_HOME=str(self.cache))
        self.assertEqual(done.returncode, 2)
        self.assertIn("can be written to by every user", done.stderr)

    def test_links_are_not_followed(self):
        self.verifies(self.replay())
        [library] = self.libraries()
        elsewhere = self.folder / "elsewhere.so"
        library.rename(elsewhere)
        library.symlink_to(elsewhere)
        self.refused("is a link")

    @unittest.skipUnless(os.geteuid() == 0, "only root can give files away")
    def test_what_belongs_to_another_user_is_refused(self):
        self.verifies(self.replay())
        [library] = self.libraries()
        os.chown(library, 12345, 12345)
        self.refused(library.name, "belongs to user 12345")
        os.chown(library, 0, 0)
        os.chown(self.cache, 12345, 12345)
        self.refused("belongs to user 12345")

    def test_a_missing_compiler_and_a_failing_one_are_exit_1_with_the_remedy(self):
        done = self.replay(CXX="hipress-no-such-compiler")
        self.assertEqual(done.returncode, 1)
        self.assertIn("there is no C++ compiler 'hipress-no-such-compiler'", done.stderr)
        self.assertIn("CXX", done.stderr)
        done = self.replay(CXX="false")
        self.assertEqual(done.returncode, 1)
        self.assertIn("the C++ compiler 'false' failed", done.stderr)
        self.assertEqual(self.libraries(), [])


class Compiler(Folder):
    def setUp(self):
        super().setUp()
        self.pids_file = self.folder / "pids"
        self.slow = self.folder / "slow.sh"
        self.slow.write_text(SLOW.format(pids=self.pids_file), encoding="utf-8")
        self.slow.chmod(0o700)

    def start(self, *more):
        tool = subprocess.Popen(self.command("one.pse", *more), cwd=self.folder, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True, env=self.environment(CXX=str(self.slow)))
        self.addCleanup(tool.communicate)
        self.addCleanup(tool.kill)
        self.assertTrue(wait_until(self.pids_file.exists))
        return tool

    def pids(self):
        return self.pids_file.read_text(encoding="ascii").split()

    def none_works(self):
        self.assertTrue(wait_until(lambda: not any(works(pid) for pid in self.pids())), self.pids())

    def test_its_time_is_limited_and_all_of_it_ends_then(self):
        tool = self.start("--timeout", "2")
        out, err = tool.communicate(timeout=200)
        self.assertEqual((tool.returncode, out), (1, ""))
        self.assertIn("was ended after 2 s", err)
        self.assertIn("--timeout", err)
        self.none_works()

    def test_signals_leave_no_orphan(self):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGKILL):
            with self.subTest(signal=number):
                self.pids_file.unlink(missing_ok=True)
                tool = self.start()
                tool.send_signal(number)
                tool.communicate(timeout=200)
                self.assertEqual(tool.returncode, -number)
                self.none_works()
                made = [file.name for file in (self.cache / "work").iterdir() if file.suffix == ".so"]
                self.assertEqual(made, [])

    def test_a_program_of_24000_operations_is_refused_before_any_compiler_starts(self):
        operations = "".join(f"    x = x * 1.5 + {i};\n" for i in range(12000))
        text = PROGRAM.format(bound=0).replace("return v < 0", f"float x = v;\n{operations}    return x < 0")
        (self.folder / "one.pse").write_text(text, encoding="utf-8")
        done = self.replay(CXX=str(self.slow))
        self.assertEqual(done.returncode, 2)
        self.assertIn("one.pse: the program is too large", done.stderr)
        self.assertFalse(self.pids_file.exists())


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
