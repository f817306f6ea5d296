"""Types of options for argparse, which refuses what they do not take: exit status 2, before anything runs."""

import argparse
import math
from collections.abc import Callable


def at_least(least: int, kind: type = int) -> Callable[[str], int | float]:
    """A number of that kind, not less than `least`."""
    def parse(text: str) -> int | float:
        try:
            number = kind(text)
        except ValueError:
            number = math.nan
        if not least <= number < math.inf:
            noun = "an integer" if kind is int else "a number"
            raise argparse.ArgumentTypeError(f"must be {noun} of at least {least}, got '{text}'")
        return number

    return parse
