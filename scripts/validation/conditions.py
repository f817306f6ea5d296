"""What this machine's programs cannot change and yet depend on while something is measured: what other programs and other
machines on the same host take, and how far apart the host has put two of its processors."""

import contextlib
import ctypes
import dataclasses
import mmap
import os
import pathlib
import resource
import signal
import time

#: Other programs that keep more than this many processors busy disturb a measurement.
DISTURBED = 0.25
#: So do other machines on the same host that take more than this many: a link that nobody serves for 4 ms has lost them.
STOLEN = 0.03
#: So does a host that moves processors: handing over takes less than this factor longer, or shorter, while they stay where they
#: are, and 2.4 times as long between two under different caches as between two under one.
MOVED = 1.5
#: What is handed over: less than a processor's own cache holds.
HANDED_BYTES = 64 << 10
#: Looks, for some seconds, after which a process that answers is taken to be gone.
PATIENCE = 100_000_000
PR_SET_PDEATHSIG = 1


def die_with_parent() -> None:
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def handover_us(times: int = 60) -> float:
    """How long it takes to copy 64 KiB that another processor has just written, in microseconds: the first quartile of some
    `times`. 0 where there is but one processor. Takes less than 10 ms of two."""
    allowed = os.sched_getaffinity(0)
    if len(allowed) < 2:
        return 0.0
    here, there = sorted(allowed)[:2]
    with mmap.mmap(-1, HANDED + HANDED_BYTES) as shared, writer(shared, there):
        os.sched_setaffinity(0, {here})
        try:
            taken = sorted(time_of_handover(shared) for _ in range(times))
        finally:
            os.sched_setaffinity(0, allowed)
    return taken[times // 4] * 1e6


#: The first page holds whether something is asked for, the others what is handed over.
HANDED = mmap.PAGESIZE


def time_of_handover(shared: mmap.mmap) -> float:
    shared[0] = 1
    for _ in range(PATIENCE):
        if shared[0] == 0:
            break
    else:
        raise OSError("a process that was to answer on another processor is gone")
    started = time.perf_counter()
    shared[HANDED:]  # copies
    return time.perf_counter() - started


@contextlib.contextmanager
def writer(shared: mmap.mmap, processor: int):
    """A process on `processor` writes what it is asked for meanwhile."""
    child = os.fork()
    if child == 0:
        write(shared, processor)
    try:
        yield
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def write(shared: mmap.mmap, processor: int) -> None:
    """Until this process is killed; nothing of the program that it was forked from must run in it."""
    try:
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        die_with_parent()
        os.sched_setaffinity(0, {processor})
        zeros = bytes(HANDED_BYTES)
        while True:
            if shared[0] == 1:
                shared[HANDED:] = zeros
                shared[0] = 0
    finally:
        os._exit(1)


@dataclasses.dataclass(frozen=True)
class Conditions:
    """Time in seconds that the machine's processors and the ranks have spent so far, and where the processors are."""

    at_s: float
    busy_s: float  #: all programs, and what a hypervisor took
    ours_s: float  #: ranks that have ended
    stolen_s: float = 0.0  #: what a hypervisor took for other machines
    handover_us: float = 0.0  #: between two processors

    @staticmethod
    def read() -> "Conditions":
        apart_us = handover_us()
        fields = [int(field) for field in pathlib.Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
        user, nice, system, _, _, _, _, steal = fields
        children = resource.getrusage(resource.RUSAGE_CHILDREN)
        ticks = os.sysconf("SC_CLK_TCK")
        return Conditions(time.monotonic(), (user + nice + system + steal) / ticks,
                          children.ru_utime + children.ru_stime, steal / ticks, apart_us)

    def alike(self, other: "Conditions") -> bool:
        """Whether processors are as far apart as they were then."""
        near, far = sorted((self.handover_us, other.handover_us))
        return far <= near * MOVED


def disturbance(before: Conditions, after: Conditions) -> float:
    """Processors that others kept busy, on average, between the two."""
    others_s = (after.busy_s - before.busy_s) - (after.ours_s - before.ours_s)
    return max(0.0, others_s / max(1e-3, after.at_s - before.at_s))


def stolen(before: Conditions, after: Conditions) -> float:
    """Processors that the host took for other machines, on average, between the two."""
    return (after.stolen_s - before.stolen_s) / max(1e-3, after.at_s - before.at_s)


def taken_between(before: Conditions, after: Conditions) -> bool:
    """Whether others took so much of the processors that it shows."""
    return disturbance(before, after) > DISTURBED or stolen(before, after) > STOLEN


def disturbed_between(before: Conditions, after: Conditions) -> bool:
    """Whether what was measured between the two is of no use: of a machine that others used, or of two machines."""
    return taken_between(before, after) or not before.alike(after)
