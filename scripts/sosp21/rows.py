"""Reads the rows of sosp21_throughput.csv: system, model, cluster and throughput."""

import csv
import dataclasses
import math

from . import setups

COLUMNS = ("cluster", "framework", "model", "system", "algorithm", "gpus", "throughput", "unit")
LINEAR = "linear"


class InputError(Exception):
    """Error: the request is wrong; the message begins with file and line."""


@dataclasses.dataclass(frozen=True)
class Row:
    cluster: str
    framework: str
    model: str
    system: str
    algorithm: str
    gpus: int
    throughput: float | None  #: units per second of all GPUs together; None if unknown
    unit: str

    @property
    def is_linear(self) -> bool:
        """True for a row with the throughput of one GPU times the number of GPUs. It shows the compute time, without
        communication."""
        return self.system == LINEAR

    @property
    def nodes(self) -> int:
        return math.ceil(self.gpus / setups.CLUSTERS[self.cluster].gpus_per_node)

    @property
    def units(self) -> int:
        """Number of units that all GPUs together train in one iteration."""
        return self.gpus * setups.UNITS_PER_GPU[self.model]

    @property
    def iteration_s(self) -> float:
        return self.units / self.throughput

    def throughput_of(self, iteration_s: float) -> float:
        return self.units / iteration_s


def read(path: str, with_throughput: bool) -> list[Row]:
    """Reads all rows of a CSV. Without `with_throughput`, that column or values in it may be missing. Raises InputError for any
    other file."""
    try:
        with open(path, newline="", encoding="utf-8-sig") as file:
            return list(parse(path, csv.reader(file), with_throughput))
    except OSError as reason:
        raise InputError(f"{path}: {reason.strerror}") from None
    except (UnicodeDecodeError, csv.Error) as reason:
        raise InputError(f"{path}: not a CSV file in UTF-8: {reason}") from None


def parse(path, lines, with_throughput):
    header = [name.strip() for name in next(lines, [])]
    needed = [name for name in COLUMNS if with_throughput or name != "throughput"]
    missing = [name for name in needed if name not in header]
    if missing:
        raise InputError(f"{path}:1: missing column {missing[0]!r}; the columns are {','.join(COLUMNS)}")
    for fields in lines:
        if not fields:
            continue
        where = f"{path}:{lines.line_num}"
        if len(fields) != len(header):
            raise InputError(f"{where}: {len(header)} fields expected, got {len(fields)}")
        yield parse_row(where, {name: field.strip() for name, field in zip(header, fields)}, with_throughput)


def parse_row(where: str, fields: dict[str, str], with_throughput: bool) -> Row:
    known(where, "cluster", fields["cluster"], setups.CLUSTERS)
    known(where, "model", fields["model"], setups.UNITS_PER_GPU)
    text = fields.get("throughput", "")
    throughput = None if not text and not with_throughput else positive(where, "throughput", text)
    row = Row(fields["cluster"], fields["framework"], fields["model"], fields["system"], fields["algorithm"],
              gpus(where, fields), throughput, fields["unit"])
    if not row.is_linear:
        try:
            setups.parse_system(row.system, row.algorithm)
        except ValueError as reason:
            raise InputError(f"{where}: {reason}") from None
    return row


def known(where, what, name, table):
    if name not in table:
        raise InputError(f"{where}: unknown {what} {name!r}; known are {', '.join(table)}")


def positive(where, what, text):
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not (0 < number < math.inf):
        raise InputError(f"{where}: {what} must be a positive number, got {text!r}")
    return number


def gpus(where, fields):
    number = positive(where, "gpus", fields["gpus"])
    of_node = setups.CLUSTERS[fields["cluster"]].gpus_per_node
    if number != int(number) or (number > of_node and number % of_node) or number > of_node * 4096:
        raise InputError(f"{where}: gpus must be at most {of_node} or a multiple of it, the GPUs of a node of "
                         f"{fields['cluster']!r}, got {fields['gpus']!r}")
    return int(number)
