"""Decisions of a job that plans itself: when ranks measure, plan, try, keep and watch. It uses no clocks, torch or messages.

A *way* is a number: way 0 averages as plain DDP does, all others by a candidate's plan. The *kept* way averages all steps outside
of trials. In a *trial*, blocks of steps alternate between the kept way and the *tried* way. A *report* has the measurements of a
rank in a *window* of steps. Every rank has a Control and gives it the same reports in the same steps, so all ranks decide the
same."""

import ctypes
import dataclasses
import enum
import math
import statistics
from typing import Dict, Iterable, List, Optional, Sequence, Tuple

from hipress._engine import check
from hipress._library import library

#: Way that averages as plain DDP does.
PLAIN = 0
#: Least gain that counts, as a share of the step time.
_WORTH = 0.005
#: Sizes of a trial: steps of the tried way before the first block, and least and most steps of a block.
OPENING, _LEAST_BLOCK, _MOST_BLOCK = 2, 3, 20
#: Seconds of a block, of a window in which steps are watched, and between two checks whether a plan is ready.
_BLOCK_S, _WINDOW_S, _LOOK_S = 0.1, 0.05, 0.25
#: Least and most steps of a window in which steps are watched.
_LEAST_WINDOW, _MOST_WINDOW = 5, 100
#: Number of windows from which the usual step time is learned. Half width of its interval: the larger of a share of the time and a
#: number of median absolute deviations. Number of consecutive windows outside the interval that indicate a change. Number of half
#: widths from the usual time at which a single window is enough.
_LEARNED, _WIDTH, _SPREADS, OUTSIDE, _SUDDEN = 3, 0.1, 6.0, 2, 5
#: Least and largest factor by which measured gains correct later predictions.
_LEAST_CORRECTION, _MOST_CORRECTION = 0.5, 2.0
#: Factor by which computation or links must change to explain a change of the step time. Factor by which the first rank's
#: computation must change for ready times to be captured anew if links have changed, too.
_EXPLAINS, _MOVED = 1.1, 1.25
#: Factor and seconds by which the time of a short message must change for the links to be measured again. The links' bandwidth
#: explains the change if it has changed by the same factor.
_FELT, _FELT_LEAST_S = 1.5, 0.0005
#: Share of the time that short messages may take; number of all-reduces that measure one (messages and a report); and factor by
#: which one measurement may come sooner than that share allows, if waits have become shorter.
_FELT_SHARE, _FELT_TIMES, _SOONER = 0.01, 4, 10
#: Largest number of steps between two short messages.
_MOST_APART = 1000


class Phase(enum.Enum):
    PROFILE = "profiling"
    MEASURE = "measuring"
    PLAN = "planning"
    TRY = "trying"
    KEEP = "watching"
    OFF = "without plans"


class Act(enum.Enum):
    """Action before a step, of all ranks unless it names rank 0."""

    PROFILED = "take over from rank 0 how profiling has ended, and call profiled()"
    CAPTURE = "rank 0 captures steps until it plans"
    PROBE = "measure the links, and call measured_links()"
    FEEL = "time a short message, and call felt()"
    PLAN = "rank 0 begins to plan"
    FETCH = "take the candidates over from rank 0, and call planned()"
    OPEN = "open the tried way"
    CLOSE = "close ways that are neither kept nor tried"


@dataclasses.dataclass(frozen=True)
class Pace:
    """Numbers of steps: of the warm-up, of the first measurement and later ones, and the least number between two plans."""

    warmup: int = 2
    measured: int = 20
    measured_again: int = 10
    between_plans: int = 40


@dataclasses.dataclass(frozen=True)
class Report:
    """Measurements of a rank in a window. Times are medians per step in seconds: of the kept way, of the tried way (0: no such
    steps), and of the kept way without waits for other ranks. `ready` is 1 once rank 0's profiling or planning has ended, and
    else 0."""

    kept_s: float
    tried_s: float
    busy_s: float
    ready: float


