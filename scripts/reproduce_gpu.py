#!/usr/bin/env python3
"""Compares predicted with published times of GPU collectives and training steps.

    scripts/reproduce_gpu.py [FILE.csv...] [--json OUT] [--tools FOLDER]

A file of collectives has the columns table, machine, hosts, gpus, collective, algorithm, bytes and time_s; machine is a name in
machines/. Without files: costs/data/*.csv and models/data/*.csv. hipress-sim collectives predicts from data sheets alone. Errors
for sizes of at least 1 MiB are summarised by table. Tables to which constants were fitted are printed apart from the others. A file
of steps (published_steps.py lists the columns) has rows that calibrate a job's computation. hipress-sim predicts its other rows,
once with that computation and once from arithmetic alone. Exit status 1 if the tool fails, 2 if the request is wrong.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys

import published_steps
from whole_file import Unwritable, require_writable, write_json

ROOT = pathlib.Path(__file__).resolve().parent.parent

#: Folders of shipped published figures.
SHIPPED = ("costs/data", "models/data")

#: Tables to which the constants of costs/collective_model.cpp were fitted. All other tables test the constants.
FITTED = {"a3_mega", "a4_gke", "gh200_slingshot", "h200", "oke_a100", "p5_efa", "rdma_h200", "vtrain_a100"}

#: Least size with relative errors. Smaller collectives show the latency of one machine and day; their errors are factors.
LEAST_BYTES = 1 << 20


def predicted(tools: pathlib.Path, files: list[str]) -> list[dict]:
    """Rows of the files with their predictions. Raises Failed if the tool fails."""
    done = subprocess.run([tools / "hipress-sim", "collectives", *files, "--json"], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise published_steps.Failed(done.stderr.strip(), 2 if done.returncode == 2 else 1)
    return json.loads(done.stdout)["rows"]


def quantile(values: list[float], share: float) -> float | None:
    """Smallest value that at least that share of the values does not exceed; None without values."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else None


def summed_up(table: str, rows: list[dict]) -> dict:
    errors = [abs(row["error"]) for row in rows if row["bytes"] >= LEAST_BYTES]
    factors = [max(1 + row["error"], 1 / (1 + row["error"])) for row in rows if row["bytes"] < LEAST_BYTES]
    return {"table": table, "rows": len(rows), "rows_from_1mib": len(errors),
            "median_abs_error": statistics.median(errors) if errors else None, "p90_abs_error": quantile(errors, 0.9),
            "largest_factor_below_1mib": max(factors) if factors else None, "fitted": table in FITTED}


def by_table(rows: list[dict]) -> list[dict]:
    tables: dict[str, list[dict]] = {}
    for row in rows:
        tables.setdefault(row["table"], []).append(row)
    return [summed_up(table, of_table) for table, of_table in tables.items()]


def line(summary: dict) -> str:
    def percent(value):
        return "–" if value is None else f"{100 * value:.1f} %"

    factor = summary["largest_factor_below_1mib"]
    return (f"| {summary['table']} | {summary['rows']} | {percent(summary['median_abs_error'])} | "
            f"{percent(summary['p90_abs_error'])} | {'–' if factor is None else f'{factor:.2f}'} |")


def report(rows: list[dict]) -> str:
    lines = []
    tables = by_table(rows)
    for title, fitted in (("Tables that constants were fitted on", True), ("Tables that judge them", False)):
        chosen = [summary for summary in tables if summary["fitted"] == fitted]
        if not chosen:
            continue
        of_chosen = [row for row in rows if (row["table"] in FITTED) == fitted]
        lines += [f"{title}:", "", "| table | rows | median error | 90th percentile | largest factor below 1 MiB |",
                  "|---|---|---|---|---|", *map(line, chosen), line(summed_up("all", of_chosen)), ""]
    lines += ["All:", "", line(summed_up("all", rows))]
    return "\n".join(lines)


def run(options) -> None:
    if options.json:
        require_writable(options.json)
    files = options.files or [str(path) for folder in SHIPPED for path in sorted((ROOT / folder).glob("*.csv"))]
    step_files = [path for path in files if published_steps.is_of_steps(path)]
    written = {}
    collective_files = [path for path in files if path not in step_files]
    if collective_files:
        rows = predicted(options.tools.resolve(), collective_files)
        print(report(rows))
        written = {"collectives": by_table(rows), "rows": rows}
    if step_files:
        steps = published_steps.predicted(options.tools.resolve(), step_files)
        print(published_steps.report(steps))
        written |= {"steps": published_steps.by_table(steps), "step_rows": steps}
    if options.json:
        write_json(options.json, written)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", metavar="FILE.csv", help="published collectives or steps (default: shipped ones)")
    parser.add_argument("--json", metavar="OUT", help="write errors by table, and rows, here")
    parser.add_argument("--tools", type=pathlib.Path, default=ROOT / "build/release/bin", metavar="FOLDER",
                        help="where hipress-sim is (default: build/release/bin)")
    options = parser.parse_args()
    if not (options.tools / "hipress-sim").is_file():
        parser.error(f"no hipress-sim in {options.tools}: scripts/build.sh demo builds it, --tools says where else it is")
    try:
        run(options)
    except (published_steps.Failed, Unwritable) as error:
        print(f"reproduce_gpu.py: {error}", file=sys.stderr)
        return getattr(error, "status", 2)
    return 0


if __name__ == "__main__":
    sys.exit(main())
