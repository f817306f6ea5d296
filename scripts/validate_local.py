#!/usr/bin/env python3
"""Trains the text model of examples/train.py by local updates on a network of known speed, made of network namespaces on this
machine, beside ranks that compute alone: how much longer does a step take?

Two ranks train one model alone and another by local updates, in turns of five steps, in each of which one fragment is sent and
arrives: whatever else the machine does meanwhile slows both. Prints for each round the seconds of a step and their ratio, and the
ratios of all periods. Needs a release build and a python3 with torch; without it, or without the right to make namespaces, it says
"skipped: ..." and exits with 0.
"""

import argparse
import os
import pathlib
import statistics
import sys

import whole_file
from options import at_least
from validate_ddp import python_with_torch
from validation import command
from validation.evaluation import quantile
from validation.network import Network, remove_leftovers
from validation.ranks import Launcher

ROOT = pathlib.Path(__file__).resolve().parent.parent
RANK = ROOT / "scripts/validation/local_rank.py"
RANKS = 2
#: A fragment is sent in every turn.
FRAGMENTS, TURN = 4, 5
PERIOD = FRAGMENTS * TURN
TARGET = 1.1
say = command.speaker("validate_local")


def means(values: list[float], count: int) -> list[float]:
    """Of so many at a time."""
    return [statistics.fmean(values[begin:begin + count]) for begin in range(0, len(values), count)]


def describe(found: dict, periods: int) -> str:
    """Of rounds of so many periods."""
    rounds = zip(means(found["alone"], periods * FRAGMENTS), means(found["local"], periods * FRAGMENTS))
    lines = [f"round {number}: alone {alone:.3f} s a step, by local updates {local:.3f}: {local / alone:.3f} times"
             for number, (alone, local) in enumerate(rounds, 1)]
    ratios = [local / alone for alone, local in zip(means(found["alone"], FRAGMENTS), means(found["local"], FRAGMENTS))]
    lines.append(f"{len(ratios)} periods: median {statistics.median(ratios):.3f} times, p10 {quantile(ratios, 0.1):.3f}, p90 "
                 f"{quantile(ratios, 0.9):.3f}; at most {TARGET:g} is the target")
    return "\n".join(lines)


def parse_arguments() -> argparse.Namespace:
    parser = command.parser(__doc__)
    parser.add_argument("--rate", type=at_least(1), default=20, help="of the links, in Mbit/s (default: %(default)s)")
    parser.add_argument("--plan", default="fp4block", help="default: %(default)s")
    parser.add_argument("--rounds", type=at_least(1), default=3, help="default: %(default)s")
    parser.add_argument("--periods", type=at_least(1), default=5, help=f"of a round, each of {PERIOD} steps (default: %(default)s)")
    parser.add_argument("--overlap", type=int, choices=range(TURN - 1), default=1,
                        help="steps that go on while a fragment is on its way (default: %(default)s)")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="also write the seconds of a step of each turn")
    parser.add_argument("--tools", type=pathlib.Path, default=ROOT / "build/release/bin", help="folder of the tools")
    return parser.parse_args()


def run(options: argparse.Namespace) -> int:
    if options.json:
        whole_file.require_writable(options.json)
    python, schedule = python_with_torch(), f"local(steps={PERIOD}, fragments={FRAGMENTS}, overlap={options.overlap})"
    remove_leftovers()
    library = options.tools.resolve().parent / "runtime/libhipress.so"
    os.environ.update(PYTHONPATH=str(ROOT / "python"), HIPRESS_LIBRARY=str(library))
    with Network(RANKS) as network:
        network.shape(options.rate)
        launcher = Launcher(python.parent, network, timeout_s=7200)
        before = os.getloadavg()[0]
        turns = options.rounds * options.periods * FRAGMENTS
        # With warm-ups, turns begin and end where a fragment that was sent has arrived.
        found = launcher.run_json(RANKS, python.name, "-B", RANK, "--schedule", schedule, "--plan", options.plan, "--warmups",
                                  options.overlap + 1, "--iterations", TURN, "--turns", turns)
    print(describe(found, options.periods))
    say(f"the machine's load was {before:.1f} before, and {os.getloadavg()[0]:.1f} after")
    if options.json:
        whole_file.write_json(options.json, {"rate": options.rate, "plan": options.plan, "schedule": schedule, **found})
    return 0


def main() -> int:
    options = parse_arguments()
    return command.run(lambda _: run(options), say, wants_real_time=False)


if __name__ == "__main__":
    sys.exit(main())
