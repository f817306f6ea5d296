#!/usr/bin/env python3
"""Draws what the tools print.

usage: plot.py KIND FILE... --output PICTURE [--over PLAN] [--title TEXT] [COLUMN=VALUE ...]
       plot.py SWEEP.csv PICTURE [over=PLAN] [COLUMN=VALUE ...]
       plot.py REQUIRED.json [REQUIRED.json ...] PICTURE

KIND, and what it is drawn of:
{kinds}

PICTURE ends in .png, .svg or .pdf. Files of JSON may have a name, NAME=FILE.json, else it is that of the file; curves of
files with one name come into one panel. COLUMN=VALUE keeps only those rows of a CSV, for sweeps that vary more than fits one
picture; baselines stay, whatever is said of plans:

    plot.py speedup sweep.csv --output s.svg model=vgg19 plan=best
    plot.py breakdown ddp=a.json ddp_fp16=b.json "best, ring=c.json" --output b.png

Speed-ups are maps with a panel for each model, topology, algorithm and whatever else the sweep varies; a black line parts
what is faster by more than 0.5 % from what is not, and hatched is where it lies in 8 cases of 10. Where bandwidth or nodes
has one value, lines instead, one per plan and algorithm, and what is printed is where each of them ceases to pay (its
break-even). --over says over which plan, in place of ddp and ddp_fp16: none (every gradient alone), or any plan that the
sweep has, such as best_uncompressed. The second form of the command draws speed-ups over `none` and needs no ddp; the
third is the kind `required`. Exit status 2 if the request or a file is wrong.
"""

import argparse
import csv
import json
import pathlib
import sys
import textwrap
from collections.abc import Callable

from picture import Refused, drawing, exit_status, pyplot, save

drawing()
from hipress import _pictures, _pilot_file, _sweep_pictures, _sweep_rows, _tables  # noqa: E402
from hipress._style import BASELINES, Picture, PictureError  # noqa: E402

NUMBERS = {"nodes": int, "bandwidth_bytes_per_s": float, "iteration_s": float, "speedup": float}
NEEDED = (*NUMBERS, "model", "topology", "algorithm", "plan", "partitions", "profile", "cluster", "network", "latency_s",
          "overhead_s", "compute_speed")
#: Ends of the names of documents; other files are CSV.
DOCUMENTS = (".json", ".yaml")
#: Dots per inch of what is no vector graphic.
DPI = 120


def require_numbers(place: str, row: dict) -> None:
    """Refused unless a row has a value for every column, and numbers where they are needed."""
    if None in row or None in row.values():
        raise Refused(f"{place}: has not as many values as the header has columns; is the file whole?")
    for column, number in NUMBERS.items():
        try:
            number(row[column])
        except ValueError as error:
            raise Refused(f"{place}: {column} must be a number, got '{row[column]}'") from error


def as_written(row: dict) -> dict:
    """The row with the texts that its fields stand for; fields that are missing or too many are as they are."""
    return {column: _tables.text_of(field) if isinstance(field, str) else field for column, field in row.items()}


def read_csv(path: pathlib.Path) -> tuple[list[str], list[tuple[int, dict]]]:
    """Columns, and rows with the numbers of their lines. Lines before the header that begin with # are no rows."""
    try:
        with open(path, newline="", encoding="utf-8") as stream:
            text = stream.readlines()
        first = next((i for i, line in enumerate(text) if not line.startswith("#")), len(text))
        reader = csv.DictReader(text[first:])
        return list(reader.fieldnames or ()), [(first + reader.line_num, as_written(row)) for row in reader]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise Refused(f"{path}: cannot be read: {error}") from error


def read_sweep(path: pathlib.Path, conditions: dict, over: tuple = ("none",)) -> list[dict]:
    """The rows that meet the conditions, as dictionaries of strings; of the plans that are compared with, those at equal
    points."""
    columns, lines = read_csv(path)
    missing = [column for column in NEEDED if column not in columns or not lines]
    if missing:
        raise Refused(f"{path}: has no rows with {', '.join(missing)}; give a CSV of hipress-sim sweep (of its shards, the first "
                      "has the header: put their files one after the other)")
    for number, row in lines:
        require_numbers(f"{path}:{number}", row)
    rows = [row for _, row in lines]
    for column, value in conditions.items():
        rows = choose(path, rows, column, value, over)
    return rows


def choose(path: pathlib.Path, rows: list[dict], column: str, value: str, over: tuple) -> list[dict]:
    """The rows with that value, and those of plans that are compared with if it is a value of plans."""
    if column not in rows[0]:
        raise Refused(f"{path}: there is no column '{column}' (there are: {', '.join(rows[0])})")
    if not any(row[column] == value for row in rows):
        known = ", ".join(sorted({row[column] for row in rows}))
        raise Refused(f"{path}: no row has {column}={value}; it takes: {known}")
    of_plans = column in _sweep_rows.SERIES
    return [row for row in rows if row[column] == value or (of_plans and row["plan"] in over)]


def read_cases(path: pathlib.Path) -> list[dict]:
    """The rows of a CSV that is no sweep."""
    columns, lines = read_csv(path)
    if not lines:
        raise Refused(f"{path}: has no rows")
    if any(None in row or None in row.values() for _, row in lines):
        raise Refused(f"{path}: a row has not as many values as the header has columns; is the file whole?")
    return [row for _, row in lines]


