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

#: Algorithms that are profiled.
PROFILED = "fp16,onebit,terngrad,dgc"
MOST_NODES = max(NODES)
#: Of tools, which are run again here where something disturbed them.
ONCE = ("--again", 0)
#: Iterations before the measured ones: of algorithms whose states are unusual in the first.
WARMUPS = {"dgc": 8}


def links_of(case: Case) -> str:
    """The profile that a case's links come from, but on loopback: of as many ranks as the case has. They all live on this machine, and
    what a message costs depends on how busy they keep its cores: where one idles, somebody has to be woken on it."""
    return f"{case.rate}_{case.nnodes}"


@dataclasses.dataclass(frozen=True)
class Plan:
    """How much is measured. A round runs every case of a group once, so that what changes on the machine meanwhile
    touches all of them alike."""

    rounds: int = 3
    iterations: int = 12  #: per round, after a warm-up, at most
    #: Of a case that takes long, as many iterations a round as fit into so many seconds, but one; and once two rounds
    #: have taken three times as long, no more rounds.
    ROUND_S = 1.0
    #: Rounds of a case that are thrown away because other programs were busy, at most; then they are kept and counted.
    again: int = 2

    #: Seconds per round: for a case beside its iterations (starting processes, meeting, verifying), and for what is profiled
    #: anew.
    OVERHEAD_S, KERNELS_S, LOOPBACK_S = 1.0, 20.0, 60.0
    #: Seconds of an iteration, before one was measured.
    TYPICAL_S = {"none": 2.5, "fp16": 1.3}
    TYPICAL_COMPRESSED_S, TYPICAL_LOOPBACK_S = 0.12, 0.15
    #: Seconds of iterations that are traced, at most, but one: less than the launcher waits for them.
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
        """How many iterations the one that is traced is the median of."""
        return max(1, min(self.rounds * self.iterations, int(self.TRACED_S / iteration_s)))

    def next_iterations(self, case: Case, measured: "Repetitions") -> int:
        """How many iterations the next round of a case has; 0: it has been measured enough."""
        iteration_s = statistics.median(measured.seconds) if measured.seconds else self.typical_s(case)
        if len(measured.rounds) >= 2 and 2 * len(measured.rounds) * iteration_s > 3 * self.ROUND_S:
            return 0
        return self.that_fit(iteration_s)


@dataclasses.dataclass(frozen=True)
class Profile:
    """A file, and what the machine was like when it was measured."""

    path: pathlib.Path
    conditions: Conditions
    disturbed: bool = False


