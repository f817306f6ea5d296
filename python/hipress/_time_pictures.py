"""Pictures of times: parts of an iteration for several plans, required bandwidths, and predictions compared with measurements."""

import dataclasses
import pathlib
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

from hipress._style import (BASELINES, MS, Picture, PictureError, grid, legend_below, own_axes, require_baselines, set_title,
                            styles)
from hipress._sweep_rows import SERIES, Row, Value, labels_of, panels_of, title_of


@dataclasses.dataclass(frozen=True)
class Part:
    """Part of an iteration: its label, colour and hatch."""

    label: str
    colour: str
    hatch: str


#: Parts of an iteration, in the order in which they are stacked.
PARTS = {"compute": Part("computation", "#bbbbbb", ""), "by_codecs_s": Part("slowed by codecs", "#e69f00", "///"),
         "by_transfers_s": Part("slowed by transfers", "#56b4e9", "\\\\\\"),
         "by_computation_s": Part("slowed by other ranks", "#cc79a7", "...."),
         "exposed": Part("exposed communication", "#d55e00", "xx")}


@dataclasses.dataclass(frozen=True)
class Split:
    """Iteration of a plan, with its interval and its parts, in seconds."""

    plan: str
    iteration: Value
    parts: Dict[str, float]


def split_of(plan: str, document: Mapping[str, Any]) -> Split:
    """Split of a document of hipress-sim, or of a row of a sweep, which lacks the slowdown. Raises PictureError if the document is
    of a different kind."""
    try:
        slowdown = document.get("slowdown") or {}
        slowed = {key: float(slowdown.get(key, 0.0)) for key in PARTS if key.endswith("_s")}
        compute, exposed = float(document["compute_s"]), float(document["exposed_communication_s"])
        parts = {"compute": max(0.0, compute - sum(slowed.values())), **slowed, "exposed": exposed}
        low, high = (document.get(f"iteration_s_{end}") or document["iteration_s"] for end in ("p10", "p90"))
        return Split(plan, Value(float(document["iteration_s"]), float(low), float(high)), parts)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise PictureError(f"{plan}: this is not what hipress-sim prints as JSON, or simulate() answers") from error


def breakdown_of_rows(rows: Sequence[Row], title: str = "") -> Picture:
    """Draws the parts of iterations of a sweep, with a panel for each point. Slowdown counts as computation, since rows do not have
    it separately."""
    panels: Dict[str, List[Split]] = {}
    require_baselines([row["plan"] for row in rows], "add {missing} to axis `plan` of the sweep and sweep again")
    labels = dict(zip(map(id, rows), labels_of(rows)))
    for name, panel in panels_of(rows, SERIES).items():
        splits: Dict[str, Split] = {}
        for row in panel:  # a baseline has an equal row for each algorithm
            splits.setdefault(labels[id(row)], split_of(labels[id(row)], row))
        panels[name] = list(splits.values())
    planned = [row for row in rows if row["plan"] not in BASELINES] or rows
    return breakdown_picture(panels, title or f"Iteration: {title_of(planned)}")


def breakdown(documents: Mapping[str, Mapping[str, Any]], title: str = "", axes: Optional[Any] = None) -> Picture:
    """Draws the parts of iterations of simulations, given by the names of their plans. Raises PictureError without the
    baselines."""
    require_baselines(list(documents), "simulate {missing} on the same machines, and give what that answers under its name")
    splits = [split_of(plan, document) for plan, document in documents.items()]
    return breakdown_picture({"": splits}, title or f"Iteration: {machines_of(documents)}", axes)


def machines_of(documents: Mapping[str, Mapping[str, Any]]) -> str:
    """Description of the simulated job, from the first document that is not a baseline's."""
    return next((", ".join(told(document)) for name, document in documents.items() if name not in BASELINES), "")


def told(document: Mapping[str, Any]) -> List[str]:
    """Model, topology, algorithms and machines of a document, where available."""
    algorithms = ", ".join(document.get("algorithms") or [])
    return [str(one) for one in (document.get("model"), document.get("topology"), algorithms, document.get("machines")) if one]


def in_order(splits: Sequence[Split]) -> List[Split]:
    """Sorts baselines first; the others keep their order."""
    place = {name: number for number, name in enumerate(BASELINES)}
    return sorted(splits, key=lambda split: place.get(split.plan, len(place)))


