"""Runs a tool as a job of ranks."""

import contextlib
import dataclasses
import json
import os
import pathlib
import subprocess
import tempfile
import time

from .conditions import die_with_parent
from .network import Network

#: Before a rank: the scheduler serves it before ordinary programs, which else add milliseconds to every wake-up.
REAL_TIME = ("chrt", "--rr", "10")
#: How long one of several ranks of equal priority keeps a core. The kernel's 100 ms are longer than many an iteration, in
#: which one rank would then not begin before another has ended; this is its tick.
TURN_MS = 4
TURN = pathlib.Path("/proc/sys/kernel/sched_rr_timeslice_ms")
#: While somebody holds this file open with a latency of 0 in it, idle processors poll (Linux, PM quality of service).
LATENCY = pathlib.Path("/dev/cpu_dma_latency")


class ToolError(Exception):
    """A tool failed; the message says which and what it said."""


def real_time_allowed() -> bool:
    with contextlib.suppress(OSError):
        return subprocess.run([*REAL_TIME, "true"], capture_output=True, check=False).returncode == 0
    return False


@contextlib.contextmanager
def short_turns():
    """Ranks of real-time priority share cores in turns of TURN_MS meanwhile, where that may be changed."""
    before = None
    with contextlib.suppress(OSError):
        before = TURN.read_text()
        TURN.write_text(str(TURN_MS))
    try:
        yield
    finally:
        if before is not None:
            with contextlib.suppress(OSError):
                TURN.write_text(before)


@contextlib.contextmanager
def awake():
    """Idle processors poll instead of halting meanwhile, where that may be asked for: a virtual one that halts is woken by
    its host, which takes 50 us to 1 ms."""
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError):
            stack.enter_context(LATENCY.open("r+b", buffering=0)).write(bytes(4))
        yield


def come_before_ranks() -> None:
    """Lets this process, which mostly waits, act on deadlines and signals though ranks that hang keep every processor
    busy; its children are scheduled as ordinary programs."""
    with contextlib.suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_RR | os.SCHED_RESET_ON_FORK, os.sched_param(20))


@dataclasses.dataclass(frozen=True)
class Launcher:
    """Starts the tools of one build: on the hosts of a network, or on loopback as threads of one process."""

    tools: pathlib.Path
    network: Network | None = None
    real_time: bool = False
    timeout_s: float = 300  #: then ranks are taken to hang; a profile of four has taken two minutes

    def run_json(self, ranks: int, tool: str, *arguments: object) -> dict:
        return json.loads(self.run(ranks, tool, *arguments, "--json"))

    def run(self, ranks: int, tool: str, *arguments: object) -> str:
        """Rank 0's standard output. ToolError if a rank fails or takes longer than `timeout_s`."""
        words = [*(REAL_TIME if self.real_time else ()), str(self.tools / tool), *map(str, arguments)]
        with tempfile.TemporaryDirectory(prefix="hipress_validate_") as folder:
            if self.network is None:
                return self.finish(pathlib.Path(folder), [self.start([*words, "--nnodes", str(ranks)], folder, 0, {})])
            return self.finish(pathlib.Path(folder), [
                self.start([*self.network.enter(rank), *words, "--rendezvous", f"file://{folder}/meeting",
                            "--interface", self.network.address(rank)], folder, rank,
                           {"RANK": str(rank), "WORLD_SIZE": str(ranks)}) for rank in range(ranks)])

    @staticmethod
    def start(command: list[str], folder: str, rank: int, job: dict[str, str]) -> subprocess.Popen:
        """Gradients in huge pages, or the first iterations go into page faults: profile and replay must agree in it,
        since it changes what codecs cost."""
        meeting = pathlib.Path(folder, "meeting")
        meeting.mkdir(exist_ok=True)
        environment = {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1", **os.environ, **job}
        with open(f"{folder}/{rank}.out", "wb") as out, open(f"{folder}/{rank}.err", "wb") as err:
            return subprocess.Popen(command, stdout=out, stderr=err, env=environment, preexec_fn=die_with_parent)

    def finish(self, folder: pathlib.Path, processes: list[subprocess.Popen]) -> str:
        deadline = time.monotonic() + self.timeout_s
        try:
            for process in processes:
                process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            pass
        finally:
            for process in processes:
                if process.poll() is None:
                    process.kill()
                    process.wait()
        for rank, process in enumerate(processes):
            if process.returncode != 0:
                said = (folder / f"{rank}.err").read_text(errors="replace").strip()
                raise ToolError(f"rank {rank}: {' '.join(map(str, process.args))}: exit status {process.returncode}"
                                f"\n{said}")
        return (folder / "0.out").read_text()
