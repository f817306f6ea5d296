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


def draw(curves: dict, picture: pathlib.Path) -> None:
    """One line for each schedule and algorithm, with its interval as a band, over a logarithmic axis."""
    plt = pyplot()
    figure, axes = plt.subplots(figsize=(8, 4.8), layout="constrained")
    for number, ((schedule, algorithm), points) in enumerate(curves.items()):
        reached = sorted(point for point in points if point[1])
        if not reached:
            continue
        label = schedule if algorithm == "none" else f"{schedule}, {algorithm}"
        busy = [100 * point[0] for point in reached]
        colour = COLOURS[number % len(COLOURS)]
        axes.plot([point[1] / 1e9 for point in reached], busy, color=colour, marker=MARKERS[number % len(MARKERS)],
                  markersize=4, label=label)
        bounded = [point for point in reached if point[2] and point[3]]
        axes.fill_betweenx([100 * point[0] for point in bounded], [point[2] / 1e9 for point in bounded],
                           [point[3] / 1e9 for point in bounded], color=colour, alpha=0.15, linewidth=0)
    axes.set_xscale("log")
    axes.set_xlabel("bandwidth of the links, Gbit/s")
    axes.set_ylabel("computation, % of the time")
    axes.set_title("Bandwidth that keeps computation busy (bands: 8 machines of 10)", fontsize=10)
    axes.grid(True, which="both", linewidth=0.3)
    axes.legend(fontsize=8, loc="lower right")
    save(figure, picture, dpi=110)
    for (schedule, algorithm), points in curves.items():
        missed = [f"{100 * point[0]:.4g} %" for point in points if not point[1]]
        if missed:
            print(f"{schedule}, {algorithm}: no bandwidth reaches {', '.join(missed)}")
