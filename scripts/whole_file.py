"""Writes files whole or not at all, so that an interrupted script leaves no partial file."""

import json
import os
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "python"))
from hipress import _output  # noqa: E402  (found through the path above)
from hipress._output import replacing  # noqa: E402


class Unwritable(Exception):
    """Error: results cannot be written to the given place; the message has the reason and the remedy."""


def require_writable(path: str | os.PathLike) -> None:
    """Raises Unwritable unless `replacing` can write there, for commands that have results only after minutes or hours."""
    try:
        _output.require_writable(path)
    except OSError as error:
        raise Unwritable(f"{path}: cannot be written: {error.strerror}; choose a file in a folder that exists and is "
                         "writable") from error


def make_folder(path: str | os.PathLike) -> None:
    """Makes a folder, which may exist, and its parents. Raises Unwritable if it cannot be made or written into."""
    try:
        _output.without_links(path)  # refuses those of other users
        os.makedirs(path, exist_ok=True)
        with tempfile.TemporaryFile(dir=path):
            pass
    except OSError as error:
        raise Unwritable(f"{path}: no files can be written there: {error.strerror}; choose another folder") from error


def prepare(folder: pathlib.Path, results: pathlib.Path | None) -> pathlib.Path:
    """Makes the folder of results, and checks the file of results before a long measurement. Returns the folder's absolute path.
    Raises Unwritable if one of them cannot be written."""
    make_folder(folder)
    if results:
        require_writable(results)
    return folder.resolve()


def write_json(path: str | os.PathLike, value: object) -> None:
    """Writes a value as JSON. Raises OSError if the file cannot be written."""
    with replacing(path) as temporary:
        temporary.write_text(json.dumps(value, indent=2) + "\n", encoding="utf-8")
