"""Runs a tool as the ranks of a job."""

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

#: Prefix of a rank's command. The scheduler then serves the rank before ordinary programs, which otherwise add milliseconds to
#: every wake-up.
REAL_TIME = ("chrt", "--rr", "10")
#: Time slice of ranks of equal priority on a core, in ms: the kernel's tick. The kernel's default of 100 ms is longer than many an
#: iteration; one rank would then begin only after another has ended.
TURN_MS = 4
TURN = pathlib.Path("/proc/sys/kernel/sched_rr_timeslice_ms")
#: File of Linux (PM quality of service). While a program keeps it open with a latency of 0 written to it, idle processors poll.
LATENCY = pathlib.Path("/dev/cpu_dma_latency")
#: Files with the number of huge pages that the kernel reserves, and with its figures of memory.
POOL = pathlib.Path("/proc/sys/vm/nr_hugepages")
MEMORY = pathlib.Path("/proc/meminfo")


class ToolError(Exception):
    """Error: a tool failed. The message has its name and its output."""


def real_time_allowed() -> bool:
    with contextlib.suppress(OSError):
        return subprocess.run([*REAL_TIME, "true"], capture_output=True, check=False).returncode == 0
    return False


@contextlib.contextmanager
def setting(path: pathlib.Path, value: Callable[[int], int]):
    """Changes a kernel setting (a file with a number) from x to value(x) within the block, where permitted. A shell restores it
    when the shell's input ends, even if this process is killed."""
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
    """Lets real-time ranks share cores in time slices of TURN_MS within the block, where permitted."""
    return setting(TURN, lambda _: TURN_MS)


def reserved_memory():
    """Reserves half of the available memory as huge pages for ranks within the block, where permitted. Memory that a rank frees
    then goes to the next rank. Otherwise it would go back to the kernel, and on a virtual machine to the host, which takes
    processors away while it unmaps memory."""
    return setting(POOL, lambda pages: pages + memory_kb("MemAvailable") // 2 // memory_kb("Hugepagesize"))


def memory_kb(name: str) -> int:
    """A figure of the kernel about memory, in KiB. Raises OSError if the kernel does not report it."""
    found = re.search(rf"^{name}: *(\d+) kB$", MEMORY.read_text(), re.MULTILINE)
    if not found:
        raise OSError(f"{MEMORY} has no {name}")
    return int(found[1])


def allocation() -> str:
    """Setting with which glibc allocates huge pages, taken from the pool if it has any. Without huge pages, the first iterations
    would be spent in page faults."""
    try:
        pooled = int(POOL.read_text()) > 0
    except (OSError, ValueError):
        pooled = False
    return f"glibc.malloc.hugetlb={2 if pooled else 1}"


@contextlib.contextmanager
def awake():
    """Makes idle processors poll instead of halting within the block, where permitted. A virtual processor that halts is woken by
    its host, which takes 50 us to 1 ms."""
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError):
            stack.enter_context(LATENCY.open("r+b", buffering=0)).write(bytes(4))
        yield


def come_before_ranks() -> None:
    """Gives this process, which mostly waits, priority over ranks, so that it reacts to deadlines and signals even if hanging ranks
    keep every processor busy. Its children have the priority of ordinary programs."""
    with contextlib.suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_RR | os.SCHED_RESET_ON_FORK, os.sched_param(20))


@dataclasses.dataclass(frozen=True)
class Launcher:
    """Launcher of the tools of one build: on the hosts of a network, or on loopback as threads of one process."""

    tools: pathlib.Path
    network: Network | None = None
    real_time: bool = False
    timeout_s: float = 300  #: time after which ranks count as hanging; a profile with four ranks has taken two minutes

    def run_json(self, ranks: int, tool: str, *arguments: object) -> dict:
        return json.loads(self.run(ranks, tool, *arguments, "--json"))

    def run(self, ranks: int, tool: str, *arguments: object) -> str:
        """Runs a tool as ranks. Returns rank 0's standard output. Raises ToolError if a rank fails or takes longer than
        `timeout_s`."""
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
        """Starts a rank. Profiles and replays must allocate memory alike, because that changes the costs of codecs."""
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
