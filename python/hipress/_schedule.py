"""Schedules of local updates. A schedule says which fragment of the model ranks average at the end of which step."""

import dataclasses
import re
from typing import Dict, List, Optional, Sequence, Tuple

from hipress._engine import InvalidRequest

PATTERNS = ("strided", "sequential")
#: Parameters of "local(…)", as error messages list them.
_PARAMETERS = ("steps, a whole number, from 1 (default 100); fragments, a whole number, from 1 (default 1); every, a whole number, "
               "from 1 (default steps / fragments, rounded down, at least 1); pattern, strided or sequential (default strided); "
               "overlap, a whole number, from 0 to steps - 1 (default 0)")
_LEAST = {"steps": 1, "fragments": 1, "every": 1, "overlap": 0}


@dataclasses.dataclass(frozen=True)
class LocalSchedule:
    """Schedule of local updates. Every rank trains alone; in each *period*, each *fragment* of the model is averaged once.

    steps      H: steps between two averages of a fragment, unless fragments · every is larger
    fragments  P: number of parts of the model, each of which has some of its layers
    every      E: steps from one fragment's turn to the next fragment's
    pattern    strided: fragment p has the layers p, p + P, p + 2P …; sequential: blocks of consecutive layers
    overlap    T: steps that training continues while a fragment is being averaged; 0: it waits for the mean"""

    steps: int
    fragments: int
    every: int
    pattern: str
    overlap: int

    def __str__(self) -> str:
        return (f"local(steps={self.steps}, fragments={self.fragments}, every={self.every}, pattern={self.pattern}, "
                f"overlap={self.overlap})")

    @property
    def period(self) -> int:
        """Steps between two turns of one fragment."""
        return max(self.steps, self.fragments * self.every)

    def due(self, step: int) -> Optional[int]:
        """Fragment whose turn is at the end of a step; steps count from 1. None if no fragment has its turn then."""
        turns, rest = divmod((step - 1) % self.period + 1, self.every)
        return turns - 1 if rest == 0 and turns <= self.fragments else None

    def last_turn(self, fragment: int, step: int) -> int:
        """Last step, up to and including this one, at whose end the fragment had its turn; 0 if it had none."""
        first = (fragment + 1) * self.every
        return step - (step - first) % self.period if step >= first else 0

    def turns_before(self, step: int) -> int:
        """Number of fragments that have had their turn by the end of a step in its period; 0 at the end of a period."""
        return min(step % self.period // self.every, self.fragments)

    def fragments_of(self, names: Sequence[str]) -> List[List[str]]:
        """Names of each fragment's parameters. `names` lists all parameters, in the order of the model. Raises InvalidRequest if
        there are more fragments than layers."""
        layers = layers_of(names)
        if self.fragments > len(layers):
            raise InvalidRequest(f"schedule '{self}': the model has {len(layers)} layers, and a fragment has at least one: take "
                                 f"fragments={len(layers)} or fewer")
        count, parts = self.fragments, []
        for p in range(count):
            strided = layers[p::count]
            block = layers[p * len(layers) // count:(p + 1) * len(layers) // count]
            parts.append([name for layer in (strided if self.pattern == "strided" else block) for name in layer])
        return parts


def layers_of(names: Sequence[str]) -> List[List[str]]:
    """Names of each layer's parameters, in the order of the model. A *layer* is the part of a name up to its first number that is
    not at the end, such as `blocks.3` of `blocks.3.attention.weight`; a parameter without such a number is a layer of its own."""
    layers: Dict[str, List[str]] = {}
    for name in names:
        parts = name.split(".")
        numbers = [place for place, part in enumerate(parts[:-1]) if part.isdigit()]
        layers.setdefault(".".join(parts[:numbers[0] + 1]) if numbers else name, []).append(name)
    return list(layers.values())


def parse_schedule(text: str) -> LocalSchedule:
    """Parses a schedule such as "local(steps=100, fragments=4, every=25, pattern=strided, overlap=1)"; parameters that are left out
    have their defaults. Raises InvalidRequest for any other text."""
    found = re.fullmatch(r"\s*(\w+)\s*(?:\((.*)\))?\s*", text, re.DOTALL)
    if found is None or found[1] != "local":
        raise InvalidRequest(f"schedule '{text}' is none: give local(steps=100, fragments=4, overlap=1); parameters of local: "
                             f"{_PARAMETERS}")
    given: Dict[str, str] = {}
    for assignment in filter(None, map(str.strip, (found[2] or "").split(","))):
        name, value = _assigned(assignment, text)
        if name in given:
            _refuse(text, f"'{name}' is given twice")
        given[name] = value
    numbers = {name: _number(name, given[name], text) for name in _LEAST if name in given}
    steps, fragments = numbers.get("steps", 100), numbers.get("fragments", 1)
    schedule = LocalSchedule(steps, fragments, numbers.get("every", max(1, steps // fragments)), given.get("pattern", "strided"),
                             numbers.get("overlap", 0))
    if schedule.pattern not in PATTERNS:
        _refuse(text, f"there is no pattern '{schedule.pattern}'")
    if schedule.overlap >= schedule.steps:
        _refuse(text, f"overlap={schedule.overlap} is out of range: a fragment must have arrived before its next turn, so that "
                      f"{schedule.steps - 1} is the most for steps={schedule.steps}")
    return schedule


def _refuse(text: str, reason: str) -> None:
    raise InvalidRequest(f"schedule '{text}': {reason}; parameters of local: {_PARAMETERS}")


def _assigned(assignment: str, text: str) -> Tuple[str, str]:
    name, equals, value = map(str.strip, assignment.partition("="))
    if not equals:
        _refuse(text, f"'{assignment}' is not of the form name=value")
    if name not in _LEAST and name != "pattern":
        _refuse(text, f"there is no parameter '{name}'")
    return name, value


def _number(name: str, value: str, text: str) -> int:
    if not re.fullmatch(r"[+-]?\d{1,9}", value):
        _refuse(text, f"{name}={value} is not a whole number")
    if int(value) < _LEAST[name]:
        _refuse(text, f"{name}={value} is out of range")
    return int(value)
