"""Compares the predictions of `hipress-sim --plan ddp` with PyTorch's DistributedDataParallel over gloo, on networks of known
speed.

Gradients are made up. Their number is that of ResNet50 and BERT-base, with 1/2 and 1/8 of the elements; ready times are scaled
alike. Prediction and measurement both use DDP's default buckets (1 MiB, then 25 MiB). The network is profiled with gloo, so that
all-reduces are gloo's. Needs a python3 with torch.
"""

import argparse
import dataclasses
import statistics

import whole_file
from options import at_least, some_of

from ..cases import Case, Scale
from ..command import Experiment
from ..measurement import links_of
from ..network import Network
from ..replayed import COLUMNS, Replayed
from ..torch_bench import GlooBench

#: Models, and the numbers by which their gradients are divided, so that an iteration takes seconds.
DIVISORS = {"resnet50": 2, "bert_base": 8}
#: Rate in Mbit/s. Computation is scaled so that its ratio to communication is that of the unscaled model on links of this rate:
#: about half of the communication is then exposed.
EMULATED_RATE = 10_000
NODES = (2, 4)

HEADER = f"{'model':10} {'1/':>3} {'N':>2} {'rate':>5} {COLUMNS}"


@dataclasses.dataclass
class Result(Replayed):
    """Results of DDP with a model on a number of nodes."""

    case: Case
    ranks: dict = dataclasses.field(default_factory=dict)  #: output of the ranks

    def to_json(self) -> dict:
        return {"model": self.case.model, "elements_divided_by": DIVISORS[self.case.model], "nnodes": self.case.nnodes,
                "rate": self.case.rate, **self.times(), "bucket_bytes": self.ranks["bucket_bytes"], "torch": self.ranks["torch"]}

    def __str__(self) -> str:
        return (f"{self.case.model:10} {DIVISORS[self.case.model]:3} {self.case.nnodes:2} {self.case.rate:5} {self.columns()}"
                f"{self.notes()}")


class DdpBench(GlooBench):
    """Bench that runs ranks of DDP."""

    def run_case(self, case: Case) -> Result:
        size = 1 / DIVISORS[case.model]
        yaml, of_ranks = self.write_scaled(case, Scale(size, size * EMULATED_RATE / case.rate))
        predicted = self.ordinary.run_json(case.nnodes, "hipress-sim", "--input", yaml, "--plan", "ddp", "--profile",
                                           self.profile_path(links_of(case)))
        result = Result(case)

        def measure() -> None:
            result.ranks = self.run_rank(case.nnodes, "ddp_rank.py", "--model", of_ranks, "--warmups", 2, "--iterations",
                                         self.plan.iterations)
            result.add({**{f"predicted_{key}": value for key, value in predicted.items()}, "verified": result.ranks["verified"],
                        "each_measured_iteration_s": result.ranks["iterations_s"]})

        result.once(self, measure)
        return result


def measure(bench: DdpBench, options: argparse.Namespace) -> list[Result]:
    results = []
    for nnodes in options.nnodes:
        cases = [Case(model, "allreduce", "ddp", nnodes, options.rate) for model in options.models]
        with Network(nnodes) as network:
            on_network = bench.on(network)
            on_network.profile_links(network, cases[0])
            for case in cases:
                results.append(on_network.run_case(case))
                print(results[-1], flush=True)
    return results


def finish(options: argparse.Namespace, results: list[Result]) -> int:
    errors = [abs(result.error) for result in results]
    print(f"error: median {statistics.median(errors) * 100:.1f} %, worst {max(errors) * 100:.1f} %")
    if options.json:
        whole_file.write_json(options.json, {"median_abs_error": statistics.median(errors), "worst_abs_error": max(errors),
                                             "cases": [result.to_json() for result in results]})
    return 0 if all(result.verified for result in results) else 1


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--models", type=some_of(tuple(DIVISORS), str), default=list(DIVISORS),
                        help=f"comma-separated: {', '.join(DIVISORS)}")
    parser.add_argument("--nnodes", type=some_of(NODES, int), default=list(NODES), help="comma-separated: 2, 4")
    parser.add_argument("--rate", type=at_least(1), default=200, help="Mbit/s each way of every host")


def run(options: argparse.Namespace) -> int:
    bench = DdpBench.of(options)
    print(HEADER, flush=True)
    return finish(options, measure(bench, options))


EXPERIMENT = Experiment(run, add_options, iterations=8, kept="profiles")
