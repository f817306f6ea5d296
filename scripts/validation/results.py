"""Reads and writes files of results: the CSV from which a run resumes, and the JSON."""

import csv
import pathlib

import whole_file

from .cases import LOOPBACK, Case
from .evaluation import Pair, Result, different, intervals, pairs, summarise

COLUMNS = ("model", "topology", "algorithm", "nnodes", "rate", "size_scale", "time_scale", "predicted_s",
           "predicted_s_p10", "predicted_s_p90", "within_interval", "measured_s", "p10_s", "p90_s", "error", "compute_s", "exposed_predicted_s", "exposed_measured_s", "exposed_error",
           "within_spread", "disturbed", "repeated", "verified", "repetitions_s")
#: Columns that may be empty, because nothing was exposed or no interval is known.
MAY_LACK = ("exposed_error", "predicted_s_p10", "predicted_s_p90", "within_interval")
PAIR_COLUMNS = ("model", "nnodes", "rate", "faster", "slower", "faster_measured_s", "slower_measured_s",
                "faster_predicted_s", "slower_predicted_s", "difference", "ranked")


class ResultsError(Exception):
    """Error: a file of results cannot be used. The message has the reason."""


def row(result: Result) -> dict[str, object]:
    values = {**vars(result.case), **{name: getattr(result, name) for name in COLUMNS if hasattr(result, name)}}
    for name in MAY_LACK:
        values[name] = "" if values[name] is None else values[name]
    values["repetitions_s"] = ";".join(map(repr, result.repetitions_s))
    return {name: int(value) if isinstance(value, bool) else value for name, value in values.items()
            if name in COLUMNS}


def parse(values: dict[str, str]) -> Result:
    rate = values["rate"] if values["rate"] == LOOPBACK else int(values["rate"])
    case = Case(values["model"], values["topology"], values["algorithm"], int(values["nnodes"]), rate)
    return Result(case, float(values["size_scale"]), float(values["time_scale"]), float(values["predicted_s"]),
                  float(values["compute_s"]), tuple(map(float, values["repetitions_s"].split(";"))),
                  int(values["disturbed"]), int(values["repeated"]), bool(int(values["verified"])),
                  *(float(values[name]) if values[name] else None for name in ("predicted_s_p10", "predicted_s_p90")))


def write_rows(path: pathlib.Path, columns: tuple[str, ...], rows: list[dict]) -> None:
    with whole_file.replacing(path) as temporary, open(temporary, "w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, columns)
        writer.writeheader()
        writer.writerows(rows)


def write_csv(path: pathlib.Path, results: list[Result]) -> None:
    write_rows(path, COLUMNS, [row(result) for result in results])


def read_csv(path: pathlib.Path) -> list[Result]:
    """Results of an earlier run; empty if the file does not exist."""
    if not path.exists():
        return []
    with open(path, newline="", encoding="utf-8") as stream:
        reader = csv.DictReader(stream)
        if tuple(reader.fieldnames or ()) != COLUMNS:
            raise ResultsError(f"{path}: its columns are not those of this version; remove it, or run without --resume")
        try:
            return [parse(values) for values in reader]
        except (TypeError, ValueError) as error:
            raise ResultsError(f"{path}: line {reader.line_num} cannot be read: {error}") from error


def plan_name(result: Result) -> str:
    return f"{result.case.topology}/{result.case.algorithm}"


def pair_row(pair: Pair) -> dict[str, object]:
    case = pair.faster.case
    return {"model": case.model, "nnodes": case.nnodes, "rate": case.rate, "faster": plan_name(pair.faster),
            "slower": plan_name(pair.slower), "faster_measured_s": pair.faster.measured_s,
            "slower_measured_s": pair.slower.measured_s, "faster_predicted_s": pair.faster.predicted_s,
            "slower_predicted_s": pair.slower.predicted_s, "difference": pair.difference, "ranked": int(pair.ranked)}


def write_pairs(path: pathlib.Path, results: list[Result]) -> None:
    """Writes every pair of plans for the same job, also pairs whose times hardly differ."""
    write_rows(path, PAIR_COLUMNS, [pair_row(pair) for pair in pairs(results)])


def report(results: list[Result]) -> dict:
    summary = summarise(results)
    cases = []
    for result in results:
        values = {**row(result), **{name: getattr(result, name) for name in MAY_LACK},
                  "within_spread": result.within_spread, "verified": result.verified,
                  "repetitions_s": list(result.repetitions_s)}
        cases.append(values)
    told = intervals(results)
    return {"coverage": told and told.coverage, "mean_width": told and told.mean_width,
            "constant_width": told and told.constant_width,
            "median_abs_error": summary.median_abs_error, "p90_abs_error": summary.p90_abs_error,
            "ranking_accuracy": summary.ranking_accuracy,
            "median_abs_exposed_error": summary.median_abs_exposed_error,
            "p90_abs_exposed_error": summary.p90_abs_exposed_error,
            "pairs": summary.pairs, "pairs_ranked": summary.ranked, "within_spread": summary.within_spread,
            "p90_abs_error_beyond_spread": summary.p90_abs_error_beyond_spread,
            "misranked": [pair_row(pair) for pair in different(pairs(results)) if not pair.ranked],
            "cases": cases}


def write_json(path: pathlib.Path, results: list[Result]) -> None:
    whole_file.write_json(path, report(results))
