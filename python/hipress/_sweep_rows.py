"""Rows of sweeps for pictures: axes among the columns, speed-ups over a plan with their intervals, and division into panels."""

import dataclasses
import math
from typing import Any, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple

from hipress._style import BASELINES, PictureError

Row = Mapping[str, str]

#: Columns that are not axes.
RESULTS = ("iteration_s", "synchronisation_s", "compute_s", "exposed_communication_s", "speedup", "tasks", "speedup_over_ddp",
           "iteration_s_p10", "iteration_s_p90", "speedup_over_ddp_p10", "speedup_over_ddp_p90")
#: Axes of plans, in which the lines of one panel differ. Baselines do not depend on them.
SERIES = ("plan", "algorithm", "rank", "ratio", "partitions", "schedule", "steps", "fragments", "reshard")
#: Axes whose values need no name in titles and labels.
PLAIN = ("model", "topology", "algorithm", "plan")
#: Default values, which titles leave out.
USUAL = {"schedule": "ddp"}
#: Possible x axes of lines, of which the first that varies is used: label, and factor from the column's unit to the label's.
LINE_AXES = {"bandwidth_bytes_per_s": ("bandwidth, Gbit/s", 8e-9), "nodes": ("nodes", 1.0),
             "latency_s": ("latency, us", 1e6), "overhead_s": ("overhead, us", 1e6),
             "compute_speed": ("speed of computation", 1.0), "compute_time_s": ("computation, ms", 1e3),
             "gpus_per_node": ("GPUs per node", 1.0), "hosts_per_rack": ("hosts per rack", 1.0),
             "oversubscription": ("oversubscription of racks", 1.0), "stragglers": ("stragglers, nodes", 1.0),
             "straggler_speed": ("speed of stragglers", 1.0), "cards": ("cards of a host", 1.0),
             "slow_link": ("bandwidth of the slow link, share of the others'", 1.0)}
#: Speed-up above which a plan pays: the planner's tolerance.
PAYS = 1.005
MOST_PANELS = 36


@dataclasses.dataclass(frozen=True)
class Value:
    """A number with its 10–90 % interval; without an interval, both ends are the number."""

    middle: float
    low: float
    high: float


def as_text(row: Mapping[str, Any]) -> Dict[str, str]:
    """Converts a row of a result to the texts of its CSV."""
    return {name: "" if value is None else f"{value:.15g}" if isinstance(value, float) else str(value)
            for name, value in row.items()}


def axes_of(rows: Sequence[Row]) -> List[str]:
    """Names of the columns that are axes, in their order."""
    return [name for name in rows[0] if name not in RESULTS]


def varying(rows: Sequence[Row]) -> List[str]:
    """Axes that have several values."""
    return [name for name in axes_of(rows) if len({row[name] for row in rows}) > 1]


def name_of(row: Row, axis: str) -> str:
    """Text for the row's value of an axis in titles and labels."""
    value = row[axis] or "as the model's"
    if axis in PLAIN:
        return value
    if axis == "bandwidth_bytes_per_s":
        return f"{float(value) * 8e-9:.4g} Gbit/s"
    return f"{value} nodes" if axis == "nodes" else f"{axis} {value}"


def of_averages(rows: Sequence[Row], axes: Sequence[str]) -> List[str]:
    """Axes that apply to the rows: for schedules other than ddp, `schedule` replaces `topology` and `algorithm`."""
    scheduled = any(row.get("schedule") not in (None, "", USUAL["schedule"]) for row in rows)
    return [axis for axis in axes if axis not in ("topology", "algorithm")] + ["schedule"] if scheduled else list(axes)


def title_of(rows: Sequence[Row], beside: Sequence[str] = ()) -> str:
    """Title with the values of axes that have a single value, except default values and the axes `beside`."""
    shown = ("model", "plan", "topology", "algorithm", "nodes", "bandwidth_bytes_per_s", "profile", "cluster", "schedule")
    one = [axis for axis in dict.fromkeys(of_averages(rows, shown))
           if axis in rows[0] and axis not in beside and rows[0][axis] not in ("", USUAL.get(axis)) and
           len({row[axis] for row in rows}) == 1]
    return ", ".join(("plan " if axis == "plan" else "") + name_of(rows[0], axis) for axis in one)


def require_few(panels: Mapping[str, Any], axes: Iterable[str]) -> None:
    """Raises PictureError for more panels than fit."""
    if len(panels) > MOST_PANELS:
        raise PictureError(f"{len(panels)} panels (over {', '.join(axes)}) are more than the {MOST_PANELS} that fit; "
                           "choose, such as model=vgg19")


def panels_of(rows: Sequence[Row], within: Sequence[str], always: Sequence[str] = ()) -> Dict[str, List[Row]]:
    """Panels, {title: rows}: one for each combination of values of the varying axes, except the axes `within` a panel. Titles also
    have the axes `always`."""
    apart = [axis for axis in varying(rows) if axis not in within]
    named = [axis for axis in of_averages(rows, always) if axis not in within]
    shown = [axis for axis in axes_of(rows) if axis in apart or axis in named]
    panels: Dict[str, List[Row]] = {}
    for row in rows:
        panels.setdefault(", ".join(name_of(row, axis) for axis in shown), []).append(row)
    require_few(panels, apart)
    return panels


