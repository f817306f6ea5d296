"""Tests of scripts/setup.sh on machines that lack packages."""

import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

SETUP = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "setup.sh"
#: Programs that the script itself needs. The machine under test has these, and those that a test adds.
SHELL_TOOLS = ("bash", "env", "dirname", "python3")

#: Programs that only the launch tests need, without daemons, which may also be in /usr/sbin.
LAUNCHERS = ("srun", "mpirun", "redis-server", "busybox")

#: Programs that only scripts/lint.py needs.
LINTERS = ("clang-format-14", "clang-tidy-14")

APT_GET = """#!/usr/bin/env bash
echo "$@" >> "{log}"
[[ $1 == update ]] || ln -sf "$(command -v true)" "{folder}/ninja"
[[ "$*" != *openmpi* ]] || {launch}
"""


class SetupTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.bin = pathlib.Path(folder.name)
        self.provide(*SHELL_TOOLS, "true", "ln", "cmake")
        # All headers count as installed, because this compiler accepts everything.
        (self.bin / "g++").symlink_to("true")
        (self.bin / "ip").symlink_to("true")

    def provide(self, *programs: str):
        for program in programs:
            (self.bin / program).symlink_to(shutil.which(program))

    def provide_stubs(self, *programs: str):
        for program in programs:
            (self.bin / program).symlink_to("true")

    def provide_apt_get(self, launch: str = "true") -> pathlib.Path:
        """Adds an apt-get that installs ninja, and runs the command `launch` instead of installing launchers. Returns the path of
        its log."""
        log, apt_get = self.bin / "log", self.bin / "apt-get"
        apt_get.write_text(APT_GET.format(log=log, folder=self.bin, launch=launch))
        apt_get.chmod(0o755)
        return log

    def run_setup(self, *options: str, script: pathlib.Path = SETUP) -> subprocess.CompletedProcess:
        return subprocess.run([script, *options], env={**os.environ, "PATH": str(self.bin)}, text=True,
                              capture_output=True, check=False)

    def test_without_apt_get_missing_packages_are_listed(self):
        done = self.run_setup()
        self.assertEqual(done.returncode, 1)
        self.assertIn("no apt-get here", done.stderr)
        self.assertIn("ninja-build", done.stderr)
        self.assertNotIn("cmake", done.stderr)

    @unittest.skipUnless(os.geteuid() == 0, "installs as root")
    def test_only_what_is_missing_is_installed(self):
        log = self.provide_apt_get()
        done = self.run_setup("--no-launch")
        installed = log.read_text().splitlines()[1].split()
        self.assertIn("ninja-build", installed)
        self.assertNotIn("cmake", installed)
        # The script ends with a list of packages that apt-get could not provide. (This machine may lack matplotlib.)
        self.assertEqual(done.returncode, 1 if "still not usable" in done.stderr else 0)

    def test_silent_when_all_is_there(self):
        self.provide_stubs("ninja", *LINTERS, *LAUNCHERS, "slurmctld", "slurmd", "munged")
        done = self.run_setup()
        if "python3-matplotlib" in done.stderr:
            self.skipTest("matplotlib is not installed")
        said = [line for line in done.stderr.splitlines() if "PyTorch" not in line]  # this machine may lack PyTorch
        self.assertEqual((done.returncode, done.stdout, said), (0, "", []))

    @unittest.skipUnless(os.geteuid() == 0, "installs as root")
    def test_launchers_that_cannot_be_installed_are_named_and_no_failure(self):
        self.provide_stubs("ninja", "install")
        self.provide("rm")
        log = self.provide_apt_get(launch="exit 100")
        done = self.run_setup()
        if "python3-matplotlib" in done.stderr:
            self.skipTest("matplotlib is not installed")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("'ctest -L launch' will fail", done.stderr)
        self.assertIn("lint.py is skipped without what these Debian 12 packages hold: clang-format-14 clang-tidy-14", done.stderr)
        for package in ("slurm-client", "openmpi-bin", "redis-server", "busybox-static"):
            self.assertIn(package, log.read_text())

    @unittest.skipUnless(os.geteuid() == 0, "installs as root")
    def test_services_are_forbidden_while_launchers_are_installed_and_not_after(self):
        policy = self.bin / "policy-rc.d"
        script = self.bin / "scripts" / "setup.sh"
        script.parent.mkdir()
        shutil.copy(SETUP.parent / "find_python.sh", script.parent)
        text = SETUP.read_text()
        self.assertEqual(text.count("/usr/sbin/policy-rc.d"), 1)
        script.write_text(text.replace("/usr/sbin/policy-rc.d", str(policy)))
        script.chmod(0o755)
        self.provide_stubs("ninja")
        self.provide("install", "rm", "cat")
        for launch, status in (("true", 0), ("exit 100", 0), ("kill -TERM $PPID", 143), ("kill -INT $PPID $$", 130),
                               ("kill -HUP $PPID", 129)):
            with self.subTest(launch=launch):
                log = self.provide_apt_get(f"{{ cat {policy} >> {self.bin}/log; {launch}; }}")
                done = self.run_setup(script=script)
                if "python3-matplotlib" in done.stderr:
                    self.skipTest("matplotlib is not installed")
                self.assertFalse(policy.exists())
                self.assertIn("exit 101", log.read_text())
                log.unlink()
                self.assertEqual(done.returncode, status, done.stderr)
        policy.write_text("the machine's own")
        self.provide_apt_get("kill -TERM $PPID")
        self.run_setup(script=script)
        self.assertEqual(policy.read_text(), "the machine's own")

    def test_launchers_are_left_out_when_not_wanted(self):
        self.provide_stubs("ninja")
        done = self.run_setup("--no-launch")
        if "python3-matplotlib" in done.stderr:
            self.skipTest("matplotlib is not installed")
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_unknown_options_are_refused(self):
        done = self.run_setup("--launch")
        self.assertEqual(done.returncode, 2)
        self.assertIn("--no-launch", done.stderr)


if __name__ == "__main__":
    unittest.main()
