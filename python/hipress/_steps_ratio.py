"""Steps that a plan needs for the loss which plain DDP reaches, as a multiple of DDP's steps."""

import dataclasses
import math
import statistics
from typing import Callable, List, Optional, Sequence

#: Share of the steps on either side of a step whose losses its smoothed loss is fitted to.
HALF_WINDOW = 0.1
#: Share of the fall of DDP's loss above its lowest at which its steps end.
LEVEL = 0.02
#: Largest ratio that is given: a plan that needs more steps never gets there.
MOST = 10.0
#: Smallest ratio, and points between it and the largest that are tried first.
_LEAST, _GRID = 0.2, 160
#: Quantiles of Student's distribution at 0.9, for 1 to 10 degrees of freedom; then that of the normal distribution.
_STUDENT = (3.078, 1.886, 1.638, 1.533, 1.476, 1.440, 1.415, 1.397, 1.383, 1.372)
_NORMAL = 1.2816


@dataclasses.dataclass(frozen=True)
class Ratio:
    """Steps of a plan over steps of DDP for the same loss. `ratio` is None if the plan never reaches it within the pilot. `p10`
    and `p90` bound the interval of a further run; None for what is not known to be bounded. `after` is DDP's number of
    steps."""

    ratio: Optional[float]
    p10: Optional[float]
    p90: Optional[float]
    after: Optional[float]


def smoothed(loss: Sequence[float], share: float = HALF_WINDOW) -> List[float]:
    """The losses by step, without noise: at each step the value of the straight line that fits the losses around it best, in a
    window of a share of the steps on either side. At the ends the window moves inwards and keeps its width, so that the curve
    lags nowhere."""
    count = len(loss)
    half = max(1, round(share * count))
    width = min(count, 2 * half + 1)
    # Sums of the window that begins at each step: 1, x, x^2 are those of 0 to width - 1.
    sum_x, sum_xx = width * (width - 1) / 2, (width - 1) * width * (2 * width - 1) / 6
    spread = width * sum_xx - sum_x * sum_x
    found = []
    for step in range(count):
        first = min(max(0, step - half), count - width)
        window = loss[first:first + width]
        sum_y, sum_xy = math.fsum(window), math.fsum(place * value for place, value in enumerate(window))
        slope = (width * sum_xy - sum_x * sum_y) / spread if spread > 0 else 0.0
        found.append((sum_y - slope * sum_x) / width + slope * (step - first))
    return found


def steps_to(curve: Sequence[float], level: float) -> Optional[float]:
    """Number of steps after which a smoothed curve is first at or below a level, interpolated between steps; None: never."""
    for step, value in enumerate(curve):
        if value <= level:
            if step == 0:
                return 1.0
            before = curve[step - 1]
            return step + (before - level) / (before - value)
    return None


def of_curves(ddp: Sequence[float], plan: Sequence[float]) -> Ratio:
    """The ratio of two runs' losses by step.

    DDP's smoothed curve is stretched along the steps until it fits the plan's best, by least squares over the second half of
    the steps that both have; the stretch is the ratio. It is fitted twice: the second time DDP's window is that of the plan
    before the stretch, so that smoothing bends both curves alike. DDP's steps end where its loss is within `LEVEL` of its whole
    fall above its lowest, as what comes after has no slope that would tell steps. p10 and p90 are quantiles of what single
    losses of that half say."""
    never = Ratio(None, None, None, None)
    if min(len(ddp), len(plan)) < 2:
        return never
    curve, reference = smoothed(plan), smoothed(ddp)
    if min(curve) > _at(reference, max(1.0, _end(reference) / MOST)):
        return never
    first = _stretch(reference, curve)
    if first is None:
        return never
    window = HALF_WINDOW * len(plan) / len(ddp) / first
    reference = smoothed(ddp, min(HALF_WINDOW, window))
    ratio = _stretch(reference, curve)
    if ratio is None:
        return never
    after = min(_end(reference), len(curve) / ratio)
    around = [ratio]
    for step in range(max(1, round(after / 2)), int(after) + 1):
        reached, earlier = steps_to(curve, reference[step - 1]), steps_to(reference, reference[step - 1])
        around += [reached / earlier] if reached is not None and earlier is not None else []
    deciles = statistics.quantiles(around if len(around) > 1 else around * 2, n=10, method="inclusive")
    return Ratio(ratio, min(deciles[0], ratio), max(deciles[-1], ratio), after)


