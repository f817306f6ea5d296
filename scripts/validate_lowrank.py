#!/usr/bin/env python3
"""Lays hipress-exec with PowerSGD beside PyTorch's DistributedDataParallel with powerSGD_hook over gloo, in the same run and on
the same networks of known speed, made of network namespaces on this machine; and what was predicted beside what was measured.

Both have the same rank, the same scaled gradients and the same ready times; DDP's bucket size and batching are swept and its
best is taken (one bucket at a time, as over gloo the hook fails with more), ours has the plan that hipress-plan makes of a
profile of this network. Beside that, one gradient of 4096 x 1024 alone, as PowerSGD and as a ring in fp16. Needs a release
build and a python3 with torch; without it, or without the right to make namespaces, it says "skipped: ..." and exits with 0.
"""

import argparse
import dataclasses
import json
import pathlib
import statistics
import sys

import whole_file
from options import at_least
from validate_ddp import RANK, python_with_torch, some_of
from validation import command
from validation.cases import Case, Scale, gradients_of, scale_of, scaled_model
from validation.conditions import taken_between
from validation.evaluation import quantile
from validation.measurement import ONCE, Plan
from validation.network import Network, remove_leftovers
from validation.torch_bench import TorchBench

ROOT = pathlib.Path(__file__).resolve().parent.parent
MODELS = ("resnet50", "vgg16", "gpt2")
RATES = (200, 1000)
NODES = 4
#: What is swept of DDP: MB of its buckets but the first, and whether tensors of one shape are one.
BUCKETS = (1, 5, 25, 100)
ALONE = "name,elements,ready_us,shape\nlarge,4194304,0,4096x1024\n"

HEADER = (f"{'model':10} {'rate':>5} {'predicted':>10} {'p10':>8} {'p90':>8} {'ours':>9} {'error':>7} {'DDP hook':>9} "
          f"{'MB':>4} {'batched':>7} {'DDP/ours':>8}")
say = command.speaker("validate_lowrank")


@dataclasses.dataclass(frozen=True)
class Result:
    """A model at a rate, ours and DDP's, in seconds."""

    model: str
    rate: int
    ours: dict  #: what hipress-exec printed
    ddp: dict  #: {(bucket, batched): iterations}
    disturbed: bool

    @property
    def ours_s(self) -> float:
        return statistics.median(self.ours["each_measured_iteration_s"])

    @property
    def error(self) -> float:
        return self.ours["predicted_iteration_s"] / self.ours_s - 1

    @property
    def inside(self) -> bool:
        return self.ours["predicted_iteration_s_p10"] <= self.ours_s <= self.ours["predicted_iteration_s_p90"]

    @property
    def best(self) -> tuple:
        return min(self.ddp, key=lambda key: statistics.median(self.ddp[key]))

    @property
    def ratio(self) -> float:
        return statistics.median(self.ddp[self.best]) / self.ours_s

    def to_json(self) -> dict:
        return {"model": self.model, "rate": self.rate, "nnodes": NODES, "ours_s": self.ours_s,
                "ours_s_p10": quantile(self.ours["each_measured_iteration_s"], 0.1),
                "ours_s_p90": quantile(self.ours["each_measured_iteration_s"], 0.9),
                "predicted_s": self.ours["predicted_iteration_s"], "predicted_s_p10": self.ours["predicted_iteration_s_p10"],
                "predicted_s_p90": self.ours["predicted_iteration_s_p90"], "error": self.error, "inside": self.inside,
                "verified": self.ours["verified"], "disturbed": self.disturbed, "ratio": self.ratio,
                "ddp": [{"bucket_mb": bucket, "batched": batched, "iterations_s": seconds}
                        for (bucket, batched), seconds in self.ddp.items()]}


def format_row(result: Result) -> str:
    def ms(seconds: float) -> str:
        return f"{seconds * 1e3:.1f}"

    bucket, batched = result.best
    return (f"{result.model:10} {result.rate:5} {ms(result.ours['predicted_iteration_s']):>10} "
            f"{ms(result.ours['predicted_iteration_s_p10']):>8} {ms(result.ours['predicted_iteration_s_p90']):>8} "
            f"{ms(result.ours_s):>9} {result.error * 100:+6.1f}% {ms(statistics.median(result.ddp[result.best])):>9} {bucket:4} "
            f"{'yes' if batched else 'no':>7} {result.ratio:8.2f}{' disturbed' if result.disturbed else ''}"
            f"{'' if result.ours['verified'] else ' WRONG'}")


