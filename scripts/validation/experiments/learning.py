"""Compares the planner's predictions of learning with training runs of twelve small jobs, rows of scripts/validation/learning.py.

    validate.py learning ratios     steps ratios of plans that mix algorithms, predicted from a pilot of the algorithms alone and measured
    validate.py learning cells      time to DDP's loss, on networks of namespaces on this machine: DDP, its hooks, and plans

`ratios` pilots every job; no network is needed. `cells` measures seconds per step of real DDP processes, in which the arms (DDP,
its hooks and the plans) take turns in blocks of steps. It multiplies these seconds by the pilot's steps ratio, which applies
because the pilot has the same bits. Finished parts are kept in --output, and a further run continues from there. Needs a python3
with torch.
"""

import argparse
import csv
import dataclasses
import pathlib
import shlex
import statistics

from options import at_least, some_of

from .. import learning
from ..cases import Case
from ..command import Experiment
from ..network import INTERFACE, Network
from ..results import write_rows
from ..torch_bench import use_package
from .training import DDP, RATES, SMALL_BUCKETS, TIE, UNCERTAINTY, TrainingBench
from hipress import _pilot_file  # noqa: E402  (through the path that whole_file adds)

NAMES = tuple(job.name for job in learning.JOBS)
RATIO_COLUMNS = ("job", "ranks", "half", "plan", "predicted", "p10", "p90", "measured", "measured_p10", "measured_p90", "error", "within")
CELL_COLUMNS = ("job", "ranks", "rate", "arm", "step_s", "steps_ratio", "per_ddp_step_s", "over_best_of_ddp")
#: Steps of an arm in its turn, and number of turns. An arm is DDP, one of its hooks, or a plan.
BLOCK, TURNS = 12, 3
CAPTURED_STEPS = 40


# ------------------------------------------------------------------------------------------------------------------- ratios


def model_file(job: learning.Job, folder: pathlib.Path, python: pathlib.Path) -> pathlib.Path:
    """Writes a model file with names and shapes of the job's gradients, for plans whose time does not matter."""
    path = folder / f"{job.name}.model.yaml"
    if not path.exists():
        rows = [f"- {{name: {name}, shape: {shape}}}" for name, shape in learning.shapes(job, str(python))]
        path.write_text("\n".join([f"name: {job.name}", "gradients:", *rows, ""]))
    return path


def only_algorithms(pilot: pathlib.Path) -> pathlib.Path:
    """Copies a pilot without its runs of plan files, which the planner is to predict. Returns the copy's path."""
    document, path = _pilot_file.read(pilot), pilot.with_suffix(".algorithms.yaml")
    for key in ("plans", "ratios", "errors"):
        document[key] = [row for row in document[key] if not row["plan"].endswith(".yaml")]
    _pilot_file.write(path, document)
    return path


def predicted(job: learning.Job, options: argparse.Namespace, plan: str, pilot: pathlib.Path) -> dict | None:
    """Member `learning` of hipress-plan's JSON for a plan file; None if an algorithm never reaches DDP's loss."""
    return options.bench.ordinary.run_json(
        job.ranks, "hipress-plan", "--input", model_file(job, options.output, options.bench.python), "--plan", plan, "--pilot", pilot,
        "--bandwidth", "1Gbps", "--profile", "a100-10g", "--explain").get("learning")


def ratios_of(job: learning.Job, options: argparse.Namespace) -> list:
    """Rows of a job's mixed plans. Plans that do not reach DDP's loss within the pilot are left out, and so are plans that use an
    algorithm which does not reach it: their ratios cannot be compared."""
    python = str(options.bench.python)
    pilot = learning.pilot(job, options.output, learning.write_plans(job, options.output, python), python, options.jobs, options.seeds)
    measured = {row["plan"]: row for row in _pilot_file.read(pilot)["ratios"]}
    alone, rows = only_algorithms(pilot), []
    for plan, row in measured.items():
        found = predicted(job, options, plan, alone) if plan.endswith(".yaml") and "p90" in row else None
        if found is not None:
            ratio, low, high = (found[f"steps_ratio{end}"] for end in ("", "_p10", "_p90"))
            rows.append({"job": job.name, "ranks": job.ranks, "half": "fitted" if job.fitted else "judged", "plan": pathlib.Path(plan).name,
                         "predicted": ratio, "p10": low, "p90": high, "measured": row["ratio"], "measured_p10": row["p10"],
                         "measured_p90": row["p90"], "error": ratio / row["ratio"] - 1, "within": int(low <= row["ratio"] <= high)})
    return rows


def say_ratios(rows: list) -> None:
    for half in ("fitted", "judged"):
        errors = [abs(row["error"]) for row in rows if row["half"] == half]
        if errors:
            within = statistics.fmean(row["within"] for row in rows if row["half"] == half)
            print(f"{half}: {len(errors)} plans, error median {statistics.median(errors) * 100:.1f} %, largest {max(errors) * 100:.1f} %; "
                  f"{within * 100:.0f} % within the interval")


def run_ratios(options: argparse.Namespace) -> int:
    rows = []
    for job in options.chosen:
        rows += ratios_of(job, options)
        write_rows(options.csv or options.output / "ratios.csv", RATIO_COLUMNS, rows)
        say_ratios(rows)
    return 0


# -------------------------------------------------------------------------------------------------------------------- cells


