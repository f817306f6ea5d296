"""Replays the plans that hipress-plan finds and those that it should beat, on networks of known speed. The jobs are {ResNet50,
VGG16, LSTM, GPT-2} x {ps, ring} x {200, 1000} Mbit/s on four nodes. Each runs with the plans none, fp16, all, secopa, greedy and
timeline, made for the profile of its network with the tool's default algorithms. Prints every time, and for every job whether
timeline is the fastest as measured, or within the spread of the fastest.
"""

import argparse
import dataclasses
import pathlib

import whole_file
from options import at_least

from .. import cases as matrix
from ..cases import Case, write_model
from ..command import Experiment
from ..evaluation import Result
from ..measurement import MOST_NODES, PROFILED, Bench, Plan, Profile, by_group
from ..network import Network

NAMED = ("none", "fp16", "all")
SEARCHES = ("secopa", "greedy", "timeline")
RATES = (200, 1000)


@dataclasses.dataclass
class PlanBench(Bench):
    """Bench whose cases have the name of a plan as their algorithm."""

    budget_s: float = 5  #: budget of search timeline

    def plan_path(self, case: Case) -> pathlib.Path:
        return self.output / f"{case.model}_{case.rate}_{case.topology}_{case.algorithm}.yaml"

    def kernels_of(self, case: Case) -> str:
        """Algorithms whose kernels a profile needs. One profile serves all cases, because the search decides which algorithms a
        plan uses."""
        return PROFILED

    def search(self, case: Case) -> None:
        """Searches for a case's plan on the machine's present profile, and writes it."""
        model, _ = write_model(self.models, case.model, case.rate, self.output)
        budget = ("--budget", self.budget_s) if case.algorithm == "timeline" else ()
        self.ordinary.run(case.nnodes, "hipress-plan", "--input", model, "--topology", case.topology, "--search", case.algorithm,
                          "--profile", self.profile_now(case).path, "--output", self.plan_path(case), *budget)

    def arguments(self, case: Case, model: pathlib.Path, profile: Profile) -> list[object]:
        plan = self.plan_path(case) if case.algorithm in SEARCHES else case.algorithm
        return ["--input", model, "--plan", plan, "--topology", case.topology, "--profile", profile.path]


@dataclasses.dataclass(frozen=True)
class Job:
    """Measured times of all plans for a model on a network."""

    results: list[Result]

    @property
    def fastest(self) -> Result:
        return min(self.results, key=lambda result: result.measured_s)

    @property
    def planned(self) -> Result:
        return next(result for result in self.results if result.case.algorithm == "timeline")

    @property
    def verdict(self) -> str:
        """Sentence about the plan of search timeline. Spreads are from the 10th to the 90th percentile of the repetitions."""
        if self.planned is self.fastest:
            return "fastest"
        return "within the spread" if self.planned.p10_s <= self.fastest.p90_s else "slower"

    @property
    def loss(self) -> float:
        return self.planned.measured_s / self.fastest.measured_s - 1


def jobs_of(results: list[Result]) -> list[Job]:
    jobs: dict[tuple, list[Result]] = {}
    for result in results:
        jobs.setdefault((*result.case.group, result.case.topology), []).append(result)
    return [Job(of_job) for of_job in jobs.values()]


def print_job(job: Job) -> None:
    case = job.planned.case
    for result in job.results:
        print(f"{case.model:9} {case.topology:4} {case.rate:5} {result.case.algorithm:9}"
              f"{result.predicted_s * 1e3:8.1f} ms {result.measured_s * 1e3:8.1f} ms "
              f"({result.p10_s * 1e3:.1f} … {result.p90_s * 1e3:.1f}) {result.error * 100:+6.1f} %"
              f"{'' if not result.disturbed else f' disturbed: {result.disturbed}'}")
    behind = "" if job.loss == 0 else f", {job.loss * 100:.1f} % behind {job.fastest.case.algorithm}"
    print(f"{case.model}, {case.topology}, {case.rate} Mbit/s: timeline is {job.verdict}{behind}\n", flush=True)


def to_json(job: Job) -> dict:
    case = job.planned.case
    return {"model": case.model, "topology": case.topology, "rate": case.rate, "nodes": case.nnodes,
            "verdict": job.verdict, "fastest": job.fastest.case.algorithm, "behind_fastest": job.loss,
            "plans": {result.case.algorithm: {
                "predicted_s": result.predicted_s, "measured_s": result.measured_s, "p10_s": result.p10_s,
                "p90_s": result.p90_s, "repetitions_s": result.repetitions_s} for result in job.results}}


def all_cases() -> list[Case]:
    """All cases; those of one model at one rate are consecutive."""
    return [Case(model, topology, plan, MOST_NODES, rate) for rate in RATES for model in matrix.MODELS
            for topology in matrix.TOPOLOGIES for plan in (*NAMED, *SEARCHES)]


def measure(bench: PlanBench, chosen: list[Case]) -> list[Job]:
    jobs = []
    with Network(MOST_NODES) as network:
        on_network = bench.on(network)
        for rate in sorted({case.rate for case in chosen}):
            of_rate = [case for case in chosen if case.rate == rate]
            on_network.profile_links(network, of_rate[0])
            for group in by_group(of_rate):
                on_network.recent.clear()
                for case in group:
                    if case.algorithm in SEARCHES:
                        on_network.search(case)
                for job in jobs_of(on_network.run_group(group)):
                    print_job(job)
                    jobs.append(job)
    return jobs


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--only", default="", metavar="CONDITIONS",
                        help="jobs that meet all of them: model=lstm|gpt2,rate=200,topology=ps")
    parser.add_argument("--budget", type=at_least(0, float), default=PlanBench.budget_s, metavar="SECONDS", help="of search timeline")


def run(options: argparse.Namespace) -> int:
    chosen = matrix.only(all_cases(), options.only)
    jobs = measure(PlanBench.of(options, budget_s=options.budget), chosen)
    won = sum(job.verdict != "slower" for job in jobs)
    print(f"timeline is the fastest, or within the spread of the fastest, in {won} of {len(jobs)} jobs")
    if options.json:
        whole_file.write_json(options.json, [to_json(job) for job in jobs])
    return 0


EXPERIMENT = Experiment(run, add_options, rounds=4, iterations=Plan.iterations, again=Plan.again)
