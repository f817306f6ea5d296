"""Requests as dictionaries, which hipress_call_with() of the library answers."""

import ctypes
import dataclasses
import json
import logging
import os
import threading
from typing import Any, Callable, Dict, List, Mapping, Optional

from hipress._errors import EnvironmentFailure, HipressWarning, InputError, error_of, short, warn
from hipress._library import OK, CCallOptions, CallProgress, CallSentence, library

#: Seconds between two checks for signals during a wait.
LOOK_S = 0.05

_log = logging.getLogger("hipress")


@dataclasses.dataclass(frozen=True)
class Progress:
    """Progress of a request. The stage is "search", for sweeps "plans" or "simulations", for replays "iterations". `done` of its
    `all` items are finished, a `share` from 0 to 1. `best_s` is the best iteration time of a search so far in seconds; None if
    unknown."""

    stage: str
    share: float
    done: int
    all: int
    best_s: Optional[float]


class _Call:
    """Call of the library on a thread of its own. It runs without the GIL, while the caller's thread handles signals."""

    def __init__(self, request: str, progress: Optional[Callable[[Progress], Any]]) -> None:
        self._request, self._progress = request.encode(), progress
        self._interrupt = ctypes.c_ubyte(0)
        self.warnings: List[str] = []
        self.notes: List[str] = []
        self.failure: Optional[BaseException] = None
        self.status, self.text = OK, None  # type: int, Optional[str]
        # Callbacks of the library: they must live until the call is over.
        self._warn = CallSentence(lambda _, sentence: self.warnings.append(sentence.decode(errors="replace")))
        self._inform = CallSentence(lambda _, sentence: self.notes.append(sentence.decode(errors="replace")))
        self._report = CallProgress(self._show) if progress else CallProgress()

    def interrupt(self) -> None:
        """Asks the library to end early."""
        self._interrupt.value = 1

    def run(self) -> None:
        """Makes the call, and sets `status` and `text`. Sets `failure` to any exception."""
        try:
            loaded = library()
            options = CCallOptions()
            loaded.hipress_call_options_init(ctypes.byref(options))
            options.warn, options.inform, options.progress = self._warn, self._inform, self._report
            options.interrupt = ctypes.pointer(self._interrupt)
            result = ctypes.c_void_p()
            self.status = loaded.hipress_call_with(ctypes.byref(options), self._request, ctypes.byref(result))
            if result:
                self.text = ctypes.string_at(result.value or 0).decode()
                loaded.hipress_free_result(result)
            else:  # out of memory; the library keeps the reason for this thread only
                reason = loaded.hipress_last_error().decode(errors="replace")
                raise EnvironmentFailure(reason or "out of memory", "environment")
        except BaseException as error:  # raised again in the waiting thread
            self.failure = error

    def document(self) -> Dict[str, Any]:
        """Returns the result. Raises InputError or another HipressError if the request has failed."""
        assert self.text is not None
        document: Dict[str, Any] = json.loads(self.text)
        if self.status != OK:
            raise error_of(document)
        return document

    def _show(self, _: Any, at: Any) -> None:
        assert self._progress is not None
        try:
            now = at.contents
            self._progress(Progress(now.stage.decode(), now.share, now.done, now.all, now.best_s or None))
        except BaseException as error:  # ctypes would only print it
            self.failure = self.failure or error
            self.interrupt()


def _waited_for(request: str, progress: Optional[Callable[[Progress], Any]], begun: Optional[Callable[["_Call"], Any]]) -> _Call:
    """Makes a call, and returns it when it is over. KeyboardInterrupt ends it early, and is raised then."""
    call = _Call(request, progress)
    if begun is not None:
        begun(call)
    thread = threading.Thread(target=call.run, name="hipress", daemon=True)
    interruption: Optional[BaseException] = None
    started = False
    while not started or thread.is_alive():
        try:
            if not started:
                started = True
                thread.start()
            thread.join(LOOK_S)
        except BaseException as error:  # keeps waiting, since the library uses the call's memory until its end
            if not thread.ident:
                raise
            interruption = interruption or error
            call.interrupt()
    if interruption is not None:
        raise interruption
    return call


def _plain(value: Any) -> Any:
    """Converts a value of a type that JSON lacks into an equal one of a type that it has. Raises TypeError for any other value."""
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if hasattr(value, "item"):  # a number of numpy
        return value.item()
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} is no value of a request: give a text, a path, a number, True or False, or a list")


def _text(request: Mapping[str, Any]) -> str:
    """Returns the request as JSON. Raises InputError or TypeError with the member's name if JSON cannot express its value."""
    members = []
    for name, value in request.items():
        try:
            text = json.dumps(value, default=_plain, allow_nan=False, ensure_ascii=False)
            text.encode()
        except UnicodeEncodeError:
            raise InputError(f"{name}: {short(value)} is no text in UTF-8", "input", field=name) from None
        except RecursionError:
            raise InputError(f"{name}: has lists and dictionaries in more than 64 levels", "input", field=name) from None
        except (RuntimeError, ValueError) as error:
            raise InputError(f"{name}: {short(value)} is no value of a request ({error})", "input", field=name) from None
        except TypeError as error:
            raise TypeError(f"{name}: {error}") from None
        members.append(f"{json.dumps(name)}: {text}")
    return "{" + ", ".join(members) + "}"


def answer(request: Mapping[str, Any], progress: Optional[Callable[[Progress], Any]] = None) -> Dict[str, Any]:
    """Returns the result document of a request document such as {"request": "plan", "input": "vgg19"}; hipress.h describes both.

    Members that are None are left out, and paths become strings. The library runs without the GIL, so other threads go on.
    KeyboardInterrupt ends the request; a search then writes its best plan so far, if the request has an output. Warnings of the
    library become HipressWarnings, and its notes go to the logger "hipress".

    progress  function that is called now and then, possibly on another thread; an exception in it ends the request and is raised

    Raises InputError for an invalid request, TypeError for a value that JSON cannot express, and other kinds of HipressError."""
    call = answered(request, progress)
    for note in call.notes:
        _log.info("%s", note)
    for sentence in call.warnings:
        warn(sentence, HipressWarning)
    return call.document()


def answered(request: Mapping[str, Any], progress: Optional[Callable[[Progress], Any]] = None,
             begun: Optional[Callable[[_Call], Any]] = None) -> _Call:
    """Makes the call of answer(), and returns it when it is over. Its warnings and notes are left to the caller. document() has
    the result, or raises the request's error. `begun` gets the call before it is made; any thread may interrupt() it."""
    call = _waited_for(_text({name: value for name, value in request.items() if value is not None}), progress, begun)
    if call.failure is not None:
        raise call.failure
    return call