def breakdown_picture(panels: Mapping[str, Sequence[Split]], title: str, given: Optional[Any] = None) -> Picture:
    from matplotlib.patches import Patch

    most = max(len(splits) for splits in panels.values())
    if given is None:
        figure, axes = grid(len(panels), 6.0 if len(panels) < 3 else 4.2, 1.0 + 0.42 * most)
        places = list(axes.flat)
    else:
        figure, places = given.figure, [given]
    for panel_axes, (name, splits) in zip(places, panels.items()):
        draw_breakdown(panel_axes, name, in_order(splits))
    used = [part for part in PARTS if any(split.parts[part] > 0 for splits in panels.values() for split in splits)]
    handles = [Patch(facecolor=PARTS[part].colour, hatch=PARTS[part].hatch, edgecolor="black", linewidth=0.6,
                     label=PARTS[part].label) for part in used]
    if given is None:
        legend_below(figure, handles, 3)
        set_title(figure, title)
    else:
        given.legend(handles=handles, fontsize="small")
        given.set_title(title, loc="left", fontsize=10)
    return Picture(figure, places[0])


def draw_breakdown(axes: Any, name: str, splits: Sequence[Split]) -> None:
    """Draws a stacked bar for each plan, with the interval of the iteration at its end and its length as a number."""
    most = max(max(split.iteration.high, split.iteration.middle) for split in splits) * MS
    for y, split in enumerate(splits):
        left = 0.0
        for part, look in PARTS.items():
            width = split.parts[part] * MS
            if width > 0:
                axes.barh(y, width, 0.62, left=left, color=look.colour, hatch=look.hatch, edgecolor="black", linewidth=0.6)
            left += width
        time = split.iteration
        if time.low < time.high:
            axes.errorbar(time.middle * MS, y, xerr=[[max(0.0, time.middle - time.low) * MS],
                                                     [max(0.0, time.high - time.middle) * MS]],
                          color="black", capsize=4, linewidth=1.4, fmt="none")
        axes.text(max(time.high, time.middle) * MS + 0.015 * most, y, f"{time.middle * MS:.4g} ms", va="center", fontsize=8)
    axes.set_yticks(range(len(splits)), [split.plan for split in splits], fontsize=9)
    axes.invert_yaxis()
    axes.set_xlim(0, 1.2 * most)
    whiskers = any(split.iteration.low < split.iteration.high for split in splits)
    axes.set_xlabel("iteration, ms" + ("; lines: 10–90 % interval" if whiskers else ""))
    axes.set_title(name, loc="left", fontsize=10)


def times(records: Sequence[Mapping[str, Any]], title: str = "", axes: Optional[Any] = None) -> Picture:
    """Draws predicted iterations of plans with their intervals, from rows of Plan.records(); those without a time are left out."""
    given = axes
    axes = own_axes(axes)
    rows = [row for row in records if row["iteration_s"] is not None]
    for y, row in enumerate(rows):
        low, high = row.get("p10_s"), row.get("p90_s")
        error = None if low is None or high is None else [[max(0.0, row["iteration_s"] - low) * MS],
                                                          [max(0.0, high - row["iteration_s"]) * MS]]
        colour, hatch = look_of_bar(row["plan"])
        axes.barh(y, row["iteration_s"] * MS, 0.7, xerr=error, color=colour, hatch=hatch, edgecolor="black", linewidth=0.6,
                  capsize=3, ecolor="black")
    axes.set_yticks(range(len(rows)), [row["plan"] for row in rows], fontsize=9)
    axes.invert_yaxis()
    axes.set_xlabel("predicted iteration, ms; lines: 10–90 % interval")
    axes.set_title(title, loc="left", fontsize=10)
    if given is None:
        axes.figure.set_size_inches(7.5, 1.2 + 0.3 * len(rows))
    return Picture(axes.figure, axes)


def look_of_bar(plan: str) -> Tuple[str, str]:
    """Colour and hatch of a bar: the plan itself and the baselines stand out."""
    return {"this plan": ("#d55e00", "////"), "ddp": ("#777777", ""), "ddp_fp16": ("#0072b2", "....")}.get(plan, ("#dddddd", ""))


def times_of_plan(document: Mapping[str, Any], title: str = "") -> Picture:
    """Draws the times in the JSON of hipress-plan. Raises PictureError if the document is of a different kind, or lacks the
    baselines."""
    try:
        rows = [{"plan": name, "iteration_s": time, "p10_s": document["baselines_p10"][name],
                 "p90_s": document["baselines_p90"][name]} for name, time in (document["baselines"] or {}).items()]
        rows.append({"plan": "this plan", "iteration_s": document["predicted_iteration_s"],
                     "p10_s": document["predicted_iteration_s_p10"], "p90_s": document["predicted_iteration_s_p90"]})
    except (AttributeError, KeyError, TypeError) as error:
        raise PictureError("this is not what hipress-plan prints as JSON of a plan") from error
    require_baselines([row["plan"] for row in rows if row["iteration_s"] is not None],
                      "plan for a schedule and a number of nodes for which hipress-plan compares {missing}")
    return times(rows, f"{title}: {planned(document)}")