def read_document(path: pathlib.Path) -> dict:
    if path.suffix == ".yaml":
        try:
            return _pilot_file.read(path)
        except ValueError as error:
            raise Refused(str(error)) from error
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise Refused(f"{path}: cannot be read: {error.strerror}") from error
    except (RecursionError, ValueError):  # no JSON, no UTF-8
        document = None
    if not isinstance(document, dict):
        raise Refused(f"{path}: is not what hipress-plan, hipress-sim or hipress-exec print with --json")
    return document


def read_documents(names: list[str]) -> dict[str, dict]:
    """By name: NAME=FILE.json, or FILE.json, whose name is the file's."""
    documents: dict[str, dict] = {}
    for given in names:
        name, equals, file = given.rpartition("=")
        path = pathlib.Path(file)
        name = name if equals else path.stem
        document = read_document(path)
        if name in documents and not merge(documents[name], document):
            raise Refused(f"two files are called '{name}': give them names, such as ddp=FILE.json")
        documents.setdefault(name, document)
    return documents


def merge(one: dict, more: dict) -> bool:
    """Adds curves of required bandwidths to a document of such; False for other documents."""
    both = [document.get("required_bandwidth") for document in (one, more)]
    if not all(isinstance(rows, list) for rows in both):
        return False
    one["required_bandwidth"] = sum(both, [])
    return True


def draw(make: Callable[[], Picture], output: pathlib.Path, culprit: str = "") -> None:
    """Writes the picture, and prints what it says in words. Refused for data that cannot be drawn."""
    pyplot()
    try:
        picture = make()
    except PictureError as error:
        raise Refused(f"{culprit}: {error}" if culprit else str(error)) from error
    save(picture.figure, output, dpi=DPI)
    for sentence in picture.said:
        print(sentence)


def draw_kind(options: argparse.Namespace) -> None:
    """The first form of the command."""
    kind = _pictures.KINDS[options.kind]
    files, conditions = split_inputs(options.inputs)
    if not files:
        raise Refused(f"{options.kind}: which file? It is drawn of: {kind.help}")
    is_csv = {not name.endswith(DOCUMENTS) for name in files}
    if is_csv == {False}:
        if kind.of_documents is None or conditions or options.over:
            raise Refused(f"{', '.join(files)}: {options.kind} takes no JSON" if kind.of_documents is None else
                          "COLUMN=VALUE and --over choose rows of a CSV: leave them out")
        draw(lambda: kind.of_documents(read_documents(files), options.title), options.output, "" if len(files) > 1 else files[0])
        return
    if len(files) != 1 or (kind.of_sweep or kind.of_cases) is None:
        raise Refused(f"{', '.join(files)}: {options.kind} is drawn of: {kind.help}")
    path = pathlib.Path(files[0])
    if options.over and options.kind != "speedup":
        raise Refused(f"--over is for speedup, not for {options.kind}: leave it out")
    if kind.of_sweep is None:
        if conditions:
            raise Refused(f"COLUMN=VALUE is for sweeps, not for {options.kind}: leave it out")
        draw(lambda: kind.of_cases(read_cases(path), options.title), options.output, files[0])
    elif options.over:
        draw_over(path, conditions, options.over, options.output, options.title)
    else:
        draw(lambda: kind.of_sweep(read_sweep(path, conditions, BASELINES), options.title), options.output, files[0])


def draw_over(path: pathlib.Path, conditions: dict, over: str, output: pathlib.Path, title: str = "") -> None:
    """Speed-ups over one plan."""
    rows = read_sweep(path, conditions, (over,))
    draw(lambda: _sweep_pictures.speedup_over(rows, (over,), title), output, str(path))


def split_inputs(inputs: list[str]) -> tuple[list[str], dict[str, str]]:
    """Files, and conditions: what has = and does not end as a document does."""
    files = [given for given in inputs if "=" not in given or given.endswith(DOCUMENTS)]
    return files, dict(given.split("=", 1) for given in inputs if given not in files)


def usage() -> str:
    kinds = "\n".join(textwrap.fill(f"{name:11} {kind.help}", 124, initial_indent="  ", subsequent_indent=" " * 14,
                                    break_on_hyphens=False)
                      for name, kind in _pictures.KINDS.items())
    return __doc__.format(kinds=kinds)


def parse_kind(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="plot.py", usage="plot.py KIND FILE... --output PICTURE [--over PLAN] [--title TEXT] "
                                     "[COLUMN=VALUE ...]", add_help=False)
    parser.add_argument("kind", choices=list(_pictures.KINDS))
    parser.add_argument("inputs", nargs="*")
    parser.add_argument("--output", type=pathlib.Path, required=True)
    parser.add_argument("--over", default="")
    parser.add_argument("--title", default="")
    return parser.parse_intermixed_args(arguments)


def main() -> int:
    arguments = sys.argv[1:]
    if any(argument in ("-h", "--help") for argument in arguments):
        print(usage())
        return 0
    if arguments and arguments[0] in _pictures.KINDS:
        options = parse_kind(arguments)
        return exit_status("plot.py", options.output, lambda: draw_kind(options))
    if len(arguments) > 1 and arguments[0].endswith(".json"):
        output = pathlib.Path(arguments[-1])
        required = _pictures.KINDS["required"].of_documents
        return exit_status("plot.py", output, lambda: draw(lambda: required(read_documents(arguments[:-1]), ""), output))
    if len(arguments) < 2 or any("=" not in condition for condition in arguments[2:]):
        print(usage(), file=sys.stderr)
        return 2
    source, output = map(pathlib.Path, arguments[:2])
    conditions = dict(condition.split("=", 1) for condition in arguments[2:])
    over = conditions.pop("over", "none")
    return exit_status("plot.py", output, lambda: draw_over(source, conditions, over, output))


if __name__ == "__main__":
    sys.exit(main())
