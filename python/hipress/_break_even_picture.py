"""Picture of a break-even: speed-up by compression over the varied quantity, and the values at which the verdict turns."""

from typing import Any, Dict, List, Mapping, Optional, Sequence

from hipress._style import BAND, Picture, PictureError, grid, legend_below, pyplot

#: Unit of the axis for each unit of a document, and the factor between them.
DRAWN_IN = {"B/s": ("Gbit/s", 0.125e9), "s": ("ms", 1e-3), "nodes": ("", 1.0)}
#: Ticks of the speed-up axis.
TICKS = tuple(digit * 10.0**power for power in range(-3, 7) for digit in (1, 2, 3, 5))


def break_even(document: Mapping[str, Any], title: str = "", axes: Optional[Any] = None) -> Picture:
    """Draws the speed-up of the best plan with compression over the best without it, with its 10–90 % band. The axis is
    logarithmic. A dotted line marks each value at which the verdict turns, grey marks the range in which the verdict is not sure,
    and a dash-dotted line marks the cluster's own value. Raises PictureError for a document without a break-even."""
    try:
        asked = document["break_even"]
        curve: Sequence[Mapping[str, float]] = sorted(asked["curve"], key=lambda point: point["value"])
        unit, scale = DRAWN_IN.get(asked["unit"], (asked["unit"], 1.0))
        values = [point["value"] / scale for point in curve]
        middle, low, high = ([point[key] for point in curve] for key in ("speedup", "speedup_p10", "speedup_p90"))
        turns, given = list(asked["turns"]), asked["given"] / scale
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise PictureError("this is not what hipress-plan prints as JSON with --break-even") from error
    if not values:
        raise PictureError("no value was planned for: ask for a break-even in another range, or with more evaluations")
    own = axes is None
    axes = grid(1, 6.2, 3.8)[1][0, 0] if axes is None else axes
    axes.fill_between(values, low, high, color="#0072b2", **BAND)
    axes.plot(values, middle, color="#0072b2", marker="o", markersize=4, label="compressed over uncompressed")
    axes.axhline(1, color="black", linewidth=0.8)
    ends = [values[0], *(turn["value"] / scale for turn in turns), values[-1]]
    for number, turn in enumerate(turns):
        draw_turn(axes, turn, scale, (ends[number], ends[number + 2]), number == 0)
    if not turns:
        axes.plot([], [], " ", label="no break-even in this range")
    axes.axvline(given, color="#009e73", linestyle="-.", linewidth=1.2, label=f"this cluster, {given:.4g} {unit}")
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    if asked["unit"] == "nodes":
        axes.set_xticks(values, [f"{value:g}" for value in values])
        axes.minorticks_off()
    if max(middle) > 4:  # a linear axis would hide the part near 1, where the verdict turns
        axes.set_yscale("log")
        axes.set_yticks([tick for tick in TICKS if min(1, *low) <= tick < max(high)], minor=False)
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
        axes.yaxis.set_minor_locator(pyplot().NullLocator())
    axes.set_xlabel(f"{asked['quantity']}{f', {unit}' if unit else ''}\nband: 10–90 % interval")
    axes.set_ylabel("speed-up by compression")
    axes.grid(True, which="both", linewidth=0.3)
    if own:
        legend_below(axes.figure, axes.get_legend_handles_labels()[0], 2)
    else:
        axes.legend(fontsize="small")
    axes.set_title(title or title_of(document), loc="left", fontsize=10)
    return Picture(axes.figure, axes, list(asked["sentences"]))


def draw_turn(axes: Any, turn: Mapping[str, Any], scale: float, neighbours: Sequence[float], named: bool) -> None:
    """Draws one value at which the verdict turns, and the range in which the verdict is not sure, cut off at the neighbouring
    turns. `named` adds both to the legend."""
    low, high = (turn[key] / scale if turn[key] is not None else end
                 for key, end in zip(("sure_below", "sure_above"), neighbours))
    labels: List[Dict[str, str]] = [{"label": text} if named else {} for text in ("verdict not sure", "verdict turns")]
    axes.axvspan(low, high, color="#999999", alpha=0.18, linewidth=0, **labels[0])
    axes.axvline(turn["value"] / scale, color="#d55e00", linestyle=":", linewidth=1.6, **labels[1])


def title_of(document: Mapping[str, Any]) -> str:
    """Default title, such as "Break-even, vgg19, ring, 4 nodes"."""
    told = [str(document[key]) for key in ("model", "topology") if document.get(key)]
    is_of_nodes = document["break_even"]["quantity"] == "nodes" or not document.get("nodes")
    return ", ".join(["Break-even", *told, *([] if is_of_nodes else [f"{document['nodes']} nodes"])])
