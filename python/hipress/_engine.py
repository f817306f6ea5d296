"""The engine of hipress.h as a Python object."""

import ctypes
import os
import weakref
from typing import Any, Optional, Sequence, Tuple

from hipress import _library
from hipress._errors import HipressError
from hipress._library import CGradient, COptions, Gradient, library

#: A wait in the library returns this often, so that Python can look after its signals.
LOOK_S = 0.1


class Error(HipressError, RuntimeError):
    """A synchronisation failed on this rank."""


class InvalidRequest(Error, ValueError):
    """An argument is wrong; nothing has happened."""


class RankLost(Error):
    """A rank no longer takes part; `rank` is its number, and `left` is whether it closed its end in good order while others went
    on, rather than failed."""

    def __init__(self, message: str, rank: int, left: bool = False) -> None:
        super().__init__(message)
        self.rank, self.left = rank, left


def check(status: int) -> None:
    """Raises what a status that is not HIPRESS_OK means."""
    if status == _library.OK:
        return
    text = library().hipress_last_error().decode(errors="replace")
    if status == _library.LOST:
        raise RankLost(text, library().hipress_culprit(), library().hipress_how_lost() == _library.LEFT)
    if status == _library.INVALID:
        raise InvalidRequest(text)
    raise Error(text)


def _described(gradients: Sequence[Gradient]) -> Tuple[Any, Any]:
    """A C array of the gradients, and what must live as long."""
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
    """Averages gradients over ranks. All ranks make it together, of equal gradients and options; a gradient's place in the list
    is its number. Options are those of hipress_options: rank, ranks, plan, strategy, algorithm, transport, rendezvous, network,
    job, secret, timeout_s, seed, device, fragments."""

    def __init__(self, gradients: Sequence[Gradient], **options: Any) -> None:
        lib = library()
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
        check(lib.hipress_open(ctypes.byref(filled), array, len(gradients), ctypes.byref(handle)))
        self.gradients = list(gradients)
        self._handle = handle
        self._works = (ctypes.c_void_p * len(gradients))()
        self._submitted = 0
        # Also when the interpreter ends: a thread of the engine must not outlive it.
        self._finalizer = weakref.finalize(self, Engine._close, handle, self._works, os.getpid())

    @staticmethod
    def _close(handle: ctypes.c_void_p, works: Any, process: int) -> None:
        if os.getpid() != process:
            return  # a fork has the memory, and none of the threads
        if handle:
            library().hipress_close(handle)
        handle.value = None
        for i, work in enumerate(works):
            if work:
                library().hipress_release(work)
                works[i] = None

    def submit(self, count: int, numbers: Any, tensors: Any) -> None:
        """Submits `count` gradients of C arrays: their numbers, and CTensors, whose memory is lent until wait() has returned."""
        if self._submitted + count > len(self.gradients):
            raise InvalidRequest(f"{self._submitted + count} gradients are submitted and not waited for; there are "
                                 f"{len(self.gradients)}: an iteration before this one was not completed")
        status = library().hipress_submit_many(self._handle, count, numbers, tensors, self._works_from(self._submitted))
        self._submitted += count
        check(status)

    def wait(self) -> None:
        """Waits until all that submit() was given is averaged. Signals are looked after meanwhile."""
        status = self._wait(0, self._submitted)
        self._submitted = 0
        check(status)

    def begin(self, first: int, tensors: Any) -> None:
        """Submits the gradients from number `first` on, a C array of CTensors, for end(): for callers who have others under way
        meanwhile, and do not call submit()."""
        numbers = (ctypes.c_uint32 * len(tensors))(*range(first, first + len(tensors)))
        check(library().hipress_submit_many(self._handle, len(tensors), numbers, tensors, self._works_from(first)))

    def end(self, first: int, count: int) -> None:
        """Waits until the `count` gradients that begin() was given from number `first` on are averaged."""
        check(self._wait(first, count))

    def _works_from(self, place: int) -> Any:
        return ctypes.byref(self._works, place * ctypes.sizeof(ctypes.c_void_p))

    def _wait(self, place: int, count: int) -> int:
        done = ctypes.c_int()
        while True:
            status = library().hipress_wait_all(self._works_from(place), count, LOOK_S, ctypes.byref(done))
            if done.value or status != _library.OK:
                return int(status)

    def all_finite(self) -> bool:
        """Whether the means of the last iteration are finite numbers: the same on every rank."""
        finite = ctypes.c_int()
        check(library().hipress_all_finite(self._handle, ctypes.byref(finite)))
        return bool(finite.value)

    def discard(self, numbers: Optional[Sequence[int]] = None) -> None:
        """The last means of these gradients (None: of all) are not applied: what encoders keep becomes what it was before. Every
        rank does the same."""
        if numbers is None:
            return check(library().hipress_discard(self._handle, None, 0))
        check(library().hipress_discard(self._handle, (ctypes.c_uint32 * len(numbers))(*numbers), len(numbers)))

    @property
    def notes(self) -> str:
        """What whoever trains with the plan must know, a line each; empty: nothing."""
        return str(library().hipress_notes(self._handle).decode())

    def save_state(self, path: str) -> None:
        """Writes what this rank's encoders keep between iterations to a file."""
        check(library().hipress_save_state(self._handle, path.encode()))

    def load_state(self, path: str) -> None:
        """Goes on as the engine would have that wrote the file."""
        check(library().hipress_load_state(self._handle, path.encode()))

    def abort(self, reason: str) -> None:
        """Ends the job on every rank, and says why."""
        library().hipress_abort(self._handle, reason.encode())

    def close(self) -> None:
        """Leaves the job and ends all threads. Calls after the first do nothing."""
        self._finalizer()

    @property
    def closed(self) -> bool:
        return not self._finalizer.alive


__all__ = ["Engine", "Error", "InvalidRequest", "RankLost", "check"]
