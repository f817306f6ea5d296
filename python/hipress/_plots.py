"""Results as matplotlib draws them."""

from typing import TYPE_CHECKING, Any, Dict, List, Optional, Tuple

if TYPE_CHECKING:
    import matplotlib.axes

    from hipress._results import Plan, Simulation, Sweep, Trace

MS = 1e3


def _axes(ax: Optional["matplotlib.axes.Axes"]) -> Any:
    if ax is not None:
        return ax
    try:
        import matplotlib.pyplot
    except ImportError as error:
        raise ImportError("plot() needs matplotlib: install Debian's python3-matplotlib, or matplotlib from PyPI, for this "
                          f"interpreter ({error})") from error
    return matplotlib.pyplot.subplots(layout="constrained")[1]


def _bars(ax: Any, rows: List[Tuple[str, float, Optional[float], Optional[float]]]) -> None:
    """A bar each of (name, value, low, high), the first at the top."""
    for place, (name, value, low, high) in enumerate(rows):
        error = None if low is None or high is None else [[max(0.0, value - low) * MS], [max(0.0, high - value) * MS]]
        ax.barh(place, value * MS, xerr=error, color="C1" if name == "this plan" else "C0", capsize=3)
    ax.set_yticks(range(len(rows)), [name for name, *_ in rows])
    ax.invert_yaxis()


def plan(result: "Plan", ax: Optional["matplotlib.axes.Axes"]) -> "matplotlib.axes.Axes":
    """Iteration times of the plan and its baselines; of a broadcast, of its choices."""
    ax = _axes(ax)
    broadcast = "verdict" not in result.to_dict()
    rows = [(f"{row['topology']}, {row['algorithm']}", row["predicted_s"], None, None) if broadcast else
            (row["plan"], row["iteration_s"], row["p10_s"], row["p90_s"]) for row in result.records()]
    _bars(ax, [row for row in rows if row[1] is not None])
    ax.set_xlabel("predicted time in ms" if broadcast else "predicted iteration in ms, in 8 runs of 10")
    return ax


def simulation(result: "Simulation", ax: Optional["matplotlib.axes.Axes"]) -> "matplotlib.axes.Axes":
    """The critical path by kind of task."""
    ax = _axes(ax)
    shares: Dict[str, float] = result.critical_path_share
    kinds = sorted((kind for kind, share in shares.items() if share > 0), key=lambda kind: -shares[kind])
    ax.barh(range(len(kinds)), [100 * shares[kind] for kind in kinds])
    ax.set_yticks(range(len(kinds)), kinds)
    ax.invert_yaxis()
    ax.set_xlabel(f"share of the critical path in % (iteration {result.iteration_s * MS:.4g} ms)")
    return ax


def _numeric_axis(result: "Sweep") -> str:
    """The axis of numbers that has most values, the last of equals."""
    counts: Dict[str, int] = {}
    for name in result.varying():
        values = {row[name] for row in result}
        if all(isinstance(value, (int, float)) for value in values):
            counts[name] = len(values)
    if not counts:
        raise ValueError(f"no axis of numbers varies: say x, one of {', '.join(result.columns)}")
    return max(reversed(list(counts)), key=lambda name: counts[name])


def sweep(result: "Sweep", x: Optional[str], y: str, ax: Optional["matplotlib.axes.Axes"]) -> "matplotlib.axes.Axes":
    """One column over another, a line for each combination of the other axes."""
    over = x if x is not None else _numeric_axis(result)
    for name in (over, y):
        if name not in result.columns:
            raise ValueError(f"there is no column '{name}' (known: {', '.join(result.columns)})")
    if len({isinstance(row[over], str) for row in result if row[over] is not None}) > 1:
        raise ValueError(f"column '{over}' has words and numbers: say another x")
    ax = _axes(ax)
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


def trace(result: "Trace", ax: Optional["matplotlib.axes.Axes"]) -> "matplotlib.axes.Axes":
    """Where the time of each step went."""
    ax = _axes(ax)
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
