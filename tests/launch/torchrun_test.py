"""Tests of hipress-exec under torchrun.

Usage: torchrun_test.py FOLDER_OF_TOOLS TORCHRUN
"""

import pathlib
import subprocess
import sys
import unittest

from processes import RANKS, LaunchTest, free_port, without_launchers


class TorchrunTest(LaunchTest):
    torchrun: str

    def test_four_ranks_verify(self):
        # Only standard output goes to files: Debian's torchrun (1.13 on Python 3.11) fails if all outputs or none do.
        done = subprocess.run([self.torchrun, "--no_python", "--nproc_per_node", str(RANKS), "--master_port",
                               str(free_port()), "--redirects", "1", "--tee", "1", "--log_dir", str(self.folder / "log"),
                               *self.exec_command()], env=without_launchers(), capture_output=True, text=True,
                              check=False, timeout=200)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assert_verified("".join(log.read_text() for log in self.folder.glob("log/**/stdout.log")))


if __name__ == "__main__":
    LaunchTest.tools, TorchrunTest.torchrun = pathlib.Path(sys.argv.pop(1)).resolve(), sys.argv.pop(1)
    unittest.main()
