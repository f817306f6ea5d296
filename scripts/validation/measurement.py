"""Profiles the network, then predicts and measures cases."""

import argparse
import dataclasses
import pathlib
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Self

from . import ROOT
from .cases import LOOPBACK, NODES, Case, Scale, write_model
from .conditions import Conditions, disturbed_between, taken_between
from .evaluation import Result
from .network import Network
from .ranks import Launcher

#: Profiled algorithms.
PROFILED = "fp16,onebit,terngrad,dgc"
MOST_NODES = max(NODES)
#: Option that keeps tools from repeating disturbed measurements: Bench repeats them.
ONCE = ("--again", 0)
#: Warm-up iterations, by algorithm, for algorithms whose first states are unusual.
WARMUPS = {"dgc": 8}


def links_of(case: Case) -> str:
    """Name of the profile with the links of a case, except on loopback. It has the case's number of ranks: all ranks share this
    machine, and the cost of a message depends on how busy they keep the cores. On an idle core, a thread has to be woken."""
    return f"{case.rate}_{case.nnodes}"


@dataclasses.dataclass(frozen=True)
class Plan:
    """Amount of measurement. A round runs every case of a group once, so that changes of the machine affect all of them alike."""

    rounds: int = 3
    iterations: int = 12  #: largest number per round, after a warm-up
    #: Time limit of a round in seconds. A case that takes long runs only as many iterations as fit, but at least one. No more
    #: rounds are run once two rounds have taken three times as long.
    ROUND_S = 1.0
    #: Largest number of disturbed rounds of a case that are discarded. Further disturbed rounds are kept and counted.
    again: int = 2

    #: Seconds per round: for a case in addition to its iterations (starting processes, connecting, verifying), and for new profiles
    #: of kernels and of loopback.
    OVERHEAD_S, KERNELS_S, LOOPBACK_S = 1.0, 20.0, 60.0
    #: Assumed seconds of an iteration before one is measured.
    TYPICAL_S = {"none": 2.5, "fp16": 1.3}
    TYPICAL_COMPRESSED_S, TYPICAL_LOOPBACK_S = 0.12, 0.15
    #: Time limit for traced iterations in seconds, below the launcher's timeout. At least one iteration is traced.
    TRACED_S = 10.0

    def estimate_s(self, cases: list[Case]) -> float:
        def case_s(case: Case) -> float:
            iteration_s = self.typical_s(case)
            return self.OVERHEAD_S + iteration_s * (WARMUPS.get(case.algorithm, 1) + self.that_fit(iteration_s))

        profiles_s = sum(self.LOOPBACK_S if rate == LOOPBACK else self.KERNELS_S
                         for rate, *_ in {case.group for case in cases})
        return self.rounds * (profiles_s + sum(map(case_s, cases)))

    def typical_s(self, case: Case) -> float:
        if case.rate == LOOPBACK:
            return self.TYPICAL_LOOPBACK_S
        return self.TYPICAL_S.get(case.algorithm, self.TYPICAL_COMPRESSED_S)

    def that_fit(self, iteration_s: float) -> int:
        return min(self.iterations, max(1, int(self.ROUND_S / iteration_s)))

    def to_trace(self, iteration_s: float) -> int:
        """Number of iterations to replay for a trace. The trace shows the one with the median time."""
        return max(1, min(self.rounds * self.iterations, int(self.TRACED_S / iteration_s)))

    def next_iterations(self, case: Case, measured: "Repetitions") -> int:
        """Number of iterations of a case in the next round; 0 if it has been measured enough."""
        iteration_s = statistics.median(measured.seconds) if measured.seconds else self.typical_s(case)
        if len(measured.rounds) >= 2 and 2 * len(measured.rounds) * iteration_s > 3 * self.ROUND_S:
            return 0
        return self.that_fit(iteration_s)


@dataclasses.dataclass(frozen=True)
class Profile:
    """Path of a profile, and the conditions under which it was measured."""

    path: pathlib.Path
    conditions: Conditions
    disturbed: bool = False


