#!/usr/bin/env python3
"""Draws trainings with compressed gradients: what error feedback changes.

usage: training_curves | plot_training.py PICTURE.png

The CSV on standard input has the columns problem, algorithm, feedback, step, value, as
build/release/tests/training/training_curves prints them.
"""
import collections
import csv
import sys

from picture import Refused, exit_status, pyplot, save

COLUMNS = ("problem", "algorithm", "feedback", "step", "value")
TITLES = {
    "quadratic": ("a quadratic: distance from the optimum", "four steps"),
    "classifier": ("breast cancer data, logistic regression: training loss", "step"),
}
COLOURS = {"none": "black", "onebit": "#d55e00", "tbq": "#0072b2", "terngrad": "#009e73",
           "fp16": "#cc79a7", "bf16": "#e69f00", "dgc": "#56b4e9", "graddrop": "#999999"}


class CurvesError(Refused):
    """What is wrong with the CSV, and what to do."""


def read(stream):
    """{(problem, algorithm, feedback): values by step}, at least one. CurvesError for anything but such a CSV."""
    reader = csv.DictReader(stream)
    curves = collections.defaultdict(list)
    try:
        missing = [column for column in COLUMNS if column not in (reader.fieldnames or COLUMNS)]
        if missing:
            raise ValueError(f"there is no column {missing[0]}")
        for row in reader:
            if None in row or None in row.values() or row["problem"] not in TITLES:
                raise ValueError("is no value of a training")
            curves[row["problem"], row["algorithm"], row["feedback"]].append(float(row["value"]))
    except (ValueError, csv.Error) as error:  # text that is no UTF-8 is a ValueError
        raise CurvesError(f"standard input:{reader.line_num}: {error}; pipe what training_curves prints into this"
                          ) from error
    if not curves:
        raise CurvesError("standard input has no curves; pipe what training_curves prints into this")
    return curves


def draw(curves, picture):
    """Writes the picture. Refused and OSError as picture.save, ImportError without matplotlib."""
    figure, axes = pyplot().subplots(1, len(TITLES), figsize=(13, 5), layout="constrained")
    for axis, (problem, (title, below)) in zip(axes, TITLES.items()):
        for (of, algorithm, feedback), values in curves.items():
            if of != problem:
                continue
            without = feedback == "without" and algorithm != "none"
            label = algorithm + (" without error feedback" if without else "")
            axis.plot(values, label=label, color=COLOURS.get(algorithm),
                      linestyle="--" if without else "-", linewidth=1.2)
        axis.set(title=title, xlabel=below, yscale="log")
        axis.grid(alpha=0.3)
        axis.legend(fontsize=8)
    save(figure, picture, dpi=110)


def main() -> int:
    arguments = sys.argv[1:]
    if arguments and arguments[0] in ("-h", "--help"):
        print(__doc__)
        return 0
    if len(arguments) != 1 or arguments[0].startswith("-"):
        print(__doc__, file=sys.stderr)
        return 2
    return exit_status("plot_training.py", arguments[0], lambda: draw(read(sys.stdin), arguments[0]))


if __name__ == "__main__":
    sys.exit(main())
