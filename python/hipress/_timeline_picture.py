"""Picture of a trace, with a panel for each timeline and a lane for each node and resource; tasks are coloured by kind. An egress
lane is filled while any message is being sent. A node has a lane for the link between its GPUs only if tasks use that link. In
sharded training, a lane for gathers and one for reductions replace the egress lane."""

import collections
import re
from typing import Any, Dict, List, Mapping, Sequence, Tuple

from hipress._style import Picture, PictureError, grid, set_title

#: Resources that are drawn: their names in the trace, and the labels of their lanes.
RESOURCES = {"compute": "compute", "codec": "codec", "egress": "egress", "gather": "gathers", "reduce": "reductions",
             "local": "GPU link"}
#: Resources that have no lane on nodes that never use them.
OPTIONAL = {"gather", "reduce", "local"}
#: Resources that replace egress: a trace that has them has no slices on egress.
OF_SHARDS = {"gather", "reduce"}
#: Okabe and Ito's palette, which colour-blind readers can tell apart.
COLOURS = {"Forward": "#999999", "Backward": "#bbbbbb", "Encode": "#d55e00", "Decode": "#56b4e9", "Merge": "#009e73", "Send": "#0072b2",
           "AllReduce": "#f0e442", "LocalReduce": "#cc79a7", "LocalBroadcast": "#e69f00", "AllGather": "#0072b2",
           "ReduceScatter": "#e69f00", "AllToAll": "#cc79a7"}
LANE_HEIGHT = 0.8
#: Slices by (node, resource): (kind, start in s, duration in s).
Lanes = Mapping[Tuple[int, str], List[Tuple[str, float, float]]]


def subject(trace: Mapping[str, Any]) -> str:
    """Title such as "vgg19: plan secopa, ring, N = 4"; empty if the trace does not have these data."""
    about = trace.get("otherData", {})
    return ": ".join(str(about[key]) for key in ("model", "plan") if about.get(key))


def resources_of(timelines: Mapping[str, Lanes]) -> List[str]:
    """Resources that have lanes."""
    used = {resource for lanes in timelines.values() for _, resource in lanes}
    optional = OPTIONAL | {"egress"} if used & OF_SHARDS else OPTIONAL
    return [resource for resource in RESOURCES if resource in used or resource not in optional]


def timelines_of(trace: Mapping[str, Any]) -> Dict[str, Lanes]:
    """Drawn slices of a trace, by the timeline's title. Slices of the threads of one resource ("egress", "egress 2") are joined.
    Raises PictureError if this is not a trace that HiPress wrote."""
    try:
        found = _slices(trace["traceEvents"])
    except (AttributeError, KeyError, TypeError, ValueError):  # events of a different form, or with different names
        found = {}
    if not found:
        raise PictureError("is no trace that hipress-sim or hipress-exec wrote with --trace")
    return found


def _slices(events: Sequence[Mapping[str, Any]]) -> Dict[str, Lanes]:
    processes, threads = {}, {}
    for event in events:
        if event["ph"] == "M" and event["name"] == "process_name":
            title, _, node = re.fullmatch(r"(.*)( node )(\d+)", event["args"]["name"]).groups()  # type: ignore[union-attr]
            processes[event["pid"]] = (title, int(node))
        elif event["ph"] == "M" and event["name"] == "thread_name":
            threads[event["pid"], event["tid"]] = event["args"]["name"].split()[0]
    timelines: Dict[str, Any] = {}
    for event in events:
        if event["ph"] == "X" and event["cat"] in COLOURS:
            title, node = processes[event["pid"]]
            lanes = timelines.setdefault(title, collections.defaultdict(list))
            lanes[node, threads[event["pid"], event["tid"]]].append((event["cat"], event["ts"] / 1e6, event["dur"] / 1e6))
    return timelines


def _draw_timeline(axes: Any, title: str, lanes: Lanes, nodes: Sequence[int], resources: Sequence[str]) -> None:
    rows = [(node, resource) for node in nodes for resource in resources]
    for y, row in enumerate(rows):
        spans = collections.defaultdict(list)
        for kind, start, duration in lanes.get(row, []):
            spans[kind].append((start, duration))
        for kind, bars in spans.items():
            axes.broken_barh(bars, (y - LANE_HEIGHT / 2, LANE_HEIGHT), facecolors=COLOURS[kind], linewidth=0)
    end = max((start + duration for slices in lanes.values() for _, start, duration in slices), default=0)
    axes.axvline(end, color="black", linewidth=1)
    axes.set_title(f"{title}: {end:.3f} s", loc="left", fontsize=11)
    axes.set_yticks(range(len(rows)), [f"node {node} {RESOURCES[resource]}" for node, resource in rows], fontsize=8)
    axes.set_ylim(len(rows) - 0.4, -0.6)
    for boundary in range(len(resources), len(rows), len(resources)):
        axes.axhline(boundary - 0.5, color="#dddddd", linewidth=0.8)


def timeline(trace: Mapping[str, Any], title: str = "") -> Picture:
    """Draws all timelines of a trace below each other, on one scale of time."""
    timelines = timelines_of(trace)
    nodes = sorted({node for lanes in timelines.values() for node, _ in lanes})
    resources = resources_of(timelines)
    figure, panels = grid(len(timelines), 10, 1 + 0.2 * len(nodes) * len(resources), 1, sharex=True)
    for axes, (name, lanes) in zip(panels[:, 0], timelines.items()):
        _draw_timeline(axes, name, lanes, nodes, resources)
    set_title(figure, title or subject(trace))
    panels[-1, 0].set_xlabel("seconds after the iteration began")
    panels[-1, 0].set_xlim(left=0)
    drawn = {kind for lanes in timelines.values() for slices in lanes.values() for kind, _, _ in slices}
    from matplotlib.patches import Patch

    handles = [Patch(color=colour, label=kind) for kind, colour in COLOURS.items() if kind in drawn]
    panels[0, 0].legend(handles=handles, loc="lower right", bbox_to_anchor=(1, 1), ncols=len(handles), frameon=False, fontsize=9)
    return Picture(figure, panels[0, 0])