@dataclasses.dataclass
class Bench:
    """Profiles and models of one run, and the tools that run its cases."""

    launcher: Launcher
    models: pathlib.Path
    output: pathlib.Path
    plan: Plan
    say: Callable[[str], None]
    keep_profiles: bool = False  #: true if existing profiles of links are used
    #: Profiles of this round, by the algorithms whose kernels they have.
    recent: dict[str, list[Profile]] = dataclasses.field(default_factory=dict)

    @classmethod
    def of(cls, options: argparse.Namespace, **fields: object) -> Self:
        """Bench without a network, from the options of an experiment."""
        given = {name: getattr(options, name) for name in ("rounds", "iterations", "again") if hasattr(options, name)}
        return cls(Launcher(options.tools, None, options.real_time), ROOT / "models", getattr(options, "output", pathlib.Path()),
                   Plan(**given), options.say, getattr(options, "resume", False), **fields)

    def on(self, network: Network | None) -> Self:
        return dataclasses.replace(self, launcher=dataclasses.replace(self.launcher, network=network), recent={})

    @property
    def alone(self) -> Launcher:
        """Launcher of one process on this machine, instead of ranks on the network."""
        return dataclasses.replace(self.launcher, network=None)

    @property
    def ordinary(self) -> Launcher:
        """Like `alone`, but with the ordinary priority of programs, instead of real time."""
        return dataclasses.replace(self.alone, real_time=False)

    def profile_path(self, name: object) -> pathlib.Path:
        return self.output / f"profile_{name}.yaml"

    def measure_profile(self, name: object, nnodes: int, *arguments: object) -> None:
        """Profiles links. The host may move processors meanwhile, because the profile takes long; it hardly depends on their
        placement."""
        path = self.profile_path(name)
        started = time.monotonic()
        _, disturbed = self.undisturbed(
            lambda: self.launcher.run(nnodes, "hipress-profile", "--quick", *ONCE, "--output", path, *arguments), taken_between)
        times = 1 + self.plan.again
        diagnostic = "" if not disturbed else f", the last of {times} times, all disturbed" if times > 1 else ", disturbed"
        self.say(f"profiled {name} with {nnodes} ranks in {time.monotonic() - started:.0f} s{diagnostic} -> {path}")

    def undisturbed(self, measure: Callable[[], object],
                    disturbed: Callable[[Conditions, Conditions], bool]) -> tuple[Conditions, bool]:
        """Measures, and repeats a disturbed measurement up to `again` times. Returns the conditions before the last measurement,
        and whether that was disturbed, too."""
        for _ in range(1 + self.plan.again):
            before = Conditions.read()
            measure()
            if not disturbed(before, Conditions.read()):
                return before, False
        return before, True

    def profile_links(self, network: Network, case: Case) -> None:
        """Profiles the CPU work of transfers on the network without limits, and then links on the limited network, which stays
        limited."""
        limited = links_of(case)
        unlimited = f"unlimited_{limited}"
        if not self.has_profile(unlimited):
            network.lift(case.rate)
            # hipress-profile needs at least one algorithm; the kernels that count are profiled later.
            self.measure_profile(unlimited, case.nnodes, "--algorithm", "fp16", "--passes", 1)
        network.shape(case.rate)
        if not self.has_profile(limited):
            self.measure_profile(limited, case.nnodes, "--base", self.profile_path(unlimited))

    def kernels_of(self, case: Case) -> str:
        """Algorithms whose kernels the profile of a case needs: those of its prediction, but at least one. On loopback, where a
        profile takes longer, it has all of them."""
        if case.rate == LOOPBACK:
            return PROFILED
        return "fp16" if case.algorithm == "none" else case.algorithm

    def profile_now(self, case: Case) -> Profile:
        """Profile of this round that was measured with processors placed as they are now. If there is none, it is measured."""
        now = Conditions.read()
        kernels = self.kernels_of(case)
        found = self.recent.setdefault(kernels, [])
        for profile in found:
            if profile.conditions.alike(now):
                return profile
        path = self.profile_path(f"{kernels.replace(',', '_')}_{len(found)}")
        found.append(Profile(path, *self.undisturbed(lambda: self.measure_anew(case, kernels, path), disturbed_between)))
        return found[-1]

    def measure_anew(self, case: Case, kernels: str, path: pathlib.Path) -> None:
        """Measures everything that depends on the placement of processors: kernels, and on loopback also links, which consist of
        copies there."""
        if case.rate == LOOPBACK:
            self.launcher.run(case.nnodes, "hipress-profile", "--quick", *ONCE, "--passes", 1, "--algorithm", kernels, "--output",
                              path)
        else:
            self.profile_kernels(case, kernels, path)

    def profile_kernels(self, case: Case, algorithms: str, path: pathlib.Path, *more: object) -> None:
        """Measures a profile with new kernels and the links of the case's network."""
        self.alone.run(2, "hipress-profile", "--quick", *ONCE, "--passes", 1, "--algorithm", algorithms, "--output", path, "--base",
                       self.profile_path(links_of(case)), "--anew", "kernels", *more)

    def has_profile(self, name: object) -> bool:
        return self.keep_profiles and self.profile_path(name).exists()

    def run_group(self, cases: list[Case]) -> list[Result]:
        """Measures the plans for one job, in alternating rounds."""
        first = cases[0]
        model, scale = write_model(self.models, first.model, first.rate, self.output)
        measured = {case: Repetitions() for case in cases}
        ordered = sorted(cases, key=self.kernels_of)  # cases that share a profile are consecutive
        for number in range(self.plan.rounds):
            self.recent.clear()
            # The order alternates, so that no plan always runs last, longest after its profile.
            for case in ordered if number % 2 == 0 else reversed(ordered):
                self.run_once(case, model, measured[case])
        return [repetitions.result(case, scale) for case, repetitions in measured.items()]

    def run_once(self, case: Case, model: pathlib.Path, repetitions: "Repetitions") -> None:
        """Runs one round of a case, with a profile of the same conditions. Repeats it if it was disturbed."""
        iterations = self.plan.next_iterations(case, repetitions)
        while iterations > 0:
            profile = self.profile_now(case)
            before = Conditions.read()
            report = self.launcher.run_json(case.nnodes, "hipress-exec", *self.arguments(case, model, profile),
                                            *ONCE, "--iterations", iterations)
            disturbed = disturbed_between(before, Conditions.read()) or not before.alike(profile.conditions)
            if not disturbed or repetitions.thrown_away >= self.plan.again:
                return repetitions.add(report, disturbed or profile.disturbed)
            repetitions.throw_away(report)

    def arguments(self, case: Case, model: pathlib.Path, profile: Profile) -> list[object]:
        plan = case.algorithm if case.algorithm in ("none", "fp16") else "all"
        algorithm = () if plan != "all" else ("--algorithm", case.algorithm)
        return ["--input", model, "--plan", plan, "--topology", case.topology, *algorithm, "--warmup",
                WARMUPS.get(case.algorithm, 1), "--profile", profile.path]

    def trace(self, case: Case, path: pathlib.Path, iteration_s: float) -> str:
        """Traces the predicted and measured timeline of the median of some iterations, which take about `iteration_s` each. Returns
        the report of hipress-exec."""
        model, _ = write_model(self.models, case.model, case.rate, self.output)
        self.recent.clear()
        arguments = self.arguments(case, model, self.profile_now(case))
        return self.launcher.run(case.nnodes, "hipress-exec", *arguments, *ONCE, "--iterations", self.plan.to_trace(iteration_s),
                                 "--trace", path)