@dataclasses.dataclass
class LowRankBench(TorchBench):
    """Our links are those of the default transport."""

    rank: int = 4

    @property
    def algorithm(self) -> str:
        return f"powersgd(rank={self.rank},ef=2)"

    def write(self, model: str, rate: int) -> tuple[pathlib.Path, pathlib.Path]:
        text = (self.models / f"{model}.yaml").read_text()
        size = scale_of(text, rate).size
        text = scaled_model(text, Scale(size, size))  # a part of a model computes for its part of the time
        yaml = self.output / f"{model}_{rate}.yaml"
        yaml.write_text(text)
        of_ranks = yaml.with_suffix(".json")
        of_ranks.write_text(json.dumps(gradients_of(text)))
        return yaml, of_ranks

    def profile(self, case: Case, algorithms: str) -> pathlib.Path:
        """Links from this network, kernels anew."""
        path = self.output / f"profile_{case.rate}_{case.model}.yaml"
        self.profile_kernels(case, algorithms, path)
        return path

    def run_plan(self, case: Case, model: pathlib.Path, plan: object, profile: pathlib.Path, *options: object) -> dict:
        return self.launcher.run_json(case.nnodes, "hipress-exec", "--input", model, "--plan", plan, "--topology", case.topology,
                                      "--profile", profile, *ONCE, "--warmup", 3, "--iterations", self.iterations, *options)

    def run_ddp(self, of_ranks: pathlib.Path, bucket: int, batched: bool) -> list[float]:
        ranks = dataclasses.replace(self.launcher, tools=self.python.parent)
        report = ranks.run_json(NODES, self.python.name, "-B", RANK, "--model", of_ranks, "--warmups", 4, "--iterations",
                                self.iterations, "--powersgd", self.rank, "--bucket-mb", bucket,
                                *(["--batched"] if batched else []))
        return report["iterations_s"]

    def run_case(self, case: Case) -> Result:
        yaml, of_ranks = self.write(case.model, case.rate)
        profile = self.profile(case, self.algorithm)
        plan = self.output / f"plan_{case.model}_{case.rate}.yaml"
        alone = dataclasses.replace(self.launcher, network=None, real_time=False)
        alone.run(NODES, "hipress-plan", "--input", yaml, "--topology", case.topology, "--profile", profile,
                  "--algorithm", self.algorithm, "--search", "timeline", "--output", plan)
        ours, ddp = {}, {}

        def measure() -> None:
            ours.update(self.run_plan(case, yaml, plan, profile))
            ddp.update({(bucket, batched): self.run_ddp(of_ranks, bucket, batched)
                        for bucket in BUCKETS for batched in (False, True)})

        _, disturbed = self.undisturbed(measure, taken_between)
        return Result(case.model, case.rate, ours, ddp, disturbed)

    def run_alone(self, case: Case) -> dict:
        """One gradient of 4096 x 1024: seconds as PowerSGD, over either topology, and as a ring in fp16."""
        model = self.output / "alone.csv"
        model.write_text(ALONE)
        profile = self.profile(case, f"fp16,{self.algorithm}")
        seconds = {}
        for name, plan, topology in (("powersgd, ring", self.algorithm, "ring"), ("powersgd, ps", self.algorithm, "ps"),
                                     ("fp16, ring", "fp16", "ring")):
            report = self.run_plan(dataclasses.replace(case, topology=topology), model, plan, profile)
            seconds[name] = statistics.median(report["each_measured_iteration_s"])
        return seconds


def measure(bench: LowRankBench, options: argparse.Namespace) -> tuple[list[Result], dict]:
    results, alone = [], {}
    with Network(NODES) as network:
        for rate in options.rates:
            cases = [Case(model, options.topology, bench.algorithm, NODES, rate) for model in options.models]
            on_network = bench.on(network)
            on_network.profile_links(network, cases[0])
            for case in cases:
                results.append(on_network.run_case(case))
                print(format_row(results[-1]), flush=True)
            if rate == RATES[0]:
                alone = on_network.run_alone(dataclasses.replace(cases[0], model="alone"))
                print(f"4096 x 1024 alone, {rate} Mbit/s: " +
                      ", ".join(f"{name} {seconds * 1e3:.1f} ms" for name, seconds in alone.items()), flush=True)
    return results, alone


def finish(options: argparse.Namespace, results: list[Result], alone: dict) -> int:
    ratios = [result.ratio for result in results]
    errors = [abs(result.error) for result in results]
    print(f"DDP with its hook over ours: median {statistics.median(ratios):.2f}, least {min(ratios):.2f}")
    print(f"error: median {statistics.median(errors) * 100:.1f} %, p90 {quantile(errors, 0.9) * 100:.1f} %, "
          f"{sum(result.inside for result in results)} of {len(results)} inside their interval")
    if alone:
        best = min(seconds for name, seconds in alone.items() if name.startswith("powersgd"))
        print(f"alone: {alone['fp16, ring'] / best:.1f} times as fast as the ring in fp16")
    if options.json:
        whole_file.write_json(options.json, {"rank": options.rank, "alone_s": alone,
                                             "cases": [result.to_json() for result in results]})
    return 0 if all(result.ours["verified"] for result in results) else 1


def parse_arguments() -> argparse.Namespace:
    parser = command.parser(__doc__)
    parser.add_argument("--models", type=some_of(MODELS, str), default=list(MODELS), help=f"comma-separated: {', '.join(MODELS)}")
    parser.add_argument("--rates", type=some_of(RATES, int), default=list(RATES), help="comma-separated: 200, 1000 (Mbit/s)")
    parser.add_argument("--topology", default="ring", help="of our plans: ring, ps or best (default: %(default)s)")
    parser.add_argument("--rank", type=at_least(1), default=LowRankBench.rank, help="of the factors (default: %(default)s)")
    parser.add_argument("--iterations", type=at_least(1), default=LowRankBench.iterations, help="measured of each case")
    command.add_options(parser, ROOT, "validation_lowrank")
    return parser.parse_args()


def run(options: argparse.Namespace, real_time: bool) -> int:
    options.output = whole_file.prepare(options.output, options.json)
    python = python_with_torch()
    remove_leftovers()
    bench = LowRankBench.of(options, real_time, Plan(again=options.again), say, python=python, rank=options.rank)
    print(HEADER, flush=True)
    return finish(options, *measure(bench, options))


def main() -> int:
    options = parse_arguments()
    return command.run(lambda real_time: run(options, real_time), say)


if __name__ == "__main__":
    sys.exit(main())