def planned(document: Mapping[str, Any]) -> str:
    """Description of a planned job, such as "vgg19, ring, 3 of 38 gradients compressed"."""
    nodes = [f"{document['nodes']} nodes"] if document.get("nodes") else []
    return ", ".join([*told(document), *nodes, f"{document.get('compressed')} of {document.get('gradients')} gradients compressed"])


#: Utilisation, and the required bandwidth in bits/s with its p10 and p90; these are None if no bandwidth is enough.
Required = Tuple[float, Optional[float], Optional[float], Optional[float]]


def curves_of(document: Mapping[str, Any]) -> Dict[Tuple[str, str], List[Required]]:
    """Points of the curve of each (schedule, algorithm), in the order of the request. Raises PictureError if the document is of a
    different kind, or if no bandwidth is enough for any point."""
    curves: Dict[Tuple[str, str], List[Required]] = {}
    try:
        for row in document["required_bandwidth"]:
            curves.setdefault((row["schedule"], row["algorithm"]), []).append(
                (float(row["utilization"]), row["bits_per_s"], row["bits_per_s_p10"], row["bits_per_s_p90"]))
    except (ValueError, KeyError, TypeError) as error:
        raise PictureError("is not what hipress-plan prints as JSON of required bandwidths") from error
    if not any(point[1] for points in curves.values() for point in points):
        raise PictureError("no bandwidth reaches any of these utilisations")
    return curves


def curve_name(schedule: str, algorithm: str) -> str:
    """Name of a curve: `ddp` or `ddp_fp16` for those plans, else schedule and algorithm."""
    plain = {("ddp", "none"): "ddp", ("ddp", "fp16"): "ddp_fp16"}.get((schedule, algorithm))
    return plain or (schedule if algorithm == "none" else f"{schedule}, {algorithm}")


def required(documents: Mapping[str, Mapping[str, Any]], title: str = "", axes: Optional[Any] = None) -> Picture:
    """Draws utilisation over the bandwidth of the links: a panel for each document, and a curve with its band for each schedule and
    algorithm. Sentences list utilisations that no bandwidth reaches, and missing baselines."""
    panels: Dict[str, Dict[str, List[Required]]] = {}
    for name, document in documents.items():
        try:
            panels[name] = {curve_name(*key): points for key, points in curves_of(document).items()}
        except PictureError as error:
            raise PictureError(f"{name}: {error}") from error
    figure, places = (axes.figure, [axes]) if axes is not None else table(grid(len(panels), 4.6, 3.6, sharex=True, sharey=True))
    look = styles(list(dict.fromkeys(label for curves in panels.values() for label in curves)))
    for panel_axes, (name, curves) in zip(places, panels.items()):
        draw_required(panel_axes, name, curves, look)
    places[0].set_ylabel("computation, % of the time (utilisation)")
    handles = {label: handle for place in places for handle, label in zip(*place.get_legend_handles_labels())}
    if axes is None:
        legend_below(figure, list(handles.values()), 2)
        set_title(figure, title or f"Required bandwidth: {topologies_of(documents)}")
    else:
        axes.legend(fontsize="small")
    return Picture(figure, places[0], unreached(panels))


def topologies_of(documents: Mapping[str, Mapping[str, Any]]) -> str:
    """Topologies of all rows."""
    return " and ".join(dict.fromkeys(str(row.get("topology", "")) for document in documents.values()
                                      for row in document["required_bandwidth"]))


def table(made: Tuple[Any, Any]) -> Tuple[Any, List[Any]]:
    return made[0], list(made[1].flat)


def unreached(panels: Mapping[str, Mapping[str, Sequence[Required]]]) -> List[str]:
    """Sentences about utilisations and baselines that a picture of required bandwidths does not show."""
    said = []
    for name, curves in panels.items():
        for label, points in curves.items():
            missed = [f"{100 * point[0]:.4g} %" for point in points if not point[1]]
            if missed:
                said.append(f"{name}: {label}: no bandwidth reaches {', '.join(missed)}")
        for baseline, asked in (("ddp", "schedule ddp"), ("ddp_fp16", "schedule ddp with algorithm fp16")):
            if baseline not in curves:
                said.append(f"{name}: {baseline} is not drawn: ask for {asked}, too, and give both files")
    return said


