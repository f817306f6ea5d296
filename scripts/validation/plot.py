"""Predicted over measured times, one point per case, with the line on which predictions are right."""

import dataclasses
import pathlib

from picture import drawing, pyplot, save

from .evaluation import Result
from .results import row

drawing()
from hipress._style import grid  # noqa: E402
from hipress._sweep_rows import Value  # noqa: E402
from hipress._time_pictures import Compared, compared, finish_comparison, scatter  # noqa: E402


def label(result: Result) -> str:
    return f"{result.case.topology}, {result.case.algorithm}"


def exposed(result: Result) -> Compared:
    """What shows of communication, whose interval nothing tells."""
    return Compared(label(result), *(Value(time, time, time) for time in (result.exposed_measured_s, result.exposed_predicted_s)))


def plot(results: list[Result], picture: pathlib.Path) -> None:
    """ImportError without matplotlib, OSError if the picture cannot be written."""
    pyplot()
    figure, axes = grid(2, 5.2, 4.8)
    iterations = [dataclasses.replace(compared(row(result)), label=label(result)) for result in results]
    showing = [exposed(result) for result in results if result.exposed_measured_s > 0 and result.exposed_predicted_s > 0]
    scatter(axes[0, 0], iterations, "iteration", iterations)
    scatter(axes[0, 1], showing, "exposed communication", showing)
    finish_comparison(figure, axes, iterations)
    save(figure, picture, dpi=110)
