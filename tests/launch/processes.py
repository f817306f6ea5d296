"""What the tests of launchers share: a small job of hipress-exec, and how to tell that it went well."""

import json
import os
import pathlib
import shutil
import socket
import tempfile
import unittest

#: Sizes that no partition divides evenly.
GRADIENTS = "a,100003\nb,31\nc,4096\n"
RANKS = 4


def require_programs(*names: str) -> None:
    """A machine without them fails the test and says what to do: these tests run where they were asked for."""
    missing = [name for name in names if not shutil.which(name)]
    if missing:
        raise RuntimeError(f"{', '.join(missing)} not found; scripts/setup.sh installs what these tests need")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def without_launchers() -> dict[str, str]:
    """This environment without what a launcher around the tests may have set."""
    return {name: value for name, value in os.environ.items()
            if not name.startswith(("SLURM_", "OMPI_", "PMIX_")) and name not in {"RANK", "WORLD_SIZE", "LOCAL_RANK"}}


class LaunchTest(unittest.TestCase):
    """A folder of its own with a small model, and the tools in `tools`."""

    tools: pathlib.Path

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="hipress_launch_")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.model = self.folder / "model.txt"
        self.model.write_text(GRADIENTS)

    def exec_command(self, *more: str, rendezvous: str | None = None) -> list[str]:
        """hipress-exec on the small model; the number of ranks is the launcher's."""
        return [str(self.tools / "hipress-exec"), "--input", str(self.model), "--plan", "all", "--topology", "ring",
                "--rendezvous", rendezvous or f"file://{self.folder}", "--json", *more]

    def assert_verified(self, stdout: str, ranks: int = RANKS):
        """`stdout` of all ranks together is one report, of so many ranks, verified."""
        report = json.loads(stdout)
        self.assertEqual((report["ranks"], report["verified"]), (ranks, True))
