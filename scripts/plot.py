#!/usr/bin/env python3
"""Draws the speed-up of a sweep over bandwidth and nodes, or the bandwidth that schedules need.

usage: plot.py SWEEP.csv PICTURE.png [over=PLAN] [COLUMN=VALUE ...]
       plot.py REQUIRED.json [REQUIRED.json ...] PICTURE.png

A JSON is what `hipress-plan --required-bandwidth --json` printed: a curve of utilisation over bandwidth for each schedule
and algorithm, with its interval as a band. Each is a panel under the name of its file.

The CSV is one that `hipress-sim sweep` wrote. One heat map per model, topology, algorithm and whatever else the
sweep varies; the black line parts what is faster by more than 0.5 % from what is not. Where bandwidth or nodes has one
value, lines instead, one per plan and algorithm, and what is printed is where each of them ceases to pay (its
break-even). over=PLAN says what the speed-up is over: none (every gradient alone; the default), ddp, or any
plan that the sweep has, such as best_uncompressed. COLUMN=VALUE keeps only those rows, for sweeps that vary more than fits
one picture: plot.py sweep.csv s.png over=ddp model=vgg19 latency_s=5e-06
"""

import csv
import math
import pathlib
import sys

import plot_required
from picture import Refused, exit_status, pyplot, save

AXES = ("model", "topology", "algorithm", "plan", "partitions", "profile", "cluster", "network", "latency_s",
        "overhead_s", "compute_speed", "compute_time_s", "schedule")
NUMBERS = {"nodes": int, "bandwidth_bytes_per_s": float, "iteration_s": float, "speedup": float}
#: What the lines of one panel differ in.
SERIES = ("plan", "algorithm", "partitions", "schedule")
#: What lines may go over, the first that varies: its name and how many of its units one of the CSV's is.
LINE_AXES = {"bandwidth_bytes_per_s": ("bandwidth, Gbit/s", 8e-9), "nodes": ("nodes", 1),
             "latency_s": ("latency, us", 1e6), "overhead_s": ("overhead, us", 1e6),
             "compute_speed": ("speed of computation", 1), "compute_time_s": ("computation, ms", 1e3)}
#: An axis without values where the models' own hold.
OPTIONAL = ("compute_time_s", "schedule")
#: A plan pays that is faster by more than this; the planner's tolerance.
PAYS = 1.005
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


def read(path: pathlib.Path, conditions: dict, over: str = "none") -> list:
    """The rows that meet the conditions, as dictionaries of strings; their speed-up is over that plan."""
    try:
        with open(path, newline="", encoding="utf-8") as stream:
            text = stream.readlines()
        first = next((i for i, line in enumerate(text) if not line.startswith("#")), len(text))
        reader = csv.DictReader(text[first:])
        lines = [(first + reader.line_num, row) for row in reader]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise PlotError(f"{path}: cannot be read: {error}") from error
    columns = reader.fieldnames if lines else ()
    missing = [column for column in NEEDED + AXES if column not in columns and column not in OPTIONAL]
    if missing:
        raise PlotError(f"{path}: has no rows with {', '.join(missing)}; give a CSV of hipress-sim sweep (of its "
                        "shards, the first has the header: put their files one after the other)")
    for number, row in lines:
        row.update({column: row.get(column) or "" for column in OPTIONAL})
        require_numbers(f"{path}:{number}", row)
    rows = speedups_over(over, [row for _, row in lines], path)
    for column, value in conditions.items():
        if column not in columns:
            raise PlotError(f"{path}: there is no column '{column}' (there are: {', '.join(columns)})")
        kept = [row for row in rows if row[column] == value]
        if not kept:
            known = ", ".join(sorted({row[column] for row in rows}))
            raise PlotError(f"{path}: no row has {column}={value}; it takes: {known}")
        rows = kept
    return rows


