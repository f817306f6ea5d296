#!/usr/bin/env python3
"""Draws the speed-up of a sweep over bandwidth and nodes.

usage: plot.py SWEEP.csv PICTURE.png [COLUMN=VALUE ...]

The CSV is one that `hipress-sim sweep` wrote. One heat map per model, topology, algorithm and whatever else the
sweep varies; the black line parts what is faster than the uncompressed plan from what is not. COLUMN=VALUE
keeps only those rows, for sweeps that vary more than fits one picture: plot.py sweep.csv s.png model=vgg19 latency_s=5e-06
"""

import csv
import math
import pathlib
import sys

from picture import Refused, exit_status, pyplot, save

AXES = ("model", "topology", "algorithm", "plan", "partitions", "profile", "cluster", "network", "latency_s",
        "overhead_s", "compute_speed")
NUMBERS = {"nodes": int, "bandwidth_bytes_per_s": float, "speedup": float}
NEEDED = tuple(NUMBERS)
MOST_PANELS = 36
#: Two-sided and readable for colour-blind people: orange is slower than the uncompressed plan, purple faster.
COLOURS = "PuOr"


class PlotError(Refused):
    """What is wrong with the request, and what to do."""


def require_numbers(place: str, row: dict) -> None:
    """PlotError unless a row has a value for every column, and numbers where they are needed."""
    if None in row or None in row.values():
        raise PlotError(f"{place}: has not as many values as the header has columns; is the file whole?")
    for column, number in NUMBERS.items():
        try:
            number(row[column])
        except ValueError as error:
            raise PlotError(f"{place}: {column} must be a number, got '{row[column]}'") from error


def read(path: pathlib.Path, conditions: dict) -> list:
    """The rows that meet the conditions, as dictionaries of strings."""
    try:
        with open(path, newline="", encoding="utf-8") as stream:
            reader = csv.DictReader(stream)
            lines = [(reader.line_num, row) for row in reader]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise PlotError(f"{path}: cannot be read: {error}") from error
    columns = reader.fieldnames if lines else ()
    missing = [column for column in NEEDED + AXES if column not in columns]
    if missing:
        raise PlotError(f"{path}: has no rows with {', '.join(missing)}; give a CSV of hipress-sim sweep (of its "
                        "shards, the first has the header: put their files one after the other)")
    for number, row in lines:
        require_numbers(f"{path}:{number}", row)
    rows = [row for _, row in lines]
    for column, value in conditions.items():
        if column not in columns:
            raise PlotError(f"{path}: there is no column '{column}' (there are: {', '.join(columns)})")
        kept = [row for row in rows if row[column] == value]
        if not kept:
            known = ", ".join(sorted({row[column] for row in rows}))
            raise PlotError(f"{path}: no row has {column}={value}; it takes: {known}")
        rows = kept
    return rows


def split(rows: list) -> dict:
    """{title: {(bandwidth, nodes): speed-up}}: a panel for each combination of what varies beside those two."""
    varying = [axis for axis in AXES if len({row[axis] for row in rows}) > 1]
    shown = [axis for axis in AXES if axis in varying or axis in ("model", "topology", "algorithm")]
    panels: dict = {}
    for row in rows:
        title = ", ".join(row[axis] if axis in AXES[:4] else f"{axis} {row[axis]}" for axis in shown)
        point = float(row["bandwidth_bytes_per_s"]), int(row["nodes"])
        panels.setdefault(title, {})[point] = float(row["speedup"])
    if len(panels) > MOST_PANELS:
        raise PlotError(f"{len(panels)} panels (over {', '.join(varying)}) are more than the {MOST_PANELS} that fit; "
                        "choose, such as model=vgg19")
    return panels


def bandwidth_name(bytes_per_s: float) -> str:
    return f"{bytes_per_s * 8 / 1e9:.4g}"


