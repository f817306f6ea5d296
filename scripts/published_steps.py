"""Published training steps on GPUs, and their predictions by hipress-sim, for reproduce_gpu.py.

Columns of a file: table, job, calibrates, model, schedule, machine, hosts, gpus, precision, batch_per_gpu, seq, micro_steps,
activation_checkpoints, bucket_mb, algorithm, measured_s. One run of hipress-sim predicts a row.
The row that calibrates a job determines the share of the peak that its computation reaches (--mfu). For a machine whose GPUs
communicate through shared memory (-shm), it determines the link's bandwidth instead; the share is then that of the same model's job
over a different link, if there is one.
"""

import concurrent.futures
import csv
import json
import os
import pathlib
import statistics
import subprocess

COLUMNS = ("table", "job", "calibrates", "model", "schedule", "machine", "hosts", "gpus", "precision", "batch_per_gpu", "seq",
           "micro_steps", "activation_checkpoints", "bucket_mb", "algorithm", "measured_s")

#: Dtype of the tool by published precision. "mixed" is that of NVIDIA's apex (O2), whose gradients are fp16.
DTYPES = {"fp32": "fp32", "tf32": "tf32", "mixed": "fp16", "fp16": "fp16", "bf16": "bf16"}
#: Dtypes of sharded jobs: "bf16" keeps parameters in fp32 and gathers shards in bf16.
SHARDED_DTYPES = DTYPES | {"bf16": "mixed", "bf16, fp32 reductions": "mixed"}
SHARDED_PLANS = {"bf16": "bf16", "bf16, fp32 reductions": "mixed"}
CHECKPOINTS = {"": "none", "false": "none", "true": "full", "none": "none", "selective": "selective", "full": "full"}
ALL_AT_ONCE = ["--bulk-threshold", "1TiB", "--bulk-limit", "1TiB"]

#: Relative error up to which a calibration has converged.
TOLERANCE = 2e-4
MOST_STEPS = 12


class Failed(Exception):
    """Error: the tool refused or failed. `status` is the exit status."""

    def __init__(self, message: str, status: int):
        super().__init__(message)
        self.status = status


def is_of_steps(path: str) -> bool:
    try:
        with open(path, newline="", encoding="utf-8") as file:
            return "measured_s" in next(csv.reader(file), [])
    except (OSError, UnicodeDecodeError):
        return False  # the tool reports the error


def refuse(path: str, line: int, message: str):
    raise Failed(f"{path}:{line}: {message}", 2)


def checked(path: str, line: int, row: dict) -> dict:
    """Converts a row's numbers from text. Raises Failed for a wrong row."""
    if None in row or None in row.values():
        refuse(path, line, f"a line must have {len(COLUMNS)} fields: {','.join(COLUMNS)}")
    for column in ("hosts", "gpus", "batch_per_gpu", "measured_s"):
        try:
            row[column] = float(row[column]) if column == "measured_s" else int(row[column])
        except ValueError:
            refuse(path, line, f"{column} must be a number, got '{row[column]}'")
        if not 0 < row[column] < 1e9:
            refuse(path, line, f"{column} must be more than 0, got {row[column]}")
    for column, known in (("activation_checkpoints", CHECKPOINTS), ("precision", SHARDED_DTYPES)):
        if row[column] not in known:
            refuse(path, line, f"{column} must be one of {', '.join(filter(None, known))}, got '{row[column]}'")
    try:
        row["micro_steps"] = int(row["micro_steps"] or 1)
    except ValueError:
        refuse(path, line, f"micro_steps must be a whole number, got '{row['micro_steps']}'")
    return row | {"line": line, "file": path}


def read(path: str) -> list[dict]:
    with open(path, newline="", encoding="utf-8") as file:
        reader = csv.DictReader(file)
        missing = [column for column in COLUMNS if column not in (reader.fieldnames or ())]
        if missing:
            refuse(path, 1, f"columns are missing: {', '.join(missing)}")
        return [checked(path, reader.line_num, row) for row in reader]


def plan_of(row: dict) -> list[str]:
    schedule, algorithm, bucket = row["schedule"], row["algorithm"], row["bucket_mb"]
    if schedule in ("fsdp", "hsdp") and algorithm == "none":
        name, policy = {"fsdp": "fsdp2", "hsdp": "hsdp"}[schedule], SHARDED_PLANS.get(row["precision"])
        return ["--plan", f"{name}_{policy}" if policy else name]
    if algorithm != "none":
        return ["--plan", "all", "--algorithm", algorithm, "--topology", "ring", *ALL_AT_ONCE]
    raw = ["--plan", "none", "--topology", "allreduce"]
    if schedule == "none":
        return [*raw, "--per-gradient", "0us"]
    if schedule.endswith("after backward"):
        return raw + ALL_AT_ONCE
    if schedule != "ddp":
        refuse(row["file"], row["line"], f"schedule must be none, ddp, 'ddp, after backward', fsdp or hsdp, got '{schedule}'")
    if row["gpus"] == 1 and not bucket:
        return [*raw, "--per-gradient", "0us"]  # a job of one GPU has nothing to average, and is assumed to run without DDP
    if bucket and float(bucket) != 25:
        return [*raw, "--bulk-threshold", f"{bucket}MiB", "--bulk-limit", f"{bucket}MiB"]
    return ["--plan", "ddp"]


def arguments_of(row: dict) -> list[str]:
    dtypes = SHARDED_DTYPES if row["schedule"] in ("fsdp", "hsdp") else DTYPES
    if row["precision"] not in dtypes:
        refuse(row["file"], row["line"], f"precision '{row['precision']}' is of sharded jobs")
    return ["--input", row["model"], "--machine", row["machine"], "--hosts", str(row["hosts"]), "--gpus", str(row["gpus"]),
            "--batch", str(row["batch_per_gpu"]), *(["--seq", row["seq"]] if row["seq"] else []),
            "--dtype", dtypes[row["precision"]], "--checkpoint", CHECKPOINTS[row["activation_checkpoints"]],
            "--micro-steps", str(row["micro_steps"]), *plan_of(row)]


