"""How good predictions are: errors, their distribution, and whether plans are ranked as measured."""

import dataclasses
import itertools
import math
import statistics

from .cases import Case

#: Two plans are worth telling apart if their measured times differ by more than this share of the shorter.
DIFFERENT = 0.03


def quantile(values: list[float], share: float) -> float:
    """By linear interpolation between the sorted values; at least one."""
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (place - below) * (ordered[above] - ordered[below])


@dataclasses.dataclass(frozen=True)
class Result:
    """A case, predicted and measured. Times are in seconds; `repetitions_s` are the measured iterations."""

    case: Case
    size_scale: float
    time_scale: float
    predicted_s: float
    compute_s: float
    repetitions_s: tuple[float, ...]
    disturbed: int = 0  #: repetitions during which other programs were busy, kept all the same
    repeated: int = 0  #: repetitions thrown away for that reason
    verified: bool = True
    predicted_s_p10: float | None = None  #: the prediction's 10–90 % interval; None: not told
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
        """None where no communication showed."""
        if self.exposed_measured_s <= 0:
            return None
        return self.exposed_predicted_s / self.exposed_measured_s - 1

    @property
    def within_spread(self) -> bool:
        """Whether the prediction lies among the repetitions: they do not tell that it is wrong."""
        return min(self.repetitions_s) <= self.predicted_s <= max(self.repetitions_s)

    @property
    def within_interval(self) -> bool | None:
        """Whether the measured median lies in the prediction's interval."""
        if self.predicted_s_p10 is None:
            return None
        return self.predicted_s_p10 <= self.measured_s <= self.predicted_s_p90

    @property
    def error_beyond_spread(self) -> float:
        """How far the prediction is from the nearest repetition, as a share of the measured time: what of the error the
        spread does not explain."""
        nearest = min(max(self.predicted_s, min(self.repetitions_s)), max(self.repetitions_s))
        return (self.predicted_s - nearest) / self.measured_s


@dataclasses.dataclass(frozen=True)
class Intervals:
    """How good 10–90 % intervals are: 80 % should contain the measured median, and be narrow."""

    cases: int
    within: int
    mean_width: float  #: relative to the prediction
    constant_width: float  #: of intervals that are as wide everywhere and contain as many medians

    @property
    def coverage(self) -> float:
        return self.within / self.cases


def intervals(results: list[Result]) -> Intervals | None:
    """None without any."""
    told = [result for result in results if result.within_interval is not None]
    if not told:
        return None
    within = sum(result.within_interval for result in told)
    widths = [(result.predicted_s_p90 - result.predicted_s_p10) / result.predicted_s for result in told]
    # An interval from predicted/f to predicted·f contains those that are off by a factor of f at most.
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
    pairs: int  #: of plans for the same job whose measured times differ
    ranked: int  #: of these, in the order predicted

    @property
    def ranking_accuracy(self) -> float | None:
        return self.ranked / self.pairs if self.pairs else None


@dataclasses.dataclass(frozen=True)
class Pair:
    """Two plans for the same job."""

    faster: Result  #: as measured
    slower: Result

    @property
    def difference(self) -> float:
        return self.slower.measured_s / self.faster.measured_s - 1

    @property
    def ranked(self) -> bool:
        return self.faster.predicted_s < self.slower.predicted_s


def pairs(results: list[Result]) -> list[Pair]:
    """All pairs of plans for the same job, whatever their difference."""
    found = []
    for one, other in itertools.combinations(results, 2):
        if one.case.group == other.case.group:
            found.append(Pair(*sorted((one, other), key=lambda result: result.measured_s)))
    return found


def different(found: list[Pair]) -> list[Pair]:
    return [pair for pair in found if pair.difference > DIFFERENT]


def summarise(results: list[Result]) -> Summary:
    """Of at least one result."""
    errors = [abs(result.error) for result in results]
    exposed = [abs(result.exposed_error) for result in results if result.exposed_error is not None]
    compared = different(pairs(results))
    return Summary(len(results), statistics.median(errors), quantile(errors, 0.9),
                   statistics.median(exposed) if exposed else None, quantile(exposed, 0.9) if exposed else None,
                   sum(result.within_spread for result in results),
                   quantile([abs(result.error_beyond_spread) for result in results], 0.9), len(compared),
                   sum(pair.ranked for pair in compared))


def groups(results: list[Result], field: str) -> dict[str, list[Result]]:
    """By a field of the cases, in the order in which they came."""
    found: dict[str, list[Result]] = {}
    for result in results:
        found.setdefault(str(getattr(result.case, field)), []).append(result)
    return found
