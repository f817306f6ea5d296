"""hipress_call(): requests as dictionaries, answered by the library."""

import ctypes
import dataclasses
import json
import logging
import os
import threading
from typing import Any, Callable, Dict, List, Mapping, Optional

from hipress._errors import EnvironmentFailure, HipressWarning, InputError, error_of, short, warn
from hipress._library import OK, CCallOptions, CallProgress, CallSentence, library

#: The wait for an answer wakes up this often, so that Python can look after its signals.
LOOK_S = 0.05

_log = logging.getLogger("hipress")


@dataclasses.dataclass(frozen=True)
class Progress:
    """How far a request is: `share` of the stage ("search", of sweeps "plans" and "simulations", of replays "iterations") is
    done, that is `done` of `all` of them. `best_s` is the best iteration time so far of a search, in seconds."""

    stage: str
    share: float
    done: int
    all: int
    best_s: Optional[float]


class _Call:
    """One call, on a thread of its own: the library runs there without the GIL, and the caller's thread stays awake for
    signals."""

    def __init__(self, request: str, progress: Optional[Callable[[Progress], Any]]) -> None:
        self._request, self._progress = request.encode(), progress
        self._interrupt = ctypes.c_ubyte(0)
        self.warnings: List[str] = []
        self.notes: List[str] = []
        self.failure: Optional[BaseException] = None
        self.status, self.text = OK, None  # type: int, Optional[str]
        # The library calls these until the call is over, so they live as long as this object.
        self._warn = CallSentence(lambda _, sentence: self.warnings.append(sentence.decode(errors="replace")))
        self._inform = CallSentence(lambda _, sentence: self.notes.append(sentence.decode(errors="replace")))
        self._report = CallProgress(self._show) if progress else CallProgress()

    def interrupt(self) -> None:
        """Asks the library to end early."""
        self._interrupt.value = 1

    def run(self) -> None:
        """Makes the call; its answer is in `status` and `text` then."""
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
            else:  # there was no memory for it; the library keeps the reason for this thread alone
                reason = loaded.hipress_last_error().decode(errors="replace")
                raise EnvironmentFailure(reason or "out of memory", "environment")
        except BaseException as error:  # raised again by whoever waits
            self.failure = error

    def _show(self, _: Any, at: Any) -> None:
        assert self._progress is not None
        try:
            now = at.contents
            self._progress(Progress(now.stage.decode(), now.share, now.done, now.all, now.best_s or None))
        except BaseException as error:  # ctypes would only print it
            self.failure = self.failure or error
            self.interrupt()


def _answered(request: str, progress: Optional[Callable[[Progress], Any]]) -> _Call:
    """The call, when it is over. KeyboardInterrupt ends it early."""
    call = _Call(request, progress)
    thread = threading.Thread(target=call.run, name="hipress", daemon=True)
    interruption: Optional[BaseException] = None
    started = False
    while not started or thread.is_alive():
        try:
            if not started:
                started = True
                thread.start()
            thread.join(LOOK_S)
        except BaseException as error:  # the library uses what is ours until the call is over
            if not thread.ident:
                raise
            interruption = interruption or error
            call.interrupt()
    if interruption is not None:
        raise interruption
    return call


def _plain(value: Any) -> Any:
    """What JSON has no word for, in words that it has."""
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if hasattr(value, "item"):  # a number of numpy
        return value.item()
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} is no value of a request: give a text, a path, a number, True or False, or a list")


def _text(request: Mapping[str, Any]) -> str:
    """The request as JSON. InputError or TypeError, which names the member, for what JSON cannot say."""
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
    """The result document of a request document, as hipress.h describes both: {"request": "plan", "input": "vgg19"}.

    Members that are None are left out, and paths become texts. Without the GIL, so that other threads go on; KeyboardInterrupt
    ends it. A search for a plan that is ended so writes the best plan until then, if there is an output. What the library warns
    of is a HipressWarning; what it notes goes to the logger "hipress".

    progress  is called now and then, perhaps on another thread; an exception that it raises ends the request, and is raised

    InputError for a request that is wrong, and the other kinds of HipressError."""
    call = _answered(_text({name: value for name, value in request.items() if value is not None}), progress)
    if call.failure is not None:
        raise call.failure
    for note in call.notes:
        _log.info("%s", note)
    for sentence in call.warnings:
        warn(sentence, HipressWarning)
    assert call.text is not None
    document: Dict[str, Any] = json.loads(call.text)
    if call.status != OK:
        raise error_of(document)
    return document
