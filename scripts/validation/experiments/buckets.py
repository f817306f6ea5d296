"""Compares the bucket_cap_mb that `hipress-plan --advise` names with the fastest of {1, 5, 25, 50, 100, 250}, measured with
PyTorch's DistributedDataParallel over gloo, on networks of known speed.

The ten jobs are shipped models with made-up gradients, scaled as in the experiment ddp, on 2 and 4 ranks at 200 and 1000 Mbit/s.
Each rank has a model for each cap. Their iterations take turns, so that changes of the machine's speed affect all caps alike. A
choice is right if its median iteration is within 3 % of the fastest. Needs a python3 with torch.
"""

import argparse
import dataclasses
import itertools
import re
import statistics

import whole_file
from options import at_least

from ..cases import Case, Scale, scale_of
from ..command import Experiment
from ..conditions import taken_between
from ..measurement import links_of
from ..network import Network
from ..ranks import ToolError
from ..torch_bench import GlooBench
from .ddp import EMULATED_RATE

CAPS = (25, 1, 5, 50, 100, 250)
#: Jobs as (model, ranks, Mbit/s); those of one network are consecutive.
JOBS = (("resnet50", 2, 200), ("bert_base", 2, 200), ("lstm", 2, 200), ("vgg16", 2, 1000), ("transformer", 2, 1000),
        ("vgg16", 4, 200), ("gpt2", 4, 200), ("resnet50", 4, 1000), ("bert_base", 4, 1000), ("ugatit_light", 4, 1000))
#: Size of a model relative to the experiment networks. It is smaller here, because six models share a rank's memory.
SIZE_SHARE = 1 / 3
#: Largest share by which a choice may be slower than the fastest and still count as the fastest.
TIE = 0.03


@dataclasses.dataclass(frozen=True)
class Result:
    """Result of a job: the advised cap, and seconds of iterations by cap."""

    model: str
    nnodes: int
    rate: int
    advised: int
    advice: str  #: sentence of the planner
    by_cap: dict[int, list[float]]
    verified: bool
    disturbed: bool

    def median_s(self, cap: int) -> float:
        return statistics.median(self.by_cap[cap])

    @property
    def fastest(self) -> int:
        return min(self.by_cap, key=self.median_s)

    @property
    def behind(self) -> float:
        """Share by which the advised cap is slower than the fastest."""
        return self.median_s(self.advised) / self.median_s(self.fastest) - 1

    def to_json(self) -> dict:
        return {"model": self.model, "nnodes": self.nnodes, "rate": self.rate, "advised": self.advised, "fastest": self.fastest,
                "behind": self.behind, "right": self.behind <= TIE, "verified": self.verified, "disturbed": self.disturbed,
                "advice": self.advice, "iterations_s": {str(cap): seconds for cap, seconds in self.by_cap.items()}}

    def row(self) -> str:
        times = " ".join(f"{cap}: {self.median_s(cap) * 1e3:.1f}" for cap in sorted(self.by_cap))
        return (f"{self.model:12} {self.nnodes} {self.rate:5}  advised {self.advised:3}, fastest {self.fastest:3}: "
                f"{self.behind * 100:+5.1f} %  (ms by cap: {times}){' disturbed' if self.disturbed else ''}"
                f"{'' if self.verified else ' WRONG'}")


def advised_cap(sentences: list[str]) -> tuple[int, str]:
    """Cap that the advice names, and its sentence. Raises ToolError if the advice names none."""
    for sentence in sentences:
        if found := re.match(r"bucket_cap_mb (\d+)", sentence):
            return int(found[1]), sentence
    raise ToolError("hipress-plan --advise says nothing of bucket_cap_mb")


@dataclasses.dataclass
class BucketBench(GlooBench):
    """Ranks of DDP with a model for each cap."""

    def run_case(self, case: Case) -> Result:
        size = SIZE_SHARE * scale_of((self.models / f"{case.model}.yaml").read_text(), case.rate).size
        yaml, of_ranks = self.write_scaled(case, Scale(size, size * EMULATED_RATE / case.rate))
        planned = self.ordinary.run_json(case.nnodes, "hipress-plan", "--input", yaml, "--profile", self.profile_path(links_of(case)),
                                         "--advise")
        cap, sentence = advised_cap(planned["in_words"])
        caps = itertools.chain.from_iterable(("--bucket-mb", cap) for cap in CAPS)
        measured = {}
        _, disturbed = self.undisturbed(lambda: measured.update(self.run_rank(
            case.nnodes, "ddp_rank.py", "--model", of_ranks, "--warmups", 2, "--iterations", self.plan.iterations, *caps)), taken_between)
        by_cap = {int(float(one)): seconds for one, seconds in measured["by_bucket_mb"].items()}
        return Result(case.model, case.nnodes, case.rate, cap, sentence, by_cap, measured["verified"], disturbed)


def measure(bench: BucketBench, jobs: list[tuple]) -> list[Result]:
    results = []
    for (nnodes, rate), of_network in itertools.groupby(jobs, key=lambda job: job[1:]):
        cases = [Case(model, "allreduce", "ddp", nnodes, rate) for model, *_ in of_network]
        with Network(nnodes) as network:
            on_network = bench.on(network)
            on_network.profile_links(network, cases[0])
            for case in cases:
                results.append(on_network.run_case(case))
                print(results[-1].row(), flush=True)
    return results


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--jobs", type=at_least(1), default=len(JOBS), help="number of jobs, of the ten the first ones")


def run(options: argparse.Namespace) -> int:
    results = measure(BucketBench.of(options), JOBS[:options.jobs])
    right = sum(result.behind <= TIE for result in results)
    print(f"advised within {TIE * 100:.0f} % of the fastest in {right} of {len(results)} jobs")
    if options.json:
        whole_file.write_json(options.json, {"right": right, "jobs": len(results),
                                             "cases": [result.to_json() for result in results]})
    return 0 if all(result.verified for result in results) else 1


EXPERIMENT = Experiment(run, add_options, iterations=5, kept="profiles")