def draw_required(axes: Any, title: str, curves: Mapping[str, Sequence[Required]], look: Mapping[str, Mapping[str, Any]]) -> None:
    """Draws one panel of required bandwidths, over a logarithmic axis."""
    for label, points in curves.items():
        reached = sorted((utilisation, bits) for utilisation, bits, *_ in points if bits)
        if not reached:
            continue
        axes.plot([bits / 1e9 for _, bits in reached], [100 * utilisation for utilisation, _ in reached], label=label,
                  **look[label])
        bounded = sorted((point[0], point[2], point[3]) for point in points if point[1] and point[2] and point[3])
        axes.fill_betweenx([100 * point[0] for point in bounded], [point[1] / 1e9 for point in bounded],
                           [point[2] / 1e9 for point in bounded], color=look[label]["color"], alpha=0.15, linewidth=0)
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.set_xlabel("bandwidth of the links, Gbit/s\nband: 10–90 % interval")
    axes.set_title(title, loc="left", fontsize=10)
    axes.grid(True, which="both", linewidth=0.3)


@dataclasses.dataclass(frozen=True)
class Compared:
    """Measured and predicted time in seconds, each with its interval, and a label."""

    label: str
    measured: Value
    predicted: Value
    too_uncertain: bool = False  #: true if the predicted interval is too wide to be informative

    @property
    def within(self) -> bool:
        """True if the predicted interval contains the measured time, and is narrow enough to be informative."""
        return not self.too_uncertain and self.predicted.low <= self.measured.middle <= self.predicted.high


def compared(case: Mapping[str, Any]) -> Compared:
    """Reads a case of the demo's results.json, a row of a validation's cases.csv or of its JSON, or a report of hipress-exec.
    Raises PictureError for any other document."""
    try:
        if "measured_iteration_s" in case:
            measured = case["measured_iteration_s"]
            middle, ends = float(measured["median"]), [measured.get(end) for end in ("p10", "p90")]
            predicted = [case[f"predicted_iteration_s{end}"] for end in ("", "_p10", "_p90")]
        else:
            middle, ends = float(case["measured_s"]), [case.get(f"{end}_s") for end in ("p10", "p90")]
            predicted = [case["predicted_s"], case.get("predicted_s_p10"), case.get("predicted_s_p90")]
        low, high = (float(end) if end not in (None, "") else middle for end in ends)
        first = float(predicted[0])
        bounds = [float(end) if end not in (None, "") else first for end in predicted[1:]]
        if min(middle, first) <= 0:
            raise ValueError
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise PictureError("a case has no times: give results.json of the demo, cases.csv or the JSON of a validation, or what "
                           "hipress-exec prints as JSON") from error
    return Compared(label_of_case(case), Value(middle, low, high), Value(first, *bounds), case.get("too_uncertain") is True)


def exposed_of(case: Mapping[str, Any]) -> Optional[Compared]:
    """Exposed communication of a validation's case; None if the case lacks it, or if nothing was exposed."""
    measured_s, predicted_s = (float(case.get(f"exposed_{kind}_s") or 0) for kind in ("measured", "predicted"))
    if min(measured_s, predicted_s) <= 0:
        return None
    return Compared(label_of_case(case), Value(measured_s, measured_s, measured_s), Value(predicted_s, predicted_s, predicted_s))


def label_of_case(case: Mapping[str, Any]) -> str:
    """Plan of a case, or its algorithm, as the label of its point."""
    return str(case.get("plan") or case.get("algorithm") or "this plan")


def title_of_cases(cases: Sequence[Mapping[str, Any]]) -> str:
    """Title with the models, nodes, networks and rates of the cases. A kind with more than four values is left out."""
    parts = []
    for key, unit in (("model", ""), ("nnodes", " nodes"), ("network", ""), ("rate", " Mbit/s")):
        values = list(dict.fromkeys(str(case[key]) for case in cases if case.get(key)))
        if key == "model":  # a name, or a file
            values = list(dict.fromkeys(pathlib.PurePath(value).stem for value in values))
        if 0 < len(values) <= 4:
            parts.append(", ".join(values) + (unit if values != ["loopback"] else ""))
    return "; ".join(["Predicted and measured", *parts])