@dataclasses.dataclass(frozen=True)
class Round:
    """One run of a case, with the prediction from a profile of that time."""

    seconds: tuple[float, ...]  #: durations of the measured iterations
    predicted_s: float
    interval_s: tuple[float, float]  #: ends of the prediction's interval
    disturbed: bool  #: true if the profile or the run was disturbed; undisturbed rounds have like conditions


class Repetitions:
    """Measurements of one case so far."""

    def __init__(self) -> None:
        self.rounds: list[Round] = []
        self.thrown_away = 0  #: number of discarded rounds
        self.repeated = 0  #: number of iterations in discarded rounds
        self.report: dict = {}

    @property
    def kept(self) -> list[Round]:
        """Undisturbed rounds; all rounds if each was disturbed."""
        return [one for one in self.rounds if not one.disturbed] or self.rounds

    @property
    def seconds(self) -> tuple[float, ...]:
        return tuple(seconds for one in self.kept for seconds in one.seconds)

    def throw_away(self, report: dict) -> None:
        self.thrown_away += 1
        self.repeated += len(report["each_measured_iteration_s"])

    def add(self, report: dict, disturbed: bool) -> None:
        self.report = report
        self.rounds.append(Round(tuple(report["each_measured_iteration_s"]), report["predicted_iteration_s"],
                                 (report["predicted_iteration_s_p10"], report["predicted_iteration_s_p90"]), disturbed))

    def result(self, case: Case, scale: Scale) -> Result:
        measured = sum(len(one.seconds) for one in self.rounds)
        p10_s, p90_s = (statistics.median(one.interval_s[end] for one in self.kept) for end in (0, 1))
        return Result(case, scale.size, scale.time, statistics.median(one.predicted_s for one in self.kept),
                      self.report["compute_s"], self.seconds,
                      disturbed=sum(len(one.seconds) for one in self.kept if one.disturbed),
                      repeated=self.repeated + measured - len(self.seconds), verified=self.report["verified"],
                      predicted_s_p10=p10_s, predicted_s_p90=p90_s)


def by_group(cases: list[Case]) -> Iterator[list[Case]]:
    """Yields consecutive cases of one group."""
    group: list[Case] = []
    for case in cases:
        if group and group[0].group != case.group:
            yield group
            group = []
        group.append(case)
    if group:
        yield group
