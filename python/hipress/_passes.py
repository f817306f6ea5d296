"""Backward passes of a training, and the steps that they make up."""

import copy
from typing import AbstractSet, Any, Dict, FrozenSet, List, Optional, Set, Tuple


class Pass:
    """Marks of one backward pass and of the calls of the model before it. Parameters are known by their id()."""

    def __init__(self, called: Any, batch: int, version: int, updates: int) -> None:
        self.called, self.batch = called, batch
        self.version = version  #: of the parameters, at the first call
        self.updates = updates  #: of optimizers that were seen before it
        self.stepped: FrozenSet[int] = frozenset()  #: what optimizers have stepped since the pass before began
        self.moved = False  #: parameters have changed since then, whoever changed them
        self.cleared = False  #: gradients of passes before were dropped
        self.touched = False  #: gradients were changed since the pass before, as where they are clipped or filled with zeros
        self.averaged: Optional[bool] = None  #: by a DistributedDataParallel, which it is not in no_sync(); None: there is none
        self.beside_copy = False  #: it is measured for what it moves in memory
        self.watches: List[Any] = []  #: weak: they live as long as the graphs of the calls
        self.backward: Any = None
        self.reached = False  #: backward has come to the output of the model
        self.ready: Dict[int, Any] = {}
        self.waits: List[Tuple[Any, Any]] = []  #: for the other ranks, from mark to mark, within backward
        self.waits_before: Dict[int, int] = {}  #: a gradient's: those that were over when it was ready
        self.steps: List[Tuple[Any, Any]] = []  #: an optimizer's step(), from mark to mark, since then

    def ready_times(self, seconds: Any) -> Dict[int, float]:
        """Since backward began, without waits."""
        return {one: seconds(self.backward, mark) - self.waited(seconds, last=self.waits_before[one])
                for one, mark in self.ready.items()}

    def waited(self, seconds: Any, first: int = 0, last: Optional[int] = None) -> float:
        """The length of waits first … last - 1, by default of all."""
        return sum(seconds(*wait) for wait in self.waits[first:last])

    def until(self, after: "Pass", seconds: Any) -> float:
        """From the last gradient to the next call, without waits."""
        last = min(self.ready, key=lambda one: seconds(self.ready[one], after.called))
        return seconds(self.ready[last], after.called) - self.waited(seconds, first=self.waits_before[last])


class Updates:
    """Counts the steps that have ended, as steps_of() would without a look ahead."""

    def __init__(self) -> None:
        self._all: Set[int] = set()
        self._covered: Set[int] = set()
        self._ended = self._moves = 0

    def ends(self, stepped: AbstractSet[int], moved: bool) -> bool:
        """True if a step is over where between two passes so much was stepped, or where, without optimizers, parameters moved."""
        if not stepped:
            return moved and not self._all
        return self._covered | stepped >= self._all

    def add(self, stepped: AbstractSet[int], moved: bool) -> None:
        """Takes what happened between two passes."""
        ended = self.ends(stepped, False)
        self._all |= stepped
        self._covered = set() if ended else self._covered | stepped
        self._ended += ended
        self._moves += moved

    @property
    def has_optimizer(self) -> bool:
        return bool(self._all)

    @property
    def count(self) -> int:
        """Steps of optimizers, or without any, changes of the parameters."""
        return self._ended if self._all else self._moves


def steps_of(passes: List[Pass], at_end: FrozenSet[int], moved_at_end: bool) -> List[List[Pass]]:
    """The passes of each step. Since the last pass began, optimizers have stepped `at_end`, and parameters have moved or not.
    Passes whose gradients were dropped are in none.

    A step is one of the optimizers, which is over when each of them has taken one. Where none is seen, it is over when the
    parameters change, or else when gradients are dropped; where nothing tells, each pass is a step."""
    groups: List[List[Pass]] = []
    for one, begins in zip(passes, [True, *_ends(passes, at_end, moved_at_end)]):
        if begins:
            groups.append([one])
        elif one.cleared and not (one.moved or one.stepped):
            groups[-1] = [one]
        elif groups[-1][-1].ready.keys().isdisjoint(one.ready):  # a part of the model each
            groups[-1][-1] = _joined(groups[-1][-1], one)
        else:
            groups[-1].append(one)
    return groups


def _ends(passes: List[Pass], at_end: FrozenSet[int], moved_at_end: bool) -> List[bool]:
    """True for each pass after which a step is over."""
    stepped = [*(one.stepped for one in passes[1:]), at_end]
    if any(stepped):
        return _all_stepped(stepped)
    for seen in ([*(one.moved for one in passes[1:]), moved_at_end], [*(one.cleared or one.touched for one in passes[1:]), False]):
        if any(seen):
            return seen
    return [True] * len(passes)


def _all_stepped(stepped: List[FrozenSet[int]]) -> List[bool]:
    """True where all that optimizers step at that time has been stepped. An optimizer that begins late or ends early is waited for
    no longer than it has ever taken between two of its steps."""
    places: Dict[FrozenSet[int], List[int]] = {}
    for place, names in enumerate(stepped):
        if names:
            places.setdefault(names, []).append(place)
    spans = []
    for names, found in places.items():
        longest = max((after - before for before, after in zip(found, found[1:])), default=len(stepped))
        spans.append((found[0] - longest, found[-1] + longest, names))
    ends, covered = [], set()  # type: List[bool], Set[int]
    for place, names in enumerate(stepped):
        covered |= names
        waited = frozenset().union(*(of for first, last, of in spans if first < place < last or of <= names))
        ends.append(bool(names) and covered >= waited)
        if ends[-1]:
            covered = set()
    return ends


def _joined(first: Pass, second: Pass) -> Pass:
    """Two passes through parts of a model as one."""
    joined = copy.copy(first)
    joined.ready, joined.steps = {**first.ready, **second.ready}, first.steps + second.steps
    joined.waits = first.waits + second.waits
    joined.waits_before = {**first.waits_before, **{one: len(first.waits) + n for one, n in second.waits_before.items()}}
    return joined


__all__ = ["Pass", "Updates", "steps_of"]
