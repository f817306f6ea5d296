"""Clocks that time training steps on the host and on a GPU."""

import os
import threading
import time

import torch

#: Largest number of readings for one mark. A reading is repeated if the thread lost its core between two clocks.
_MOST_READINGS = 4


class HostMark:
    """An instant: wall time, core time of the process and waiting time of this thread, in seconds."""

    __slots__ = ("wall_s", "core_s", "waited_s", "thread")

    def __init__(self):
        self.thread = threading.get_ident()
        waited_s = _scheduler.waited_s()
        for _ in range(_MOST_READINGS):  # ends once the thread has kept its core during a reading
            self.waited_s = waited_s
            self.core_s = time.process_time()
            self.wall_s = time.perf_counter()
            waited_s = _scheduler.waited_s()
            if waited_s == self.waited_s:
                break


class HostClock:
    """Clock of the host. Seconds between marks exclude the time in which the thread waited for a core that others had: alone on
    the machine, it would not wait."""

    on_cores = True  #: true, since the clock has core_seconds()

    def mark(self) -> HostMark:
        return HostMark()

    def seconds(self, first: HostMark, second: HostMark) -> float:
        return second.wall_s - first.wall_s - self.waited(first, second)

    def core_seconds(self, first: HostMark, second: HostMark) -> float:
        """Core time between two marks, in seconds, summed over all threads of the process."""
        return second.core_s - first.core_s

    def waited(self, first: HostMark, second: HostMark) -> float:
        """Time that the thread waited for a core, in seconds; 0 if the marks are of different threads."""
        return second.waited_s - first.waited_s if first.thread == second.thread else 0.0


class _SchedulerFile(threading.local):
    """This thread's file of Linux's scheduler, which has the thread's waiting time."""

    def __init__(self):
        self.process, self.file = -1, None

    def waited_s(self) -> float:
        """Time that this thread has waited for a core so far, in seconds; 0 where the system does not report it."""
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
    """Clock of a GPU: marks are events of the current stream, and seconds() waits for the second one."""

    on_cores = False

    def mark(self):
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def seconds(self, first, second) -> float:
        second.synchronize()
        return first.elapsed_time(second) * 1e-3
