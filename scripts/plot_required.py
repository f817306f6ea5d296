"""For plot.py: how busy computation is over the bandwidth of the links, from what `hipress-plan --required-bandwidth --json`
printed. Points that no bandwidth reaches are left out, and said."""

import json
import pathlib

from picture import Refused, pyplot, save

#: Okabe and Ito's colours, which colour-blind people tell apart.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
MARKERS = "osD^vP*"


def read(path: pathlib.Path) -> dict:
    """The rows of each (schedule, algorithm), in the order asked. Refused for a file that holds something else."""
    try:
        rows = json.loads(path.read_text(encoding="utf-8"))["required_bandwidth"]
        curves = {}
        for row in rows:
            point = (float(row["utilization"]), *(row[key] for key in ("bits_per_s", "bits_per_s_p10", "bits_per_s_p90")))
            curves.setdefault((row["schedule"], row["algorithm"]), []).append(point)
    except OSError as error:
        raise Refused(f"{path}: cannot be read: {error.strerror}") from error
    except (ValueError, KeyError, TypeError) as error:
        raise Refused(f"{path}: is not what hipress-plan --required-bandwidth --json prints") from error
    if not any(point[1] for points in curves.values() for point in points):
        raise Refused(f"{path}: no bandwidth reaches any of these utilisations")
    return curves


def draw_panel(axes, title: str, curves: dict) -> None:
    """One line for each schedule and algorithm, with its interval as a band, over a logarithmic axis."""
    for number, ((schedule, algorithm), points) in enumerate(curves.items()):
        reached = sorted(point for point in points if point[1])
        if not reached:
            continue
        label = schedule if algorithm == "none" else f"{schedule}, {algorithm}"
        colour = COLOURS[number % len(COLOURS)]
        axes.plot([point[1] / 1e9 for point in reached], [100 * point[0] for point in reached], color=colour, markersize=4,
                  marker=MARKERS[number % len(MARKERS)], label=label)
        bounded = [point for point in reached if point[2] and point[3]]
        axes.fill_betweenx([100 * point[0] for point in bounded], [point[2] / 1e9 for point in bounded],
                           [point[3] / 1e9 for point in bounded], color=colour, alpha=0.15, linewidth=0)
    axes.set_xscale("log")
    axes.set_xlabel("bandwidth of the links, Gbit/s")
    axes.set_title(title, fontsize=10)
    axes.grid(True, which="both", linewidth=0.3)


def draw_files(paths: list, picture: pathlib.Path) -> None:
    """A panel each, which share the axis of utilisation and one legend."""
    panels = {path.stem: read(path) for path in paths}
    plt = pyplot()
    figure, grid = plt.subplots(1, len(panels), squeeze=False, sharey=True,
                                figsize=(1.5 + 4.5 * len(panels), 4.4))
    for axes, (title, curves) in zip(grid.flat, panels.items()):
        draw_panel(axes, title, curves)
    grid[0][0].set_ylabel("computation, % of the time")
    handles, labels = grid[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, fontsize=8, loc="lower center", ncol=len(panels))
    figure.subplots_adjust(left=0.5 / len(panels) ** 0.5 / 4, right=0.99, top=0.92, bottom=0.28, wspace=0.06)
    save(figure, picture, dpi=110)
    for title, curves in panels.items():
        for (schedule, algorithm), points in curves.items():
            missed = [f"{100 * point[0]:.4g} %" for point in points if not point[1]]
            if missed:
                print(f"{title}: {schedule}, {algorithm}: no bandwidth reaches {', '.join(missed)}")