@dataclasses.dataclass(frozen=True)
class Candidate:
    """Plan to try. `text` is the plan file, empty for plain DDP, and `what` describes it in messages. `predicted_s` and `ddp_s`
    are the predicted times of a step with it and with plain DDP, in seconds."""

    text: str
    what: str
    predicted_s: float
    ddp_s: float

    @property
    def algorithms(self) -> str:
        """Algorithms of the plan, joined by "+"."""
        return self.what.split(" for ")[0]

    @property
    def gain(self) -> float:
        """Predicted speedup over plain DDP; 1 if unknown."""
        return self.ddp_s / self.predicted_s if self.predicted_s > 0 else 1.0


@dataclasses.dataclass(frozen=True)
class Trial:
    """Trial that has ended: the tried way, the way that it was compared with, the step, both ways' mean seconds per step in the
    pairs of blocks, the speedup, and true if the tried way was kept."""

    way: Candidate
    beside: str
    step: int
    kept_s: float
    tried_s: float
    times: float
    is_kept: bool


@dataclasses.dataclass(frozen=True)
class Links:
    """Measured links: bandwidth in bytes per second, latency of a small message in seconds, and time of an all-reduce of a short
    message in seconds (0: unknown)."""

    bandwidth: float
    latency_s: float
    short_s: float = 0.0

    def __str__(self) -> str:
        return f"{8e-6 * self.bandwidth:.4g} Mbit/s, {1e6 * self.latency_s:.3g} us"


class Verdict(enum.Enum):
    OPEN = 0
    FASTER = 1
    NOT_FASTER = 2


def judge(ratios: Sequence[float]) -> Verdict:
    """Verdict on a way by its speedup in each pair of blocks, as hipress_judge() gives it."""
    verdict = ctypes.c_int()
    check(library().hipress_judge((ctypes.c_double * len(ratios))(*ratios), len(ratios), ctypes.byref(verdict)))
    return Verdict(verdict.value)


class Watch:
    """Interval of the usual step time, learned from the first windows. has_changed() detects two later windows in a row outside the
    interval, or one far outside."""

    def __init__(self, step_s: Sequence[float] = (), busy_s: Sequence[Sequence[float]] = ()) -> None:
        self._learned, self._busy = list(step_s), list(busy_s)
        self._outside = 0

    def has_changed(self, step_s: float, busy_s: Sequence[float]) -> bool:
        """Takes a window's step time and each rank's own computation, in seconds. Returns True if this window and the one before
        it are outside the interval, or if this one is far outside."""
        if len(self._learned) < _LEARNED:
            self._learned.append(step_s)
            self._busy.append(busy_s)
            return False
        widths = abs(step_s - self.usual_s) / self.width_s
        self._outside = 0 if widths <= 1 else OUTSIDE if widths > _SUDDEN else self._outside + 1
        return self._outside >= OUTSIDE

    @property
    def usual_s(self) -> float:
        return statistics.median(self._learned) if self._learned else 0.0

    @property
    def width_s(self) -> float:
        """Half width of the interval in seconds: _WIDTH of the usual time or _SPREADS median absolute deviations, if larger."""
        usual_s = self.usual_s
        return max(_WIDTH * usual_s, _SPREADS * statistics.median([abs(one - usual_s) for one in self._learned] or [0.0]))

    @property
    def busy_s(self) -> List[float]:
        """Usual computation of each rank, in seconds per step."""
        return [statistics.median(values) for values in zip(*self._busy)]

    def waits_less(self, step_s: float, busy_s: Sequence[float]) -> bool:
        """True if the rank that computes longest waits for messages for less than half as long as usual, and this saves more than
        twice _WORTH of a step."""
        if len(self._learned) < _LEARNED:
            return False
        usual_s, now_s = self.usual_s - max(self.busy_s), step_s - max(busy_s)
        return now_s < usual_s / 2 and usual_s - now_s > 2 * _WORTH * self.usual_s


