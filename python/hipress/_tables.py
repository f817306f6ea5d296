"""Writing of tables as CSV and Parquet."""

import os
import pathlib
import re
from typing import Any, List

from hipress import _output


#: Characters at the beginning of a cell that make spreadsheets run it as a formula, as in sweep/csv.cpp.
_FORMULA = r"[=+\-@\t\r]"


def _field(value: Any) -> str:
    """Formats a value as a CSV field, as field() of sweep/csv.cpp does."""
    if value is None:
        return ""
    text = re.sub(f"^('*{_FORMULA})", r"'\1", value) if isinstance(value, str) else str(value)
    return '"' + text.replace('"', '""') + '"' if re.search(r'[",;\t\r\n]', text) else text


def _comment(line: str) -> str:
    """Formats a line of provenance, as comment() of sweep/csv.cpp does."""
    return "# " + re.sub(rf"""[,;\t\r\n](?=[ "']*{_FORMULA})""", lambda found: f"\\x{ord(found[0]):02x}", line)


def text_of(field: str) -> str:
    """Recovers the text of a field of such a CSV: removes the apostrophe that keeps spreadsheets from running it as a formula."""
    return re.sub(f"^'('*{_FORMULA})", r"\1", field)


def _write_csv(path: pathlib.Path, columns: List[str], rows: List[List[Any]], provenance: List[str]) -> None:
    with open(path, "w", newline="", encoding="utf-8") as file:
        file.writelines(f"{_comment(line)}\n" for line in provenance)
        file.writelines(",".join(map(_field, row)) + "\n" for row in [columns, *rows])


def _write_parquet(path: pathlib.Path, columns: List[str], rows: List[List[Any]], provenance: List[str]) -> None:
    import pyarrow
    from pyarrow import parquet

    def column(values: List[Any]) -> "pyarrow.Array":
        # A column with both words and numbers is written as words.
        mixed = len({isinstance(value, str) for value in values if value is not None}) > 1
        return pyarrow.array([str(value) if mixed and value is not None else value for value in values])

    table = pyarrow.table([column([row[place] for row in rows]) for place in range(len(columns))], names=columns)
    parquet.write_table(table.replace_schema_metadata({"hipress": "\n".join(provenance)}), path)


def save(path: str, columns: List[str], rows: List[List[Any]], provenance: List[str]) -> None:
    """Writes CSV or Parquet, by the name's ending; see Sweep.save(). Raises ValueError for any other ending, and ImportError for
    Parquet without pyarrow."""
    ending = os.path.splitext(path)[1].lower()
    writers = {".csv": _write_csv, ".parquet": _write_parquet}
    if ending not in writers:
        raise ValueError(f"{path}: ends in neither {' nor '.join(writers)}, which say how it is written")
    if ending == ".parquet":
        try:
            import pyarrow.parquet  # noqa: F401  (before anything is written)
        except ImportError as error:
            raise ImportError(f"Parquet needs pyarrow: install it from PyPI for this interpreter ({error}); .csv needs nothing"
                              ) from error
    with _output.replacing(path) as beside:
        writers[ending](beside, columns, rows, provenance)
