#!/usr/bin/env python3
"""Compares predictions with measurements on networks of known speed, made of network namespaces on this machine.

usage: validate.py EXPERIMENT [OPTIONS]; `validate.py EXPERIMENT --help` lists its options.
"""

import argparse
import importlib
import sys

from validation import command
from validation.experiments import EXPERIMENTS


def main() -> int:
    table = "\n".join(f"  {name:11} {text}" for name, text in EXPERIMENTS.items())
    parser = argparse.ArgumentParser(prog="validate.py", description=__doc__, usage=argparse.SUPPRESS, epilog=f"experiments:\n{table}",
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("experiment", choices=EXPERIMENTS, metavar="EXPERIMENT", help="one of those below")
    parser.add_argument("options", nargs=argparse.REMAINDER, help="of the experiment")
    chosen = parser.parse_args()
    return command.main(chosen.experiment, importlib.import_module(f"validation.experiments.{chosen.experiment}"), chosen.options)


if __name__ == "__main__":
    sys.exit(main())
