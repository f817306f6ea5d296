"""Pictures of sweeps: speed-ups as maps and as lines, scaling efficiency."""

import math
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

from hipress._style import BAND, BASELINES, Picture, PictureError, grid, legend_below, require_baselines, set_title, styles
from hipress._sweep_rows import (LINE_AXES, PAYS, SERIES, Row, Value, axis_of_lines, describe_break_even, finite_log2,
                                 has_intervals, labels_of, panels_of, require_few, seconds_of, speedups, title_of, varying)

#: Cell of a map: bandwidth in bytes/s, and number of nodes.
Place = Tuple[float, int]

REMEDY = "add {missing} to axis `plan` of the sweep and sweep again"
#: Colour map: orange for slower, purple for faster, white for 1; darker farther from 1.
TWO_SIDED = "PuOr"
#: Least factor that each side of the scale reaches, so that rounding does not look like a loss.
LEAST_FACTOR = 1.1
#: Axes of a map.
MAP_AXES = ("bandwidth_bytes_per_s", "nodes")
#: Dots over cells in which the plan is slower.
SLOWER: Dict[str, Any] = {"facecolor": "none", "edgecolor": "black", "hatch": "..", "linewidth": 0}
#: Largest number of columns whose cells have room for numbers.
MOST_NUMBERS = 12
#: Points per cell and direction at which a map is interpolated for its contour.
FINE = 12


def speedup(rows: Sequence[Row], title: str = "") -> Picture:
    """Draws the speed-up of every plan over `ddp` and over `ddp_fp16`: maps over bandwidth and nodes with the break-even and its
    band, or lines if only one numeric axis varies. Raises PictureError without these two plans, or without any other."""
    require_baselines([row["plan"] for row in rows], REMEDY)
    if all(row["plan"] in BASELINES for row in rows):
        raise PictureError("there is no plan beside ddp and ddp_fp16: add `best` to axis `plan` of the sweep and sweep again")
    if axis_of_lines(rows) is None:
        return speedup_over(rows, BASELINES, title)
    return speedup_over(rows, ("ddp",), title)


def speedup_over(rows: Sequence[Row], over: Sequence[str], title: str = "") -> Picture:
    """Draws the speed-up over the plans `over`; `none` is every gradient alone, uncompressed."""
    axis = axis_of_lines(rows)
    planned = [row for row in rows if row["plan"] not in (*BASELINES, *over)] or rows
    title = title or f"Speed-up: {title_of(planned)}"
    if axis is not None:
        return lines_picture(lines_of(rows, axis, over[0]), axis, over[0], title, has_intervals(rows))
    return map_picture(maps_of(rows, over), title, len(over),
                       f"speed-up over {describe(over[0])}" if len(over) == 1 else "speed-up")


def describe(over: str) -> str:
    """Names in words the plan that the speed-up is over."""
    return {"none": "every gradient alone, uncompressed", "ddp": "PyTorch DDP",
            "ddp_fp16": "PyTorch DDP with fp16"}.get(over, f"plan {over}")


def maps_of(rows: Sequence[Row], over: Sequence[str]) -> Dict[str, Dict[Place, Value]]:
    """Panels of maps, {title: {(bandwidth, nodes): speed-up}}. Panels for different compared plans are side by side; panels for
    other axes that vary are below each other."""
    several = len(over) > 1
    compared = [(base, [(row, value) for row, value in speedups(rows, base) if not several or row["plan"] not in BASELINES])
                for base in over]
    found: Dict[str, Dict[Place, Value]] = {}
    names = panels_of([row for row, _ in compared[0][1]], MAP_AXES, () if several else ("model", "topology", "algorithm"))
    for name in names:
        for base, pairs in compared:
            values = {id(row): value for row, value in pairs}
            title = ", ".join(part for part in (name, f"over {describe(base)}") if part) if several else name
            found[title] = {(float(row["bandwidth_bytes_per_s"]), int(row["nodes"])): values[id(row)] for row in names[name]}
    require_few(found, varying(rows))
    return found


def two_sided(maps: Mapping[str, Mapping[Place, Value]]) -> Any:
    """Scale of log2(speed-up) with its centre at a speed-up of 1, and half of the colours for the range of each side."""
    from matplotlib.colors import TwoSlopeNorm

    powers = [finite_log2(value.middle) for panel in maps.values() for value in panel.values() if value.middle > 0]
    least = math.log2(LEAST_FACTOR)
    return TwoSlopeNorm(0, min([-least, *powers]), max([least, *powers]))


def refined(field: Any) -> Any:
    """Interpolates a table of numbers FINE-fold between the centres of its cells, up to the outer edges. Returns the x and y places
    and the table."""
    import numpy

    def places(count: int) -> Any:
        return numpy.linspace(-0.5, count - 0.5, FINE * count + 1)

    height, width = field.shape
    wide = numpy.array([numpy.interp(places(width), range(width), line) for line in field])
    fine = numpy.array([numpy.interp(places(height), range(height), column) for column in wide.T]).T
    return places(width), places(height), fine


