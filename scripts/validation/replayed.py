"""Results of a plan or setting that is replayed round by round, and its predictions."""

import dataclasses
import statistics
from collections.abc import Callable

from .conditions import taken_between
from .evaluation import quantile
from .measurement import Bench

#: Headings of the columns of Replayed.columns().
COLUMNS = f"{'predicted':>9} {'p10':>8} {'p90':>8} {'measured':>9} {'error':>7}"


def ms(seconds: float | None) -> str:
    return "–" if seconds is None else f"{seconds * 1e3:.1f}"


@dataclasses.dataclass(kw_only=True)
class Replayed:
    """Measured iterations of all rounds, and their predictions; times are in seconds."""

    seconds: list[float] = dataclasses.field(default_factory=list)
    predicted: list[dict] = dataclasses.field(default_factory=list)  #: reports of hipress-exec, one for each round
    verified: bool = True
    disturbed: int = 0  #: number of disturbed rounds

    def add(self, report: dict) -> None:
        """Adds a round's report of hipress-exec."""
        self.seconds += report["each_measured_iteration_s"]
        self.predicted.append(report)
        self.verified &= report["verified"]

    def once(self, bench: Bench, measure: Callable[[], None]) -> None:
        """Calls `measure`, which adds a round, and repeats it while other programs disturb it. Of these rounds, only the last is
        kept."""
        kept = len(self.seconds), len(self.predicted)

        def anew() -> None:
            del self.seconds[kept[0]:], self.predicted[kept[1]:]
            measure()

        self.disturbed += bench.undisturbed(anew, taken_between)[1]

    @property
    def measured_s(self) -> float:
        return statistics.median(self.seconds)

    def predicted_s(self, end: str = "") -> float | None:
        """Median over rounds of the predicted iteration, or of an end of its interval ("_p10", "_p90"). None for rounds that
        hipress-exec did not run."""
        values = [report.get(f"predicted_iteration_s{end}") for report in self.predicted]
        return statistics.median(values) if values else None

    @property
    def error(self) -> float | None:
        predicted = self.predicted_s()
        return None if predicted is None else predicted / self.measured_s - 1

    @property
    def inside(self) -> bool:
        return self.predicted_s("_p10") <= self.measured_s <= self.predicted_s("_p90")

    def columns(self) -> str:
        """Times in ms, for a line of a table."""
        ends = f"{ms(self.predicted_s()):>9} {ms(self.predicted_s('_p10')):>8} {ms(self.predicted_s('_p90')):>8}"
        return f"{ends} {ms(self.measured_s):>9} {'–' if self.error is None else f'{self.error * 100:+.1f}%':>7}"

    def notes(self) -> str:
        """Text at the end of the line: whether rounds were disturbed or data was wrong."""
        return f"{' disturbed' if self.disturbed else ''}{'' if self.verified else ' WRONG'}"

    def times(self) -> dict:
        """Measured and predicted times, as members of a JSON object."""
        predicted = {f"predicted_s{end}": self.predicted_s(end) for end in ("", "_p10", "_p90")}
        return {**predicted, "measured_s": self.measured_s, "measured_s_p10": quantile(self.seconds, 0.1),
                "measured_s_p90": quantile(self.seconds, 0.9), "error": self.error, "iterations_s": self.seconds,
                "verified": self.verified, "disturbed_rounds": self.disturbed}


def describe_errors(results: list[Replayed]) -> str:
    """Sentence about the results with a prediction, such as "error: median 0.4 %, p90 0.6 %, 5 of 5 inside their interval"."""
    predicted = [result for result in results if result.predicted]
    errors = [abs(result.error) for result in predicted]
    return (f"error: median {statistics.median(errors) * 100:.1f} %, p90 {quantile(errors, 0.9) * 100:.1f} %, "
            f"{sum(result.inside for result in predicted)} of {len(predicted)} inside their interval")
