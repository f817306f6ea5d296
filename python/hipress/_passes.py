"""Backward passes of a training, and their grouping into steps."""

import copy
from typing import AbstractSet, Any, Dict, FrozenSet, List, Optional, Set, Tuple


class Pass:
    """Marks of one backward pass and of the calls of the model before it. Keys are id()s of parameters."""

    def __init__(self, called: Any, batch: int, version: int, updates: int) -> None:
        self.called, self.batch = called, batch
        self.version = version  #: version of the parameters at the first call
        self.updates = updates  #: optimizers' steps before the pass
        self.stepped: FrozenSet[int] = frozenset()  #: parameters that optimizers have stepped since the previous pass began
        self.moved = False  #: true if parameters have changed since then, by any means
        self.cleared = False  #: true if gradients of earlier passes were dropped
        self.touched = False  #: true if gradients were changed since the previous pass, for example clipped or zeroed
        self.averaged: Optional[bool] = None  #: true if DistributedDataParallel averages it, false in no_sync(); None without DDP
        self.beside_copy = False  #: true if a copy runs beside the pass, to measure its memory traffic
        self.watches: List[Any] = []  #: weak references to hooks, which live as long as the graphs of the calls
        self.backward: Any = None
        self.reached = False  #: true once backward has reached the output of the model
        self.ready: Dict[int, Any] = {}
        self.waits: List[Tuple[Any, Any]] = []  #: begin and end of each wait for other ranks within backward
        self.waits_before: Dict[int, int] = {}  #: number of waits that were over when a gradient was ready
        self.steps: List[Tuple[Any, Any]] = []  #: begin and end of each optimizer step() after the pass

    def ready_times(self, seconds: Any) -> Dict[int, float]:
        """Ready time of each gradient in seconds, without waits."""
        return {one: seconds(self.backward, mark) - self.waited(seconds, last=self.waits_before[one])
                for one, mark in self.ready.items()}

    def waited(self, seconds: Any, first: int = 0, last: Optional[int] = None) -> float:
        """Duration of waits first … last - 1 in seconds, by default of all."""
        return sum(seconds(*wait) for wait in self.waits[first:last])

    def until(self, after: "Pass", seconds: Any) -> float:
        """Time from the last gradient to the next call of the model in seconds, without waits."""
        last = min(self.ready, key=lambda one: seconds(self.ready[one], after.called))
        return seconds(self.ready[last], after.called) - self.waited(seconds, first=self.waits_before[last])


class Updates:
    """Counter of the steps that have ended: a version of steps_of() without lookahead."""

    def __init__(self) -> None:
        self._all: Set[int] = set()
        self._covered: Set[int] = set()
        self._ended = self._moves = 0

    def ends(self, stepped: AbstractSet[int], moved: bool) -> bool:
        """True if a step ends between two passes: these parameters were stepped or, without optimizers, some have moved."""
        if not stepped:
            return moved and not self._all
        return self._covered | stepped >= self._all

    def add(self, stepped: AbstractSet[int], moved: bool) -> None:
        """Adds the events between two passes."""
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
        """Number of optimizers' steps; without optimizers, of changes of the parameters."""
        return self._ended if self._all else self._moves


def steps_of(passes: List[Pass], at_end: FrozenSet[int], moved_at_end: bool) -> List[List[Pass]]:
    """Groups passes into steps. `at_end` and `moved_at_end` describe the time since the last pass began: the parameters that
    optimizers have stepped, and whether any parameters have moved. Passes whose gradients were dropped are left out.

    A step is over when each optimizer has taken one. Without optimizers, it is over when the parameters change, or else when
    gradients are dropped or changed; without any of these, each pass is a step."""
    groups: List[List[Pass]] = []
    for one, begins in zip(passes, [True, *_ends(passes, at_end, moved_at_end)]):
        if begins:
            groups.append([one])
        elif one.cleared and not (one.moved or one.stepped):
            groups[-1] = [one]
        elif groups[-1][-1].ready.keys().isdisjoint(one.ready):  # passes through different parts of the model
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
    """True for each place at which every active optimizer has stepped since the last such place. An optimizer is active from its
    first step to its last, and before and after these for its longest distance between two steps."""
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
    """Joins two passes through different parts of a model."""
    joined = copy.copy(first)
    joined.ready, joined.steps = {**first.ready, **second.ready}, first.steps + second.steps
    joined.waits = first.waits + second.waits
    joined.waits_before = {**first.waits_before, **{one: len(first.waits) + n for one, n in second.waits_before.items()}}
    return joined


__all__ = ["Pass", "Updates", "steps_of"]