@dataclasses.dataclass
class LearningBench(TrainingBench):
    """Bench with plans for a captured job and a profiled network, and measured step times of the job."""

    algorithms: str = ",".join(learning.ALGORITHMS)

    def captured_job(self, job: learning.Job) -> pathlib.Path:
        return self.capture(self.output / f"{job.name}.captured.yaml", shlex.split(job.arguments), CAPTURED_STEPS, *SMALL_BUCKETS)

    def planned(self, job: learning.Job, case: Case, arm: str, *arguments: object) -> pathlib.Path:
        """Path of an arm's plan, which is made at the first call."""
        path = self.output / f"{job.name}.{case.rate}.{arm}.yaml"
        if not path.exists():
            self.alone.run(job.ranks, "hipress-plan", "--input", self.captured_job(job), "--topology", "best", "--profile",
                           self.profile(case), *UNCERTAINTY, *arguments, "--output", path)
        return path

    def run_job(self, job: learning.Job, case: Case, options: argparse.Namespace) -> list:
        """Rows of a cell, one for each arm."""
        pilot = learning.pilot(job, self.output, [], str(self.python), options.jobs, options.seeds)
        plans = {"plan": self.planned(job, case, "plan", "--pilot", pilot),
                 "plan by time": self.planned(job, case, "time", "--algorithm", self.algorithms)}
        learning.pilot(job, self.output, list(plans.values()), str(self.python), options.jobs, options.seeds)
        ratios = {row["plan"]: row["ratio"] for row in _pilot_file.read(pilot)["ratios"]}
        arms = {name: (hook.real, 1.0 if hook.algorithm is None else ratios[hook.algorithm]) for name, hook in DDP.items()}
        for name, plan in plans.items():
            arms[name] = (["--average", "hipress", "--plan", plan, "--timings", self.captured_job(job), *SMALL_BUCKETS], ratios[str(plan)])
        words = shlex.split(job.arguments)
        report = self.run_ways(job.ranks, {name: [*words, *arguments] for name, (arguments, _) in arms.items()}, BLOCK * TURNS, BLOCK)
        return rows_of(job, case.rate, {name: seconds_of(way["blocks_s"]) for name, way in report.items()},
                       {name: ratio for name, (_, ratio) in arms.items()})


def seconds_of(blocks: list) -> float:
    """Median over blocks of the median step time of each block. The first step of a block is left out, because the caches then hold
    other arms' data."""
    return statistics.median(statistics.median(block[1:]) for block in blocks)


def rows_of(job: learning.Job, rate: int, seconds: dict, ratios: dict) -> list:
    """Rows of a cell. An arm that never reaches DDP's loss has no time."""
    times = {arm: seconds[arm] * ratio if isinstance(ratio, float) else None for arm, ratio in ratios.items()}
    best = min(times[arm] for arm in DDP if times[arm] is not None)
    return [{"job": job.name, "ranks": job.ranks, "rate": rate, "arm": arm, "step_s": seconds[arm], "steps_ratio": ratios[arm],
             "per_ddp_step_s": "" if times[arm] is None else times[arm],
             "over_best_of_ddp": "" if times[arm] is None else times[arm] / best} for arm in times]


def say_cells(rows: list) -> None:
    cells = {(row["job"], row["rate"]): {} for row in rows}
    for row in rows:
        cells[row["job"], row["rate"]][row["arm"]] = float(row["per_ddp_step_s"] or "inf")
    over = [cell["plan"] / min(cell[arm] for arm in DDP) for cell in cells.values()]
    over_ddp = [cell["plan"] / cell["ddp"] for cell in cells.values()]
    print(f"{len(cells)} cells: within {TIE * 100:.0f} % of the best of DDP in {sum(one <= 1 + TIE for one in over)}, ahead in "
          f"{sum(one < 1 for one in over)}, more than {TIE * 100:.0f} % behind DDP in {sum(one > 1 + TIE for one in over_ddp)}")


def run_cells(options: argparse.Namespace) -> int:
    path = options.csv or options.output / "cells.csv"
    rows = list(csv.DictReader(path.open(encoding="utf-8"))) if path.exists() else []
    done = {(row["job"], int(row["rate"])) for row in rows}
    for nnodes in sorted({job.ranks for job in options.chosen}):
        with Network(nnodes) as network:
            for job, rate in [(job, rate) for rate in options.rates for job in options.chosen if job.ranks == nnodes]:
                if (job.name, rate) in done:
                    continue
                case = Case(job.name, "ring", "fp16", nnodes, rate)
                on_network = options.bench.on(network)
                on_network.profile_network(network, case)
                rows += on_network.run_job(job, case, options)
                write_rows(path, CELL_COLUMNS, rows)
                say_cells(rows)
    return 0


def measures_cells(options: argparse.Namespace) -> bool:
    return options.part == "cells"


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("part", choices=["ratios", "cells"])
    parser.add_argument("--of", type=some_of(NAMES, str), default=list(NAMES), help=f"jobs, comma-separated: {', '.join(NAMES)}")
    parser.add_argument("--rates", type=some_of(RATES, int), default=list(RATES), help="of cells, comma-separated: 200, 1000 (Mbit/s)")
    parser.add_argument("--jobs", type=at_least(1), default=1, help="runs of a pilot at a time (default: %(default)s)")
    parser.add_argument("--seeds", type=at_least(1), default=1, help="seeds with which a pilot trains each plan (default: %(default)s)")
    parser.add_argument("--csv", type=pathlib.Path, help="table to write (default: in --output)")


def run(options: argparse.Namespace) -> int:
    options.resume, options.chosen = True, [job for job in learning.JOBS if job.name in options.of]
    options.bench = LearningBench.of(options)
    use_package(options, GLOO_SOCKET_IFNAME=INTERFACE if measures_cells(options) else "lo")
    return run_cells(options) if measures_cells(options) else run_ratios(options)


EXPERIMENT = Experiment(run, add_options, kept=None, json=False, needs_network=measures_cells, real_time=measures_cells)
