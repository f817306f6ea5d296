"""Types of options for argparse. argparse refuses invalid values with exit status 2, before anything runs."""

import argparse
import math
from collections.abc import Callable


def at_least(least: int, kind: type = int) -> Callable[[str], int | float]:
    """Makes an option type: finite numbers of a kind that are at least `least`."""
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


def some_of(known: tuple, kind: type) -> Callable[[str], list]:
    """Makes an option type: lists of known names, separated by commas."""
    def parse(text: str) -> list:
        values = text.split(",")
        for value in values:
            if value not in map(str, known):
                raise argparse.ArgumentTypeError(f"must be some of {', '.join(map(str, known))}, got '{value}'")
        return [kind(value) for value in values]

    return parse
