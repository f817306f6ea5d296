"""Evaluation of predictions: errors and their distribution, and the ranking of plans compared with measurements."""

import dataclasses
import itertools
import math
import statistics

from .cases import Case

#: Least difference of measured times, as a share of the shorter, for two plans to count as a pair that should be ranked.
DIFFERENT = 0.03


def quantile(values: list[float], share: float) -> float:
    """Quantile by linear interpolation between the sorted values. Needs at least one value."""
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (place - below) * (ordered[above] - ordered[below])


@dataclasses.dataclass(frozen=True)
class Result:
    """Predicted and measured times of a case, in seconds; `repetitions_s` are the measured iterations."""

    case: Case
    size_scale: float
    time_scale: float
    predicted_s: float
    compute_s: float
    repetitions_s: tuple[float, ...]
    disturbed: int = 0  #: number of kept repetitions during which other programs were busy
    repeated: int = 0  #: number of repetitions that were discarded for that reason
    verified: bool = True
    predicted_s_p10: float | None = None  #: ends of the prediction's 10–90 % interval; None if unknown
    predicted_s_p90: float | None = None

    @property
    def measured_s(self) -> float:
        return statistics.median(self.repetitions_s)

    @property
    def p10_s(self) -> float:
        return quantile(list(self.repetitions_s), 0.1)

    @property
    def p90_s(self) -> float:
        return quantile(list(self.repetitions_s), 0.9)

    @property
    def error(self) -> float:
        return self.predicted_s / self.measured_s - 1

    @property
    def exposed_predicted_s(self) -> float:
        return self.predicted_s - self.compute_s

    @property
    def exposed_measured_s(self) -> float:
        return self.measured_s - self.compute_s

    @property
    def exposed_error(self) -> float | None:
        """Relative error of exposed communication; None if none was exposed."""
        if self.exposed_measured_s <= 0:
            return None
        return self.exposed_predicted_s / self.exposed_measured_s - 1

    @property
    def within_spread(self) -> bool:
        """True if the prediction lies within the range of the repetitions, which then do not show that it is wrong."""
        return min(self.repetitions_s) <= self.predicted_s <= max(self.repetitions_s)

    @property
    def within_interval(self) -> bool | None:
        """True if the measured median lies in the prediction's interval; None without an interval."""
        if self.predicted_s_p10 is None:
            return None
        return self.predicted_s_p10 <= self.measured_s <= self.predicted_s_p90

    @property
    def error_beyond_spread(self) -> float:
        """Distance of the prediction from the range of the repetitions, as a share of the measured time: the part of the error that
        the spread does not explain. It is 0 within the range, and negative below it."""
        nearest = min(max(self.predicted_s, min(self.repetitions_s)), max(self.repetitions_s))
        return (self.predicted_s - nearest) / self.measured_s


@dataclasses.dataclass(frozen=True)
class Intervals:
    """Quality of 10–90 % intervals: 80 % of them should contain the measured median, and they should be narrow."""

    cases: int
    within: int
    mean_width: float  #: mean width relative to the prediction
    constant_width: float  #: width of intervals of one relative width that contain as many medians

    @property
    def coverage(self) -> float:
        return self.within / self.cases


def intervals(results: list[Result]) -> Intervals | None:
    """Quality of the intervals of results; None if no result has an interval."""
    told = [result for result in results if result.within_interval is not None]
    if not told:
        return None
    within = sum(result.within_interval for result in told)
    widths = [(result.predicted_s_p90 - result.predicted_s_p10) / result.predicted_s for result in told]
    # Intervals from predicted/f to predicted·f contain the cases whose error factor is at most f.
    factors = sorted(math.exp(abs(math.log(result.measured_s / result.predicted_s))) for result in told)
    factor = factors[within - 1] if within else 1.0
    return Intervals(len(told), within, statistics.mean(widths), factor - 1 / factor)


@dataclasses.dataclass(frozen=True)
class Summary:
    cases: int
    median_abs_error: float
    p90_abs_error: float
    median_abs_exposed_error: float | None
    p90_abs_exposed_error: float | None
    within_spread: int
    p90_abs_error_beyond_spread: float
    pairs: int  #: number of pairs of plans for one job whose measured times differ
    ranked: int  #: number of these that are ranked as predicted

    @property
    def ranking_accuracy(self) -> float | None:
        return self.ranked / self.pairs if self.pairs else None


@dataclasses.dataclass(frozen=True)
class Pair:
    """Two plans for the same job."""

    faster: Result  #: the faster plan, as measured
    slower: Result

    @property
    def difference(self) -> float:
        return self.slower.measured_s / self.faster.measured_s - 1

    @property
    def ranked(self) -> bool:
        return self.faster.predicted_s < self.slower.predicted_s


def pairs(results: list[Result]) -> list[Pair]:
    """All pairs of plans for the same job, however small their difference is."""
    found = []
    for one, other in itertools.combinations(results, 2):
        if one.case.group == other.case.group:
            found.append(Pair(*sorted((one, other), key=lambda result: result.measured_s)))
    return found


def different(found: list[Pair]) -> list[Pair]:
    return [pair for pair in found if pair.difference > DIFFERENT]


def summarise(results: list[Result]) -> Summary:
    """Summary of results, of which there must be at least one."""
    errors = [abs(result.error) for result in results]
    exposed = [abs(result.exposed_error) for result in results if result.exposed_error is not None]
    compared = different(pairs(results))
    return Summary(len(results), statistics.median(errors), quantile(errors, 0.9),
                   statistics.median(exposed) if exposed else None, quantile(exposed, 0.9) if exposed else None,
                   sum(result.within_spread for result in results),
                   quantile([abs(result.error_beyond_spread) for result in results], 0.9), len(compared),
                   sum(pair.ranked for pair in compared))


def groups(results: list[Result], field: str) -> dict[str, list[Result]]:
    """Results by a field of their cases, in the order in which its values occur."""
    found: dict[str, list[Result]] = {}
    for result in results:
        found.setdefault(str(getattr(result.case, field)), []).append(result)
    return found
