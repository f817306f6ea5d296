"""Steps that a plan needs to reach the loss of plain DDP, as a multiple of DDP's steps."""

import dataclasses
import math
import statistics
from typing import Callable, List, Optional, Sequence

#: Half width of the window of smoothed(), as a share of the steps.
HALF_WINDOW = 0.1
#: Distance from DDP's lowest loss at which its steps end, as a share of the loss's whole fall.
LEVEL = 0.02
#: Largest ratio; a plan that needs more steps counts as never reaching the loss.
MOST = 10.0
#: Smallest ratio, and number of intervals between it and the largest in the first search.
_LEAST, _GRID = 0.2, 160
#: Quantiles of Student's distribution at 0.9 for 1 to 10 degrees of freedom, and of the normal distribution for more.
_STUDENT = (3.078, 1.886, 1.638, 1.533, 1.476, 1.440, 1.415, 1.397, 1.383, 1.372)
_NORMAL = 1.2816


@dataclasses.dataclass(frozen=True)
class Ratio:
    """Steps of a plan over steps of DDP for the same loss. `ratio` is None if the plan never reaches the loss within the pilot.
    `p10` and `p90` are the ends of the interval for a further run; None if there is no such end. `after` is DDP's number of
    steps."""

    ratio: Optional[float]
    p10: Optional[float]
    p90: Optional[float]
    after: Optional[float]


def smoothed(loss: Sequence[float], share: float = HALF_WINDOW) -> List[float]:
    """Smooths losses by step: the value at each step of the least-squares line through the losses in a window, `share` of the steps
    on either side. At the ends the window moves inwards and keeps its width, so that the curve has no lag."""
    count = len(loss)
    half = max(1, round(share * count))
    width = min(count, 2 * half + 1)
    # Sums over the window of x and x^2 for x = 0 … width - 1.
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
    """Number of steps after which a smoothed curve is first at or below a level, interpolated between steps; None if it never
    is."""
    for step, value in enumerate(curve):
        if value <= level:
            if step == 0:
                return 1.0
            before = curve[step - 1]
            return step + (before - level) / (before - value)
    return None


def of_curves(ddp: Sequence[float], plan: Sequence[float]) -> Ratio:
    """Ratio of two runs, from their losses by step.

    DDP's smoothed curve is stretched along the steps until it fits the plan's best, by least squares over the second half of
    the steps that both have; the stretch is the ratio. It is fitted twice. The second time, DDP is smoothed over the plan's window
    divided by the first stretch, so that smoothing bends both curves alike. DDP's steps end once its loss is within `LEVEL` of its
    lowest: later losses are flat and carry no information about steps. p10 and p90 are quantiles over DDP's losses in that half:
    the plan's steps to a loss, divided by DDP's."""
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
    """Number of steps after which the loss is within LEVEL of its lowest."""
    lowest = min(reference)
    return steps_to(reference, lowest + LEVEL * max(0.0, reference[0] - lowest)) or float(len(reference))


def _stretch(reference: Sequence[float], curve: Sequence[float]) -> Optional[float]:
    """Factor between the steps of a curve and those of the reference; None if it is `MOST` or more."""
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
    """Value of a curve after a number of steps, interpolated linearly between steps and constant beyond the ends."""
    place = min(max(steps - 1, 0.0), len(curve) - 1.0)
    below = min(int(place), len(curve) - 2)
    return curve[below] + (place - below) * (curve[below + 1] - curve[below])


def _minimum(function: Callable[[float], float], low: float, high: float) -> float:
    """Finds the place of the minimum of a function that has one in the interval, by golden-section search."""
    for _ in range(30):
        one, other = low + 0.382 * (high - low), low + 0.618 * (high - low)
        low, high = (low, other) if function(one) < function(other) else (one, high)
    return (low + high) / 2


def over_seeds(found: Sequence[Ratio]) -> Ratio:
    """Ratio of several runs that differ in their seed: the geometric mean. The interval is Student's prediction interval for a
    further run, of the logarithms. An end is moved to the mean of that end of the runs' own intervals if this is farther out. The
    ratio is None if half of the runs or more never reach the loss, and p90 is None if one does not."""
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


#: Shares of a run's steps: the first and last losses that are compared, and the steps for which the last must stay above the first.
_START, _LONG = 0.05, 0.2
_LEAST_START, _LEAST_LONG = 5, 20


class Divergence:
    """Detector of divergence in a run of that many steps, from its losses one by one. A run has diverged if a loss is not finite,
    or if the mean of the last losses is above that of the first by more than a tenth for a fifth of the steps."""

    def __init__(self, steps: int) -> None:
        self._width = max(_LEAST_START, round(_START * steps))
        self._long = max(_LEAST_LONG, round(_LONG * steps))
        self._losses: List[float] = []
        self._above = 0

    def add(self, loss: float) -> bool:
        """Adds the next loss. True if the run has diverged."""
        if not math.isfinite(loss):
            return True
        self._losses.append(loss)
        start = statistics.fmean(self._losses[:self._width])
        last = statistics.fmean(self._losses[-self._width:])
        self._above = self._above + 1 if last > start + 0.1 * abs(start) else 0
        return self._above >= self._long


__all__ = ["Divergence", "Ratio", "of_curves", "over_seeds", "smoothed", "steps_to"]