def speedups_over(over: str, rows: list, path: pathlib.Path) -> list:
    """The rows with their speed-up over another plan at the same point, without those of that plan."""
    if over == "none":
        return rows
    if over == "ddp" and all(row.get("speedup_over_ddp") for row in rows):
        return [{**row, "speedup": row["speedup_over_ddp"]} for row in rows]
    same = [column for column in (*AXES, "nodes", "bandwidth_bytes_per_s") if column not in SERIES]
    base: dict = {}
    for row in rows:
        if row["plan"] == over:
            point = tuple(row[column] for column in same)
            base[point] = min(base.get(point, math.inf), float(row["iteration_s"]))
    if not base:
        known = ", ".join(sorted({row["plan"] for row in rows}))
        raise PlotError(f"{path}: over={over}: the sweep has no such plan (it has: {known}); add it to axis plan")
    return [{**row, "speedup": str(base[tuple(row[column] for column in same)] / float(row["iteration_s"]))}
            for row in rows if row["plan"] != over]


def axis_of_lines(rows: list) -> str | None:
    """What lines go over, where bandwidth and nodes do not both vary."""
    varying = [axis for axis in LINE_AXES if len({row[axis] for row in rows}) > 1]
    return None if {"bandwidth_bytes_per_s", "nodes"} <= set(varying) else (varying or list(LINE_AXES))[0]


def lines_of(rows: list, over: str) -> dict:
    """{title: {label: [(number, speed-up)]}}: a panel for each combination of what neither lines nor `over` vary."""
    varying = [axis for axis in (*AXES, "nodes") if axis != over and len({row[axis] for row in rows}) > 1]
    panel_axes = [axis for axis in varying if axis not in SERIES]
    shown = [axis for axis in (*AXES, "nodes") if axis in panel_axes or axis in ("model", "topology")]
    panels: dict = {}
    for row in rows:
        title = ", ".join(name_of(row, axis) for axis in shown)
        label = ", ".join(name_of(row, axis) for axis in SERIES if axis in varying) or name_of(row, "plan")
        panels.setdefault(title, {}).setdefault(label, []).append((float(row[over]), float(row["speedup"])))
    require_few(panels, panel_axes)
    return {title: {label: sorted(points) for label, points in lines.items()} for title, lines in panels.items()}


def name_of(row: dict, axis: str) -> str:
    return row[axis] if axis in AXES[:4] else f"{axis} {row[axis]}"


def break_even(points: list) -> tuple[float, float] | None:
    """The points between which a line ceases to pay, or begins to; None where that is not exactly once."""
    found = [(x, next_x) for (x, y), (next_x, next_y) in zip(points, points[1:]) if (y > PAYS) != (next_y > PAYS)]
    return found[0] if len(found) == 1 else None


def describe_break_even(points: list, axis: str) -> str:
    """"pays at 16, no longer at 32 Gbit/s", or how else the line lies."""
    between = break_even(points)
    if between is None:
        pays = [y > PAYS for _, y in points]
        return "pays everywhere" if all(pays) else "pays here and there" if any(pays) else "pays nowhere"
    name, scale = LINE_AXES[axis]
    below, above = (f"{x * scale:.4g}" for x in between)
    unit = name.split(", ")[-1]
    if points[0][1] > PAYS:
        return f"pays at {below}, no longer at {above} {unit}"
    return f"pays at {above}, not yet at {below} {unit}"


def require_few(panels: dict, axes: list) -> None:
    if len(panels) > MOST_PANELS:
        raise PlotError(f"{len(panels)} panels (over {', '.join(axes)}) are more than the {MOST_PANELS} that fit; "
                        "choose, such as model=vgg19")


def split(rows: list) -> dict:
    """{title: {(bandwidth, nodes): speed-up}}: a panel for each combination of what varies beside those two."""
    varying = [axis for axis in AXES if len({row[axis] for row in rows}) > 1]
    shown = [axis for axis in AXES if axis in varying or axis in ("model", "topology", "algorithm")]
    panels: dict = {}
    for row in rows:
        title = ", ".join(name_of(row, axis) for axis in shown)
        point = float(row["bandwidth_bytes_per_s"]), int(row["nodes"])
        panels.setdefault(title, {})[point] = float(row["speedup"])
    require_few(panels, varying)
    return panels


