#!/usr/bin/env python3
"""Lays what `hipress-sim --plan ddp` predicts beside PyTorch's DistributedDataParallel over gloo, on networks of known
speed made of network namespaces on this machine.

Gradients are made up: as many as ResNet50's and BERT-base's, of 1/2 and 1/8 of their elements, ready when theirs are,
with times scaled alike. DDP has its own buckets (1 MiB, then 25 MiB) on both sides. The network is profiled with
gloo, as validate.py does, so that all-reduces are gloo's. Needs a release build and a python3 with torch; without it, or
without the right to make namespaces, it says "skipped: ..." and exits with 0.
"""

import argparse
import dataclasses
import json
import pathlib
import statistics
import subprocess
import sys

import whole_file
from options import at_least
from validation import command
from validation.cases import Case, Scale, gradients_of, scaled_model
from validation.conditions import taken_between
from validation.evaluation import quantile
from validation.measurement import Plan, links_of
from validation.network import Network, Unavailable, remove_leftovers
from validation.torch_bench import GlooBench

ROOT = pathlib.Path(__file__).resolve().parent.parent
RANK = ROOT / "scripts/validation/ddp_rank.py"
#: Models, and by what their gradients are divided, so that an iteration takes seconds.
DIVISORS = {"resnet50": 2, "bert_base": 8}
#: Computation relates to communication as in the unscaled model on links of so many Mbit/s: about half of it shows.
EMULATED_RATE = 10_000
NODES = (2, 4)
#: Where torch is looked for: Debian's own python3 first.
PYTHONS = ("/usr/bin/python3", sys.executable)

HEADER = (f"{'model':10} {'1/':>3} {'N':>2} {'rate':>5} {'predicted':>12} {'p10':>9} {'p90':>9} {'measured':>12} {'p10':>9} "
          f"{'p90':>9} {'error':>8}")
say = command.speaker("validate_ddp")


def python_with_torch() -> pathlib.Path:
    """Unavailable if there is none."""
    for python in PYTHONS:
        try:
            found = subprocess.run([python, "-c", "import torch.distributed as d; assert d.is_gloo_available()"],
                                   capture_output=True, check=False)
        except OSError:
            continue
        if found.returncode == 0:
            return pathlib.Path(python)
    raise Unavailable("no python3 has torch with gloo (Debian package python3-torch)")


@dataclasses.dataclass(frozen=True)
class Result:
    """DDP of a model on so many nodes, predicted and measured, in seconds."""

    model: str
    nnodes: int
    rate: int
    predicted: dict  #: what hipress-sim printed
    measured: dict  #: what the ranks printed
    disturbed: bool

    @property
    def predicted_s(self) -> float:
        return self.predicted["iteration_s"]

    @property
    def measured_s(self) -> float:
        return statistics.median(self.measured["iterations_s"])

    @property
    def error(self) -> float:
        return self.predicted_s / self.measured_s - 1

    def measured_quantile(self, share: float) -> float:
        return quantile(self.measured["iterations_s"], share)

    def to_json(self) -> dict:
        return {"model": self.model, "elements_divided_by": DIVISORS[self.model], "nnodes": self.nnodes,
                "rate": self.rate, "predicted_s": self.predicted_s,
                "predicted_s_p10": self.predicted.get("iteration_s_p10"),
                "predicted_s_p90": self.predicted.get("iteration_s_p90"), "measured_s": self.measured_s,
                "measured_s_p10": self.measured_quantile(0.1), "measured_s_p90": self.measured_quantile(0.9),
                "error": self.error, "iterations_s": self.measured["iterations_s"],
                "bucket_bytes": self.measured["bucket_bytes"], "verified": self.measured["verified"],
                "disturbed": self.disturbed, "torch": self.measured["torch"]}


def format_row(result: Result) -> str:
    def ms(seconds: float | None) -> str:
        return "–" if seconds is None else f"{seconds * 1e3:.1f}"

    return (f"{result.model:10} {DIVISORS[result.model]:3} {result.nnodes:2} {result.rate:5} {ms(result.predicted_s):>9} ms "
            f"{ms(result.predicted.get('iteration_s_p10')):>9} {ms(result.predicted.get('iteration_s_p90')):>9} "
            f"{ms(result.measured_s):>9} ms {ms(result.measured_quantile(0.1)):>9} {ms(result.measured_quantile(0.9)):>9} "
            f"{result.error * 100:+6.1f} %{' disturbed' if result.disturbed else ''}"
            f"{'' if result.measured['verified'] else ' WRONG'}")


