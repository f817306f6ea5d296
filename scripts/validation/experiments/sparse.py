"""Measures the density above which a sparse all-gather is slower than a dense ring, and compares it with that of hipress-plan, on a
network of known speed.

hipress-plan plans the model for topology ALLGATHER with a sparsifier and fp16, on a profile of this network. The plan has the
density above which dense is faster. hipress-exec then replays the plan at densities around that one, sparse and dense, and at the
plan's own. A line through the measured times over the density meets the dense time at the measured break-even.
"""

import argparse
import dataclasses
import math
import pathlib
import re
import statistics

import whole_file
from options import at_least

from ..cases import Case
from ..command import Experiment
from ..measurement import ONCE, Bench, links_of
from ..network import Network
from ..ranks import ToolError
from ..replayed import COLUMNS, Replayed, describe_errors

#: Measured densities, as multiples of the predicted break-even.
AROUND = (0.7, 0.85, 1.0, 1.15, 1.3)
#: Densities at which kernels are profiled, as multiples of the density at which a sparse all-gather sends as much as a dense ring
#: in half precision.
PROFILED = (0.25, 0.5, 1.0, 2.0)
WARMUPS = 4
DENSE = 1.0

HEADER = f"{'density':>9} {'sent':>7} {COLUMNS}"


@dataclasses.dataclass
class Result(Replayed):
    """Results of the plan at one density, sent sparse or dense."""

    density: float
    dense: bool = False

    def to_json(self) -> dict:
        return {"density": self.density, "dense": self.dense, **self.times()}

    def __str__(self) -> str:
        return (f"{'–' if self.dense else f'{self.density:.4g}':>9} {'dense' if self.dense else 'sparse':>7} {self.columns()}"
                f"{self.notes()}")


def density_of(algorithm: str) -> float:
    return float(re.search(r"\brho=([^,)]+)", algorithm)[1])


def with_density(algorithm: str, density: float) -> str:
    return re.sub(r"\brho=[^,)]+", f"rho={density:.4g}", algorithm)


def break_even(sparse: list[Result], dense_s: float) -> float:
    """Density at which the least-squares line through the sparse times meets the dense time; NaN if the line does not rise."""
    line = statistics.linear_regression([result.density for result in sparse], [result.measured_s for result in sparse])
    return (dense_s - line.intercept) / line.slope if line.slope > 0 else math.nan


class SparseBench(Bench):
    """Bench that plans and replays one model."""

    def make_plan(self, case: Case, profile: pathlib.Path) -> tuple[pathlib.Path, pathlib.Path, dict]:
        """Plans the model. Returns the plan, the same plan without its dense fallback, and the output of hipress-plan."""
        path, sparse = self.output / f"plan_{case.nnodes}.yaml", self.output / f"plan_{case.nnodes}_sparse.yaml"
        made = self.ordinary.run_json(case.nnodes, "hipress-plan", "--input", case.model, "--topology", "ALLGATHER", "--algorithm",
                                      f"{case.algorithm},fp16", "--profile", profile, "--output", path)
        lines = path.read_text().splitlines(keepends=True)
        sparse.write_text("".join(line for line in lines if not line.startswith("dense:")))
        return path, sparse, made

    def replay(self, result: Result, case: Case, plan: pathlib.Path, profile: pathlib.Path) -> None:
        report = self.launcher.run_json(case.nnodes, "hipress-exec", "--input", case.model, "--plan", plan, "--density",
                                        result.density, "--profile", profile, *ONCE, "--warmup", WARMUPS, "--iterations",
                                        self.plan.iterations)
        result.add(report)


def measure(bench: SparseBench, options: argparse.Namespace) -> tuple[dict, list[Result]]:
    """Measures the plan at its own density, at those around the break-even, and dense. Returns these results and the output of
    hipress-plan."""
    case = Case(options.input, "allgather", options.algorithm, options.nnodes, options.rate)
    half = 1 / (2 * options.nnodes)
    algorithms = ["fp16", options.algorithm, *(with_density(options.algorithm, share * half) for share in PROFILED)]
    with Network(options.nnodes) as network:
        on_network = bench.on(network)
        on_network.profile_links(network, case)
        made, results = {}, []
        for number in range(options.rounds):
            profile = bench.profile_path(f"{links_of(case)}_now")
            on_network.profile_kernels(case, ",".join(dict.fromkeys(algorithms)), profile)
            if not results:
                plan, sparse, made = on_network.make_plan(case, profile)
                if "dense" not in made:
                    raise ToolError(f"hipress-plan says no density from which on dense is faster; see {plan}")
                results = [Result(density_of(options.algorithm)),
                           *(Result(min(1.0, share * made["dense"]["above"])) for share in AROUND), Result(DENSE, dense=True)]
            for result in results if number % 2 == 0 else reversed(results):
                replayed = plan if result.dense else sparse
                result.once(on_network, lambda: on_network.replay(result, case, replayed, profile))  # noqa: B023
    return made, results


def finish(options: argparse.Namespace, made: dict, results: list[Result]) -> int:
    own, *around, dense = results
    predicted = made["dense"]["above"]
    measured = break_even(around, dense.measured_s)
    lines = [f"dense ({made['dense']['algorithm']}, K = {made['dense']['K']}) is faster from density {measured:.4f} on, measured; "
             f"{predicted:.4f} predicted, {100 * (predicted / measured - 1):+.1f} %",
             f"at density {own.density:g}, dense takes {dense.measured_s / own.measured_s:.1f} times as long as sparse"]
    print("\n".join([HEADER, *map(str, results), *lines, describe_errors(results)]), flush=True)
    if options.json:
        whole_file.write_json(options.json, {
            "input": options.input, "algorithm": options.algorithm, "nnodes": options.nnodes, "rate": options.rate,
            "dense": made["dense"], "break_even": {"predicted": predicted, "measured": measured},
            "times_faster": dense.measured_s / own.measured_s, "cases": [result.to_json() for result in results]})
    return 0 if all(result.verified for result in results) else 1


def sparse_algorithm(text: str) -> str:
    try:
        fits = 0 < density_of(text) <= 1
    except (TypeError, ValueError):
        fits = False
    if not fits:
        raise argparse.ArgumentTypeError(f"give its density, as in dgc(rho=0.01), got {text}")
    return text


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--input", default="resnet50", help="model, as the tools take it (default: %(default)s)")
    parser.add_argument("--algorithm", type=sparse_algorithm, default="dgc(rho=0.01)", help="default: %(default)s")
    parser.add_argument("--nnodes", type=at_least(2), default=8, help="default: %(default)s")
    parser.add_argument("--rate", type=at_least(1), default=200, help="Mbit/s each way of every host (default: %(default)s)")


def run(options: argparse.Namespace) -> int:
    return finish(options, *measure(SparseBench.of(options), options))


EXPERIMENT = Experiment(run, add_options, rounds=2, iterations=3)
