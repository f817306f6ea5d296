"""Measures the memory traffic of computation on the host, by its slowdown while memory is copied."""

import ctypes
import os
import threading
import time
from typing import List

#: Size of each of a copy's two buffers, in bytes: larger than the caches.
_BUFFER = 64 << 20
#: Duration of a measurement of copies alone, in seconds.
_ALONE_S = 0.3
#: Slowdown up to which memory counts as having room for both computation and copy.
_NOT_SLOWED = 1.02


class Copies:
    """Threads that copy while they are turned on."""

    def __init__(self, threads: int) -> None:
        self._on, self._ended = threading.Event(), False
        self.bytes = [0] * threads  #: bytes that each thread has read and written
        self._threads = [threading.Thread(target=self._copy, args=(index,), daemon=True) for index in range(threads)]
        for thread in self._threads:
            thread.start()

    def _copy(self, index: int) -> None:
        source, target = ctypes.create_string_buffer(_BUFFER), ctypes.create_string_buffer(_BUFFER)
        while self._on.wait() and not self._ended:
            ctypes.memmove(target, source, _BUFFER)  # other threads run meanwhile
            self.bytes[index] += 2 * _BUFFER

    def turn(self, on: bool) -> None:
        (self._on.set if on else self._on.clear)()

    def close(self) -> None:
        self._ended = True
        self._on.set()
        for thread in self._threads:
            thread.join()


def _bandwidth(threads: int) -> float:
    """Memory bandwidth of that many copying threads together, read and written, in bytes per second."""
    copies = Copies(threads)
    try:
        copies.turn(True)
        while not all(copies.bytes):
            time.sleep(0.001)
        before, began = sum(copies.bytes), time.perf_counter()
        time.sleep(_ALONE_S)
        return (sum(copies.bytes) - before) / (time.perf_counter() - began)
    finally:
        copies.close()


class MemoryProbe:
    """Runs a copy during every second step. Raises ValueError if no core is left for it."""

    def __init__(self, computing_threads: int) -> None:
        cores = len(os.sched_getaffinity(0))
        if computing_threads >= cores:
            raise ValueError(f"memory=True measures computation beside a copy, which needs a core of its own: {computing_threads} "
                             f"threads compute, and there are {cores} cores; set fewer by torch.set_num_threads, or leave it out")
        self.one, self.all = _bandwidth(1), _bandwidth(cores)
        self._copies = Copies(1)
        self.is_on = False

    def next_step(self) -> bool:
        """Turns the copy on or off. Returns true if it is on."""
        self.is_on = not self.is_on
        self._copies.turn(self.is_on)
        return self.is_on

    def close(self) -> None:
        self._copies.close()

    def traffic(self, alone_s: float, beside_s: float) -> float:
        """Memory traffic, in bytes per second, of computation with these times alone and beside the copy; 0 if memory has room for
        both.

        Full memory slows all its users equally. Computation that demands a share u of the bandwidth and a copy that demands p both
        run at 1/(u + p) of their speed alone. Hence u is the slowdown minus p. (`all` is the bandwidth; p is `one` / `all`.)"""
        longer = beside_s / alone_s if alone_s > 0 else 1.0
        return max(0.0, longer * self.all - self.one) if longer > _NOT_SLOWED else 0.0


def lines(probe: MemoryProbe, alone_s: List[float], beside_s: List[float]) -> List[str]:
    """Lines of a model file, from the core time of steps alone and beside a copy, in seconds."""
    alone, beside = sorted(alone_s)[len(alone_s) // 2], sorted(beside_s)[len(beside_s) // 2]
    traffic = probe.traffic(alone, beside)
    said = f"beside a copy a step takes {beside / alone:.3f} times as long"
    return [f"memory_traffic: {traffic / 1e9:.2f}GB/s  # {said}" if traffic > 0 else f"# {said}: memory has room for both"]
