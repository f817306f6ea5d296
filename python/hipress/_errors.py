"""What this package raises and warns of."""

import os
import reprlib
import sys
import warnings
from typing import Any, Dict, Optional, Type

_MOST_SHOWN = 160
_REPR = reprlib.Repr()
_REPR.maxlevel, _REPR.maxlist, _REPR.maxtuple, _REPR.maxstring, _REPR.maxother = 3, 20, 20, 80, 80
_PACKAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "")


class HipressError(Exception):
    """A call of this package failed. The message says what is wrong, where, and what would be accepted; `kind` is that of the
    error documents of hipress.h, and file, line, field and remedy are None where they are not known."""

    def __init__(self, message: str, kind: str = "internal", file: Optional[str] = None, line: Optional[int] = None,
                 field: Optional[str] = None, remedy: Optional[str] = None) -> None:
        super().__init__(message)
        self.kind, self.file, self.line, self.field, self.remedy = kind, file, line, field, remedy


class InputError(HipressError, ValueError):
    """The request is wrong: an unknown name, an impossible value, a malformed file."""


class UnmetError(HipressError):
    """A requirement is not met, as by a trace that does not tell enough for a model; `result` is a dictionary of what was found
    out all the same, or None."""

    result: Optional[Dict[str, Any]] = None


class EnvironmentFailure(HipressError, RuntimeError):
    """Memory, threads or room on a disk ran out, or a program cannot be compiled here: the same request may work elsewhere."""


class Interrupted(HipressError):
    """The request was interrupted before there was a result, by other means than KeyboardInterrupt."""


class HipressWarning(UserWarning):
    """What may mislead in an answer: an option without effect, costs that nobody measured."""


def short(value: Any) -> str:
    """The value as Python writes it, for a message: without the middle of a long text, what lies deep, and a long end."""
    try:
        text = _REPR.repr(value)
        return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN - 3]}..."
    except Exception:  # whatever a class of the caller's own raises, and whole numbers of more digits than Python prints
        return f"a value of type {type(value).__name__}"


def warn(sentence: str, category: Type[Warning] = UserWarning) -> None:
    """Warns of the line that called this package, however deep in it the call is by now: Python shows a line's warning once."""
    level, frame = 2, sys._getframe(1)  # the caller of this function
    while frame.f_back is not None and os.path.abspath(frame.f_code.co_filename).startswith(_PACKAGE):
        frame, level = frame.f_back, level + 1
    warnings.warn(sentence, category, stacklevel=level)


_BY_KIND = {"input": InputError, "unmet": UnmetError, "environment": EnvironmentFailure, "interrupted": Interrupted}


def error_of(document: Dict[str, Any]) -> HipressError:
    """The exception that an error document of hipress_call() stands for."""
    said = dict(document["error"])
    error = _BY_KIND.get(said["kind"], HipressError)(said.pop("message"), **said)
    if isinstance(error, UnmetError):
        error.result = document.get("result")
    return error