@dataclasses.dataclass
class Bench:
    """Profiles and models of one run, and the tools to run cases with."""

    launcher: Launcher
    models: pathlib.Path
    output: pathlib.Path
    plan: Plan
    say: Callable[[str], None]
    keep_profiles: bool = False  #: of links, those that are there
    #: Those of this round, by the algorithms whose kernels they hold.
    recent: dict[str, list[Profile]] = dataclasses.field(default_factory=dict)

    @classmethod
    def of(cls, options: argparse.Namespace, **fields: object) -> Self:
        """One on no network yet, as the options of an experiment say."""
        given = {name: getattr(options, name) for name in ("rounds", "iterations", "again") if hasattr(options, name)}
        return cls(Launcher(options.tools, None, options.real_time), ROOT / "models", getattr(options, "output", pathlib.Path()),
                   Plan(**given), options.say, getattr(options, "resume", False), **fields)

    def on(self, network: Network | None) -> Self:
        return dataclasses.replace(self, launcher=dataclasses.replace(self.launcher, network=network), recent={})

    @property
    def alone(self) -> Launcher:
        """One process on this machine instead of ranks on the network."""
        return dataclasses.replace(self.launcher, network=None)

    @property
    def ordinary(self) -> Launcher:
        """The same for what measures nothing: scheduled as other programs are."""
        return dataclasses.replace(self.alone, real_time=False)

    def profile_path(self, name: object) -> pathlib.Path:
        return self.output / f"profile_{name}.yaml"

    def measure_profile(self, name: object, nnodes: int, *arguments: object) -> None:
        """Of links, which takes longer than the host leaves processors where they are, and hardly depends on it."""
        path = self.profile_path(name)
        started = time.monotonic()
        _, disturbed = self.undisturbed(
            lambda: self.launcher.run(nnodes, "hipress-profile", "--quick", *ONCE, "--output", path, *arguments), taken_between)
        times = 1 + self.plan.again
        diagnostic = "" if not disturbed else f", the last of {times} times, all disturbed" if times > 1 else ", disturbed"
        self.say(f"profiled {name} with {nnodes} ranks in {time.monotonic() - started:.0f} s{diagnostic} -> {path}")

    def undisturbed(self, measure: Callable[[], object],
                    disturbed: Callable[[Conditions, Conditions], bool]) -> tuple[Conditions, bool]:
        """Measures, again while something disturbs it, but not forever: the last one's conditions, and whether it was
        disturbed too."""
        for _ in range(1 + self.plan.again):
            before = Conditions.read()
            measure()
            if not disturbed(before, Conditions.read()):
                return before, False
        return before, True

    def profile_links(self, network: Network, case: Case) -> None:
        """The CPU work of transfers from the network without limits, links from the limited one, which then stays."""
        limited = links_of(case)
        unlimited = f"unlimited_{limited}"
        if not self.has_profile(unlimited):
            network.lift(case.rate)
            # Some kernels have to be named; those that count are profiled anew.
            self.measure_profile(unlimited, case.nnodes, "--algorithm", "fp16", "--passes", 1)
        network.shape(case.rate)
        if not self.has_profile(limited):
            self.measure_profile(limited, case.nnodes, "--base", self.profile_path(unlimited))

    def kernels_of(self, case: Case) -> str:
        """The algorithms whose kernels the profile of a case has: those that its prediction needs, one at least; on loopback,
        where one takes longer to measure, all."""
        if case.rate == LOOPBACK:
            return PROFILED
        return "fp16" if case.algorithm == "none" else case.algorithm

    def profile_now(self, case: Case) -> Profile:
        """One of this round, from when the processors were where they are now; if there is none, it is measured."""
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
        """What depends on where the processors are: kernels, and on loopback, where nothing but copying takes time, all."""
        if case.rate == LOOPBACK:
            self.launcher.run(case.nnodes, "hipress-profile", "--quick", *ONCE, "--passes", 1, "--algorithm", kernels, "--output",
                              path)
        else:
            self.profile_kernels(case, kernels, path)

    def profile_kernels(self, case: Case, algorithms: str, path: pathlib.Path, *more: object) -> None:
        """A profile with links of the case's network and kernels measured anew."""
        self.alone.run(2, "hipress-profile", "--quick", *ONCE, "--passes", 1, "--algorithm", algorithms, "--output", path, "--base",
                       self.profile_path(links_of(case)), "--anew", "kernels", *more)

    def has_profile(self, name: object) -> bool:
        return self.keep_profiles and self.profile_path(name).exists()

    def run_group(self, cases: list[Case]) -> list[Result]:
        """Plans for one job, repetitions interleaved."""
        first = cases[0]
        model, scale = write_model(self.models, first.model, first.rate, self.output)
        measured = {case: Repetitions() for case in cases}
        ordered = sorted(cases, key=self.kernels_of)  # what one profile serves follows on it
        for number in range(self.plan.rounds):
            self.recent.clear()
            # To and fro, so that no plan is always the one run last, longest after its profile.
            for case in ordered if number % 2 == 0 else reversed(ordered):
                self.run_once(case, model, measured[case])
        return [repetitions.result(case, scale) for case, repetitions in measured.items()]

    def run_once(self, case: Case, model: pathlib.Path, repetitions: "Repetitions") -> None:
        """One round of one case, again if something disturbed it, with a profile of such conditions as it found."""
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
        """Predicted and measured timeline of the median of some iterations, which take about so long each; what hipress-exec says
        of them."""
        model, _ = write_model(self.models, case.model, case.rate, self.output)
        self.recent.clear()
        arguments = self.arguments(case, model, self.profile_now(case))
        return self.launcher.run(case.nnodes, "hipress-exec", *arguments, *ONCE, "--iterations", self.plan.to_trace(iteration_s),
                                 "--trace", path)


@dataclasses.dataclass(frozen=True)
class Round:
    """One start of a case, with the prediction from what was profiled about then."""

    seconds: tuple[float, ...]  #: measured iterations
    predicted_s: float
    interval_s: tuple[float, float]  #: of the prediction
    disturbed: bool  #: the one or the other, so that those without are of like conditions


class Repetitions:
    """What was measured of one case so far."""

    def __init__(self) -> None:
        self.rounds: list[Round] = []
        self.thrown_away = 0  #: rounds
        self.repeated = 0  #: iterations of these
        self.report: dict = {}

    @property
    def kept(self) -> list[Round]:
        """Those that nobody disturbed; if there are none, all."""
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
    """Consecutive cases of one group."""
    group: list[Case] = []
    for case in cases:
        if group and group[0].group != case.group:
            yield group
            group = []
        group.append(case)
    if group:
        yield group
