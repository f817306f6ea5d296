"""Tests of hipress-exec under Open MPI's mpirun, which only starts the ranks.

Usage: mpirun_test.py FOLDER_OF_TOOLS
"""

import pathlib
import subprocess
import sys
import unittest

from processes import RANKS, LaunchTest, require_programs, without_launchers

#: Without these, mpirun refuses to run as root.
AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


class MpirunTest(LaunchTest):
    def mpirun(self, ranks: int, *more: str) -> subprocess.CompletedProcess:
        return subprocess.run(["mpirun", "-n", str(ranks), "--oversubscribe", *self.exec_command(*more)],
                              env={**without_launchers(), **AS_ROOT}, capture_output=True, text=True, check=False,
                              timeout=100)

    def test_four_ranks_verify(self):
        done = self.mpirun(RANKS)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assert_verified(done.stdout)

    def test_the_number_of_ranks_is_mpirun_s(self):
        done = self.mpirun(2, "--nnodes", "3")
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("--nnodes is 3, but openmpi started 2 ranks", done.stderr)


if __name__ == "__main__":
    require_programs("mpirun")
    LaunchTest.tools = pathlib.Path(sys.argv.pop(1)).resolve()
    unittest.main()
