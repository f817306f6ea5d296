"""Clocks of steps that are measured."""

import os
import threading
import time

import torch

#: Of an instant, since a thread may lose its core between two of its clocks.
_MOST_READINGS = 4


class HostMark:
    """An instant, and what the process and this thread had had of the cores by then."""

    __slots__ = ("wall_s", "core_s", "waited_s", "thread")

    def __init__(self):
        self.thread = threading.get_ident()
        waited_s = _scheduler.waited_s()
        for _ in range(_MOST_READINGS):  # until the thread kept its core between them
            self.waited_s = waited_s
            self.core_s = time.process_time()
            self.wall_s = time.perf_counter()
            waited_s = _scheduler.waited_s()
            if waited_s == self.waited_s:
                break


class HostClock:
    """Seconds between marks are without those in which the thread waited for a core that others had: alone on the machine, it would
    not have."""

    on_cores = True  #: core_seconds() is known

    def mark(self) -> HostMark:
        return HostMark()

    def seconds(self, first: HostMark, second: HostMark) -> float:
        return second.wall_s - first.wall_s - self.waited(first, second)

    def core_seconds(self, first: HostMark, second: HostMark) -> float:
        """Of all threads of the process together."""
        return second.core_s - first.core_s

    def waited(self, first: HostMark, second: HostMark) -> float:
        """For a core."""
        return second.waited_s - first.waited_s if first.thread == second.thread else 0.0


class _SchedulerFile(threading.local):
    """Where Linux says how long this thread has waited for a core."""

    def __init__(self):
        self.process, self.file = -1, None

    def waited_s(self) -> float:
        """0 where the system does not say it."""
        if self.process != os.getpid():  # also after a fork
            self.process = os.getpid()
            try:
                self.file = open("/proc/thread-self/schedstat", "rb", buffering=0)
            except OSError:
                self.file = None
        try:
            return 1e-9 * int(os.pread(self.file.fileno(), 64, 0).split()[1]) if self.file is not None else 0.0
        except (OSError, ValueError, IndexError):
            return 0.0


_scheduler = _SchedulerFile()


class CudaClock:
    """Marks are events of the current stream, read once all of them are over."""

    on_cores = False

    def mark(self):
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def seconds(self, first, second) -> float:
        second.synchronize()
        return first.elapsed_time(second) * 1e-3
