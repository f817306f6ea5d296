"""Exceptions and warnings of this package."""

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
    """Failure of a call of this package. The message says what is wrong, where, and what would be accepted. `kind` is that of the
    error documents of hipress.h; file, line, field and remedy are None if unknown."""

    def __init__(self, message: str, kind: str = "internal", file: Optional[str] = None, line: Optional[int] = None,
                 field: Optional[str] = None, remedy: Optional[str] = None) -> None:
        super().__init__(message)
        self.kind, self.file, self.line, self.field, self.remedy = kind, file, line, field, remedy


class InputError(HipressError, ValueError):
    """Wrong request: an unknown name, an impossible value or a malformed file."""


class UnmetError(HipressError):
    """Unmet requirement, such as a trace that lacks data for a model. `result` is a dictionary of the partial result, or None."""

    result: Optional[Dict[str, Any]] = None


class EnvironmentFailure(HipressError, RuntimeError):
    """Failure of the environment: memory, threads or disk space ran out, or a program cannot be compiled here. The same request
    may work elsewhere."""


class Interrupted(HipressError):
    """Interruption of a request before its result, by other means than KeyboardInterrupt."""


class HipressWarning(UserWarning):
    """Warning of an answer that may mislead, for example because an option has no effect or costs are not measured."""


def short(value: Any) -> str:
    """Shortens the value's repr() for a message: drops the middle of a long text, deeply nested parts and a long end."""
    try:
        text = _REPR.repr(value)
        return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN - 3]}..."
    except Exception:  # raised by a class of the caller's, or by an int of more digits than Python prints
        return f"a value of type {type(value).__name__}"


def warn(sentence: str, category: Type[Warning] = UserWarning) -> None:
    """Warns at the line that called this package, however deep the call is nested. Python shows a line's warning once."""
    level, frame = 2, sys._getframe(1)  # the caller of this function
    while frame.f_back is not None and os.path.abspath(frame.f_code.co_filename).startswith(_PACKAGE):
        frame, level = frame.f_back, level + 1
    warnings.warn(sentence, category, stacklevel=level)


_BY_KIND = {"input": InputError, "unmet": UnmetError, "environment": EnvironmentFailure, "interrupted": Interrupted}


def error_of(document: Dict[str, Any]) -> HipressError:
    """Exception for an error document of hipress_call()."""
    said = dict(document["error"])
    error = _BY_KIND.get(said["kind"], HipressError)(said.pop("message"), **said)
    if isinstance(error, UnmetError):
        error.result = document.get("result")
    return error
