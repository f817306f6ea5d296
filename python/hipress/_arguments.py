"""Checks of callers' arguments."""

import math
import numbers
from typing import Any, Optional

from hipress._engine import InvalidRequest
from hipress._errors import short

#: Largest bucket_mb, in MiB: DistributedDataParallel counts bytes in 64 bits.
MOST_BUCKET_MB = 1 << 20
#: Largest timeout, in seconds: 31 years.
MOST_SECONDS = 10**9


def number(name: str, value: Any, *, above: Optional[float] = None, least: Optional[float] = None,
           most: Optional[float] = None) -> float:
    """Returns the value as a finite float in range. Raises InvalidRequest for any other value."""
    try:
        is_number = isinstance(value, numbers.Real) and not isinstance(value, bool) and math.isfinite(value)
    except OverflowError:  # a whole number that is larger than any double
        is_number = False
    if not is_number or (above is not None and value <= above) or (least is not None and value < least) or \
            (most is not None and value > most):
        bounds = [*([f"above {above}"] if above is not None else []), *([f"at least {least}"] if least is not None else []),
                  *([f"at most {most}"] if most is not None else [])]
        raise InvalidRequest(f"{name} must be a number {' and '.join(bounds)}, got {short(value)}")
    return float(value)


def whole(name: str, value: Any, *, least: int, most: Optional[int] = None) -> int:
    """Returns the value as an int in range. Raises InvalidRequest for any other value."""
    if not isinstance(value, numbers.Integral) or isinstance(value, bool) or value < least or (most is not None and value > most):
        bounds = f"at least {least}" if most is None else f"from {least} to {most}"
        raise InvalidRequest(f"{name} must be a whole number, {bounds}, got {short(value)}")
    return int(value)


def job(*, seed: Any, timeout: Any = None, silence: Any = None, **texts: Any) -> None:
    """Checks the arguments with which ranks join a job. Raises InvalidRequest unless the seed is an unsigned 64-bit number, the
    times are in range, and each of `texts` is None or a text without null characters."""
    whole("seed", seed, least=0, most=(1 << 64) - 1)
    for name, seconds in (("timeout", timeout), ("silence", silence)):
        if seconds is not None:
            number(name, seconds, above=0, most=MOST_SECONDS)
    for name, text in texts.items():
        if text is not None and (not isinstance(text, str) or "\0" in text):
            raise InvalidRequest(f"{name} must be a text, got {short(text)}")


__all__ = ["MOST_BUCKET_MB", "MOST_SECONDS", "job", "number", "whole"]
