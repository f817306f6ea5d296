"""Runs a tool as a job of ranks."""

import contextlib
import dataclasses
import json
import os
import pathlib
import re
import subprocess
import tempfile
import time
from collections.abc import Callable

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
#: How many huge pages the kernel keeps for programs that ask for these, and what it says of memory.
POOL = pathlib.Path("/proc/sys/vm/nr_hugepages")
MEMORY = pathlib.Path("/proc/meminfo")


class ToolError(Exception):
    """A tool failed; the message says which and what it said."""


def real_time_allowed() -> bool:
    with contextlib.suppress(OSError):
        return subprocess.run([*REAL_TIME, "true"], capture_output=True, check=False).returncode == 0
    return False


@contextlib.contextmanager
def setting(path: pathlib.Path, value: Callable[[int], int]):
    """Sets a number of the kernel to `value` of what it was meanwhile, where that is allowed. A shell that waits for the
    end of its input puts it back, also after this process was killed."""
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError, ValueError):
            before = int(path.read_text())
            stack.enter_context(restored(path, before))
            path.write_text(f"{value(before)}\n")
        yield


@contextlib.contextmanager
def restored(path: pathlib.Path, number: int):
    shell = subprocess.Popen(["sh", "-c", 'read -r _; echo "$1" > "$2"', "sh", str(number), str(path)],
                             stdin=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        yield
    finally:
        shell.communicate()


def short_turns():
    """Ranks of real-time priority share cores in turns of TURN_MS meanwhile, where that may be changed."""
    return setting(TURN, lambda _: TURN_MS)


def reserved_memory():
    """Half of the memory that is there is kept for ranks meanwhile, as huge pages, where that may be asked for. What ranks
    leave behind goes to the next ones then. Otherwise it goes back to the kernel, and where this machine is virtual on to its
    host, which takes processors away while it unmaps it."""
    return setting(POOL, lambda pages: pages + memory_kb("MemAvailable") // 2 // memory_kb("Hugepagesize"))


def memory_kb(name: str) -> int:
    """What the kernel says of memory. OSError if it does not say that."""
    found = re.search(rf"^{name}: *(\d+) kB$", MEMORY.read_text(), re.MULTILINE)
    if not found:
        raise OSError(f"{MEMORY} has no {name}")
    return int(found[1])


def allocation() -> str:
    """How glibc allocates: in huge pages, or the first iterations go into page faults; those of the pool, if it has any."""
    try:
        pooled = int(POOL.read_text()) > 0
    except (OSError, ValueError):
        pooled = False
    return f"glibc.malloc.hugetlb={2 if pooled else 1}"


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
                self.start([*self.network.enter(rank), *words, "--rendezvous", f"file://{folder}/rendezvous",
                            "--interface", self.network.address(rank)], folder, rank,
                           {"RANK": str(rank), "WORLD_SIZE": str(ranks)}) for rank in range(ranks)])

    @staticmethod
    def start(command: list[str], folder: str, rank: int, job: dict[str, str]) -> subprocess.Popen:
        """Profile and replay must allocate alike, since it changes what codecs cost."""
        rendezvous = pathlib.Path(folder, "rendezvous")
        rendezvous.mkdir(exist_ok=True)
        environment = {"GLIBC_TUNABLES": allocation(), **os.environ, **job}
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
