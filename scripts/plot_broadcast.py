#!/usr/bin/env python3
"""Draws how long broadcasts take by what is sent, each topology with its best chunk count, and where one becomes faster than
another.

    scripts/plot_broadcast.py PICTURE.png [--profile a100-25g] [--nnodes 8] [--codecs fp16] [--tools FOLDER] [-- OPTIONS]

Asks hipress-plan --job broadcast for tensors of 4 KiB to 4 GiB, fp32, and prints the break-evens: the sizes from which the
row's broadcast is faster than the other. Times are drawn in units of S/B, what a link takes for the tensor alone; what is
behind -- goes to hipress-plan (--gpus-per-node 8). Exit status 1 if the tool fails, 2 if the request is wrong.
"""

import argparse
import itertools
import math
import pathlib
import sys
import tempfile

from picture import ask, exit_status, pyplot, save

ROOT = pathlib.Path(__file__).resolve().parent.parent
SIZES = [4096 * 2 ** power for power in range(21)]
#: Lines of a topology have one colour, those of raw tensors are solid.
COLOURS = {"chain": "#0072b2", "binomial": "#d55e00", "scatter_allgather": "#009e73", "chain_p2p": "#cc79a7"}
STYLES = ("-", "--", ":", "-.")


def times_of(options: argparse.Namespace, size: int) -> dict[tuple[str, str], float]:
    """Seconds by (topology, codec); without those that hipress-plan found to be slower than another, whatever their count."""
    times = {}
    with tempfile.TemporaryDirectory() as folder:
        for topology, codecs in itertools.product(COLOURS, dict.fromkeys(("none", options.codecs))):
            made = ask(options.tools / "hipress-plan", "--job", "broadcast", "--bytes", f"{size}B", "--nnodes", options.nnodes,
                       "--topology", topology, "--algorithm", codecs, "--profile", options.profile, "--network", "port",
                       "--output", f"{folder}/plan.yaml", *options.options)
            for choice in made["choices"]:
                if choice.get("proven", True):  # else another was faster, and not all counts were tried
                    times[choice["topology"], choice["algorithm"]] = choice["predicted_s"]
    return times


def break_even(sizes: list[int], first: list[float], second: list[float]) -> float | None:
    """The size from which the first takes less time for good, between two sizes on a logarithmic scale; the least size if it
    always does, None if it does not in the end. Infinite times are unknown ones, longer than the other's."""
    faster = [a < b for a, b in zip(first, second)]
    if not faster[-1]:
        return None
    last = max((i for i, is_faster in enumerate(faster) if not is_faster), default=-1)
    if last < 0:
        return sizes[0]
    if not all(math.isfinite(times[i]) for times in (first, second) for i in (last, last + 1)):
        return sizes[last + 1]
    ratios = [math.log(first[i] / second[i]) for i in (last, last + 1)]
    share = ratios[0] / (ratios[0] - ratios[1])
    return sizes[last] * (sizes[last + 1] / sizes[last]) ** share


def break_evens(sizes: list[int], lines: dict[tuple[str, str], list[float]]) -> list[str]:
    """Chains against the trees, and compressed ones against raw ones and against encoding on every node."""
    raw = ("chain", "none")
    pairs = [(raw, ("binomial", "none")), (raw, ("scatter_allgather", "none"))]
    for topology, codec in lines:
        if codec != "none" and topology == "chain":
            pairs += [((topology, codec), raw), ((topology, codec), ("chain_p2p", codec))]
    said = []
    for first, second in pairs:
        size = break_even(sizes, lines[first], lines[second])
        names = [f"{topology}{'' if codec == 'none' else ' with ' + codec}" for topology, codec in (first, second)]
        where = ("never" if size is None else "from the smallest on" if size == sizes[0] else
                 f"from {size / 1e6:.3g} MB on")
        said.append(f"{names[0]} is faster than {names[1]} {where}")
    return said


def draw(options: argparse.Namespace, sizes: list[int], lines: dict[tuple[str, str], list[float]]) -> None:
    plt = pyplot()
    figure, axes = plt.subplots(figsize=(9, 5), layout="constrained")
    codecs = sorted({codec for _, codec in lines}, key=lambda codec: (codec != "none", codec))
    slowest = lines["chain", "none"]
    unit = slowest[-1] / sizes[-1]  # of the longest raw chain, S/B but for a little
    for (topology, codec), seconds in lines.items():
        if topology == "chain_p2p" and codec == "none":
            continue  # without codecs it is the chain
        axes.plot([size / 1e6 for size in sizes], [time / (unit * size) for time, size in zip(seconds, sizes)],  # inf: a gap
                  color=COLOURS.get(topology), linestyle=STYLES[codecs.index(codec) % len(STYLES)],
                  label=topology if codec == "none" else f"{topology}, {codec}")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_ylim(top=20)
    axes.set_xlabel("MB that are broadcast")
    axes.set_ylabel("time, in units of what one link takes")
    axes.set_title(f"{options.nnodes} nodes, {options.profile}: each with its best chunk count", loc="left", fontsize=11)
    axes.grid(color="#eeeeee")
    axes.legend(frameon=False, fontsize=9)
    save(figure, options.picture, dpi=110)


def run(options: argparse.Namespace) -> None:
    lines: dict[tuple[str, str], list[float]] = {}
    for size in SIZES:
        for key, seconds in times_of(options, size).items():
            lines.setdefault(key, [math.inf] * len(SIZES))[SIZES.index(size)] = seconds
    for line in break_evens(SIZES, lines):
        print(line)
    draw(options, SIZES, lines)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("picture", type=pathlib.Path)
    parser.add_argument("--profile", default="a100-25g", help="default: %(default)s")
    parser.add_argument("--nnodes", type=int, default=8, help="default: %(default)s")
    parser.add_argument("--codecs", default="fp16", help="as hipress-plan --algorithm (default: %(default)s)")
    parser.add_argument("--tools", type=pathlib.Path, default=ROOT / "build/release/bin", help="folder of the tools")
    parser.add_argument("options", nargs="*", help="of hipress-plan")
    return parser.parse_args()


def main() -> int:
    options = parse_arguments()
    return exit_status("plot_broadcast.py", options.picture, lambda: run(options))


if __name__ == "__main__":
    sys.exit(main())