def draw_break_even(axes: Any, tables: Mapping[str, Any]) -> None:
    """Draws the contour at which a plan begins to pay, in black, and hatches the band in which it may lie."""
    import numpy

    threshold = math.log2(PAYS)
    x, y, middle = refined(tables["middle"])
    low, high = refined(tables["low"])[2], refined(tables["high"])[2]
    if not numpy.array_equal(low, high):
        within = numpy.minimum(high - threshold, threshold - low)
        if numpy.nanmax(within) > 0:
            axes.contourf(x, y, within, levels=[0, math.inf], colors="none", hatches=["////"])
            axes.contour(x, y, within, levels=[0], colors="black", linewidths=0.8, linestyles="--")
    if numpy.nanmin(middle) < threshold < numpy.nanmax(middle):
        axes.contour(x, y, middle, levels=[threshold], colors="black", linewidths=2.2)


def where_it_pays(panel: Mapping[Place, Value]) -> str:
    """Describes a panel without a break-even contour; empty for one with a contour."""
    pays = [value.middle > PAYS for value in panel.values()]
    return "pays everywhere" if all(pays) else "" if any(pays) else "pays nowhere"


def draw_map(axes: Any, title: str, panel: Mapping[Place, Value], scale: Any) -> Any:
    """Draws one panel: a cell per point with its number, and the break-even. Slower cells have dots, which distinguish dark cells
    of the two sides without colours. Returns the image."""
    import numpy

    bandwidths, nodes = sorted({place[0] for place in panel}), sorted({place[1] for place in panel})
    missing = Value(math.nan, math.nan, math.nan)
    tables = {part: numpy.array([[finite_log2(getattr(panel.get((bandwidth, count), missing), part)) for bandwidth in bandwidths]
                                 for count in nodes]) for part in ("middle", "low", "high")}
    image = axes.imshow(tables["middle"], cmap=TWO_SIDED, norm=scale, origin="lower", aspect="auto")
    draw_break_even(axes, tables)
    for (y, x), power in numpy.ndenumerate(tables["middle"]):
        if not math.isnan(power):
            mark_cell(axes, x, y, power, image, len(bandwidths) <= MOST_NUMBERS)
    said = where_it_pays(panel)
    axes.set_title(title + (f": {said}" if said else ""), loc="left", fontsize=10)
    across, up = math.ceil(len(bandwidths) / 10), math.ceil(len(nodes) / 12)
    axes.set_xticks(range(0, len(bandwidths), across), [f"{bandwidth * 8e-9:.3g}" for bandwidth in bandwidths[::across]], fontsize=8)
    axes.set_yticks(range(0, len(nodes), up), nodes[::up], fontsize=8)
    return image


def mark_cell(axes: Any, x: int, y: int, power: float, image: Any, numbers: bool) -> None:
    """Draws dots over a cell that is slower by more than the planner's tolerance, and with `numbers` the speed-up."""
    from matplotlib.patches import Rectangle

    ink = "white" if abs(image.norm(power) - 0.5) > 0.3 else "black"
    if power < -math.log2(PAYS):
        axes.add_patch(Rectangle((x - 0.5, y - 0.5), 1, 1, **{**SLOWER, "edgecolor": ink}))
    if numbers:
        # A patch of the cell's colour behind the number keeps it legible over lines and dots.
        axes.text(x, y, factor(2 ** power), ha="center", va="center", fontsize=8, color=ink,
                  bbox={"boxstyle": "square,pad=0.04", "facecolor": image.cmap(image.norm(power)), "edgecolor": "none"})


def factor(value: float) -> str:
    """Formats a speed-up with three digits at most."""
    return f"{value:.2f}" if value < 9.995 else f"{value:.1f}" if value < 99.95 else f"{value:.0f}"


