"""Pictures of answers about one tensor: broadcasts over its size, sparse messages over their density."""

import itertools
import math
import pathlib
import tempfile
import warnings
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

from hipress._call import answer
from hipress._errors import HipressWarning
from hipress._style import Picture, pyplot

#: Defaults of a request's members.
DEFAULTS = {"profile": "a100-25g", "nnodes": 8, "network": "port"}
SIZES = [4096 * 2 ** power for power in range(21)]
#: Colours of the topologies' lines. Lines of raw tensors are solid.
TOPOLOGIES = {"chain": "#0072b2", "binomial": "#d55e00", "scatter_allgather": "#009e73"}
#: Densities from 0.05 % to 1, by factors of 2 ** (1/4).
DENSITIES = [2 ** (-step / 4) for step in range(44, -1, -1)]
PACKINGS = {0: "8 bytes an entry", 1: "indices by gaps", 2: "indices by gaps, values in fp16"}
DENSE = {"none": ("fp32 ring", "-"), "fp16": ("fp16 ring", "--")}
Lines = Dict[Tuple[str, str], List[float]]


def _panel(title: str, x: str, y: str) -> Tuple[Any, Any]:
    figure, axes = pyplot().subplots(figsize=(9, 5), layout="constrained")
    axes.set(xscale="log", yscale="log", xlabel=x, ylabel=y)
    axes.set_title(title, loc="left", fontsize=11)
    axes.grid(color="#eeeeee")
    return figure, axes


def _asked(request: Mapping[str, Any]) -> Dict[str, Any]:
    """Returns the answer to a request. A picture needs hundreds of requests, so warnings about options without effect are left
    out."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HipressWarning)
        return answer(request)


def times_of_broadcasts(size: int, algorithm: str, members: Mapping[str, Any]) -> Dict[Tuple[str, str], float]:
    """Seconds of broadcasts by (topology, codec). A pair is left out if the planner found that a different pair is faster, whatever
    the first pair's chunk count."""
    times = {}
    for topology, codecs in itertools.product(TOPOLOGIES, dict.fromkeys(("none", algorithm))):
        made = _asked({"request": "plan", "job": "broadcast", "bytes": f"{size}B", "topology": topology, "algorithm": codecs,
                       **members})
        for choice in made["choices"]:
            if choice.get("proven", True):  # otherwise a different pair was faster before all counts were tried
                times[choice["topology"], choice["algorithm"]] = choice["predicted_s"]
    return times


def break_even(sizes: Sequence[float], first: Sequence[float], second: Sequence[float]) -> Optional[float]:
    """Size from which the `first` times stay shorter, interpolated between two sizes on a logarithmic scale. It is the least size
    if they are always shorter, and None if they are not at the largest size. An infinite time is unknown, but longer than the other
    one."""
    faster = [a < b for a, b in zip(first, second)]
    if not faster[-1]:
        return None
    last = max((i for i, is_faster in enumerate(faster) if not is_faster), default=-1)
    if last < 0:
        return sizes[0]
    if not all(math.isfinite(times[i]) for times in (first, second) for i in (last, last + 1)):
        return sizes[last + 1]
    ratios = [math.log(first[i] / second[i]) for i in (last, last + 1)]
    return float(sizes[last] * (sizes[last + 1] / sizes[last]) ** (ratios[0] / (ratios[0] - ratios[1])))


def break_evens_of_broadcasts(sizes: Sequence[float], lines: Lines) -> List[str]:
    """Sentences about break-evens of chains against trees, and of compressed chains against raw ones."""
    raw = ("chain", "none")
    pairs = [(raw, ("binomial", "none")), (raw, ("scatter_allgather", "none"))]
    pairs += [((topology, codec), raw) for topology, codec in lines if codec != "none" and topology == "chain"]
    said = []
    for first, second in pairs:
        size = break_even(sizes, lines[first], lines[second])
        names = [f"{topology}{'' if codec == 'none' else ' with ' + codec}" for topology, codec in (first, second)]
        where = "never" if size is None else "from the smallest on" if size == sizes[0] else f"from {size / 1e6:.3g} MB on"
        said.append(f"{names[0]} is faster than {names[1]} {where}")
    return said


