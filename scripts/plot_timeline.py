#!/usr/bin/env python3
"""Draws the timelines of a trace above each other: plot_timeline.py TRACE.json PICTURE.png

The trace is one that hipress-sim or hipress-exec wrote with --trace. One panel per timeline, in it one lane per
node and resource, tasks coloured by kind; above them model and plan. An egress lane is filled while any message is
under way; a node has a lane for the link between its GPUs where something goes over it, and of sharded training
two for its gathers and reductions instead of egress.
"""

import collections
import json
import pathlib
import re
import sys

from picture import Refused, exit_status, pyplot, save

#: Resources that are drawn, by their names in the trace, and what their lanes are called.
RESOURCES = {"compute": "compute", "codec": "codec", "egress": "egress", "gather": "gathers", "reduce": "reductions",
             "local": "GPU link"}
#: Those without which a node is drawn too, where nothing ever happens on them.
OPTIONAL = {"gather", "reduce", "local"}
#: Where these are, egress has nothing of its own.
OF_SHARDS = {"gather", "reduce"}
#: Okabe and Ito's palette, which colour-blind readers can tell apart.
COLOURS = {
    "Forward": "#999999",
    "Backward": "#bbbbbb",
    "Encode": "#d55e00",
    "Decode": "#56b4e9",
    "Merge": "#009e73",
    "Send": "#0072b2",
    "AllReduce": "#f0e442",
    "LocalReduce": "#cc79a7",
    "LocalBroadcast": "#e69f00",
    "AllGather": "#0072b2",
    "ReduceScatter": "#e69f00",
    "AllToAll": "#cc79a7",
}
LANE_HEIGHT = 0.8


class TraceError(Refused):
    """What is wrong with a trace, and what to do."""


def read(path: pathlib.Path) -> tuple[str, dict]:
    """What a trace file is of, and its drawn slices, as read_slices gives them. TraceError if there are none."""
    try:
        trace = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, RecursionError, ValueError) as error:  # no JSON and no UTF-8 are ValueErrors
        raise TraceError(f"{path}: cannot be read: {error}") from error
    try:
        subject, timelines = read_subject(trace), read_slices(trace)
    except (AttributeError, KeyError, TypeError, ValueError):  # events of another form, or other names
        timelines = {}
    if not timelines:
        raise TraceError(f"{path}: is no trace that hipress-sim or hipress-exec wrote with --trace")
    return subject, timelines


def read_subject(trace: dict) -> str:
    """"vgg19: plan secopa, ring, N = 4", or "" where the trace does not say."""
    about = trace.get("otherData", {})
    return ": ".join(str(about[key]) for key in ("model", "plan") if about.get(key))


def resources_of(timelines: dict) -> list[str]:
    """The resources that have lanes."""
    used = {resource for lanes in timelines.values() for _, resource in lanes}
    optional = OPTIONAL | {"egress"} if used & OF_SHARDS else OPTIONAL
    return [resource for resource in RESOURCES if resource in used or resource not in optional]


def read_slices(trace: dict) -> dict:
    """The drawn slices of a trace: {timeline title: {(node, resource): [(kind, start_s, duration_s)]}}. The
    threads of one resource ("egress", "egress 2") come together."""
    processes, threads = {}, {}
    for event in trace["traceEvents"]:
        if event["ph"] == "M" and event["name"] == "process_name":
            title, node = re.fullmatch(r"(.*) node (\d+)", event["args"]["name"]).groups()
            processes[event["pid"]] = (title, int(node))
        elif event["ph"] == "M" and event["name"] == "thread_name":
            threads[event["pid"], event["tid"]] = event["args"]["name"].split()[0]
    timelines: dict = {}
    for event in trace["traceEvents"]:
        if event["ph"] != "X" or event["cat"] not in COLOURS:
            continue
        title, node = processes[event["pid"]]
        lanes = timelines.setdefault(title, collections.defaultdict(list))
        lanes[node, threads[event["pid"], event["tid"]]].append(
            (event["cat"], event["ts"] / 1e6, event["dur"] / 1e6))
    return timelines


def draw_lane(axes, y: int, slices: list) -> None:
    """Draws the slices of one lane around height y."""
    spans = collections.defaultdict(list)
    for kind, start, duration in slices:
        spans[kind].append((start, duration))
    for kind, bars in spans.items():
        axes.broken_barh(bars, (y - LANE_HEIGHT / 2, LANE_HEIGHT), facecolors=COLOURS[kind], linewidth=0)


def draw_timeline(axes, title: str, lanes: dict, nodes: list[int], resources: list[str]) -> None:
    rows = [(node, resource) for node in nodes for resource in resources]
    for y, row in enumerate(rows):
        draw_lane(axes, y, lanes.get(row, []))
    end = max((start + duration for slices in lanes.values() for _, start, duration in slices), default=0)
    axes.axvline(end, color="black", linewidth=1)
    axes.set_title(f"{title}: {end:.3f} s", loc="left", fontsize=11)
    axes.set_yticks(range(len(rows)), [f"node {node} {RESOURCES[resource]}" for node, resource in rows], fontsize=8)
    axes.set_ylim(len(rows) - 0.4, -0.6)
    for boundary in range(len(resources), len(rows), len(resources)):
        axes.axhline(boundary - 0.5, color="#dddddd", linewidth=0.8)


def plot(subject: str, timelines: dict, picture: pathlib.Path) -> None:
    """Writes the picture of all timelines, as read() gives them, on one scale of time."""
    from matplotlib.patches import Patch

    plt = pyplot()
    nodes = sorted({node for lanes in timelines.values() for node, _ in lanes})
    resources = resources_of(timelines)
    panel_height = 1 + 0.2 * len(nodes) * len(resources)
    figure, panels = plt.subplots(max(1, len(timelines)), sharex=True, squeeze=False, layout="constrained",
                                  figsize=(11, 0.7 + panel_height * max(1, len(timelines))))
    for axes, (title, lanes) in zip(panels[:, 0], timelines.items()):
        draw_timeline(axes, title, lanes, nodes, resources)
    if subject:
        figure.suptitle(subject, x=0.01, ha="left", fontsize=12)
    panels[-1, 0].set_xlabel("seconds after the iteration began")
    panels[-1, 0].set_xlim(left=0)
    drawn = {kind for lanes in timelines.values() for slices in lanes.values() for kind, _, _ in slices}
    handles = [Patch(color=colour, label=kind) for kind, colour in COLOURS.items() if kind in drawn]
    panels[0, 0].legend(handles=handles, loc="lower right", bbox_to_anchor=(1, 1), ncols=max(1, len(handles)),
                        frameon=False, fontsize=9)
    save(figure, picture, dpi=130)


def main() -> int:
    if len(sys.argv) != 3:
        print(__doc__, file=sys.stderr)
        return 2
    source, picture = map(pathlib.Path, sys.argv[1:])
    return exit_status("plot_timeline.py", picture, lambda: plot(*read(source), picture))


if __name__ == "__main__":
    sys.exit(main())
