"""File of a pilot: YAML whose rows are JSON objects, one per line (docs/learning.md lists the keys)."""

import json
import os
from typing import Any, Dict, List, Union

from hipress import _output
from hipress._engine import InvalidRequest

_Path = Union[str, "os.PathLike[str]"]
Row = Dict[str, Any]

SCHEMA = 1
_REMEDY = "give --output another name, or remove it"
#: Keys of the file in their order: single values, and lists of rows.
_SCALARS = ("schema", "script", "digest", "ranks", "steps", "seeds", "repeat")
_ROWS = ("plans", "ratios", "errors", "noise_scale", "curve")


def rounded(value: Any) -> Any:
    """Rounds each float in a value to seven significant digits, the file's precision."""
    if isinstance(value, float):
        return float(f"{value:.7g}")
    if isinstance(value, list):
        return [rounded(one) for one in value]
    return {key: rounded(one) for key, one in value.items()} if isinstance(value, dict) else value


def write(path: _Path, document: Row) -> None:
    """Writes a pilot's document, whole or not at all."""
    lines = [f"{key}: {json.dumps(document[key], ensure_ascii=False, allow_nan=False)}" for key in _SCALARS if key in document]
    for key in _ROWS:
        rows = document.get(key) or []
        lines.append(f"{key}:" if rows else f"{key}: []")
        lines += [f"  - {json.dumps(row, ensure_ascii=False, allow_nan=False)}" for row in rows]
    _output.write_whole(path, "\n".join(lines) + "\n")


def read(path: _Path) -> Row:
    """Reads the document of a file that write() wrote; empty if there is no file. Raises InvalidRequest, with file and line, for
    any other file."""
    document: Row = {}
    try:
        with open(path, encoding="utf-8") as file:
            lines = file.read().splitlines()
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidRequest(f"{os.fspath(path)}: cannot be read: {error}") from None
    rows: List[Row] = []
    for number, line in enumerate(lines, 1):
        try:
            if line.startswith("  - "):
                rows.append(json.loads(line[4:]))
                continue
            key, _, value = line.partition(":")
            if key not in (*_SCALARS, *_ROWS):
                raise ValueError(key)
            rows = []
            document[key] = json.loads(value) if value.strip() not in ("", "[]") else rows
        except ValueError:
            raise InvalidRequest(f"{os.fspath(path)}:{number}: is no file of a pilot: {_REMEDY}") from None
    if document.get("schema") != SCHEMA:
        raise InvalidRequest(f"{os.fspath(path)}:1: is no file of a pilot of schema {SCHEMA}: {_REMEDY}")
    return document


__all__ = ["Row", "SCHEMA", "read", "rounded", "write"]