@dataclasses.dataclass
class DdpBench(GlooBench):
    """Ranks of DDP."""

    warmups: int = 2

    def write(self, case: Case) -> tuple[pathlib.Path, pathlib.Path]:
        """The scaled model, for hipress-sim as YAML and for the ranks as JSON."""
        size = 1 / DIVISORS[case.model]
        text = scaled_model((self.models / f"{case.model}.yaml").read_text(),
                            Scale(size, size * EMULATED_RATE / case.rate))
        yaml = self.output / f"{case.model}_{case.rate}.yaml"
        yaml.write_text(text)
        of_ranks = yaml.with_suffix(".json")
        of_ranks.write_text(json.dumps(gradients_of(text)))
        return yaml, of_ranks

    def run_case(self, case: Case) -> Result:
        yaml, of_ranks = self.write(case)
        alone = dataclasses.replace(self.launcher, network=None, real_time=False)
        predicted = alone.run_json(case.nnodes, "hipress-sim", "--input", yaml, "--plan", "ddp", "--profile",
                                   self.profile_path(links_of(case)))
        ranks = dataclasses.replace(self.launcher, tools=self.python.parent)
        measured = {}

        def measure() -> None:
            measured.update(ranks.run_json(case.nnodes, self.python.name, "-B", RANK, "--model", of_ranks, "--warmups",
                                           self.warmups, "--iterations", self.iterations))

        _, disturbed = self.undisturbed(measure, taken_between)
        return Result(case.model, case.nnodes, case.rate, predicted, measured, disturbed)


def measure(bench: DdpBench, options: argparse.Namespace) -> list[Result]:
    results = []
    for nnodes in options.nnodes:
        cases = [Case(model, "allreduce", "ddp", nnodes, options.rate) for model in options.models]
        with Network(nnodes) as network:
            on_network = bench.on(network)
            on_network.profile_links(network, cases[0])
            for case in cases:
                results.append(on_network.run_case(case))
                print(format_row(results[-1]), flush=True)
    return results


def finish(options: argparse.Namespace, results: list[Result]) -> int:
    errors = [abs(result.error) for result in results]
    print(f"error: median {statistics.median(errors) * 100:.1f} %, worst {max(errors) * 100:.1f} %")
    if options.json:
        whole_file.write_json(options.json, {"median_abs_error": statistics.median(errors), "worst_abs_error": max(errors),
                                             "cases": [result.to_json() for result in results]})
    return 0 if all(result.measured["verified"] for result in results) else 1


def some_of(known: tuple, kind: type):
    """For argparse: a list with commas of what there is."""
    def parse(text: str) -> list:
        values = text.split(",")
        for value in values:
            if value not in map(str, known):
                raise argparse.ArgumentTypeError(f"must be some of {', '.join(map(str, known))}, got '{value}'")
        return [kind(value) for value in values]

    return parse


def parse_arguments() -> argparse.Namespace:
    parser = command.parser(__doc__)
    parser.add_argument("--models", type=some_of(tuple(DIVISORS), str), default=list(DIVISORS),
                        help=f"comma-separated: {', '.join(DIVISORS)}")
    parser.add_argument("--nnodes", type=some_of(NODES, int), default=list(NODES), help="comma-separated: 2, 4")
    parser.add_argument("--rate", type=at_least(1), default=200, help="Mbit/s each way of every host")
    parser.add_argument("--iterations", type=at_least(1), default=DdpBench.iterations, help="measured of each case")
    command.add_options(parser, ROOT, "validation_ddp", kept="profiles")
    return parser.parse_args()


def run(options: argparse.Namespace, real_time: bool) -> int:
    options.output = whole_file.prepare(options.output, options.json)
    python = python_with_torch()
    remove_leftovers()
    bench = DdpBench.of(options, real_time, Plan(again=options.again), say, python=python)
    print(HEADER, flush=True)
    return finish(options, measure(bench, options))


def main() -> int:
    options = parse_arguments()
    return command.run(lambda real_time: run(options, real_time), say)


if __name__ == "__main__":
    sys.exit(main())
