#!/usr/bin/env python3
"""Replays what hipress-plan finds beside the plans that it should beat, on networks of known speed made of network
namespaces on this machine: {ResNet50, VGG16, LSTM, GPT-2} x {ps, ring} x {200, 1000} Mbit/s on four nodes, each with the
plans none, fp16, all, secopa, greedy and timeline, made for the profile of that network with the tool's own algorithms.
Prints every time, and for every job whether timeline is the fastest as measured, or within the spread of the fastest.
Needs a release build; without the right to make namespaces it says "skipped: ..." and exits with 0.
"""

import argparse
import dataclasses
import pathlib
import sys

import whole_file
from options import at_least
from validation import cases as matrix
from validation import command
from validation.cases import Case, write_model
from validation.evaluation import Result
from validation.measurement import MOST_NODES, PROFILED, Bench, Plan, Profile, by_group
from validation.network import Network, remove_leftovers
from validation.ranks import Launcher

ROOT = pathlib.Path(__file__).resolve().parent.parent
NAMED = ("none", "fp16", "all")
SEARCHES = ("secopa", "greedy", "timeline")
RATES = (200, 1000)
say = command.speaker("validate_plans")


@dataclasses.dataclass
class PlanBench(Bench):
    """A bench whose cases have a plan's name for an algorithm."""

    budget_s: float = 5  #: of search timeline

    def plan_path(self, case: Case) -> pathlib.Path:
        return self.output / f"{case.model}_{case.rate}_{case.topology}_{case.algorithm}.yaml"

    def kernels_of(self, case: Case) -> str:
        """One profile serves all: which algorithms a plan has, the search decides."""
        return PROFILED

    def search(self, case: Case) -> None:
        """Writes the plan of a case that is searched, for the machine as it is now."""
        model, _ = write_model(self.models, case.model, case.rate, self.output)
        alone = dataclasses.replace(self.launcher, network=None, real_time=False)
        budget = ("--budget", self.budget_s) if case.algorithm == "timeline" else ()
        alone.run(case.nnodes, "hipress-plan", "--input", model, "--topology", case.topology, "--search", case.algorithm,
                  "--profile", self.profile_now(case).path, "--output", self.plan_path(case), *budget)

    def arguments(self, case: Case, model: pathlib.Path, profile: Profile) -> list[object]:
        plan = self.plan_path(case) if case.algorithm in SEARCHES else case.algorithm
        return ["--input", model, "--plan", plan, "--topology", case.topology, "--profile", profile.path]


@dataclasses.dataclass(frozen=True)
class Job:
    """A model on a network, and its plans, as measured."""

    results: list[Result]

    @property
    def fastest(self) -> Result:
        return min(self.results, key=lambda result: result.measured_s)

    @property
    def planned(self) -> Result:
        return next(result for result in self.results if result.case.algorithm == "timeline")

    @property
    def verdict(self) -> str:
        """Spreads are from the 10th to the 90th percentile of the repetitions."""
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
    """Those of a model at a rate together."""
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


def parse_arguments() -> argparse.Namespace:
    parser = command.parser(__doc__)
    parser.add_argument("--only", default="", metavar="CONDITIONS",
                        help="jobs that meet all of them: model=lstm|gpt2,rate=200,topology=ps")
    parser.add_argument("--rounds", type=at_least(1), default=4, help="how often each plan is started")
    parser.add_argument("--iterations", type=at_least(1), default=Plan.iterations,
                        help="measured iterations of each start")
    parser.add_argument("--budget", type=at_least(0, float), default=5, metavar="SECONDS",
                        help="of search timeline")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="also write the table as JSON")
    parser.add_argument("--output", type=pathlib.Path, default=ROOT / "build/validation_plans",
                        help="folder of profiles and plans")
    parser.add_argument("--tools", type=pathlib.Path, default=ROOT / "build/release/bin", help="folder of the tools")
    return parser.parse_args()


def run(options: argparse.Namespace, real_time: bool) -> int:
    options.output = whole_file.prepare(options.output, options.json)
    chosen = matrix.only(all_cases(), options.only)
    remove_leftovers()
    launcher = Launcher(options.tools.resolve(), None, real_time)
    jobs = measure(PlanBench(launcher, ROOT / "models", options.output, Plan(options.rounds, options.iterations), say,
                             budget_s=options.budget), chosen)
    won = sum(job.verdict != "slower" for job in jobs)
    print(f"timeline is the fastest, or within the spread of the fastest, in {won} of {len(jobs)} jobs")
    if options.json:
        whole_file.write_json(options.json, [to_json(job) for job in jobs])
    return 0


def main() -> int:
    options = parse_arguments()
    return command.run(lambda real_time: run(options, real_time), say)


if __name__ == "__main__":
    sys.exit(main())
