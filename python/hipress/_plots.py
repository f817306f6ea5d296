"""Plots of results by matplotlib."""

from typing import TYPE_CHECKING, Any, Dict, List, Mapping, Optional, Tuple

from hipress import _break_even_picture, _time_pictures
from hipress._pictures import KINDS
from hipress._style import MS, own_axes
from hipress._sweep_rows import as_text

if TYPE_CHECKING:
    import matplotlib.axes
    import matplotlib.figure

    from hipress._results import Plan, Simulation, Sweep, Trace


def figure_of(axes: "matplotlib.axes.Axes") -> "matplotlib.figure.Figure":
    """Whole figure of axes, also of axes in a subfigure."""
    figure: "matplotlib.figure.Figure" = axes.figure.figure
    return figure


def plan(result: "Plan", ax: Optional["matplotlib.axes.Axes"]) -> "matplotlib.axes.Axes":
    """Draws iteration times of the plan and its baselines; for a broadcast, times of its choices; for required bandwidths, their
    curves."""
    document = result.to_dict()
    if "required_bandwidth" in document:
        return _time_pictures.required({"": document}, "", ax).axes
    if "verdict" not in document:
        return _broadcast(result, own_axes(ax))
    return _time_pictures.times(result.records(), _time_pictures.planned(document), ax).axes


def break_even(result: "Plan", ax: Optional["matplotlib.axes.Axes"]) -> "matplotlib.axes.Axes":
    """Draws the speed-up by compression over the quantity that a break-even varies."""
    return _break_even_picture.break_even(result.to_dict(), "", ax).axes


def _broadcast(result: "Plan", ax: Any) -> "matplotlib.axes.Axes":
    rows = [(f"{row['topology']}, {row['algorithm']}", row["predicted_s"]) for row in result.records()]
    rows = [row for row in rows if row[1] is not None]
    ax.barh(range(len(rows)), [seconds * MS for _, seconds in rows], color="#bbbbbb", edgecolor="black", linewidth=0.6)
    ax.set_yticks(range(len(rows)), [name for name, _ in rows])
    ax.invert_yaxis()
    ax.set_xlabel("predicted time in ms")
    return ax


def beside(result: "Simulation", others: Mapping[str, "Simulation"],
           ax: Optional["matplotlib.axes.Axes"]) -> "matplotlib.axes.Axes":
    """Draws the parts of the iterations of several plans, with the plans side by side."""
    documents = {**{name: other.to_dict() for name, other in others.items()}, "this plan": result.to_dict()}
    return _time_pictures.breakdown(documents, "", ax).axes


def simulation(result: "Simulation", ax: Optional["matplotlib.axes.Axes"]) -> "matplotlib.axes.Axes":
    """Draws the critical path by kind of task."""
    ax = own_axes(ax)
    shares: Dict[str, float] = result.critical_path_share
    kinds = sorted((kind for kind, share in shares.items() if share > 0), key=lambda kind: -shares[kind])
    ax.barh(range(len(kinds)), [100 * shares[kind] for kind in kinds])
    ax.set_yticks(range(len(kinds)), kinds)
    ax.invert_yaxis()
    ax.set_xlabel(f"share of the critical path in % (iteration {result.iteration_s * MS:.4g} ms)")
    return ax


def _numeric_axis(result: "Sweep") -> str:
    """Name of the numeric axis with the most values, the last of equals. Raises ValueError if no numeric axis varies."""
    counts: Dict[str, int] = {}
    for name in result.varying():
        values = {row[name] for row in result}
        if all(isinstance(value, (int, float)) for value in values):
            counts[name] = len(values)
    if not counts:
        raise ValueError(f"no axis of numbers varies: say x, one of {', '.join(result.columns)}")
    return max(reversed(list(counts)), key=lambda name: counts[name])


def sweep(result: "Sweep", x: Optional[str], y: str, ax: Optional["matplotlib.axes.Axes"]) -> "matplotlib.axes.Axes":
    """Draws one column over another, with a line for each combination of the other axes. Raises ValueError for an unknown
    column."""
    over = x if x is not None else _numeric_axis(result)
    for name in (over, y):
        if name not in result.columns:
            raise ValueError(f"there is no column '{name}' (known: {', '.join(result.columns)})")
    if len({isinstance(row[over], str) for row in result if row[over] is not None}) > 1:
        raise ValueError(f"column '{over}' has words and numbers: say another x")
    ax = own_axes(ax)
    others = [name for name in result.varying() if name != over]
    lines: Dict[Tuple[Any, ...], List[Tuple[Any, Any]]] = {}
    for row in result:
        if row[y] is not None and row[over] is not None:
            lines.setdefault(tuple(row[name] for name in others), []).append((row[over], row[y]))
    for key, points in lines.items():
        label = ", ".join(f"{name} {value}" for name, value in zip(others, key))
        ax.plot(*zip(*sorted(points, key=lambda point: point[0])), marker=".", label=label or None)
    ax.set_xlabel(over)
    ax.set_ylabel(y)
    if others:
        ax.legend(fontsize="small")
    return ax


def sweep_picture(result: "Sweep", kind: str) -> "matplotlib.axes.Axes":
    """Draws a kind of picture of a sweep. Raises ValueError for an unknown kind."""
    drawn = KINDS[kind].of_sweep if kind in KINDS else None
    if drawn is None:
        known = ", ".join(name for name, row in KINDS.items() if row.of_sweep is not None)
        raise ValueError(f"there is no picture '{kind}' of sweeps (known: {known})")
    return drawn([as_text(row) for row in result], "").axes


def trace(result: "Trace", ax: Optional["matplotlib.axes.Axes"]) -> "matplotlib.axes.Axes":
    """Draws the time of each step as computation, exposed communication and idle time."""
    ax = own_axes(ax)
    rows = [row for row in result.records() if row["step_s"] is not None]
    left = [0.0] * len(rows)
    for key, label in (("compute_s", "computation"), ("exposed_communication_s", "exposed communication"), ("idle_s", "idle")):
        widths = [(row[key] or 0.0) * MS for row in rows]
        ax.barh(range(len(rows)), widths, left=left, label=label)
        left = [begin + width for begin, width in zip(left, widths)]
    ax.set_yticks(range(len(rows)), [row["name"] for row in rows])
    ax.invert_yaxis()
    ax.set_xlabel("ms")
    ax.legend(fontsize="small")
    return ax