def reasons_for(busy_before: Sequence[float], busy_now: Sequence[float], links_before: Optional[Links], links_now: Links,
                numbers: Sequence[int], factor: float = _EXPLAINS) -> List[str]:
    """Reasons for a changed step time: single ranks that compute longer, computation on all ranks, or links that have changed by
    more than `factor`. `numbers` are the ranks' numbers. Empty if nothing explains it."""
    reasons = []
    ratios = [now / before if before > 0 else 1.0 for before, now in zip(busy_before, busy_now)]
    slower = [number for number, ratio in zip(numbers, ratios) if ratio > _EXPLAINS]
    if slower and len(slower) < len(ratios):
        named = ", ".join(map(str, slower))
        reasons.append(f"rank{'s' if len(slower) > 1 else ''} {named} compute{'s' if len(slower) == 1 else ''} "
                       f"{max(ratios):.2f} times as long as before")
    elif slower or (ratios and max(ratios) < 1 / _EXPLAINS):
        reasons.append(f"computation takes {statistics.median(ratios):.2f} times as long on all ranks")
    if links_before is not None and _has_moved(links_before.bandwidth, links_now.bandwidth, factor):
        reasons.append(f"links went from {links_before} to {links_now}")
    return reasons


@dataclasses.dataclass(frozen=True)
class _Change:
    """Change to explain: a sentence, and each rank's computation before it and now, if known."""

    what: str
    busy_before: Sequence[float] = ()
    busy_now: Sequence[float] = ()


def _has_moved(before: float, now: float, factor: float) -> bool:
    return before > 0 and now > 0 and not 1 / factor <= now / before <= factor


def _ms(seconds: float) -> str:
    return f"{1e3 * seconds:.4g} ms"


