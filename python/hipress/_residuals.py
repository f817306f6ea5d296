"""Log lines about the gradients' residuals, and warnings about residuals outside the range that a pilot has measured."""

import hashlib
import logging
import math
import os
import pathlib
import statistics
from typing import Callable, Dict, Mapping, Optional, Set, Tuple, Union

from hipress import _arguments, _pilot_file
from hipress._engine import InvalidRequest
from hipress._errors import warn

_Path = Union[str, "os.PathLike[str]"]
#: Least and largest ratio of a residual to its gradient, by gradient.
Ranges = Mapping[str, Tuple[float, float]]
#: Steps between two lines.
EVERY = 100
#: Margin of a range, as a factor at each end: residuals of single steps scatter.
_MARGIN = 1.5

_log = logging.getLogger("hipress")


def ranges_of(pilot: _Path, plan: str) -> Ranges:
    """Least and largest ratio of each gradient's residual that a pilot has measured under the plan, with a margin. Raises
    InvalidRequest if the file is not a pilot's, or has no run of the plan."""
    document, pilot = _pilot_file.read(pilot), os.fspath(pilot)
    if not document:
        raise InvalidRequest(f"{pilot}: there is no such file: python -m hipress.pilot writes it")
    digest = hashlib.sha256(pathlib.Path(plan).read_bytes()).hexdigest()[:16] if os.path.isfile(plan) else None
    names = {row["plan"] for row in document["plans"] if row["plan"] == plan or (digest and row.get("digest") == digest)}
    if plan != "none" and not names:
        raise InvalidRequest(f"{pilot} has no run of {plan}: pilot it, with --plans '{plan}' --output {pilot}")
    found: Dict[str, Tuple[float, float]] = {}
    for row in document.get("errors", []):
        if row["plan"] in names and "residual" in row:
            low, high = found.get(row["gradient"], (math.inf, 0.0))
            found[row["gradient"]] = min(low, row["residual"] / _MARGIN), max(high, row["residual"] * _MARGIN)
    return found


class ResidualLog:
    """Counts steps, and once in `every` steps (0: never) logs the residuals that `held` returns. Without ranges, it calls `held`
    only if the logger hipress takes lines of level INFO."""

    def __init__(self, held: Callable[[], Mapping[str, float]], every: int, ranges: Optional[Ranges] = None) -> None:
        self._held, self._ranges = held, ranges
        self._every = _arguments.whole("log_every", every, least=0)
        self._steps = self._told = 0
        self._warned: Set[str] = set()

    def is_due(self) -> bool:
        """Counts a step. True if the caller is to call tell() once the step's gradients have been averaged."""
        self._steps += 1
        due = self._every > 0 and self._steps - self._told >= self._every
        return due and (self._ranges is not None or _log.isEnabledFor(logging.INFO))

    def tell(self) -> None:
        """Logs a line, and warns once of each gradient whose residual has left its range."""
        self._told = self._steps
        held = {name: ratio for name, ratio in self._held().items() if math.isfinite(ratio)}
        if not held:
            return
        most = max(held, key=lambda name: held[name])
        _log.info("after %d steps residuals hold %.3g (median) and %.3g ('%s', the most) times the norm of their gradients",
                  self._steps, statistics.median(held.values()), held[most], most)
        for name, (low, high) in (self._ranges or {}).items():
            if name in held and name not in self._warned and not low <= held[name] <= high:
                self._warned.add(name)
                warn(f"after {self._steps} steps the residual of '{name}' holds {held[name]:.3g} times the norm of its gradient, and "
                     f"in the pilot {low:.3g} to {high:.3g}: the pilot's steps to a loss may not hold for this part of the training. "
                     "Pilot through it, or plan with a finer algorithm for this gradient")


__all__ = ["EVERY", "Ranges", "ResidualLog", "ranges_of"]