def broadcasts(members: Mapping[str, Any], title: str = "") -> Picture:
    """Draws the times of broadcasts of 4 KiB to 4 GiB in fp32, each topology with its best chunk count. The unit is S/B, the time
    that a link takes for the tensor alone. `members` are members of the plan's request. Raises HipressError if one is wrong."""
    asked = {**DEFAULTS, **members}
    algorithm = str(asked.pop("algorithm", "fp16"))
    lines: Lines = {}
    for place, size in enumerate(SIZES):
        for key, seconds in times_of_broadcasts(size, algorithm, asked).items():
            lines.setdefault(key, [math.inf] * len(SIZES))[place] = seconds
    figure, axes = _panel(title or f"{asked['nnodes']} nodes, {asked['profile']}: each with its best chunk count",
                          "MB that are broadcast", "time, in units of what one link takes")
    codecs = sorted({codec for _, codec in lines}, key=lambda codec: (codec != "none", codec))
    unit = lines["chain", "none"][-1] / SIZES[-1]  # time per byte of a raw chain with the largest tensor, nearly 1/B
    for (topology, codec), times in lines.items():
        axes.plot([size / 1e6 for size in SIZES], [time / (unit * size) for time, size in zip(times, SIZES)],  # inf: a gap
                  color=TOPOLOGIES[topology], linestyle=("-", "--", ":", "-.")[codecs.index(codec) % 4],
                  label=topology if codec == "none" else f"{topology}, {codec}")
    axes.set_ylim(top=20)
    axes.legend(frameon=False, fontsize=9)
    return Picture(figure, axes, break_evens_of_broadcasts(SIZES, lines))


def crossing(densities: Sequence[float], times: Sequence[float], level: float) -> Optional[float]:
    """Density above which the times stay above the level, by the rules of break_even()."""
    return break_even(densities, [level] * len(times), times)


def break_evens_of_densities(sparse: Mapping[int, Sequence[float]], dense: Mapping[str, float]) -> List[str]:
    """Sentences about the densities above which each ring is faster than each packing."""
    found = {(packing, plan): crossing(DENSITIES, times, dense[plan]) for packing, times in sparse.items() for plan in dense}
    return [f"packing={packing}: the {DENSE[plan][0]} is faster {'at no density' if at is None else f'from density {at:.3g} on'}"
            for (packing, plan), at in found.items()]


def densities(members: Mapping[str, Any], title: str = "") -> Picture:
    """Draws the time of a sparse all-gather of one gradient over the density, with each packing of entries, and the times of dense
    rings. `members` are members of the simulation's request, and `elements`, the gradient's size. Raises HipressError if one is
    wrong."""
    asked = {**DEFAULTS, **members}
    elements = int(asked.pop("elements", 2 ** 24))
    with tempfile.TemporaryDirectory() as folder:
        model = pathlib.Path(folder, "gradient.csv")
        model.write_text(f"name,elements,ready_us\ngradient,{elements},0\n")

        def seconds(plan: str, topology: str) -> float:
            answered = _asked({"request": "simulate", "input": model, "plan": plan, "topology": topology, **asked})
            return float(answered["iteration_s"])

        sparse = {packing: [seconds(f"dgc(rho={density:.4g},packing={packing})", "ALLGATHER") for density in DENSITIES]
                  for packing in PACKINGS}
        dense = {plan: seconds(plan, "RING") for plan in DENSE}
    figure, axes = _panel(title or f"{asked['nnodes']} nodes, {asked['profile']}, {elements / 1e6:.3g} million elements",
                          "density: the share of entries that are sent", "time, in units of the fp32 ring's")
    for (packing, times), colour in zip(sparse.items(), ("#0072b2", "#009e73", "#cc79a7")):
        axes.plot(DENSITIES, [time / dense["none"] for time in times], color=colour,
                  label=f"all-gather, packing={packing}: {PACKINGS[packing]}")
    for plan, time in dense.items():
        name, style = DENSE[plan]
        axes.axhline(time / dense["none"], color="black", linewidth=1, linestyle=style, label=name)
    axes.legend(frameon=False, fontsize=9)
    return Picture(figure, axes, break_evens_of_densities(sparse, dense))
