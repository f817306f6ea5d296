#!/usr/bin/env python3
"""How much of a link of known speed the executor uses: a raw ring among four ranks, beside plain gloo streams of as
many bytes in the same run, on a network made of network namespaces on this machine (bench_replay, one process per
host). Needs a release build; without the right to make namespaces it says "skipped: ..." and exits with 0.
"""

import argparse
import pathlib
import sys

from options import at_least
from validation import command
from validation.network import Network
from validation.ranks import Launcher
from whole_file import require_writable

ROOT = pathlib.Path(__file__).resolve().parent.parent


def parse_arguments() -> argparse.Namespace:
    parser = command.parser(__doc__)
    parser.add_argument("--rate", type=at_least(1), default=200, help="Mbit/s each way of every host")
    parser.add_argument("--ranks", type=at_least(2), default=4, help="an even number")
    parser.add_argument("--megabytes", type=at_least(0, float), default=100, help="of the gradient, in 10^6 bytes")
    parser.add_argument("--rounds", type=at_least(1), default=3, help="of ring and streams in turns")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="also write the rows to this file")
    parser.add_argument("--tools", type=pathlib.Path, default=ROOT / "build/release/bin", help="folder of the tools")
    return parser.parse_args()


def measure(options: argparse.Namespace, real_time: bool) -> str:
    if options.json:
        require_writable(options.json)
    with Network(options.ranks) as network:
        network.shape(options.rate)
        json = () if options.json is None else ("--json", options.json.resolve())
        launcher = Launcher(options.tools.resolve(), network, real_time, timeout_s=500)
        return launcher.run(options.ranks, "bench_replay", "--network", f"{options.rate}mbit", "--megabytes",
                            options.megabytes, "--rounds", options.rounds, *json)


def main() -> int:
    options = parse_arguments()

    def body(real_time: bool) -> int:
        print(measure(options, real_time), end="")
        return 0

    return command.run(body, command.speaker("validate_link"))


if __name__ == "__main__":
    sys.exit(main())