class Control:
    """State of a job that plans itself. Before every step, the job calls hear() if reports were due before the previous step,
    performs the acts that it returns, and calls way_of() and is_due(). `lines` are the events so far, each with its step.
    `trials` are the trials that have ended. If `profiles`, rank 0 measures its machine's kernels first. `plain` is way 0 in
    messages. If not `linked`, all ranks are on one machine: plans take its links from the profile, so measured links change no
    plan."""

    def __init__(self, pace: Pace = Pace(), numbers: Sequence[int] = (0, 1), profiles: bool = False,
                 plain: str = "plain DDP", linked: bool = True) -> None:
        self.pace, self._numbers, self._linked = pace, list(numbers), linked
        self.phase = Phase.PROFILE if profiles else Phase.MEASURE
        self.kept = PLAIN
        self.tried: Optional[int] = None
        self.ways: Dict[int, Candidate] = {PLAIN: Candidate("", plain, 0.0, 0.0)}
        self.lines: List[Tuple[int, str]] = []
        self.trials: List[Trial] = []
        self.step_s = 0.0
        self.links: Optional[Links] = None
        self._change: Optional[_Change] = None
        self._watch = Watch()
        self._queue: List[int] = []  # ways to try
        self._ratios: List[float] = []
        self._tried_s: List[float] = []  # step times in the trial's pairs
        self._busy_s: List[List[float]] = []  # computation of each rank in these pairs
        self._began = 0  # first step of the trial's blocks
        self._block = _LEAST_BLOCK
        self._next_way = PLAIN + 1
        self._corrections: Dict[str, float] = {}  # ratio of measured to predicted gain, by algorithms
        self._planned_at = 0  # step of the last plan
        self._window = (0, 1) if profiles else (pace.warmup, pace.warmup + pace.measured)
        self._planned_again = False  # true if links have changed during planning, which began anew then
        self._feels_at = self._feels_sooner_at = 0  # step of the next short message, and its step if waits have become shorter
        self._slower = 0  # consecutive short messages that took longer
        if profiles:
            self.say(0, f"profiling this machine's kernels, once; {plain} averages meanwhile")

    @property
    def window(self) -> Tuple[int, int]:
        """Steps of the next report: the first, and the one after the last."""
        return self._window

    def is_due(self, step: int) -> bool:
        """True if a report is due before this step."""
        return step == self._window[1]

    def way_of(self, step: int) -> int:
        """Way that averages a step."""
        if self.tried is None:
            return self.kept
        if step < self._began:
            return self.tried
        block = (step - self._began) // self._block
        return self.tried if (block % 2 == 0) == (block // 2 % 2 == 0) else self.kept

    def hear(self, step: int, reports: Sequence[Report]) -> List[Act]:
        """Takes the reports of all ranks, which were due before the previous step. Returns the ranks' next acts, in order."""
        kept_s = _mean(report.kept_s for report in reports)
        busy_s = [report.busy_s for report in reports]
        if self.phase is Phase.MEASURE:
            self._watch = Watch([kept_s], [busy_s])
            return self._measured(step, kept_s)
        if self.phase in (Phase.PROFILE, Phase.PLAN):  # no watching, since both use the cores, too
            if self.phase is Phase.PROFILE:
                self.step_s = kept_s
            if reports[0].ready:
                return [Act.PROFILED if self.phase is Phase.PROFILE else Act.FEEL if self._can_feel else Act.FETCH]
            self._look_soon(step)
            return []
        if self.phase is Phase.TRY:
            if self._has_changed(step, kept_s, busy_s):
                return [Act.PROBE]
            return self._tried(step, kept_s, _mean(report.tried_s for report in reports), busy_s)
        self._look(step, self._watched_steps)
        waits_less = self._watch.waits_less(kept_s, busy_s)
        if self._has_changed(step, kept_s, busy_s) or self.links is None:
            return [Act.PROBE]
        return [Act.FEEL] if self._can_feel and step >= (self._feels_sooner_at if waits_less else self._feels_at) else []

    def profiled(self, step: int, seconds: float, failure: str) -> List[Act]:
        """Takes the time of profiling in seconds, and the reason if it failed. Returns the ranks' next acts."""
        if failure:
            self.phase = Phase.OFF
            self.say(step, f"{self.ways[PLAIN].what} averages: {failure}")
            return []
        self.say(step, f"profiled this machine's kernels in {seconds:.0f} s, beside the training")
        return self._measure(step, self.pace.measured)

    def felt(self, step: int, short_s: float) -> List[Act]:
        """Takes the time of a short message in seconds. Returns the ranks' next acts: PROBE if it is much shorter than before, or
        much longer for the second time in a row, and the last plan is old enough. At the end of planning, one much longer message
        is enough, once for a plan; otherwise the candidates are fetched."""
        assert self.links is not None
        before_s, apart_s = self.links.short_s, _FELT_TIMES * short_s / _FELT_SHARE
        apart = _clamped(apart_s / self.step_s if self.step_s > 0 else _MOST_APART, 1, _MOST_APART)
        came_sooner = step < self._feels_at
        self._feels_at = max(self._feels_at, step) + apart
        self._feels_sooner_at = self._feels_at if came_sooner else step + math.ceil(apart / _SOONER)
        faster = short_s < min(before_s / _FELT, before_s - _FELT_LEAST_S)
        slower = short_s > max(before_s * _FELT, before_s + _FELT_LEAST_S)
        change = _Change(f"a short message takes {_ms(short_s)} instead of {_ms(before_s)}")
        if self.phase is Phase.PLAN:
            if not (faster or slower) or self._planned_again:
                return [Act.FETCH]
        else:
            self._slower = self._slower + 1 if slower else 0
            if not (faster or self._slower >= OUTSIDE) or step - self._planned_at < self.pace.between_plans:
                return []
        self._slower, self._change = 0, change
        return [Act.PROBE]

    def planned(self, step: int, candidates: Sequence[Candidate], seconds: float, failure: str = "") -> List[Act]:
        """Takes rank 0's candidates, best first, the time of planning in seconds, and the reason if it failed. Returns the ranks'
        next acts."""
        self._queue, self._planned_again = [], False
        kept, left_out = self.ways[self.kept], []
        for candidate in candidates:
            if candidate.text == kept.text:
                continue
            if not self._is_worth_trying(candidate):
                left_out.append(candidate.what)
                continue
            way = PLAIN
            if candidate.text:
                way, self._next_way = self._next_way, self._next_way + 1
                self.ways[way] = candidate
            self._queue.append(way)
        said = failure or "; ".join(f"{one.what}, {one.gain:.2f} times as fast predicted" if one.text else one.what
                                    for one in candidates) or f"{kept.what} stays the fastest predicted"
        self.say(step, f"planned in {seconds:.1f} s: {said}")
        if left_out:
            self.say(step, f"left out, as trials of the same algorithms gained less than predicted: {', '.join(left_out)}")
        return self._try_next(step)

    def measured_links(self, step: int, links: Links) -> List[Act]:
        """Takes measured links. Returns the ranks' next acts. If nothing explains a change, the plan stays. If the first rank's
        computation has changed, its ready times are captured anew before it plans."""
        before, self.links = self.links if self._linked else None, links
        change, self._change = self._change, None
        if change is None:
            self.say(step, f"links: {links}")
            return self._keep(step) if self.phase is Phase.KEEP else self._plan(step)
        reasons = reasons_for(change.busy_before, change.busy_now, before, links, self._numbers,
                              _EXPLAINS if change.busy_now else _FELT)
        self.say(step, f"{change.what}: " + ("; ".join(reasons) or "neither links nor computation explain it, and the plan stays"))
        if reasons or change.busy_now:
            self._watch = Watch()
        if reasons:
            self._planned_again = self.phase is Phase.PLAN
            by_links = before is not None and _has_moved(before.bandwidth, links.bandwidth, _EXPLAINS)
            moved = change.busy_now and _has_moved(change.busy_before[0], change.busy_now[0], _MOVED if by_links else _EXPLAINS)
            return self._measure(step, self.pace.measured_again) if moved else self._plan(step)
        if self.phase is Phase.PLAN:
            return [Act.FETCH]
        self._feels_at = max(self._feels_at, step + self.pace.between_plans)
        return self._next_pair() if self.phase is Phase.TRY else self._keep(step)

    def _measure(self, step: int, steps: int) -> List[Act]:
        """Begins to measure steps of the kept way."""
        acts = self._end_trial()
        self.phase, self._planned_at = Phase.MEASURE, step
        self._look(step + self.pace.warmup, steps)
        return [*acts, Act.CAPTURE]

    def _plan(self, step: int) -> List[Act]:
        acts = self._end_trial()
        self.phase, self._planned_at = Phase.PLAN, step
        self._look_soon(step)
        return [*acts, Act.PLAN]

    def _end_trial(self) -> List[Act]:
        tried, self.tried = self.tried, None
        return [Act.CLOSE] if tried is not None else []

    @property
    def _can_feel(self) -> bool:
        return self._linked and self.links is not None and self.links.short_s > 0

    def resume(self, step: int, candidate: Candidate) -> int:
        """Keeps a checkpoint's plan, and returns its way."""
        way, self._next_way = self._next_way, self._next_way + 1
        self.ways[way] = candidate
        self.tried, self._queue = None, []
        self.say(step, f"went on with the checkpoint's plan: {candidate.what}")
        self.kept, self._watch = way, Watch()
        self._keep(step)
        return way

    def say(self, step: int, text: str) -> None:
        self.lines.append((step, text))

    def _measured(self, step: int, kept_s: float) -> List[Act]:
        self.step_s = kept_s
        self.say(step, f"measured {self._window[1] - self._window[0]} steps of {self.ways[self.kept].what}: {_ms(kept_s)} a step")
        return [Act.PROBE]

    def _look_soon(self, step: int) -> None:
        self._look(step, _clamped(_LOOK_S / self.step_s if self.step_s > 0 else 1.0, 1, 50))

    def _look(self, step: int, steps: int) -> None:
        self._window = (step, step + steps)

    def _try_next(self, step: int) -> List[Act]:
        acts = self._end_trial()
        self._queue = [way for way in self._queue if self._is_worth_trying(self.ways[way])]
        if not self._queue:
            return [*acts, *self._keep(step)]
        self.tried, self._ratios = self._queue.pop(0), []
        self._tried_s, self._busy_s = [], []
        self.phase = Phase.TRY
        self._block = _clamped(_BLOCK_S / self.step_s if self.step_s > 0 else 1.0, _LEAST_BLOCK, _MOST_BLOCK)
        self._began = step + OPENING
        self._window = (self._began, self._began + 2 * self._block)
        if self.tried == PLAIN:
            return acts
        self.say(step, f"switched at step {step}, beside {self.ways[self.kept].what}: {self.ways[self.tried].what}")
        return [*acts, Act.OPEN]

    def _tried(self, step: int, kept_s: float, tried_s: float, busy_s: List[float]) -> List[Act]:
        assert self.tried is not None
        if kept_s > 0 and tried_s > 0:
            self._ratios.append(kept_s / tried_s)
            self._tried_s.append(tried_s)
            self._busy_s.append(busy_s)
        # Plain DDP replaces a plan unless the plan is faster. A plan must be faster than the way that it replaces.
        is_back = self.tried == PLAIN
        verdict = judge([1 / one for one in self._ratios] if is_back else self._ratios)
        if verdict is Verdict.OPEN:
            return self._next_pair()
        times = math.exp(statistics.fmean(map(math.log, self._ratios)))
        if self.kept == PLAIN:
            self._correct(self.ways[self.tried], times)
        wins = (verdict is Verdict.NOT_FASTER) if is_back else (verdict is Verdict.FASTER)
        what = self.ways[self.tried].what
        predicted = self.ways[self.tried].gain
        said = f"measured {times:.2f} times" + ("" if is_back or self.kept != PLAIN else f", predicted {predicted:.2f}")
        count = len(self._ratios)
        self.say(step, f"{said}, in {count} pair{'s' if count > 1 else ''} of blocks: {'kept' if wins else 'dropped'} {what}")
        mean_s = _mean(self._tried_s)
        self.trials.append(Trial(self.ways[self.tried], self.ways[self.kept].what, step, times * mean_s, mean_s, times, wins))
        if not wins:
            return self._try_next(step)
        old, self.kept = self.kept, self.tried
        self._watch = Watch(self._tried_s, self._busy_s)
        if self.kept != PLAIN:
            self._queue = []
        self.tried = old
        return self._try_next(step)

    def _correct(self, way: Candidate, times: float) -> None:
        """Corrects later predictions for the way's algorithms by its measured speedup over plain DDP, `times`."""
        self._corrections[way.algorithms] = min(max(times / way.gain, _LEAST_CORRECTION), _MOST_CORRECTION)

    def _is_worth_trying(self, way: Candidate) -> bool:
        """True for plain DDP, and for a way whose predicted gain, corrected by trials of the same algorithms, is at least 1."""
        return not way.text or way.gain * self._corrections.get(way.algorithms, 1.0) >= 1

    def _next_pair(self) -> List[Act]:
        self._window = (self._window[1], self._window[1] + 2 * self._block)
        return []

    def refused(self, step: int, why: str) -> List[Act]:
        """Drops the tried way, which cannot be opened for the reason `why`. Returns the ranks' next acts."""
        assert self.tried is not None
        self.say(step, f"dropped {self.ways[self.tried].what}: {why}")
        self.tried = None
        return self._try_next(step)

    def _keep(self, step: int) -> List[Act]:
        self.phase = Phase.KEEP
        self._look(step, self._watched_steps)
        return []

    @property
    def _watched_steps(self) -> int:
        return _clamped(_WINDOW_S / self.step_s if self.step_s > 0 else 10.0, _LEAST_WINDOW, _MOST_WINDOW)

    def _has_changed(self, step: int, kept_s: float, busy_s: List[float]) -> bool:
        """True if the step time of the kept way has changed lastingly, and the last plan is old enough."""
        if kept_s <= 0:
            return False
        usual_s, usual_busy = self._watch.usual_s, self._watch.busy_s
        if not self._watch.has_changed(kept_s, busy_s) or step - self._planned_at < self.pace.between_plans:
            return False
        self._change = _Change(f"a step takes {_ms(kept_s)} instead of {_ms(usual_s)}", usual_busy, busy_s)
        self.step_s = kept_s
        return True


def _mean(values: Iterable[float]) -> float:
    return statistics.fmean(values)


def _clamped(steps: float, least: int, most: int) -> int:
    return min(max(math.ceil(steps), least), most)


__all__ = ["Act", "Candidate", "Control", "Links", "Pace", "Phase", "PLAIN", "Report", "Trial", "Verdict", "Watch", "judge",
           "reasons_for"]
