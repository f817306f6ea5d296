#!/usr/bin/env python3
"""How much of a link of known speed the executor uses: a raw ring among four ranks, beside plain gloo streams of as
many bytes in the same run, on a network made of network namespaces on this machine (bench_executor, one process per
host). Needs a release build; without the right to make namespaces it says "skipped: ..." and exits with 0.
"""

import argparse
import contextlib
import pathlib
import signal
import sys

from validation.network import CommandError, Network, Unavailable
from validation.ranks import Launcher, ToolError, come_before_ranks, real_time_allowed, short_turns

ROOT = pathlib.Path(__file__).resolve().parent.parent


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rate", type=int, default=200, help="Mbit/s each way of every host")
    parser.add_argument("--ranks", type=int, default=4, help="an even number")
    parser.add_argument("--megabytes", type=float, default=100, help="of the gradient, in 10^6 bytes")
    parser.add_argument("--rounds", type=int, default=3, help="of ring and streams in turns")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="also write the rows to this file")
    parser.add_argument("--tools", type=pathlib.Path, default=ROOT / "build/release/bin", help="folder of the tools")
    return parser.parse_args()


def measure(options: argparse.Namespace, real_time: bool) -> str:
    with Network(options.ranks) as network:
        network.shape(options.rate)
        json = () if options.json is None else ("--json", options.json.resolve())
        launcher = Launcher(options.tools.resolve(), network, real_time, timeout_s=500)
        return launcher.run(options.ranks, "bench_executor", "--network", f"{options.rate}mbit", "--megabytes",
                            options.megabytes, "--rounds", options.rounds, *json)


def stop(number: int, _frame: object) -> None:
    raise SystemExit(128 + number)


def main() -> int:
    options = parse_arguments()
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, stop)
    real_time = real_time_allowed()
    if real_time:
        come_before_ranks()
    try:
        with short_turns() if real_time else contextlib.nullcontext():
            print(measure(options, real_time), end="")
        return 0
    except Unavailable as reason:
        print(f"skipped: {reason}")
        return 0
    except (ToolError, CommandError) as error:
        print(f"validate_link: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