def bandwidth_name(bytes_per_s: float) -> str:
    return f"{bytes_per_s * 8 / 1e9:.4g}"


def draw_border(axes, speedups: list) -> None:
    """A black line along the edges of cells between those that pay and others."""
    def faster(x: int, y: int):
        inside = 0 <= y < len(speedups) and 0 <= x < len(speedups[0])
        return speedups[y][x] > PAYS if inside and not math.isnan(speedups[y][x]) else None

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


def draw_lines(axes, title: str, lines: dict, axis: str) -> None:
    name, scale = LINE_AXES[axis]
    for label, points in lines.items():
        axes.plot([x * scale for x, _ in points], [y for _, y in points], marker="o", markersize=4,
                  label=f"{label}: {describe_break_even(points, axis)}")
    axes.axhline(1, color="black", linewidth=1)
    numbers = sorted({x * scale for points in lines.values() for x, _ in points})
    if numbers[0] > 0 and numbers[-1] >= 4 * numbers[0]:
        axes.set_xscale("log", base=2)
        axes.set_xticks(numbers, [f"{number:.4g}" for number in numbers], fontsize=8)
        axes.minorticks_off()
    speedups = [y for points in lines.values() for _, y in points]
    if min(speedups) > 0 and max(speedups) >= 4 * min(speedups):
        axes.set_yscale("log", base=2)
        axes.yaxis.set_major_formatter(lambda speedup, _: f"{speedup:g}")
    axes.set_xlabel(name)
    axes.set_title(title, loc="left", fontsize=10)
    axes.legend(fontsize=8, frameon=False)


def plot_lines(panels: dict, axis: str, over: str, picture: pathlib.Path) -> None:
    """Writes the picture, and prints where every line pays."""
    plt = pyplot()
    across = columns(len(panels))
    down = math.ceil(len(panels) / across)
    figure, grid = plt.subplots(down, across, squeeze=False, sharey=True, layout="constrained",
                                figsize=(1 + 5 * across, 0.6 + 3.2 * down))
    for axes in grid.flat[len(panels):]:
        axes.axis("off")
    for axes, (title, lines) in zip(grid.flat, panels.items()):
        draw_lines(axes, title, lines, axis)
    for axes in grid[:, 0]:
        axes.set_ylabel(f"speed-up over {describe(over)}")
    save(figure, picture, dpi=110)
    for title, lines in panels.items():
        for label, points in lines.items():
            print(f"{title}: {label} {describe_break_even(points, axis)}")


def describe(over: str) -> str:
    return "every gradient alone, uncompressed" if over == "none" else f"plan {over}"


def plot(panels: dict, over: str, picture: pathlib.Path) -> None:
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
    bar = figure.colorbar(image, ax=grid, label=f"speed-up over {describe(over)}")
    bar.ax.yaxis.set_major_formatter(lambda power, _: f"{2 ** power:.3g}")
    save(figure, picture, dpi=110)


def draw(rows: list, over: str, picture: pathlib.Path) -> None:
    axis = axis_of_lines(rows)
    if axis is None:
        plot(split(rows), over, picture)
    else:
        plot_lines(lines_of(rows, axis), axis, over, picture)


def main() -> int:
    arguments = sys.argv[1:]
    if any(argument in ("-h", "--help") for argument in arguments):
        print(__doc__)
        return 0
    if len(arguments) > 1 and arguments[0].endswith(".json"):
        sources, picture = [pathlib.Path(name) for name in arguments[:-1]], pathlib.Path(arguments[-1])
        return exit_status("plot.py", picture, lambda: plot_required.draw_files(sources, picture))
    if len(arguments) < 2 or any("=" not in condition for condition in arguments[2:]):
        print(__doc__, file=sys.stderr)
        return 2
    source, picture = map(pathlib.Path, arguments[:2])
    conditions = dict(condition.split("=", 1) for condition in arguments[2:])
    over = conditions.pop("over", "none")
    return exit_status("plot.py", picture, lambda: draw(read(source, conditions, over), over, picture))


if __name__ == "__main__":
    sys.exit(main())
