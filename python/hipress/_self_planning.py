"""A job that measures itself, plans, and switches to a plan that is faster: what hooks of all kinds of models share."""

import collections
import dataclasses
import functools
import json
import logging
import math
import os
import secrets
import statistics
import time
from typing import Any, Deque, Dict, List, Mapping, NamedTuple, Optional, Tuple, Union

import torch.distributed as dist

from hipress import _job, _job_report, _output, _planning
from hipress._control import PLAIN, Act, Candidate, Control, Pace, Phase, Report
from hipress._engine import Error, InvalidRequest, RankLost
from hipress._job import Wish
from hipress._links import LinkEngine

_Path = Union[str, "os.PathLike[str]"]
_log = logging.getLogger("hipress")
#: Largest difference between the ranks' values of a model, as a share of rank 0's largest value.
_ROUNDED = 1e-3
#: Number of latest steps whose times are kept: more than a window has.
_MOST_SEEN = 256


class _Card(NamedTuple):
    """Data that a rank tells the others: its machine, a unique name for its entries in the store, the reason why only plain DDP can
    average (empty if a plan can), true if the rank measures kernels first, and values of its model."""

    machine: str
    token: str
    unfit: str
    profiles: bool
    content: List[float]


class SelfPlanning:
    """Base of a hook whose job plans. A derived class calls _meet() at its beginning, _begin_step() before each step that all ranks
    take together, and defines the methods that raise NotImplementedError."""

    #: Name of the way without a plan in messages, and the planner's baseline that predicts its step time (None: the plan none).
    _plain: str = "plain DDP"
    _baseline: Optional[str] = "ddp"

    def _meet(self, group: Any, same: Dict[str, Any], network: Optional[str], pace: Pace, unfit: str, request: Mapping[str, Any],
              algorithms: Optional[str], profile: Optional[_Path], pilot: Optional[_Path], values: List[float]) -> None:
        """Meets the other ranks of a process group.

        same      arguments that must be equal on all ranks
        unfit     reason why this model's gradients can only be averaged without a plan; empty if a plan can
        request   members of the requests for plans, besides ranks, links and costs
        values    values of the model, which must be equal on all ranks but for rounding"""
        self._unfit = unfit
        self._profiling: Optional[_planning.Profiling] = None
        self._links = LinkEngine(group, lambda: Wish([], -1, same, network))
        self._job = self._links.job
        try:
            cards = self._job.group.exchange(functools.partial(self._prepare, request, algorithms, profile, pilot, values))
            _require_same_content(self._job, [one.content for one in cards])
        except BaseException:
            self._links.close()
            if self._profiling is not None:
                self._profiling.close()
            raise
        self._store = dist.PrefixStore(f"hipress/auto/{cards[0].token}", dist.distributed_c10d._get_default_store())
        self._control: Optional[Control] = None
        self._planning: Optional[_planning.Planning] = None
        self._unfit = cards[0].unfit
        if not self._unfit:
            numbers = [self._job.group.numbers.of(place) for place in range(self._job.ranks)]
            self._control = Control(pace, numbers, cards[0].profiles, self._plain, len({one.machine for one in cards}) > 1)
            self._planning = self._planning_of([one.machine for one in cards]) if self._job.rank == 0 else None
        self._open: Dict[int, Any] = {}  #: hooks by way
        self._model, self._uncaptured = "", ""  #: YAML of the captured model, or the reason of a failed capture
        self._way = PLAIN
        self._step = 0
        self._mark_s: Optional[float] = None
        self._waited_s = 0.0  #: time in this step in which the rank waited for others
        #: Number, way, seconds, and seconds without waits of each step.
        self._seen: Deque[Tuple[int, int, float, float]] = collections.deque(maxlen=_MOST_SEEN)
        self._told = 0  #: number of the control's lines that were logged
        self._fetches = 0  #: number of times that rank 0 has passed something to all ranks

    def _start_capture(self, control: Control) -> None:
        """Rank 0 begins to capture the steps of the control's window."""
        raise NotImplementedError

    def _captured(self) -> str:
        """Returns the model YAML of the running capture; empty if none was started. Raises ValueError if the capture has no
        complete step after its warm-up."""
        raise NotImplementedError

    def _stop_capture(self) -> None:
        raise NotImplementedError

    def _hook_of(self, way: Candidate) -> Any:
        """Makes a way's hook. All ranks call it together. Raises Error on all ranks if it cannot be made."""
        raise NotImplementedError

    def _close_way(self, hook: Any) -> None:
        raise NotImplementedError

    def _begin_step(self) -> None:
        """Records the time of the previous step, acts with the other ranks, and chooses the step's way."""
        now_s = time.perf_counter()
        step = self._step
        if self._mark_s is not None:
            step_s = now_s - self._mark_s
            self._seen.append((step - 1, self._way, step_s, max(0.0, step_s - self._waited_s)))
        self._waited_s = 0.0
        control = self._control
        if control is not None:
            if self._links.is_posted:
                self._act(control, step, control.hear(step, self._links.collect()))
            if control.is_due(step):
                self._links.post(self._report(control))
            self._way = control.way_of(step)
            self._tell(control)
        self._step += 1
        self._mark_s = time.perf_counter()

    def _prepare(self, request: Mapping[str, Any], algorithms: Optional[str], profile: Optional[_Path], pilot: Optional[_Path],
                 values: List[float]) -> _Card:
        """Returns this rank's card. Rank 0 completes the request for plans."""
        if self._unfit or self._job.ranks == 1:
            self._unfit = self._unfit or "there is one rank"
        elif self._job.rank == 0:
            algorithms = algorithms if algorithms is not None or pilot is not None else _planning.ALGORITHMS
            try:
                if profile is None:
                    profiled = algorithms or _planning.ALGORITHMS, min(self._job.ranks, 4)
                    profile = _planning.profile_path(*profiled)
                    if not profile.is_file():
                        self._profiling = _planning.Profiling(profile, *profiled)
            except Error as error:
                self._unfit = str(error)
                _log.warning("%s averages: %s", self._plain, error)
                profile = ""
            self._request = {**request, "nnodes": self._job.ranks, "profile": os.fspath(profile),
                             "pilot": None if pilot is None else os.fspath(pilot)}
            self._algorithms = algorithms
        return _Card(_job.machine(), secrets.token_hex(8), self._unfit, self._profiling is not None, values)

    def _planning_of(self, hosts: List[str]) -> _planning.Planning:
        ranks, count = len(hosts), len(set(hosts))
        each = ranks // count
        regular = all(len(set(hosts[first:first + each])) == 1 for first in range(0, ranks, each))
        per_host = 0 if count == 1 else each if regular else 1
        return _planning.Planning({**self._request, "nodes_per_host": per_host}, self._algorithms, self._profiling,
                                  self._plain, self._baseline)

    def _report(self, control: Control) -> Report:
        first, end = control.window
        seen = [one for one in self._seen if first <= one[0] < end]

        def median(way: Optional[int], what: int) -> float:
            return statistics.median([one[what] for one in seen if one[1] == way] or [0.0])

        ready = False
        if control.phase is Phase.PROFILE and self._profiling is not None:
            ready = not self._profiling.is_alive()
        elif control.phase is Phase.PLAN and self._planning is not None:
            ready = self._planning.is_ready
        if ready:
            self._pass_on(control)
        return Report(median(control.kept, 2), median(control.tried, 2), median(control.kept, 3), float(ready))

    def _pass_on(self, control: Control) -> None:
        """Puts the result of rank 0's profiling or planning into the store. Other ranks are told later, and need not wait for
        it."""
        made: Any = self._profiling if control.phase is Phase.PROFILE else self._planning
        rows = [] if control.phase is Phase.PROFILE else [dataclasses.astuple(one) for one in made.candidates]
        self._store.set(f"passed {self._fetches}", json.dumps([self._model, rows, made.seconds, made.failure]))

    def _fetched(self) -> List[Any]:
        """Returns the list that rank 0's next _pass_on() has put, or will put, into the store."""
        self._fetches += 1
        fetched: List[Any] = json.loads(self._store.get(f"passed {self._fetches - 1}"))
        if fetched[3] and self._job.rank == 0:
            _log.warning("%s averages on: %s", self._plain, fetched[3])
        return fetched

    def _act(self, control: Control, step: int, acts: List[Act]) -> None:
        """Performs acts of the control, and the acts that these entail."""
        acts = list(acts)
        while acts:
            act = acts.pop(0)
            if act is Act.PROFILED:
                acts += control.profiled(step, *self._fetched()[2:])
            elif act is Act.CAPTURE:
                self._start_capture(control)
            elif act is Act.PROBE:
                acts += control.measured_links(step, self._links.burst())
            elif act is Act.FEEL:
                assert control.links is not None
                acts += control.felt(step, self._links.feel(control.links))
            elif act is Act.PLAN:
                self._start_planning(control)
            elif act is Act.FETCH:
                acts += self._fetch(control, step)
            elif act is Act.CLOSE:
                self._close_ways(control)
            else:
                acts += self._open_way(control, step)

    def _start_planning(self, control: Control) -> None:
        if self._planning is None or control.links is None:
            return
        try:
            self._model = self._captured() or self._model
        except Exception as error:  # training goes on without a plan
            self._model, self._uncaptured = "", str(error) if isinstance(error, ValueError) else f"{type(error).__name__}: {error}"
        if self._model:
            self._planning.start(self._model, control.links, control.ways[control.kept].text, control.step_s)
        else:
            self._planning.give_up(self._uncaptured)
        self._stop_capture()

    def _fetch(self, control: Control, step: int) -> List[Act]:
        """Takes over rank 0's candidates. Returns the ranks' next acts."""
        self._model, rows, seconds, failure = self._fetched()
        return control.planned(step, [Candidate(*row) for row in rows], seconds, failure)

    def _open_way(self, control: Control, step: int) -> List[Act]:
        assert control.tried is not None
        try:
            self._open[control.tried] = self._hook_of(control.ways[control.tried])
        except RankLost:
            raise
        except Error as error:  # raised on all ranks
            return control.refused(step, str(error))
        return []

    def _close_ways(self, control: Control) -> None:
        for way in [one for one in self._open if one not in (control.kept, control.tried)]:
            self._close_way(self._open.pop(way))

    def _tell(self, control: Control) -> None:
        """Logs the control's new lines."""
        if self._step == control.window[0] and control.phase is Phase.MEASURE:
            control.say(self._step, self._progress(control))
        for step, text in control.lines[self._told:] if self._job.rank == 0 else []:
            _log.info("step %d: %s", step, text)
        self._told = len(control.lines)

    def _progress(self, control: Control) -> str:
        first, end = control.window
        return f"measuring ({min(max(0, self._step - first), end - first)} of {end - first} steps)"

    def report(self, path: Optional[_Path] = None) -> str:
        """Text for users: a line for each measurement, prediction and decision, with its step. The last line has the current state.
        With a path, rank 0 also writes an HTML page: predictions beside measurements, these lines, and the planner's page of the
        plan that is kept, or else was tried last. Raises OSError if it cannot be written."""
        text = self._text()
        if path is not None and self._job.rank == 0:
            trials = [] if self._control is None else self._control.trials
            _output.write_whole(path, _job_report.page(self._page(), trials, text.splitlines()))
        return text

    def _page(self) -> str:
        """Returns the planner's page of the plan that is kept, or else was tried or planned last; an empty text without any."""
        if self._control is None or self._planning is None:
            return ""
        pages = self._planning.pages
        texts = [self._control.ways[self._control.kept].text, *(one.way.text for one in reversed(self._control.trials)),
                 *reversed(pages)]
        return next((pages[text] for text in texts if text in pages), "")

    def _text(self) -> str:
        control = self._control
        if control is None:
            return f"gradients are averaged as {self._plain} does: {self._unfit}"
        now = f"{control.phase.value}; {control.ways[control.kept].what}"
        if control.phase is Phase.MEASURE:
            now = self._progress(control)
        return "\n".join([*(f"step {step}: {text}" for step, text in control.lines), f"step {self._step}: {now}"])

    def _resume(self, way: Candidate, model: str) -> Any:
        """Goes on with a checkpoint's plan. All ranks call it together. Returns the way's hook."""
        assert self._control is not None
        if self._links.is_posted:
            self._links.collect()
        self._stop_capture()
        self._model = model
        return self._hook_of(way)

    def _close_planning(self) -> None:
        """Ends the capture, all ways and all threads."""
        self._stop_capture()
        for hook in self._open.values():
            hook.close()
        self._links.close()
        if self._planning is not None:
            self._planning.close()


def _require_same_content(job: Any, contents: List[List[float]]) -> None:
    """Raises InvalidRequest, on all ranks, if a rank's values differ from rank 0's by more than rounding: that rank attaches
    another model with the same layout."""
    for place, values in enumerate(contents):
        if not all(math.isclose(one, other, rel_tol=_ROUNDED, abs_tol=_ROUNDED * max(map(abs, contents[0])))
                   for one, other in zip(values, contents[0]) if math.isfinite(one) and math.isfinite(other)):
            raise InvalidRequest(f"{job.group.numbers.name(place)} calls hipress.attach for a model of the same shape as "
                                 f"{job.group.numbers.name(0)}'s, with other values: attach models in the same order on all ranks, "
                                 "and let DistributedDataParallel make their parameters equal")


__all__ = ["SelfPlanning"]
