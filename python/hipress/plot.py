"""Draws what the tools print.

usage: plot.py KIND FILE... --output PICTURE [--over PLAN] [--title TEXT] [COLUMN=VALUE ...]
       plot.py SWEEP.csv PICTURE [over=PLAN] [COLUMN=VALUE ...]
       plot.py REQUIRED.json [REQUIRED.json ...] PICTURE

KIND is one of these, each with its input:

{kinds}

PICTURE ends in .png, .svg or .pdf. NAME=FILE.json gives a JSON file a name; by default the file's own name is used. Curves of files
with the same name are drawn in one panel. COLUMN=VALUE keeps only the rows of a CSV with that value, for sweeps that vary more than
fits one picture. Conditions on plans do not drop baselines:

    plot.py speedup sweep.csv --output s.svg model=vgg19 plan=best
    plot.py breakdown ddp=a.json ddp_fp16=b.json "best, ring=c.json" --output b.png

Speed-ups are drawn as maps, with a panel for each model, topology, algorithm and further axis that the sweep varies. A black line
separates points that are faster by more than 0.5 % from the others; in 8 cases of 10, it lies in the hatched band. If bandwidth or
nodes has only one value, lines replace the maps, one for each plan and algorithm, and the command prints where each line ceases to
pay (its break-even). --over names the plan to compare with instead of ddp and ddp_fp16: none (every gradient alone), or any plan of
the sweep, such as best_uncompressed. The second form of the command draws speed-ups over `none` and needs no ddp. The third form is
the kind `required`. Exit status 2 if the request or a file is wrong, 1 if a package or the library is missing.
"""

import argparse
import csv
import json
import pathlib
import sys
import textwrap
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple

from hipress import _pictures, _pilot_file, _sweep_pictures, _sweep_rows, _tables
from hipress._errors import HipressError, InputError
from hipress._style import BASELINES, Picture, PictureError, form_of, into_files, save

Row = Dict[str, str]
NUMBERS: Mapping[str, Callable[[str], Any]] = {"nodes": int, "bandwidth_bytes_per_s": float, "iteration_s": float, "speedup": float}
NEEDED = (*NUMBERS, "model", "topology", "algorithm", "plan", "partitions", "profile", "cluster", "network", "latency_s",
          "overhead_s", "compute_speed")
#: Suffixes of documents' names; other files are CSV.
DOCUMENTS = (".json", ".yaml")


def require_fields(place: str, row: Mapping[Any, Any], columns: Mapping[str, Callable[[str], Any]]) -> None:
    """Raises PictureError unless a row has a value for every column, and the values in `columns` can be read."""
    if None in row or None in row.values():
        raise PictureError(f"{place}: has not as many values as the header has columns; is the file whole?")
    for column, kind in columns.items():
        try:
            kind(row[column])
        except ValueError as error:
            raise PictureError(f"{place}: {column} must be a number, got '{row[column]}'") from error


def read_csv(path: pathlib.Path, columns: Mapping[str, Callable[[str], Any]], needed: Sequence[str], remedy: str) -> List[Row]:
    """Rows of a CSV, with the texts that their fields stand for. Lines before the header that begin with # are skipped. If no row
    has the columns, raises a PictureError, which ends with the remedy."""
    try:
        with open(path, newline="", encoding="utf-8") as stream:
            text = stream.readlines()
        first = next((i for i, line in enumerate(text) if not line.startswith("#")), len(text))
        reader = csv.DictReader(text[first:])
        rows = [(first + reader.line_num, row) for row in reader]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise PictureError(f"{path}: cannot be read: {error}") from error
    missing = [column for column in needed if column not in (reader.fieldnames or ()) or not rows]
    if missing or not rows:
        raise PictureError(f"{path}: has no rows{' with ' * bool(missing)}{', '.join(missing)}{remedy}")
    for number, row in rows:
        require_fields(f"{path}:{number}", row, columns)
    return [{column: _tables.text_of(field) for column, field in row.items()} for _, row in rows]


