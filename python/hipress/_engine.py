"""The engine of hipress.h as a Python object."""

import ctypes
import logging
import multiprocessing.util
import os
import re
import weakref
from typing import Any, List, Mapping, Optional, Sequence, Tuple

from hipress import _library
from hipress._errors import HipressError
from hipress._library import CGradient, COptions, Gradient, library

#: Longest wait within the library, in seconds. Python handles signals between two waits.
LOOK_S = 0.1
#: Logger of events that do not end a job, such as a silent rank.
_log = logging.getLogger("hipress")


class Error(HipressError, RuntimeError):
    """Failure of a synchronisation on this rank."""


class InvalidRequest(Error, ValueError):
    """Invalid argument. The call had no effect."""


class RankLost(Error):
    """Loss of another rank. `rank` is its number, as torch.distributed.get_rank() returns it there. `left` is true if that rank
    closed its engine in good order while others went on, and false if it failed."""

    def __init__(self, message: str, rank: int, left: bool = False) -> None:
        super().__init__(message)
        self.rank, self.left = rank, left


#: Largest number of a group's ranks that a message lists one by one.
_MOST_LISTED = 8


class Numbers:
    """Launcher's numbers of an engine's ranks, by their places in the engine. In the library's messages, "rank" is followed by a
    place."""

    def __init__(self, numbers: Sequence[int]) -> None:
        self._numbers = list(numbers)
        self._differ = self._numbers != list(range(len(self._numbers)))

    def of(self, place: int) -> int:
        """Number of the rank at a place. -1, which does not stand for a rank, stays."""
        return self._numbers[place] if 0 <= place < len(self._numbers) else place

    def name(self, place: int) -> str:
        """Name of the rank at a place, for messages."""
        return self.explain(f"rank {place}")

    def explain(self, text: str) -> str:
        """Replaces places by numbers in a text of the library. The first number is followed by its process group."""
        if not self._differ:
            return text
        listed = ", ".join(map(str, self._numbers[:_MOST_LISTED])) + (", …" if self._numbers[_MOST_LISTED:] else "")
        text = _renumbered(text, dict(enumerate(self._numbers)))
        return re.sub(r"\brank (\d+)\b", lambda found: f"{found[0]} ({self._numbers.index(int(found[1]))} of the process group of "
                      f"ranks {listed})" if int(found[1]) in self._numbers else found[0], text, count=1)

    def places(self, text: str) -> str:
        """Replaces numbers by places in a text for the library. Other ranks, to which the library passes it, call explain()."""
        return _renumbered(text, {number: place for place, number in enumerate(self._numbers)}) if self._differ else text


def _renumbered(text: str, known: Mapping[int, int]) -> str:
    return re.sub(r"\brank (\d+)\b", lambda found: f"rank {known.get(int(found[1]), found[1])}", text)


def check(status: int, numbers: Numbers = Numbers(())) -> None:
    """Raises RankLost, InvalidRequest or Error for a status other than HIPRESS_OK. `numbers` are those of the engine's ranks."""
    if status == _library.OK:
        return
    text = numbers.explain(library().hipress_last_error().decode(errors="replace"))
    if status == _library.LOST:
        raise RankLost(text, numbers.of(library().hipress_culprit()), library().hipress_how_lost() == _library.LEFT)
    if status == _library.INVALID:
        raise InvalidRequest(text)
    raise Error(text)


def _described(gradients: Sequence[Gradient]) -> Tuple[Any, Any]:
    """Returns a C array of the gradients, and their shapes, which must live as long as it does."""
    shapes = [(ctypes.c_int64 * len(one.shape))(*one.shape) for one in gradients]
    array = (CGradient * len(gradients))()
    for place, one, shape in zip(array, gradients, shapes):
        place.name = one.name.encode()
        place.elements, place.type, place.ready_s = one.elements, one.type, one.ready_s
        place.dimensions = len(one.shape)
        if one.shape:
            place.shape = ctypes.cast(shape, ctypes.POINTER(ctypes.c_int64))
    return array, shapes