def map_picture(maps: Mapping[str, Mapping[Place, Value]], title: str = "", abreast: int = 1, label: str = "speed-up") -> Picture:
    """Draws all panels on one scale of colours, `abreast` of them in a row."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    scale = two_sided(maps)
    columns = abreast if 1 < abreast and len(maps) <= 3 * abreast else None
    figure, axes = grid(len(maps), 4.6, 2.9, columns)
    for panel_axes, (name, panel) in zip(axes.flat, maps.items()):
        image = draw_map(panel_axes, name, panel, scale)
        panel_axes.set_xlabel("bandwidth, Gbit/s")
    for panel_axes in axes[:, 0]:
        panel_axes.set_ylabel("nodes")
    bar = figure.colorbar(image, ax=axes, label=f"{label}\n(below 1: slower)", ticks=scale_ticks(scale))
    bar.ax.yaxis.set_major_formatter(lambda power, _: f"{2 ** power:.3g}")
    bar.ax.minorticks_off()
    handles: List[Any] = []
    if any(where_it_pays(panel) == "" for panel in maps.values()):
        handles.append(Line2D([], [], color="black", linewidth=2.2, label=f"break-even: faster by {100 * (PAYS - 1):.2g} %"))
    if any(value.low < PAYS < value.high for panel in maps.values() for value in panel.values()):
        handles.append(Patch(facecolor="none", edgecolor="black", hatch="////", linestyle="--",
                             label="where the break-even lies in 8 cases of 10"))
    if any(value.middle * PAYS < 1 for panel in maps.values() for value in panel.values()):
        handles.append(Patch(label="slower", **SLOWER))
    if handles:
        legend_below(figure, handles)
    set_title(figure, title)
    return Picture(figure, axes[0, 0])


def scale_ticks(scale: Any) -> List[float]:
    """Ticks of the scale as log2: 1, and round factors on both sides that do not overlap."""
    up = [digit * 10.0 ** power for power in range(4) for digit in (1.1, 1.2, 1.5, 2, 3, 5, 7)]
    down = [digit * 10.0 ** -power for power in range(1, 5) for digit in (9.5, 9, 8, 7, 6, 5, 4, 3, 2, 1.5, 1)]
    ticks = [0.0]
    for factors, end in ((up, scale.vmax), (down, scale.vmin)):
        inside = [math.log2(value) for value in factors if abs(math.log2(value)) <= abs(end)]
        for power in sorted(inside, key=abs, reverse=True):
            if all(abs(scale(power) - scale(tick)) >= 0.09 for tick in ticks):
                ticks.append(power)
    return sorted(ticks)


def lines_of(rows: Sequence[Row], axis: str, over: str) -> Dict[str, Dict[str, List[Tuple[float, Value]]]]:
    """Panels of lines, {title: {label: [(number, speed-up)]}}: one for each combination of the axes other than SERIES and
    `axis`."""
    pairs = speedups(rows, over)
    kept = [row for row, _ in pairs]
    labels = labels_of(kept)
    values = {id(row): (labels[place], value) for place, (row, value) in enumerate(pairs)}
    found: Dict[str, Dict[str, List[Tuple[float, Value]]]] = {}
    for title, panel in panels_of(kept, (*SERIES, axis), ("model", "topology")).items():
        lines = found.setdefault(title, {})
        for row in panel:
            label, value = values[id(row)]
            if row[axis]:  # empty: the model's or the cluster's own value, which the row does not have
                lines.setdefault(label, []).append((float(row[axis]), value))
    return {title: {label: sorted(points, key=lambda point: point[0]) for label, points in lines.items()}
            for title, lines in found.items()}


def draw_points(axes: Any, points: Sequence[Tuple[float, Value]], style: Mapping[str, Any], label: str) -> None:
    """Draws one line with its band."""
    x = [place for place, _ in points]
    axes.plot(x, [value.middle for _, value in points], label=label, **style)
    if any(value.low != value.high for _, value in points):
        axes.fill_between(x, [value.low for _, value in points], [value.high for _, value in points], color=style["color"], **BAND)


def set_number_ticks(axes: Any, places: Sequence[float], logarithmic: bool) -> None:
    """Sets ticks at the values, except those that would overlap. With `logarithmic`, the scale is logarithmic if they span a factor
    of 4."""
    if logarithmic and places[0] > 0 and places[-1] >= 4 * places[0]:
        axes.set_xscale("log")
        if len(places) > 1:
            axes.set_xlim(places[0] / 1.15, places[-1] * 1.15)
    every = math.ceil(len(places) / 9)
    axes.set_xticks(places[::every], [f"{place:.3g}" for place in places[::every]], fontsize=8)
    axes.minorticks_off()


def draw_lines(axes: Any, title: str, lines: Mapping[str, Sequence[Tuple[float, Value]]], axis: str, over: str,
               look: Mapping[str, Mapping[str, Any]]) -> None:
    """Draws one panel of speed-ups."""
    scale = LINE_AXES[axis][1]
    for label, points in lines.items():
        said = describe_break_even([(x, value.middle) for x, value in points], axis)
        draw_points(axes, [(x * scale, value) for x, value in points], look[label], f"{label}: {said}")
    axes.axhline(1, color="black", linewidth=1.2, linestyle="--", label=f"{describe(over)}: 1")
    set_number_ticks(axes, sorted({x * scale for points in lines.values() for x, _ in points}), True)
    values = [value.middle for points in lines.values() for _, value in points]
    if min(values) > 0 and max([1.0, *values]) >= 4 * min([1.0, *values]):
        axes.set_yscale("log", base=2)
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.set_xlabel(LINE_AXES[axis][0])
    axes.set_title(title, loc="left", fontsize=10)
    axes.grid(alpha=0.25)
    # The legend is below the panel, in which lines may be anywhere; its labels say where each plan ceases to pay.
    axes.legend(fontsize=8, frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.17))


def lines_picture(panels: Mapping[str, Mapping[str, Sequence[Tuple[float, Value]]]], axis: str, over: str, title: str = "",
                  intervals: bool = False) -> Picture:
    """Draws lines, and says in words where each plan pays."""
    figure, axes = grid(len(panels), 5.2, 3.6, sharey=True)
    look = styles(list(dict.fromkeys(label for lines in panels.values() for label in lines)))
    for panel_axes, (name, lines) in zip(axes.flat, panels.items()):
        draw_lines(panel_axes, name, lines, axis, over, look)
    for panel_axes in axes[:, 0]:
        panel_axes.set_ylabel(f"speed-up over {describe(over)}" + ("\n(band: 10–90 %)" if intervals else ""), fontsize=9)
    set_title(figure, title)
    said = [f"{name}: {label} {describe_break_even([(x, value.middle) for x, value in points], axis)}"
            for name, lines in panels.items() for label, points in lines.items()]
    return Picture(figure, axes[0, 0], said)


def alone_s(rows: Sequence[Row]) -> float:
    """Iteration time of one node alone in seconds: that of a row with one node, else the least computation time of all rows."""
    single = [float(row["iteration_s"]) for row in rows if row["nodes"] == "1"]
    return min(single or [float(row["compute_s"]) for row in rows])


def few_bandwidths(rows: Sequence[Row]) -> Tuple[List[Row], List[str]]:
    """Selects the rows at the lowest, middle and highest bandwidth if there are more than three. Returns them with a sentence about
    the selection."""
    bandwidths = sorted({row["bandwidth_bytes_per_s"] for row in rows}, key=float)
    if len(bandwidths) <= 3:
        return list(rows), []
    kept = [bandwidths[place] for place in (0, len(bandwidths) // 2, -1)]
    return ([row for row in rows if row["bandwidth_bytes_per_s"] in kept],
            [f"drawn: {len(kept)} of {len(bandwidths)} bandwidths; bandwidth_bytes_per_s={bandwidths[1]} chooses another"])


def efficiency(rows: Sequence[Row], title: str = "") -> Picture:
    """Draws the scaling efficiency of every plan over the number of nodes, with the ideal. Raises PictureError without `ddp` and
    `ddp_fp16`."""
    require_baselines([row["plan"] for row in rows], REMEDY)
    rows, said = few_bandwidths(rows)
    found = panels_of(rows, (*SERIES, "nodes"))
    labels = dict(zip(map(id, rows), labels_of(rows)))
    look = styles(list(dict.fromkeys(labels.values())))
    bandwidths = len({row["bandwidth_bytes_per_s"] for row in rows})
    width, height = (3.8, 2.8) if len(found) > 1 else (5.6, 3.8)
    figure, axes = grid(len(found), width, height, bandwidths if bandwidths > 1 else None, sharey=True)
    for panel_axes, (name, panel) in zip(axes.flat, found.items()):
        draw_efficiency(panel_axes, name, panel, labels, look)
    for panel_axes in axes[:, 0]:
        panel_axes.set_ylabel("scaling efficiency, %\n(1 node's time / iteration)")
    legend_below(figure, axes[0, 0].get_legend_handles_labels()[0], 2 * axes.shape[1])
    set_title(figure, title or f"Scaling: {title_of([row for row in rows if row['plan'] not in BASELINES] or rows, ('nodes',))}")
    return Picture(figure, axes[0, 0], said)


def draw_efficiency(axes: Any, title: str, panel: Sequence[Row], labels: Mapping[int, str],
                    look: Mapping[str, Mapping[str, Any]]) -> None:
    """Draws one panel: the lines of one job."""
    alone = alone_s(panel)
    lines: Dict[str, Dict[int, Value]] = {}
    for row in panel:
        time = seconds_of(row)
        value = Value(*(100 * alone / s for s in (time.middle, time.high, time.low)))
        points = lines.setdefault(labels[id(row)], {})
        before: Optional[Value] = points.get(int(row["nodes"]))
        points[int(row["nodes"])] = value if before is None or before.middle < value.middle else before
    axes.axhline(100, color="#777777", linewidth=1.2, linestyle="-.", label="ideal")
    for label, points in lines.items():
        draw_points(axes, sorted(points.items()), look[label], label)
    set_number_ticks(axes, [float(count) for count in sorted({int(row["nodes"]) for row in panel})], True)
    axes.set_ylim(0, 108)
    axes.set_xlabel("nodes")
    axes.set_title(title, loc="left", fontsize=10)
    axes.grid(alpha=0.25)