class Tool:
    """hipress-sim with a cache of its answers."""

    def __init__(self, folder: pathlib.Path):
        self.path = folder / "hipress-sim"
        self.known: dict[tuple, float] = {}

    def step_s(self, row: dict, *more: str) -> float:
        command = (*arguments_of(row), *more)
        if command not in self.known:
            done = subprocess.run([self.path, *command, "--json"], capture_output=True, text=True, check=False)
            if done.returncode != 0:
                raise Failed(f"{row['file']}:{row['line']}: {done.stderr.strip()}", 2 if done.returncode == 2 else 1)
            self.known[command] = json.loads(done.stdout)["iteration_s"]
        return self.known[command]


def solved(time_s, wanted_s: float, least: float, most: float) -> float:
    """Finds the rate between `least` and `most` at which `time_s` is `wanted_s`, by false position on the inverse of the rate. The
    time must decrease as the rate increases."""
    low, high = 1 / most, 1 / least
    low_s, high_s = time_s(1 / low), time_s(1 / high)
    if wanted_s <= low_s:
        return most
    if wanted_s >= high_s:
        return least
    at = low
    for _ in range(MOST_STEPS):
        at = low + (high - low) * (wanted_s - low_s) / (high_s - low_s)
        at_s = time_s(1 / at)
        if abs(at_s / wanted_s - 1) < TOLERANCE:
            break
        if at_s < wanted_s:
            low, low_s = at, at_s
        else:
            high, high_s = at, at_s
    return 1 / at


def calibrated_by(tool: Tool, row: dict, others: list[dict]) -> list[str]:
    """Options under which the tool predicts the row's measured time."""
    alike = ("table", "model", "schedule", "precision", "batch_per_gpu", "seq", "algorithm")
    of_link = [other for other in others if other is not row and other["machine"] != row["machine"]
               and all(other[column] == row[column] for column in alike)]
    if row["machine"].endswith("-shm") and of_link:
        share = calibrated_by(tool, of_link[0], [])
        rate = solved(lambda rate: tool.step_s(row, *share, "--gpu-bandwidth", f"{rate:.6g}GB/s"), row["measured_s"], 0.05, 50)
        return [*share, "--gpu-bandwidth", f"{rate:.6g}GB/s"]
    share = solved(lambda share: tool.step_s(row, "--mfu", f"{share:.6g}"), row["measured_s"], 0.005, 1)
    return ["--mfu", f"{share:.6g}"]


def predicted(tools: pathlib.Path, files: list[str]) -> list[dict]:
    """Rows of the files with predictions. `linear_s` is the time of the calibrating row, scaled by micro-steps alone."""
    tool, rows = Tool(tools), [row for path in files for row in read(path)]
    calibrating = {(row["table"], row["job"]): row for row in rows if row["calibrates"] == "1"}

    def of_job(row):
        return calibrated_by(tool, row, list(calibrating.values()))

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        options = dict(zip(calibrating, pool.map(of_job, calibrating.values())))

        def of_row(row):
            key = (row["table"], row["job"])
            known = calibrating.get(key)
            linear_s = known["measured_s"] * row["micro_steps"] / known["micro_steps"] if known else None
            calibrated_s = tool.step_s(row, *options.get(key, []))
            uncalibrated_s = tool.step_s(row)
            return {column: row[column] for column in COLUMNS} | {
                "calibrated_s": calibrated_s, "uncalibrated_s": uncalibrated_s, "linear_s": linear_s,
                "error": calibrated_s / row["measured_s"] - 1, "uncalibrated_error": uncalibrated_s / row["measured_s"] - 1,
                "linear_error": linear_s / row["measured_s"] - 1 if known else None}

        return list(pool.map(of_row, rows))


def summed_up(table: str, rows: list[dict]) -> dict:
    judged = [row for row in rows if row["calibrates"] != "1"]

    def errors(key):
        return sorted(abs(row[key]) for row in judged if row[key] is not None)

    def median(values):
        return statistics.median(values) if values else None

    calibrated = errors("error")
    return {"table": table, "rows": len(judged), "median_abs_error": median(calibrated),
            "p90_abs_error": calibrated[min(len(calibrated) - 1, int(0.9 * len(calibrated)))] if calibrated else None,
            "linear_median_abs_error": median(errors("linear_error")),
            "uncalibrated_median_abs_error": median(sorted(abs(row["uncalibrated_error"]) for row in rows))}


def by_table(rows: list[dict]) -> list[dict]:
    tables: dict[str, list[dict]] = {}
    for row in rows:
        tables.setdefault(row["table"], []).append(row)
    return [summed_up(table, of_table) for table, of_table in tables.items()]


def report(rows: list[dict]) -> str:
    lines = ["Steps of training; rows that calibrate a job are not counted, but for arithmetic alone:", "",
             "| table | rows | median error | 90th percentile | linear scaling, median | arithmetic alone, median |",
             "|---|---|---|---|---|---|"]
    for summary in [*by_table(rows), summed_up("all", rows)]:
        cells = [summary[key] for key in ("median_abs_error", "p90_abs_error", "linear_median_abs_error",
                                          "uncalibrated_median_abs_error")]
        shown = ["–" if value is None else f"{100 * value:.1f} %" for value in cells]
        lines.append(f"| {summary['table']} | {summary['rows']} | {' | '.join(shown)} |")
    return "\n".join(lines)
