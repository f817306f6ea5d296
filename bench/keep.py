#!/usr/bin/env python3
"""Keeps a result: writes bench/results/NAME.csv from NAME.json, with a row for each case.

    bench/keep.py RESULT.json... [--output FOLDER]

RESULT.json is a file that a benchmark or a validation wrote with --json. A series of numbers becomes four columns: its count,
median, and 10th and 90th percentile. A curve of losses becomes its last value. The first lines begin with # and have the machine,
the date and the summary of all cases. The exit status is 2 if a file is not such a result.
"""

import argparse
import csv
import datetime
import json
import pathlib
import statistics
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "scripts"))
from validation.evaluation import quantile  # noqa: E402
from whole_file import replacing  # noqa: E402

#: Keys of documents whose values are lists of rows.
ROWS = ("cases", "rows", "cells")


def text(value) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:.6g}"
    return "" if value is None else str(value)


def summed_up(name: str, series: list) -> dict[str, str]:
    if "loss" in name:
        return {f"{name}.last": text(series[-1])}
    return {f"{name}.n": str(len(series)), f"{name}.median": text(statistics.median(series)),
            f"{name}.p10": text(quantile(series, 0.1)), f"{name}.p90": text(quantile(series, 0.9))}


def flat(value, name: str = "") -> dict[str, str]:
    """Flattens a value into columns, whose names are its keys joined by dots."""
    if isinstance(value, dict):
        found: dict[str, str] = {}
        for key, one in value.items():
            found |= flat(one, f"{name}.{key}" if name else key)
        return found
    if not isinstance(value, list):
        return {name: text(value)}
    if value and all(isinstance(one, dict) for one in value):  # variants, each with series of its own
        found = {}
        for one in value:
            kind = "_".join(text(part) for part in one.values() if not isinstance(part, (list, dict)))
            found |= flat({key: part for key, part in one.items() if isinstance(part, (list, dict))}, f"{name}.{kind}")
        return found
    if value and all(isinstance(one, (int, float)) for one in value):
        return summed_up(name, value)
    return {name: " ".join(map(str, value))}


def kept(document, date: str, out) -> None:
    """Writes the rows of a document. Raises ValueError if it has none."""
    key = next((key for key in ROWS if isinstance(document, dict) and isinstance(document.get(key), list)), None)
    rows = document[key] if key else document
    if not isinstance(rows, list) or not rows or not all(isinstance(row, dict) for row in rows):
        raise ValueError(f"has no list of {', '.join(ROWS)}: give what --json of a benchmark or a validation wrote")
    rest = {name: value for name, value in document.items() if name != key and not isinstance(value, list)} if key else {}
    machine = rest.pop("machine", {})
    out.write(f"# machine: {', '.join(map(str, machine.values())) or 'not said'}; date: {date}\n")
    if rest:
        out.write("# " + "; ".join(f"{name}: {value}" for name, value in flat(rest).items()) + "\n")
    table = [flat(row) for row in rows]
    writer = csv.DictWriter(out, list(dict.fromkeys(name for row in table for name in row)), lineterminator="\n")
    writer.writeheader()
    writer.writerows(table)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("results", nargs="+", type=pathlib.Path, metavar="RESULT.json")
    parser.add_argument("--output", type=pathlib.Path, default=ROOT / "bench/results", metavar="FOLDER")
    options = parser.parse_args()
    for path in options.results:
        try:
            date = datetime.date.fromtimestamp(path.stat().st_mtime).isoformat()
            with replacing(options.output / path.with_suffix(".csv").name) as temporary, temporary.open("w") as made:
                kept(json.loads(path.read_text()), date, made)
        except (OSError, ValueError) as error:
            print(f"keep.py: {path}: {error}", file=sys.stderr)
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
