"""Parts that the tests of launchers share: a small job of hipress-exec, and a check of its result."""

import json
import os
import pathlib
import shutil
import socket
import tempfile
import unittest

#: Sizes that no number of partitions divides evenly.
GRADIENTS = "a,100003\nb,31\nc,4096\n"
RANKS = 4


def require_programs(*names: str) -> None:
    """Raises an error with a remedy if a program is missing. The tests are not skipped then, since they run only on request."""
    missing = [name for name in names if not shutil.which(name)]
    if missing:
        raise RuntimeError(f"{', '.join(missing)} not found; scripts/setup.sh installs what these tests need")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def without_launchers() -> dict[str, str]:
    """Returns this environment without variables that a launcher of the tests may have set."""
    return {name: value for name, value in os.environ.items()
            if not name.startswith(("SLURM_", "OMPI_", "PMIX_")) and name not in {"RANK", "WORLD_SIZE", "LOCAL_RANK"}}


class LaunchTest(unittest.TestCase):
    """A test with a folder that holds a small model, and with the tools in `tools`."""

    tools: pathlib.Path

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="hipress_launch_")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.model = self.folder / "model.txt"
        self.model.write_text(GRADIENTS)

    def exec_command(self, *more: str, rendezvous: str | None = None) -> list[str]:
        """Command line of hipress-exec for the small model. The launcher determines the number of ranks."""
        return [str(self.tools / "hipress-exec"), "--input", str(self.model), "--plan", "all", "--topology", "ring",
                "--rendezvous", rendezvous or f"file://{self.folder}", "--json", *more]

    def assert_verified(self, stdout: str, ranks: int = RANKS):
        """Requires that `stdout`, which all ranks share, is a single report of that many ranks, and verified."""
        report = json.loads(stdout)
        self.assertEqual((report["ranks"], report["verified"]), (ranks, True))
