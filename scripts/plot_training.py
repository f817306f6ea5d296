#!/usr/bin/env python3
"""Draws trainings with compressed gradients: what error feedback changes.

usage: training_curves | plot_training.py PICTURE.png

The CSV on standard input has the columns problem, algorithm, feedback, step, value, as
build/release/tests/training/training_curves prints them.
"""
import collections
import csv
import sys

import matplotlib
matplotlib.use("Agg")
import matplotlib.pyplot as plt
from whole_file import replacing

TITLES = {
    "quadratic": ("a quadratic: distance from the optimum", "four steps"),
    "classifier": ("breast cancer data, logistic regression: training loss", "step"),
}
COLOURS = {"none": "black", "onebit": "#d55e00", "tbq": "#0072b2", "terngrad": "#009e73",
           "fp16": "#cc79a7", "bf16": "#e69f00", "dgc": "#56b4e9", "graddrop": "#999999"}


def read(stream):
    curves = collections.defaultdict(list)
    for row in csv.DictReader(stream):
        curves[row["problem"], row["algorithm"], row["feedback"]].append(float(row["value"]))
    return curves


def draw(curves, picture):
    figure, axes = plt.subplots(1, len(TITLES), figsize=(13, 5), layout="constrained")
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
    with replacing(picture) as temporary:
        figure.savefig(temporary, dpi=110)


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    draw(read(sys.stdin), sys.argv[1])
