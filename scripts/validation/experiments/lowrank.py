"""Compares PowerSGD in hipress-exec with PyTorch's DistributedDataParallel and its powerSGD_hook over gloo, in the same run and on
the same networks of known speed. Also compares predictions with measurements.

Both have the same rank, the same scaled gradients and the same ready times. DDP uses the best of several bucket sizes, with or
without batching; it sends one bucket at a time, because over gloo the hook fails with more. hipress-exec uses the plan that
hipress-plan makes from a profile of this network. In addition, one gradient of 4096 x 1024 is measured alone, as PowerSGD and as a
ring in fp16. Needs a python3 with torch.
"""

import argparse
import dataclasses
import pathlib
import statistics

import whole_file
from options import at_least, some_of

from ..cases import Case, Scale, scale_of
from ..command import Experiment
from ..measurement import ONCE
from ..network import Network
from ..replayed import COLUMNS, Replayed, describe_errors, ms
from ..torch_bench import TorchBench

MODELS = ("resnet50", "vgg16", "gpt2")
RATES = (200, 1000)
NODES = 4
#: Bucket sizes of DDP that are tried, in MB (except for the first bucket), and values of its option to batch tensors of the same
#: shape.
BUCKETS = (1, 5, 25, 100)
ALONE = "name,elements,ready_us,shape\nlarge,4194304,0,4096x1024\n"

HEADER = f"{'model':10} {'rate':>5} {COLUMNS} {'DDP hook':>9} {'MB':>4} {'batched':>7} {'DDP/ours':>8}"


@dataclasses.dataclass
class Result(Replayed):
    """Results of a model at a link rate, with our plan and with DDP."""

    case: Case
    ddp: dict = dataclasses.field(default_factory=dict)  #: {(bucket size, batched): seconds of iterations}

    @property
    def best(self) -> tuple:
        return min(self.ddp, key=lambda key: statistics.median(self.ddp[key]))

    @property
    def ratio(self) -> float:
        return statistics.median(self.ddp[self.best]) / self.measured_s

    def to_json(self) -> dict:
        return {"model": self.case.model, "rate": self.case.rate, "nnodes": NODES, **self.times(), "inside": self.inside,
                "ratio": self.ratio, "ddp": [{"bucket_mb": bucket, "batched": batched, "iterations_s": seconds}
                                             for (bucket, batched), seconds in self.ddp.items()]}

    def __str__(self) -> str:
        bucket, batched = self.best
        return (f"{self.case.model:10} {self.case.rate:5} {self.columns()} {ms(statistics.median(self.ddp[self.best])):>9} {bucket:4} "
                f"{'yes' if batched else 'no':>7} {self.ratio:8.2f}{self.notes()}")


@dataclasses.dataclass
class LowRankBench(TorchBench):
    """Bench whose links are profiled over the tools' default transport, which this project's plans use."""

    rank: int = 4

    @property
    def algorithm(self) -> str:
        return f"powersgd(rank={self.rank},ef=2)"

    def profile(self, case: Case, algorithms: str) -> pathlib.Path:
        """Profiles the links of this network and the kernels."""
        path = self.profile_path(f"{case.rate}_{case.model}")
        self.profile_kernels(case, algorithms, path)
        return path

    def run_plan(self, case: Case, model: pathlib.Path, plan: object, profile: pathlib.Path, *options: object) -> dict:
        return self.launcher.run_json(case.nnodes, "hipress-exec", "--input", model, "--plan", plan, "--topology", case.topology,
                                      "--profile", profile, *ONCE, "--warmup", 3, "--iterations", self.plan.iterations, *options)

    def run_ddp(self, of_ranks: pathlib.Path, bucket: int, batched: bool) -> list[float]:
        return self.run_rank(NODES, "ddp_rank.py", "--model", of_ranks, "--warmups", 4, "--iterations", self.plan.iterations,
                             "--powersgd", self.rank, "--bucket-mb", bucket, *(["--batched"] if batched else []))["iterations_s"]

    def run_case(self, case: Case) -> Result:
        size = scale_of((self.models / f"{case.model}.yaml").read_text(), case.rate).size
        yaml, of_ranks = self.write_scaled(case, Scale(size, size))  # computation is scaled by the same factor as sizes
        profile = self.profile(case, self.algorithm)
        plan = self.output / f"plan_{case.model}_{case.rate}.yaml"
        self.ordinary.run(NODES, "hipress-plan", "--input", yaml, "--topology", case.topology, "--profile", profile,
                          "--algorithm", self.algorithm, "--search", "timeline", "--output", plan)
        result = Result(case)

        def measure() -> None:
            result.add(self.run_plan(case, yaml, plan, profile))
            result.ddp = {(bucket, batched): self.run_ddp(of_ranks, bucket, batched) for bucket in BUCKETS for batched in (False, True)}

        result.once(self, measure)
        return result

    def run_alone(self, case: Case) -> dict:
        """Seconds for one gradient of 4096 x 1024, as PowerSGD over either topology, and as a ring in fp16."""
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
                print(results[-1], flush=True)
            if rate == RATES[0]:
                alone = on_network.run_alone(dataclasses.replace(cases[0], model="alone"))
                print(f"4096 x 1024 alone, {rate} Mbit/s: " +
                      ", ".join(f"{name} {seconds * 1e3:.1f} ms" for name, seconds in alone.items()), flush=True)
    return results, alone


def finish(options: argparse.Namespace, results: list[Result], alone: dict) -> int:
    ratios = [result.ratio for result in results]
    print(f"DDP with its hook over ours: median {statistics.median(ratios):.2f}, least {min(ratios):.2f}")
    print(describe_errors(results))
    if alone:
        best = min(seconds for name, seconds in alone.items() if name.startswith("powersgd"))
        print(f"alone: {alone['fp16, ring'] / best:.1f} times as fast as the ring in fp16")
    if options.json:
        whole_file.write_json(options.json, {"rank": options.rank, "alone_s": alone,
                                             "cases": [result.to_json() for result in results]})
    return 0 if all(result.verified for result in results) else 1


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--models", type=some_of(MODELS, str), default=list(MODELS), help=f"comma-separated: {', '.join(MODELS)}")
    parser.add_argument("--rates", type=some_of(RATES, int), default=list(RATES), help="comma-separated: 200, 1000 (Mbit/s)")
    parser.add_argument("--topology", default="ring", help="of our plans: ring, ps or best (default: %(default)s)")
    parser.add_argument("--rank", type=at_least(1), default=LowRankBench.rank, help="of the factors (default: %(default)s)")


def run(options: argparse.Namespace) -> int:
    bench = LowRankBench.of(options, rank=options.rank)
    print(HEADER, flush=True)
    return finish(options, *measure(bench, options))


EXPERIMENT = Experiment(run, add_options, iterations=8)