def draw_border(axes, speedups: list) -> None:
    """A black line along the edges of cells between those that are faster than the uncompressed plan and others."""
    def faster(x: int, y: int):
        inside = 0 <= y < len(speedups) and 0 <= x < len(speedups[0])
        return speedups[y][x] > 1 if inside and not math.isnan(speedups[y][x]) else None

    for y, line in enumerate(speedups):
        for x in range(len(line)):
            for right, up in ((1, 0), (0, 1)):
                here, there = faster(x, y), faster(x + right, y + up)
                if None in (here, there) or here == there:
                    continue
                edge = ((x + 0.5, x + 0.5), (y - 0.5, y + 0.5)) if right else ((x - 0.5, x + 0.5), (y + 0.5, y + 0.5))
                axes.plot(*edge, color="black", linewidth=2, solid_capstyle="round")


def columns(panels: int) -> int:
    """How many panels stand beside each other: 4 to 2, so that rows are full where they can be."""
    most = min(panels, 4)
    return next((count for count in range(most, 1, -1) if panels % count == 0), most)


def draw_panel(axes, title: str, panel: dict, scale):
    bandwidths = sorted({bandwidth for bandwidth, _ in panel})
    nodes = sorted({count for _, count in panel})
    speedups = [[panel.get((bandwidth, count), math.nan) for bandwidth in bandwidths] for count in nodes]
    image = axes.imshow([[math.log2(value) if value > 0 else math.nan for value in line] for line in speedups],
                        cmap=COLOURS, norm=scale, origin="lower", aspect="auto")
    draw_border(axes, speedups)
    for y, line in enumerate(speedups):
        for x, value in enumerate(line):
            if len(bandwidths) <= 16 and not math.isnan(value):
                strong = abs(math.log2(value)) > 0.6 * scale.vmax if value > 0 else False
                axes.text(x, y, f"{value:.2f}", ha="center", va="center", fontsize=7,
                          color="white" if strong else "black")
    axes.set_title(title, loc="left", fontsize=10)
    axes.set_xticks(range(len(bandwidths)), [bandwidth_name(bandwidth) for bandwidth in bandwidths], fontsize=8)
    axes.set_yticks(range(len(nodes)), nodes, fontsize=8)
    return image


def plot(panels: dict, picture: pathlib.Path) -> None:
    """Writes the picture of all panels on one scale of colours, which is symmetric about 1."""
    plt = pyplot()
    farthest = max((abs(math.log2(value)) for panel in panels.values() for value in panel.values() if value > 0),
                   default=1)
    scale = plt.Normalize(-max(farthest, 0.1), max(farthest, 0.1))
    across = columns(len(panels))
    down = math.ceil(len(panels) / across)
    figure, grid = plt.subplots(down, across, squeeze=False, layout="constrained",
                                figsize=(1 + 4.2 * across, 0.6 + 2.4 * down))
    for axes in grid.flat[len(panels):]:
        axes.axis("off")
    for axes, (title, panel) in zip(grid.flat, panels.items()):
        image = draw_panel(axes, title, panel, scale)
    for axes in grid[-1]:
        axes.set_xlabel("bandwidth, Gbit/s")
    for axes in grid[:, 0]:
        axes.set_ylabel("nodes")
    bar = figure.colorbar(image, ax=grid, label="speed-up over the uncompressed plan")
    bar.ax.yaxis.set_major_formatter(lambda power, _: f"{2 ** power:.3g}")
    save(figure, picture, dpi=110)


def main() -> int:
    arguments = sys.argv[1:]
    if any(argument in ("-h", "--help") for argument in arguments):
        print(__doc__)
        return 0
    if len(arguments) < 2 or any("=" not in condition for condition in arguments[2:]):
        print(__doc__, file=sys.stderr)
        return 2
    source, picture = map(pathlib.Path, arguments[:2])
    conditions = dict(condition.split("=", 1) for condition in arguments[2:])
    return exit_status("plot.py", picture, lambda: plot(split(read(source, conditions)), picture))


if __name__ == "__main__":
    sys.exit(main())