class Engine:
    """Averages gradients over ranks. All ranks make it together, with equal gradients and options. A gradient's place in the list
    is its number.

    options  members of hipress_options: rank, ranks, plan, topology, algorithm, transport, rendezvous, network, job, secret,
             timeout_s, silence_s, seed, device, store, group_bytes, fragments
    numbers  numbers of the ranks in errors; None: their places

    Methods raise RankLost, InvalidRequest or Error, as check() does."""

    def __init__(self, gradients: Sequence[Gradient], numbers: Optional[Numbers] = None, **options: Any) -> None:
        lib = library()
        self._numbers = numbers if numbers is not None else Numbers(())
        filled = COptions()
        lib.hipress_options_init(ctypes.byref(filled))
        for name, value in options.items():
            if name == "fragments":
                continue
            setattr(filled, name, value.encode() if isinstance(value, str) else value)
        if "secret" in options:
            filled.secret_bytes = len(options["secret"])
        if "fragments" in options:
            filled.fragments = (ctypes.c_uint32 * len(gradients))(*options["fragments"])
        array, self._shapes = _described(gradients)
        handle = ctypes.c_void_p()
        self._check(lib.hipress_open(ctypes.byref(filled), array, len(gradients), ctypes.byref(handle)))
        self.gradients = list(gradients)
        self._handle = handle
        self._works = (ctypes.c_void_p * len(gradients))()
        self._submitted = 0
        # Runs at the end of the interpreter, too: the engine's threads must not outlive it, and the other ranks expect a goodbye.
        self._finalizer = weakref.finalize(self, Engine._close, handle, self._works, os.getpid())
        # Processes that multiprocessing has forked end without the interpreter's exit handlers.
        multiprocessing.util.Finalize(self, self._finalizer, exitpriority=0)

    def _check(self, status: int) -> None:
        check(status, self._numbers)

    @staticmethod
    def _close(handle: ctypes.c_void_p, works: Any, process: int) -> None:
        if os.getpid() != process:
            return  # a fork has the memory, but no threads
        if handle:
            library().hipress_close(handle)
        handle.value = None
        for i, work in enumerate(works):
            if work:
                library().hipress_release(work)
                works[i] = None

    def submit(self, count: int, numbers: Any, tensors: Any) -> None:
        """Submits `count` gradients, given by C arrays of their numbers and of CTensors. Their memory is lent until wait() has
        returned. Raises InvalidRequest if more gradients would be submitted before a wait() than the job has."""
        if self._submitted + count > len(self.gradients):
            raise InvalidRequest(f"{self._submitted + count} gradients are submitted and not waited for; there are "
                                 f"{len(self.gradients)}: an iteration before this one was not completed")
        status = library().hipress_submit_many(self._opened, count, numbers, tensors, self._works_from(self._submitted))
        self._submitted += count
        self._check(status)

    def wait(self) -> None:
        """Waits until all gradients of submit() are averaged. Python handles signals meanwhile."""
        status = self._wait(0, self._submitted)
        self._submitted = 0
        self._check(status)

    def begin(self, first: int, tensors: Any) -> None:
        """Submits a C array of CTensors: the gradients `first`, `first` + 1, and so on. end() waits for them. It is for callers
        that average several ranges of gradients at a time, and do not call submit()."""
        numbers = (ctypes.c_uint32 * len(tensors))(*range(first, first + len(tensors)))
        self._check(library().hipress_submit_many(self._opened, len(tensors), numbers, tensors, self._works_from(first)))

    def end(self, first: int, count: int) -> None:
        """Waits until the gradients of begin() from `first` to `first` + `count` - 1 are averaged."""
        self._check(self._wait(first, count))

    def within(self, first: int, count: int, seconds: float) -> bool:
        """Waits as end() does, but for at most `seconds`. Returns True if the gradients are averaged."""
        done = ctypes.c_int()
        self._check(library().hipress_wait_all(self._works_from(first), count, seconds, ctypes.byref(done)))
        return bool(done.value)

    def _works_from(self, place: int) -> Any:
        return ctypes.byref(self._works, place * ctypes.sizeof(ctypes.c_void_p))

    def _wait(self, place: int, count: int) -> int:
        done = ctypes.c_int()
        while True:
            status = library().hipress_wait_all(self._works_from(place), count, LOOK_S, ctypes.byref(done))
            for sentence in library().hipress_news(self._handle).decode(errors="replace").splitlines():
                _log.warning(self._numbers.explain(sentence))
            if done.value or status != _library.OK:
                return int(status)

    def all_finite(self) -> bool:
        """True if all means of the last iteration are finite numbers. The result is the same on every rank."""
        finite = ctypes.c_int()
        self._check(library().hipress_all_finite(self._opened, ctypes.byref(finite)))
        return bool(finite.value)

    def discard(self, numbers: Optional[Sequence[int]] = None) -> None:
        """Undoes the last iteration of these gradients (None: all), whose means were not applied: restores the encoders' state
        from before it. Every rank does the same."""
        if numbers is None:
            return self._check(library().hipress_discard(self._opened, None, 0))
        self._check(library().hipress_discard(self._opened, (ctypes.c_uint32 * len(numbers))(*numbers), len(numbers)))

    def squared_residuals(self) -> List[float]:
        """Squared norm of this rank's residual of each gradient; negative for a gradient without a residual of its own."""
        squares = (ctypes.c_double * len(self.gradients))()
        self._check(library().hipress_residuals(self._opened, squares, len(squares)))
        return list(squares)

    def take_residual(self, number: int, values: Any, elements: int) -> None:
        """Moves this rank's residual of a gradient to the address `values`: `elements` fp32 numbers in the scale of its
        gradients. If the caller adds them to the next gradient, nothing is lost."""
        self._check(library().hipress_take_residual(self._opened, number, values, elements))

    def measure_links(self) -> Tuple[float, float]:
        """Measures the links between the ranks: bytes per second of a rank that sends and receives at once, and seconds of a small
        message. All ranks call it together while no gradient is submitted, and get the same result."""
        bandwidth, latency_s = ctypes.c_double(), ctypes.c_double()
        self._check(library().hipress_measure_links(self._opened, ctypes.byref(bandwidth), ctypes.byref(latency_s)))
        return bandwidth.value, latency_s.value

    @property
    def notes(self) -> str:
        """Warnings for training with the plan, one per line; may be empty."""
        return str(library().hipress_notes(self._handle).decode())

    def save_state(self, path: str) -> None:
        """Writes the state of this rank's encoders to a file: residuals, factors and counts of iterations."""
        self._check(library().hipress_save_state(self._opened, path.encode()))

    def load_state(self, path: str) -> None:
        """Restores the state that save_state() wrote. Later means are bit-identical to those of the saving engine. Raises
        InvalidRequest if the file does not match, and changes nothing then."""
        self._check(library().hipress_load_state(self._opened, path.encode()))

    def abort(self, reason: str) -> None:
        """Ends the job on every rank, and tells them the reason."""
        library().hipress_abort(self._handle, self._numbers.places(reason).encode())

    def abort_for(self, error: BaseException) -> None:
        """Ends the job on every rank, with an exception of this rank as the reason."""
        self.abort(f"{type(error).__name__}: {error}" if str(error) else type(error).__name__)

    def close(self) -> None:
        """Leaves the job and ends all threads. Calls after the first do nothing."""
        self._finalizer()

    @property
    def closed(self) -> bool:
        return not self._finalizer.alive

    @property
    def _opened(self) -> ctypes.c_void_p:
        """Handle of the library's engine. Raises Error after close()."""
        if self.closed:
            raise Error("this was closed, and is no part of a job any more")
        return self._handle


__all__ = ["Engine", "Error", "InvalidRequest", "Numbers", "RankLost", "check"]
