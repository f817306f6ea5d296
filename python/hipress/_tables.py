"""Rows of columns as files."""

import csv
import os
import pathlib
from typing import Any, List

from hipress import _output


def _write_csv(path: pathlib.Path, columns: List[str], rows: List[List[Any]], provenance: List[str]) -> None:
    with open(path, "w", newline="", encoding="utf-8") as file:
        file.writelines(f"# {line}\n" for line in provenance)
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(rows)


def _write_parquet(path: pathlib.Path, columns: List[str], rows: List[List[Any]], provenance: List[str]) -> None:
    import pyarrow
    from pyarrow import parquet

    def column(values: List[Any]) -> "pyarrow.Array":
        # Words and numbers in one column ("plan", 4) are words.
        mixed = len({isinstance(value, str) for value in values if value is not None}) > 1
        return pyarrow.array([str(value) if mixed and value is not None else value for value in values])

    table = pyarrow.table([column([row[place] for row in rows]) for place in range(len(columns))], names=columns)
    parquet.write_table(table.replace_schema_metadata({"hipress": "\n".join(provenance)}), path)


def save(path: str, columns: List[str], rows: List[List[Any]], provenance: List[str]) -> None:
    """Writes CSV or Parquet, by the name's ending; see Sweep.save()."""
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
