"""Measures how much longer a step takes with local updates, for the text model of examples/train.py on a network of known speed.

Two ranks train one model alone and a second one by local updates, in alternating turns of five steps, so that other work of the
machine slows both alike. In each turn of the second model, one fragment is sent and arrives. Prints for each round the seconds of a
step with each model and their ratio, and the ratios of all periods. Needs a python3 with torch.
"""

import argparse
import os
import statistics

import whole_file
from options import at_least

from ..command import Experiment
from ..evaluation import quantile
from ..network import Network
from ..torch_bench import TorchBench, use_package

RANKS = 2
#: Number of fragments, and steps in a turn. A fragment is sent in every turn.
FRAGMENTS, TURN = 4, 5
PERIOD = FRAGMENTS * TURN
TARGET = 1.1


def means(values: list[float], count: int) -> list[float]:
    """Means of consecutive blocks of `count` values."""
    return [statistics.fmean(values[begin:begin + count]) for begin in range(0, len(values), count)]


def describe(found: dict, periods: int) -> str:
    """Describes the step times of rounds, each of `periods` periods, and the ratios of all periods."""
    rounds = zip(means(found["alone"], periods * FRAGMENTS), means(found["local"], periods * FRAGMENTS))
    lines = [f"round {number}: alone {alone:.3f} s a step, by local updates {local:.3f}: {local / alone:.3f} times"
             for number, (alone, local) in enumerate(rounds, 1)]
    ratios = [local / alone for alone, local in zip(means(found["alone"], FRAGMENTS), means(found["local"], FRAGMENTS))]
    lines.append(f"{len(ratios)} periods: median {statistics.median(ratios):.3f} times, p10 {quantile(ratios, 0.1):.3f}, p90 "
                 f"{quantile(ratios, 0.9):.3f}; at most {TARGET:g} is the target")
    return "\n".join(lines)


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--rate", type=at_least(1), default=20, help="of the links, in Mbit/s (default: %(default)s)")
    parser.add_argument("--plan", default="fp4block", help="default: %(default)s")
    parser.add_argument("--periods", type=at_least(1), default=5, help=f"of a round, each of {PERIOD} steps (default: %(default)s)")
    parser.add_argument("--overlap", type=int, choices=range(TURN - 1), default=1,
                        help="steps that go on while a fragment is on its way (default: %(default)s)")


def run(options: argparse.Namespace) -> int:
    schedule = f"local(steps={PERIOD}, fragments={FRAGMENTS}, overlap={options.overlap})"
    bench = TorchBench.of(options)
    use_package(options)
    with Network(RANKS) as network:
        network.shape(options.rate)
        before = os.getloadavg()[0]
        # The warm-ups let each turn end at the step at which a fragment that was sent arrives.
        found = bench.on(network).run_rank(
            RANKS, "local_rank.py", "--schedule", schedule, "--plan", options.plan, "--warmups", options.overlap + 1, "--iterations",
            TURN, "--turns", options.rounds * options.periods * FRAGMENTS, timeout_s=7200)
    print(describe(found, options.periods))
    options.say(f"the machine's load was {before:.1f} before, and {os.getloadavg()[0]:.1f} after")
    if options.json:
        whole_file.write_json(options.json, {"rate": options.rate, "plan": options.plan, "schedule": schedule, **found})
    return 0


EXPERIMENT = Experiment(run, add_options, rounds=3, again=None, kept=None, folder=False, real_time=lambda _: False)
