"""Predicted over measured times, one point per case, with the line on which predictions are right."""

import pathlib

from picture import pyplot, save

from .evaluation import Result

#: Okabe and Ito's palette, which colour-blind readers can tell apart.
COLOURS = {"none": "#000000", "fp16": "#0072b2", "onebit": "#d55e00", "terngrad": "#009e73", "dgc": "#cc79a7"}
MARKERS = {"ps": "o", "ring": "^"}


def plot(results: list[Result], picture: pathlib.Path) -> None:
    """ImportError without matplotlib, OSError if the picture cannot be written."""
    figure, panels = pyplot().subplots(1, 2, figsize=(11, 5.2), constrained_layout=True)
    exposed = [result for result in results if result.exposed_measured_s > 0 and result.exposed_predicted_s > 0]
    draw(panels[0], "iteration", [(result, result.measured_s, result.predicted_s) for result in results])
    draw(panels[1], "exposed communication",
         [(result, result.exposed_measured_s, result.exposed_predicted_s) for result in exposed])
    panels[0].legend(loc="upper left", fontsize=8, frameon=False)
    save(figure, picture, dpi=110)


def draw(axes, title: str, points: list[tuple[Result, float, float]]) -> None:
    for algorithm, colour in COLOURS.items():
        for topology, marker in MARKERS.items():
            chosen = [(x * 1e3, y * 1e3) for result, x, y in points
                      if result.case.algorithm == algorithm and result.case.topology == topology]
            if chosen:
                axes.plot(*zip(*chosen), marker, color=colour, markersize=5, alpha=0.6, linewidth=0,
                          label=f"{algorithm}, {topology}")
    times = [time * 1e3 for _, *both in points for time in both]
    if times:
        ends = (min(times) / 1.3, max(times) * 1.3)
        axes.plot(ends, ends, color="#666666", linewidth=1, zorder=0)
        axes.set(xscale="log", yscale="log", xlim=ends, ylim=ends)
    axes.set(title=title, xlabel="measured, ms", ylabel="predicted, ms", aspect="equal")
