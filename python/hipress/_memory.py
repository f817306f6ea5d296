"""Measures what computation reads and writes in its host's memory, from how much longer it takes beside a copy."""

import ctypes
import os
import threading
import time
from typing import List

#: Of each of a copy's two buffers, in bytes: more than caches hold.
_BUFFER = 64 << 20
#: How long copies alone are timed.
_ALONE_S = 0.3
#: Computation that takes less than this times as long beside a copy leaves memory to spare.
_NOT_SLOWED = 1.02


class Copies:
    """Threads that copy while they are asked to."""

    def __init__(self, threads: int) -> None:
        self._on, self._ended = threading.Event(), False
        self.bytes = [0] * threads  #: read and written by each
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
    """Bytes per second that so many threads read and write together."""
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
    """A copy beside every second step. ValueError where no core is left for it."""

    def __init__(self, computing_threads: int) -> None:
        cores = len(os.sched_getaffinity(0))
        if computing_threads >= cores:
            raise ValueError(f"memory=True measures computation beside a copy, which needs a core of its own: {computing_threads} "
                             f"threads compute, and there are {cores} cores; set fewer by torch.set_num_threads, or leave it out")
        self.one, self.all = _bandwidth(1), _bandwidth(cores)
        self._copies = Copies(1)
        self.is_on = False

    def next_step(self) -> bool:
        """Turns the copy on or off; whether it is on."""
        self.is_on = not self.is_on
        self._copies.turn(self.is_on)
        return self.is_on

    def close(self) -> None:
        self._copies.close()

    def traffic(self, alone_s: float, beside_s: float) -> float:
        """Bytes per second of computation that takes so long alone and beside the copy; 0: memory has room for both.

        Who shares a full memory gets as much less as the others: computation that wants a share u of it and a copy that wants p go on at
        1/(u + p) of their speed, so that u is how many times as long it took, less p."""
        longer = beside_s / alone_s if alone_s > 0 else 1.0
        return max(0.0, longer * self.all - self.one) if longer > _NOT_SLOWED else 0.0


def lines(probe: MemoryProbe, alone_s: List[float], beside_s: List[float]) -> List[str]:
    """As a model file has them, from seconds of cores of steps."""
    alone, beside = sorted(alone_s)[len(alone_s) // 2], sorted(beside_s)[len(beside_s) // 2]
    traffic = probe.traffic(alone, beside)
    said = f"beside a copy a step takes {beside / alone:.3f} times as long"
    return [f"memory_traffic: {traffic / 1e9:.2f}GB/s  # {said}" if traffic > 0 else f"# {said}: memory has room for both"]