def measured(cases: Sequence[Mapping[str, Any]], title: str = "") -> Picture:
    """Draws predicted over measured iterations with their intervals, with a panel for each topology. A point is hollow if its
    interval does not contain the measurement, or is too wide. For a validation, a further panel has exposed communication, without
    intervals."""
    points = [compared(case) for case in cases]
    if not points:
        raise PictureError("there are no cases")
    panels = {topology: [point for point, case in zip(points, cases) if str(case.get("topology") or "") == topology]
              for topology in dict.fromkeys(str(case.get("topology") or "") for case in cases)}
    exposed = [found for found in map(exposed_of, cases) if found]
    figure, axes = grid(len(panels) + bool(exposed), 4.8, 4.4)
    for panel, (topology, chosen) in zip(axes.flat, panels.items()):
        scatter(panel, chosen, topology, points)
    if exposed:
        scatter(axes.flat[len(panels)], exposed, "exposed communication", exposed)
    finish_comparison(figure, axes, points)
    set_title(figure, title or title_of_cases(cases))
    return Picture(figure, axes[0, 0], coverage(points))


def coverage(points: Sequence[Compared]) -> List[str]:
    """Sentence about the number of intervals that contain the measured time; empty without intervals."""
    told = [point for point in points if point.predicted.low < point.predicted.high]
    if not told:
        return []
    held, uncertain = sum(point.within for point in told), sum(point.too_uncertain for point in told)
    return [f"{held} of {len(told)} measured times lie in their predicted 10–90 % intervals"
            + (f"; {uncertain} of them too uncertain to tell" if uncertain else "")]


def finish_comparison(figure: Any, axes: Any, points: Sequence[Compared]) -> None:
    """Adds the legend of panels that scatter() drew."""
    from matplotlib.lines import Line2D

    found = {label: handle for panel in axes.flat for handle, label in zip(*panel.get_legend_handles_labels())}
    handles = list(found.values())
    if any(not point.within and point.predicted.low < point.predicted.high for point in points):
        handles.append(Line2D([], [], linestyle="none", marker="o", color="black", markerfacecolor="white",
                              label="hollow: outside its interval"
                              + (", or too uncertain" if any(point.too_uncertain for point in points) else "")))
    if handles:
        legend_below(figure, handles, 3 * axes.shape[1])


def scatter(axes: Any, points: Sequence[Compared], title: str, all_points: Sequence[Compared]) -> None:
    """Draws one panel, on logarithmic axes that fit all points, with the diagonal of exact predictions and a band of 10 %."""
    look = styles(list(dict.fromkeys(point.label for point in all_points)))
    told = any(point.predicted.low < point.predicted.high for point in all_points)
    if all_points:
        draw_diagonal(axes, all_points, told)
    for label, style in look.items():
        for within in (True, False):
            draw_compared(axes, [point for point in points if point.label == label and (point.within or not told) is within], style,
                          label if within else "_")
    axes.set_title(title, loc="left", fontsize=10)
    axes.set(xlabel="measured, ms", ylabel="predicted, ms" + ("; lines: 10–90 % intervals" if told else ""),
             aspect="equal")


def draw_compared(axes: Any, points: Sequence[Compared], style: Mapping[str, Any], label: str) -> None:
    """Draws the points of one label. Those of the label "_", which legends leave out, are hollow."""
    if not points:
        return

    def errors(part: str) -> List[List[float]]:
        values = [getattr(point, part) for point in points]
        return [[max(0.0, value.middle - value.low) * MS for value in values],
                [max(0.0, value.high - value.middle) * MS for value in values]]

    axes.errorbar([point.measured.middle * MS for point in points], [point.predicted.middle * MS for point in points],
                  xerr=errors("measured"), yerr=errors("predicted"), linestyle="none", marker=style["marker"], markersize=6,
                  color=style["color"], markerfacecolor="white" if label == "_" else style["color"], elinewidth=0.9,
                  label=label)


def draw_diagonal(axes: Any, points: Sequence[Compared], intervals: bool) -> None:
    """Draws the diagonal of exact predictions, and sets the axes' limits."""
    ends_of = [value * MS for point in points for part in (point.measured, point.predicted)
               for value in ((part.low, part.middle, part.high) if intervals else (part.middle,)) if value > 0]
    ends = (min(ends_of) / 1.2, max(ends_of) * 1.2)
    axes.plot(ends, ends, color="black", linewidth=1, zorder=0, label="prediction = measurement")
    axes.fill_between(ends, [0.9 * end for end in ends], [1.1 * end for end in ends], color="#999999", alpha=0.25, linewidth=0,
                      zorder=0, label="within 10 %")
    axes.set(xscale="log", yscale="log", xlim=ends, ylim=ends)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(lambda value, _: f"{value:g}")
        if ends[1] > 10 * ends[0]:
            axis.set_minor_formatter("")
        else:
            axis.set_minor_formatter(lambda value, _: f"{value:g}")
            axis.set_tick_params(which="minor", labelsize=7)
