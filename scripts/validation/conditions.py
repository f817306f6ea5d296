"""Measures conditions on which measurements depend: the processor time that other programs and other machines on the same host
take, and the distance at which the host has placed two of the processors."""

import contextlib
import ctypes
import dataclasses
import mmap
import os
import pathlib
import resource
import signal
import time

#: Number of processors. A measurement is disturbed if other programs keep more processors than this busy.
DISTURBED = 0.25
#: The same for other machines on the same host. The limit is low: if a virtual processor stands still for 4 ms, the link has lost
#: these 4 ms.
STOLEN = 0.03
#: Factor between two handover times. A host that moves processors disturbs a measurement, too. While processors stay in place,
#: handing over data varies by less than this factor; between processors under different caches it takes 2.4 times as long as under
#: one cache.
MOVED = 1.5
#: Size of the data that is handed over, in bytes: less than a processor's own cache.
HANDED_BYTES = 64 << 10
#: Number of checks, some seconds' worth, after which a process that does not answer counts as gone.
PATIENCE = 100_000_000
PR_SET_PDEATHSIG = 1


def die_with_parent() -> None:
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def handover_us(times: int = 60) -> float:
    """Time to copy 64 KiB that a second processor has just written, in microseconds: the first quartile of `times` copies. It is 0
    on a machine with one processor. The measurement takes less than 10 ms of two processors."""
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


#: Offset of the data that is handed over. The first page has the flag with which data is requested.
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
    """Within the block, runs a process on `processor` that writes data whenever they are requested."""
    child = os.fork()
    if child == 0:
        write(shared, processor)
    try:
        yield
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def write(shared: mmap.mmap, processor: int) -> None:
    """Serves requests until this process is killed. It must not run any code of the program that it was forked from."""
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
    """Processor time in seconds that the machine and the ranks have used so far, and the time of a hand-over between processors."""

    at_s: float
    busy_s: float  #: of all programs, and of other machines on the host
    ours_s: float  #: of ranks that have ended
    stolen_s: float = 0.0  #: taken by the hypervisor for other machines
    handover_us: float = 0.0  #: time to hand data over between two processors

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
        """True if handing data over between processors takes about as long as at the other time."""
        near, far = sorted((self.handover_us, other.handover_us))
        return far <= near * MOVED


def disturbance(before: Conditions, after: Conditions) -> float:
    """Mean number of processors that other programs kept busy between the two times."""
    others_s = (after.busy_s - before.busy_s) - (after.ours_s - before.ours_s)
    return max(0.0, others_s / max(1e-3, after.at_s - before.at_s))


def stolen(before: Conditions, after: Conditions) -> float:
    """Mean number of processors that the host took for other machines between the two times."""
    return (after.stolen_s - before.stolen_s) / max(1e-3, after.at_s - before.at_s)


def taken_between(before: Conditions, after: Conditions) -> bool:
    """True if other programs or machines used too much processor time for a measurement between the two times."""
    return disturbance(before, after) > DISTURBED or stolen(before, after) > STOLEN


def disturbed_between(before: Conditions, after: Conditions) -> bool:
    """True if a measurement between the two times is useless: other programs or machines took too much processor time, or the host
    moved this machine's virtual processors."""
    return taken_between(before, after) or not before.alike(after)