def read_sweep(path: pathlib.Path, conditions: Mapping[str, str], over: Sequence[str] = ("none",)) -> List[Row]:
    """Rows that meet the conditions, as dictionaries of strings. Conditions on axes of plans do not drop rows of the plans
    `over`."""
    rows = read_csv(path, NUMBERS, NEEDED, "; give a CSV of hipress-sim sweep (of its shards, the first has the header: put their "
                                           "files one after the other)")
    for column, value in conditions.items():
        rows = choose(path, rows, column, value, over)
    return rows


def choose(path: pathlib.Path, rows: List[Row], column: str, value: str, over: Sequence[str]) -> List[Row]:
    """Selects the rows with that value. If the column is an axis of plans, rows of the plans `over` are kept, too."""
    if column not in rows[0]:
        raise PictureError(f"{path}: there is no column '{column}' (there are: {', '.join(rows[0])})")
    if not any(row[column] == value for row in rows):
        known = ", ".join(sorted({row[column] for row in rows}))
        raise PictureError(f"{path}: no row has {column}={value}; it takes: {known}")
    of_plans = column in _sweep_rows.SERIES
    return [row for row in rows if row[column] == value or (of_plans and row["plan"] in over)]


def read_document(path: pathlib.Path) -> Dict[str, Any]:
    """Reads a document of JSON, or a pilot's. Raises PictureError for any other file."""
    if path.suffix == ".yaml":
        try:
            pilot: Dict[str, Any] = _pilot_file.read(path)
            return pilot
        except ValueError as error:
            raise PictureError(str(error)) from error
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise PictureError(f"{path}: cannot be read: {error.strerror}") from error
    except (RecursionError, ValueError):  # not JSON, or not UTF-8
        document = None
    if not isinstance(document, dict):
        raise PictureError(f"{path}: is not what hipress-plan, hipress-sim or hipress-exec print with --json")
    return document


def read_documents(names: Sequence[str]) -> Dict[str, Dict[str, Any]]:
    """Documents by name: NAME from NAME=FILE.json, or FILE from FILE.json."""
    documents: Dict[str, Dict[str, Any]] = {}
    for given in names:
        name, equals, file = given.rpartition("=")
        path = pathlib.Path(file)
        name = name if equals else path.stem
        document = read_document(path)
        if name in documents and not merge(documents[name], document):
            raise PictureError(f"two files are called '{name}': give them names, such as ddp=FILE.json")
        documents.setdefault(name, document)
    return documents


def merge(one: Dict[str, Any], more: Dict[str, Any]) -> bool:
    """Adds curves of required bandwidths to a document that has such curves. Returns False for other documents."""
    both = [document.get("required_bandwidth") for document in (one, more)]
    if not all(isinstance(rows, list) for rows in both):
        return False
    one["required_bandwidth"] = [row for rows in both for row in rows or ()]
    return True