def _end(reference: Sequence[float]) -> float:
    """Steps after which the loss hardly falls any more."""
    lowest = min(reference)
    return steps_to(reference, lowest + LEVEL * max(0.0, reference[0] - lowest)) or float(len(reference))


def _stretch(reference: Sequence[float], curve: Sequence[float]) -> Optional[float]:
    """The factor by which a curve has the steps of the reference; None if it is `MOST` or more."""
    end = _end(reference)

    def misfit(logarithm: float) -> float:
        ratio = math.exp(logarithm)
        last = max(1, min(len(curve), int(end * ratio)))
        squares = [(curve[step - 1] - _at(reference, step / ratio)) ** 2 for step in range(max(1, last // 2), last + 1)]
        return math.fsum(squares) / len(squares)

    low, high = math.log(_LEAST), math.log(MOST)
    grid = [low + (high - low) * place / _GRID for place in range(_GRID + 1)]
    best = min(grid, key=misfit)
    if best == grid[-1]:
        return None
    return math.exp(_minimum(misfit, best - (grid[1] - grid[0]), best + (grid[1] - grid[0])))


def _at(curve: Sequence[float], steps: float) -> float:
    """A curve's value after so many steps, between two of which it is a line; beyond its ends the value there."""
    place = min(max(steps - 1, 0.0), len(curve) - 1.0)
    below = min(int(place), len(curve) - 2)
    return curve[below] + (place - below) * (curve[below + 1] - curve[below])


def _minimum(function: Callable[[float], float], low: float, high: float) -> float:
    """The minimum of a function that has one in the interval, by golden sections."""
    for _ in range(30):
        one, other = low + 0.382 * (high - low), low + 0.618 * (high - low)
        low, high = (low, other) if function(one) < function(other) else (one, high)
    return (low + high) / 2


def over_seeds(found: Sequence[Ratio]) -> Ratio:
    """The ratio of several runs that differ in their seed: the geometric mean. The interval is Student's for a further run, on
    logarithms, joined with the mean of the runs' own. None as ratio if half of the runs or more never get there, as p90 if one
    does not."""
    reached = [one for one in found if one.ratio is not None]
    if len(found) == 1 and reached:
        return found[0]
    if not reached or 2 * len(reached) <= len(found):
        return Ratio(None, None, None, None)
    logs = [math.log(one.ratio or 1.0) for one in reached]
    mean = statistics.fmean(logs)
    half = 0.0
    if len(logs) > 1:
        freedom = len(logs) - 1
        quantile = _STUDENT[freedom - 1] if freedom <= len(_STUDENT) else _NORMAL
        half = quantile * statistics.stdev(logs) * math.sqrt(1 + 1 / len(logs))
    low = min(mean - half, statistics.fmean(math.log(one.p10 or 1.0) for one in reached))
    high = max(mean + half, statistics.fmean(math.log(one.p90 or 1.0) for one in reached))
    return Ratio(math.exp(mean), math.exp(low), math.exp(high) if len(reached) == len(found) else None,
                 statistics.fmean(one.after or 0.0 for one in reached))


#: Shares of a run's steps: of the losses that a loss is compared with, and of the steps that it has to stay above them.
_START, _LONG = 0.05, 0.2
_LEAST_START, _LEAST_LONG = 5, 20


class Divergence:
    """Tells from the losses by step, one after the other, whether a run of so many steps has diverged: a loss is not finite, or
    the mean of the last losses stays above that of the first ones for a fifth of the steps, by a tenth of it."""

    def __init__(self, steps: int) -> None:
        self._width = max(_LEAST_START, round(_START * steps))
        self._long = max(_LEAST_LONG, round(_LONG * steps))
        self._losses: List[float] = []
        self._above = 0

    def add(self, loss: float) -> bool:
        """Takes the next loss. True if the run has diverged."""
        if not math.isfinite(loss):
            return True
        self._losses.append(loss)
        start = statistics.fmean(self._losses[:self._width])
        last = statistics.fmean(self._losses[-self._width:])
        self._above = self._above + 1 if last > start + 0.1 * abs(start) else 0
        return self._above >= self._long


__all__ = ["Divergence", "Ratio", "of_curves", "over_seeds", "smoothed", "steps_to"]