def labels_of(rows: Sequence[Row]) -> List[str]:
    """Label of each row's line: the axes of SERIES that vary, or the plan. Baselines have the plan's name alone."""
    found = [axis for axis in varying(rows) if axis in SERIES] or ["plan"]
    return [row["plan"] if row["plan"] in BASELINES else ", ".join(name_of(row, axis) for axis in found) for row in rows]


def number(row: Row, column: str) -> Optional[float]:
    """Value of a column; None if the row has none."""
    return float(row[column]) if row.get(column) else None


def seconds_of(row: Row) -> Value:
    """Iteration time in seconds, with its interval."""
    middle = float(row["iteration_s"])
    low, high = number(row, "iteration_s_p10"), number(row, "iteration_s_p90")
    return Value(middle, middle if low is None else low, middle if high is None else high)


def has_intervals(rows: Iterable[Row]) -> bool:
    return any(row.get("iteration_s_p10") for row in rows)


def point_of(row: Row) -> Tuple[str, ...]:
    """Values of a row's axes other than SERIES. Speed-ups compare rows for which these are equal."""
    return tuple(value for axis, value in row.items() if axis not in RESULTS and axis not in SERIES)


def half_width(value: Value) -> float:
    """Half width of the interval, as the logarithm of a factor."""
    return math.log(value.high / value.low) / 2


def own_share(row: Row) -> float:
    """Share of a prediction's interval that is due to its plan alone: predictions on one machine have independent errors of this
    size. Takes a row of `ddp`. The interval of its speed-up over itself has two such errors, so it is √2 times as wide as one."""
    own, all_of_it = half_width(over_ddp(row)) if row.get("speedup_over_ddp") else 0.0, half_width(seconds_of(row))
    return own / math.sqrt(2) / all_of_it if all_of_it else 0.0


def ratio(base: Value, other: Value, share: float) -> Value:
    """Speed-up of `other` over `base`. Both run on the same machine, fast or slow, so low is divided by low and high by high. The
    part `share` of each half width is due to the plan alone; these parts are added as independent errors."""
    three = (base.low / other.low, base.middle / other.middle, base.high / other.high)
    own = share * math.hypot(half_width(base), half_width(other))
    down, up = (math.hypot(math.log(part / three[1]), own) for part in (min(three), max(three)))
    return Value(three[1], three[1] * math.exp(-down), three[1] * math.exp(up))


def speedups(rows: Sequence[Row], over: str) -> List[Tuple[Row, Value]]:
    """Rows with their speed-up over a plan at the same point, without that plan's own rows. Plan `none` sends every gradient alone
    and leaves no rows out. Raises PictureError if the sweep lacks the plan at a point."""
    if over == "none":
        return [(row, Value(*[float(row["speedup"])] * 3)) for row in rows]
    if over == "ddp" and all(row.get("speedup_over_ddp") for row in rows):
        return [(row, over_ddp(row)) for row in rows if row["plan"] != "ddp"]
    base: Dict[Tuple[str, ...], Value] = {}
    share = {point_of(row): own_share(row) for row in rows if row["plan"] == "ddp"}
    for row in rows:
        if row["plan"] == over:
            found = seconds_of(row)
            before = base.get(point_of(row))
            base[point_of(row)] = found if before is None or found.middle < before.middle else before
    if not base:
        known = ", ".join(sorted({row["plan"] for row in rows}))
        raise PictureError(f"over={over}: the sweep has no such plan (it has: {known}); add it to axis plan")
    others = [row for row in rows if row["plan"] != over]
    if any(point_of(row) not in base for row in others):
        raise PictureError(f"plan `{over}` is not at every point of the others: is the sweep whole, and of one spec?")
    return [(row, ratio(base[point_of(row)], seconds_of(row), share.get(point_of(row), 0.0))) for row in others]


def over_ddp(row: Row) -> Value:
    """Speed-up over `ddp` from the sweep's own columns."""
    middle = float(row["speedup_over_ddp"])
    low, high = number(row, "speedup_over_ddp_p10"), number(row, "speedup_over_ddp_p90")
    return Value(middle, middle if low is None else low, middle if high is None else high)


def axis_of_lines(rows: Sequence[Row]) -> Optional[str]:
    """X axis of lines: the first of LINE_AXES that varies, or else the first. None if bandwidth and nodes both vary, as in maps."""
    found = [axis for axis in LINE_AXES if axis in varying(rows)]
    return None if {"bandwidth_bytes_per_s", "nodes"} <= set(found) else (found or list(LINE_AXES))[0]


def break_even(points: Sequence[Tuple[float, float]]) -> Optional[Tuple[float, float]]:
    """Neighbouring x between which the speed-up of a line rises or falls past PAYS; None unless this happens exactly once."""
    found = [(x, next_x) for (x, y), (next_x, next_y) in zip(points, points[1:]) if (y > PAYS) != (next_y > PAYS)]
    return found[0] if len(found) == 1 else None


def describe_break_even(points: Sequence[Tuple[float, float]], axis: str) -> str:
    """Describes a line, such as "pays at 16, no longer at 32 Gbit/s" or "pays nowhere"."""
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


def finite_log2(value: float) -> float:
    return math.log2(value) if value > 0 else math.nan
