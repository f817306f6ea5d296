"""Measures the share of a link of known speed that the executor uses: a raw ring among some ranks is compared with plain gloo
streams of as many bytes in the same run (bench_replay, one process per host)."""

import argparse
import dataclasses

from options import at_least

from ..command import Experiment
from ..measurement import Bench
from ..network import Network


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--rate", type=at_least(1), default=200, help="Mbit/s each way of every host")
    parser.add_argument("--ranks", type=at_least(2), default=4, help="an even number")
    parser.add_argument("--megabytes", type=at_least(0, float), default=100, help="of the gradient, in 10^6 bytes")


def run(options: argparse.Namespace) -> int:
    with Network(options.ranks) as network:
        network.shape(options.rate)
        json = () if options.json is None else ("--json", options.json.resolve())
        launcher = dataclasses.replace(Bench.of(options).on(network).launcher, timeout_s=500)
        print(launcher.run(options.ranks, "bench_replay", "--network", f"{options.rate}mbit", "--megabytes", options.megabytes,
                           "--rounds", options.rounds, *json), end="")
    return 0


EXPERIMENT = Experiment(run, add_options, rounds=3, again=None, kept=None, folder=False)
