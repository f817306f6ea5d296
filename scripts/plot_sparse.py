#!/usr/bin/env python3
"""Draws how long a sparse all-gather of one gradient takes by density, beside dense rings, and where these are faster.

    scripts/plot_sparse.py PICTURE.png [--profile a100-25g] [--nnodes 8] [--elements 16777216] [--tools FOLDER]

Asks hipress-sim for a gradient that is ready at once, with each packing of entries, in fp32 and in fp16 by a ring, and prints
the densities from which on a ring is faster. Exit status 1 if the tool fails, 2 if the request is wrong.
"""

import argparse
import math
import pathlib
import sys
import tempfile

from options import at_least
from picture import ask, exit_status, pyplot, save

ROOT = pathlib.Path(__file__).resolve().parent.parent
#: A factor of 2 ** (1/4) each, from 0.05 % to 1.
DENSITIES = [2 ** (-step / 4) for step in range(44, -1, -1)]
PACKINGS = {0: "8 bytes an entry", 1: "indices by gaps", 2: "indices by gaps, values in fp16"}
COLOURS = ("#0072b2", "#009e73", "#cc79a7")
DENSE = {"none": ("fp32 ring", "-"), "fp16": ("fp16 ring", "--")}


def seconds(options: argparse.Namespace, model: pathlib.Path, plan: str, topology: str) -> float:
    return ask(options.tools / "hipress-sim", "--input", model, "--plan", plan, "--topology", topology, "--nnodes",
               options.nnodes, "--profile", options.profile, "--network", "port")["iteration_s"]


def crossing(densities: list[float], times: list[float], level: float) -> float | None:
    """The density from which on the times stay above the level, between two densities on a logarithmic scale; None if the last
    is not above it, the least density if all are."""
    if times[-1] <= level:
        return None
    last = max((i for i, time in enumerate(times) if time <= level), default=-1)
    if last < 0:
        return densities[0]
    share = math.log(level / times[last]) / math.log(times[last + 1] / times[last])
    return densities[last] * (densities[last + 1] / densities[last]) ** share


def break_evens(sparse: dict[int, list[float]], dense: dict[str, float]) -> list[str]:
    said = []
    for packing, times in sparse.items():
        for plan, time in dense.items():
            at = crossing(DENSITIES, times, time)
            where = "at no density" if at is None else f"from density {at:.3g} on"
            said.append(f"packing={packing}: the {DENSE[plan][0]} is faster {where}")
    return said


def draw(options: argparse.Namespace, sparse: dict[int, list[float]], dense: dict[str, float]) -> None:
    plt = pyplot()
    figure, axes = plt.subplots(figsize=(9, 5), layout="constrained")
    for (packing, times), colour in zip(sparse.items(), COLOURS):
        axes.plot(DENSITIES, [time / dense["none"] for time in times], color=colour,
                  label=f"all-gather, packing={packing}: {PACKINGS[packing]}")
    for plan, time in dense.items():
        name, style = DENSE[plan]
        axes.axhline(time / dense["none"], color="black", linewidth=1, linestyle=style, label=name)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("density: the share of entries that are sent")
    axes.set_ylabel("time, in units of the fp32 ring's")
    axes.set_title(f"{options.nnodes} nodes, {options.profile}, {options.elements / 1e6:.3g} million elements", loc="left",
                   fontsize=11)
    axes.grid(color="#eeeeee")
    axes.legend(frameon=False, fontsize=9)
    save(figure, options.picture, dpi=110)


def run(options: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory() as folder:
        model = pathlib.Path(folder, "gradient.csv")
        model.write_text(f"name,elements,ready_us\ngradient,{options.elements},0\n")
        sparse = {packing: [seconds(options, model, f"dgc(rho={density:.4g},packing={packing})", "ALLGATHER")
                            for density in DENSITIES] for packing in PACKINGS}
        dense = {plan: seconds(options, model, plan, "RING") for plan in DENSE}
    for line in break_evens(sparse, dense):
        print(line)
    draw(options, sparse, dense)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("picture", type=pathlib.Path)
    parser.add_argument("--profile", default="a100-25g", help="default: %(default)s")
    parser.add_argument("--nnodes", type=at_least(2), default=8, help="default: %(default)s")
    parser.add_argument("--elements", type=at_least(1), default=2 ** 24, help="of the gradient (default: %(default)s)")
    parser.add_argument("--tools", type=pathlib.Path, default=ROOT / "build/release/bin", help="folder of the tools")
    return parser.parse_args()


def main() -> int:
    options = parse_arguments()
    return exit_status("plot_sparse.py", options.picture, lambda: run(options))


if __name__ == "__main__":
    sys.exit(main())
