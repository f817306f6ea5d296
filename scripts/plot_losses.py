#!/usr/bin/env python3
"""Draws the losses that examples/train.py logs, over steps and over seconds.

usage: plot_losses.py PICTURE.png LOG.csv...

Each log has the columns average, step, seconds, loss. Losses are drawn as means of the last 20 steps.
"""
import csv
import sys

from picture import Refused, exit_status, pyplot, save, start_where_matplotlib_is

COLUMNS = ("average", "step", "seconds", "loss")
WINDOW = 20


class LogError(Refused):
    """What is wrong with a log, and what to do."""


def read(path):
    """(what averaged, steps, seconds, mean losses) of one log. LogError for anything but such a CSV."""
    try:
        file = open(path, encoding="utf-8", newline="")
    except OSError as error:
        raise LogError(f"{path} cannot be read: {error.strerror}") from error
    with file:
        reader = csv.DictReader(file)
        rows = []
        try:
            missing = [column for column in COLUMNS if column not in (reader.fieldnames or ())]
            if missing:
                raise ValueError(f"there is no column {missing[0]}")
            for row in reader:
                if None in row or None in row.values():
                    raise ValueError("is no row of a log")
                rows.append((row["average"], int(row["step"]), float(row["seconds"]), float(row["loss"])))
        except (ValueError, csv.Error) as error:  # text that is no UTF-8 is a ValueError
            raise LogError(f"{path}:{reader.line_num}: {error}; give logs that examples/train.py --log wrote") from error
    if not rows:
        raise LogError(f"{path} has no steps; give logs that examples/train.py --log wrote")
    losses = [loss for *_, loss in rows]
    means = [sum(losses[max(0, i + 1 - WINDOW):i + 1]) / min(i + 1, WINDOW) for i in range(len(losses))]
    return rows[0][0], [row[1] for row in rows], [row[2] for row in rows], means


def draw(logs, picture):
    """Writes the picture. Refused and OSError as picture.save, ImportError without matplotlib."""
    figure, (by_step, by_second) = pyplot().subplots(1, 2, figsize=(13, 5), layout="constrained", sharey=True)
    for average, steps, seconds, losses in logs:
        by_step.plot(steps, losses, label=average, linewidth=1.2)
        by_second.plot(seconds, losses, label=average, linewidth=1.2)
    by_step.set(xlabel="step", ylabel=f"training loss, mean of {WINDOW} steps")
    by_second.set(xlabel="seconds")
    for axis in (by_step, by_second):
        axis.grid(alpha=0.3)
    by_second.legend(fontsize=8)
    save(figure, picture, dpi=110)


def main() -> int:
    arguments = sys.argv[1:]
    if arguments and arguments[0] in ("-h", "--help"):
        print(__doc__)
        return 0
    if len(arguments) < 2 or any(argument.startswith("-") for argument in arguments):
        print(__doc__, file=sys.stderr)
        return 2
    start_where_matplotlib_is()
    picture, *logs = arguments
    return exit_status("plot_losses.py", picture, lambda: draw([read(log) for log in logs], picture))


if __name__ == "__main__":
    sys.exit(main())