def member(text: str) -> Any:
    """Value of a member of a request: a number if the text is one."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def made(options: argparse.Namespace) -> Tuple[Callable[[], Picture], str]:
    """Reads the files. Returns a function that draws the picture, and the name of the file at fault if it cannot be drawn. Raises
    PictureError for a wrong request or file."""
    kind, title = _pictures.KINDS[options.kind], options.title
    if kind.of_request is not None:
        wrong = [given for given in options.inputs if "=" not in given]
        if wrong or options.over:
            raise PictureError(f"{options.kind} is drawn of: {kind.help}; leave out {', '.join(wrong) or '--over'}")
        asked, of_request = {name: member(text) for name, text in (given.split("=", 1) for given in options.inputs)}, kind.of_request
        return lambda: of_request(asked, title), ""
    files, conditions = split_inputs(options.inputs)
    if not files:
        raise PictureError(f"{options.kind}: which file? It is drawn of: {kind.help}")
    culprit = "" if len(files) > 1 else files[0]
    is_csv = {not name.endswith(DOCUMENTS) for name in files}
    if is_csv == {False}:
        of_documents = kind.of_documents
        if of_documents is None or conditions or options.over:
            raise PictureError(f"{', '.join(files)}: {options.kind} takes no JSON" if of_documents is None else
                               "COLUMN=VALUE and --over choose rows of a CSV: leave them out")
        documents = read_documents(files)
        return lambda: of_documents(documents, title), culprit
    of_tables, of_sweep = kind.of_tables, kind.of_sweep
    if len(is_csv) > 1 or (of_tables or of_sweep) is None or (of_tables is None and len(files) > 1):
        raise PictureError(f"{', '.join(files)}: {options.kind} is drawn of: {kind.help}")
    if options.over and options.kind != "speedup":
        raise PictureError(f"--over is for speedup, not for {options.kind}: leave it out")
    if of_tables is not None:
        if conditions:
            raise PictureError(f"COLUMN=VALUE is for sweeps, not for {options.kind}: leave it out")
        tables = {name: read_csv(pathlib.Path(name), kind.columns, tuple(kind.columns), f": {options.kind} is drawn of: {kind.help}")
                  for name in files}
        return lambda: of_tables(tables, title), culprit
    rows = read_sweep(pathlib.Path(files[0]), conditions, (options.over,) if options.over else BASELINES)
    if options.over:
        return lambda: _sweep_pictures.speedup_over(rows, (options.over,), title), culprit
    assert of_sweep is not None
    drawing = of_sweep
    return lambda: drawing(rows, title), culprit


def draw(options: argparse.Namespace) -> None:
    """Writes the picture, and prints its statements."""
    into_files()
    form_of(options.output)  # fails before any file is read
    drawing, culprit = made(options)
    try:
        picture = drawing()
    except PictureError as error:
        raise PictureError(f"{culprit}: {error}" if culprit else str(error)) from error
    save(picture.figure, options.output)
    for sentence in picture.said:
        print(sentence)


def split_inputs(inputs: Sequence[str]) -> Tuple[List[str], Dict[str, str]]:
    """Splits the inputs into files and conditions. A condition contains = and does not end as the name of a document does."""
    files = [given for given in inputs if "=" not in given or given.endswith(DOCUMENTS)]
    return files, {name: value for name, value in (given.split("=", 1) for given in inputs if given not in files)}


def usage() -> str:
    kinds = "\n".join(textwrap.fill(f"{name:11} {kind.help}", 124, initial_indent="  ", subsequent_indent=" " * 14,
                                    break_on_hyphens=False)
                      for name, kind in _pictures.KINDS.items())
    return (__doc__ or "").format(kinds=kinds)


def first_form(arguments: List[str]) -> List[str]:
    """Converts the command's arguments to its usual form, KIND FILE.... Ends the command for any other form."""
    if arguments and arguments[0] in _pictures.KINDS:
        return arguments
    if len(arguments) > 1 and arguments[0].endswith(".json"):
        return ["required", *arguments[:-1], "--output", arguments[-1]]
    if len(arguments) < 2 or any("=" not in condition for condition in arguments[2:]):
        print(usage(), file=sys.stderr)
        sys.exit(2)
    over = [condition for condition in arguments[2:] if condition.startswith("over=")]
    rest = [condition for condition in arguments[2:] if condition not in over]
    return ["speedup", arguments[0], *rest, "--output", arguments[1], "--over", (over or ["over=none"])[-1][len("over="):]]


def parse(arguments: List[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="plot.py", usage="plot.py KIND FILE... --output PICTURE [--over PLAN] [--title TEXT] "
                                     "[COLUMN=VALUE ...]", add_help=False)
    parser.add_argument("kind", choices=list(_pictures.KINDS))
    parser.add_argument("inputs", nargs="*")
    parser.add_argument("--output", type=pathlib.Path, required=True)
    parser.add_argument("--over", default="")
    parser.add_argument("--title", default="")
    return parser.parse_intermixed_args(first_form(arguments))


def main(arguments: Optional[List[str]] = None) -> int:
    """Runs the command, and returns its exit status."""
    words = sys.argv[1:] if arguments is None else arguments
    if any(word in ("-h", "--help") for word in words):
        print(usage())
        return 0
    options = parse(words)
    try:
        draw(options)
    except (PictureError, HipressError, ImportError) as error:
        print(f"plot.py: {error}", file=sys.stderr)
        return 2 if isinstance(error, (PictureError, InputError)) else 1
    except OSError as error:
        print(f"plot.py: {options.output}: cannot be written: {error.strerror or error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
