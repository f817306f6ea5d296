#!/usr/bin/env python3
"""Profiles this machine, plans, and compares predicted with measured times of one model's synchronisation. If permitted (usually as
root), it first does so on a network of 1 Gbit/s made of network namespaces. There it compares the plan that hipress-plan finds with
PyTorch's DDP and its hooks. Then it does so over loopback.

Prints a table with the interval of each prediction, and whether the measured time lies in it. Writes into the output folder:
profile.yaml, network.yaml, the plans, results.json, timeline.json (open it at https://ui.perfetto.dev) and timeline.png. Leaves out
rows that would not end within its time budget, and lists them. Exit status 1 if a tool fails or a synchronised gradient does not
verify, 2 if the request is wrong.
"""

import argparse
import contextlib
import dataclasses
import json
import mmap
import os
import pathlib
import statistics
import subprocess
import sys
import time
from collections.abc import Callable

from options import at_least
from python_that_draws import start_where_matplotlib_is
from validation.cases import GRADIENT, Scale, scaled_model
from validation.command import stop_as_exceptions
from validation.network import CommandError, Network, Unavailable, remove_leftovers
from validation.ranks import Launcher, ToolError, memory_kb
from whole_file import Unwritable, make_folder, write_json
from hipress._style import into_files, save  # noqa: E402  (through the path that whole_file adds)
from hipress._timeline_picture import timeline  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent
#: Algorithms from which hipress-plan chooses by default.
ALGORITHMS = "int8block,fp16"
#: Algorithms to profile: those of the plan, and that of a DDP hook.
PROFILED = f"{ALGORITHMS},powersgd"
PLANNED = "planned"
TITLES = {PLANNED: "the plan found", "none": "no compression", "ddp": "PyTorch DDP", "ddp_fp16": "DDP, fp16 hook",
          "ddp_powersgd": "DDP, PowerSGD hook"}

LOOPBACK, LOOPBACK_PLANS = "loopback", (PLANNED, "none")
#: Topology of plans over loopback that hipress-plan did not make.
LOOPBACK_TOPOLOGY = "ring"
#: Network of known speed: Mbit/s of every host in each direction, and number of hosts. With two hosts, links are measured in half a
#: minute.
NETWORK_MBITS, NETWORK_NODES = 1000, 2
NETWORK_NAME, NETWORK_PLANS = "1 Gbit/s", (PLANNED, "ddp", "ddp_fp16", "ddp_powersgd")
#: Size of the scaled model's gradients on that network, in bytes: about a second without compression. Its times are scaled by the
#: same factor.
NETWORK_BYTES = 100e6
#: Memory to touch before anything is timed, so that the host has provided it: largest size in GiB, size of a piece in bytes, and
#: time limit in seconds.
WARM_GIB, WARM_BYTES, WARM_S = 6, 64 << 20, 10
#: Beginning of hipress-profile's note about a machine whose speed varied.
MOVED = "the machine's speed varied"


class DemoError(Exception):
    """Failure of a tool, with the tool's message. `status` is the demo's exit status: 2 if the tool is missing or refuses the
    request, else 1."""

    def __init__(self, message: str, status: int):
        super().__init__(message)
        self.status = status


@dataclasses.dataclass(frozen=True)
class Case:
    """Predicted and measured times of one plan on one topology and network, as hipress-exec reports them. Times are in seconds.
    Errors are (predicted - measured) / measured; None if the measured time is 0."""

    network: str
    topology: str
    plan: str
    predicted_s: float
    predicted_s_p10: float
    predicted_s_p90: float
    measured_s: float
    error: float
    within_interval: bool | None  #: None if the interval is too wide to be informative
    too_uncertain: bool
    drifted: bool
    notes: tuple[str, ...]
    predicted_exposed_s: float
    measured_exposed_s: float
    exposed_error: float | None
    verified: bool

    @staticmethod
    def from_report(network: str, topology: str, plan: str, report: dict) -> "Case":
        return Case(network, topology, plan, report["predicted_iteration_s"], report["predicted_iteration_s_p10"],
                    report["predicted_iteration_s_p90"], report["measured_iteration_s"]["median"],
                    report["relative_error"], report["within_interval"], report["too_uncertain"], bool(report["drifted"]),
                    tuple(report["notes"]), report["predicted_exposed_communication_s"],
                    report["measured_exposed_communication_s"], report["exposed_communication_relative_error"],
                    report["verified"])


class Tools:
    """Runs the command-line tools of one build."""

    def __init__(self, folder: pathlib.Path):
        self.folder = folder

    def run(self, tool: str, *arguments: object) -> str:
        """Runs a tool, and returns its standard output. If the tool fails, raises DemoError with its standard error."""
        command = [str(self.folder / tool), *map(str, arguments)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False, env=self.environment())
        except OSError as reason:
            raise DemoError(f"{command[0]}: {reason.strerror}; build it with scripts/build.sh demo, or name the folder "
                            "of the tools with --tools", 2) from None
        if done.returncode != 0:
            raise DemoError(f"{' '.join(command)}: exit status {done.returncode}\n{done.stderr.strip()}",
                            2 if done.returncode == 2 else 1)
        return done.stdout

    @staticmethod
    def environment() -> dict[str, str]:
        """Environment with huge pages, without which the first iteration is spent in page faults. Profiling and replays must both
        use it, since it changes the cost of codecs."""
        return {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1", **os.environ}

    def run_json(self, tool: str, *arguments: object) -> dict:
        return json.loads(self.run(tool, *arguments, "--json"))


class Progress:
    """Reports the current step and the remaining time on standard error. The remaining time is the steps' time on two idle cores,
    scaled by the slowness of the finished steps, and at most the rest of the budget."""

    BUDGET_S = 140
    #: Time that finished steps must have taken, in seconds, before the slowness is estimated: on a slower machine, and on a faster
    #: one.
    SOME_S, ENOUGH_S = 4, 20
    WARMING_S, PROFILE_S, PLAN_S, ROW_S, LINKS_S, NETWORK_ROW_S = 4, 28, 4, 8, 35, 5

    def __init__(self, steps: list[float]):
        self.steps = steps
        self.done = 0  #: number of steps that have begun
        self.slowness = 1.0  #: ratio of the steps' times here to those on two idle cores
        self.started = time.monotonic()

    @property
    def left_s(self) -> float:
        """Rest of the budget in seconds."""
        return max(0.0, self.BUDGET_S - (time.monotonic() - self.started))

    @property
    def remaining_s(self) -> float:
        return min(self.left_s, sum(self.steps[self.done:]) * self.slowness)

    def begin(self, what: str) -> None:
        done_s = sum(self.steps[: self.done])
        if done_s >= self.SOME_S:
            slowness = (self.BUDGET_S - self.left_s) / done_s
            self.slowness = slowness if done_s >= self.ENOUGH_S else max(1.0, slowness)
        print(f"demo: step {self.done + 1} of {len(self.steps)}, {what}; about {self.remaining_s:.0f} s remain",
              file=sys.stderr, flush=True)
        self.done += 1

    def has_time(self, step_s: float) -> bool:
        """True if a step of this time on two idle cores would end within the budget."""
        return step_s * self.slowness < self.left_s

    def again(self, step_s: float) -> tuple[str, int]:
        """Option `--again`: repetitions that a tool may do if the machine's speed varies meanwhile; 1 if there is time, else 0."""
        return "--again", int((sum(self.steps[self.done:]) + 2 * step_s) * self.slowness <= self.left_s)


@dataclasses.dataclass(frozen=True)
class Job:
    """Tools, model and parameters of the demo, and the folder of its files."""

    tools: Tools
    output: pathlib.Path
    model: str
    nnodes: int
    iterations: int
    warm_gib: float = WARM_GIB
    shaped: bool = False  #: true for a run on a network of known speed, too, if permitted

    @property
    def profile(self) -> pathlib.Path:
        return self.output / "profile.yaml"

    @property
    def plan(self) -> pathlib.Path:
        return self.output / "plan.yaml"

    @property
    def trace(self) -> pathlib.Path:
        return self.output / "timeline.json"

    def require_model(self) -> None:
        """Raises DemoError for a model that the tools refuse, before the machine is profiled."""
        self.tools.run("hipress-plan", "--input", self.model, "--nnodes", self.nnodes, "--output", self.plan)

    def measure_machine(self, again: tuple[str, int]) -> list[str]:
        """Profiles the machine. Returns the notes about a speed that varied meanwhile."""
        return movement_in(self.tools.run_json("hipress-profile", "--quick", "--nnodes", self.nnodes, *again,
                                               "--algorithm", PROFILED, "--output", self.profile))

    def make_plan(self, profile: pathlib.Path) -> "Plan":
        report = self.tools.run_json("hipress-plan", "--input", self.model, "--profile", profile, "--nnodes", self.nnodes,
                                     "--topology", "BEST", "--algorithm", ALGORITHMS, "--output", self.plan)
        return Plan(self.plan, report["topology"], report["verdict"])

    def exec_arguments(self, plan: str, planned: "Plan", profile: pathlib.Path, again: tuple[str, int]) -> list[object]:
        argument = planned.path if plan == PLANNED else plan
        topology = () if plan == PLANNED else ("--topology", LOOPBACK_TOPOLOGY)
        return ["--input", self.model, "--plan", argument, *topology, "--profile", profile, "--iterations", self.iterations, *again]

    def run_case(self, plan: str, planned: "Plan", again: tuple[str, int]) -> Case:
        trace = ["--trace", self.trace] if plan == PLANNED else []
        report = self.tools.run_json("hipress-exec", *self.exec_arguments(plan, planned, self.profile, again),
                                     "--nnodes", self.nnodes, *trace)
        return Case.from_report(LOOPBACK, planned.topology if plan == PLANNED else LOOPBACK_TOPOLOGY, plan, report)


@dataclasses.dataclass(frozen=True)
class Plan:
    """Plan that hipress-plan found, and its verdict."""

    path: pathlib.Path
    topology: str
    verdict: str


class NetworkJob:
    """Job on hosts of a network of known speed, with the model scaled so that a case takes seconds."""

    def __init__(self, job: Job, network: Network):
        self.launcher = Launcher(job.tools.folder, network)
        self.base = job.profile  #: profile of the machine, which provides the kernels
        self.profile = job.output / "network.yaml"
        folder = job.output / "network"
        make_folder(folder)
        self.job = dataclasses.replace(job, output=folder, model=str(self.write_model(job, folder)),
                                       nnodes=NETWORK_NODES)

    @staticmethod
    def write_model(job: Job, folder: pathlib.Path) -> pathlib.Path:
        text = model_text(job.model)
        scale = min(1.0, NETWORK_BYTES / model_bytes(text))
        path = folder / "model.yaml"
        path.write_text(scaled_model(text, Scale(scale, scale)))
        return path

    def measure_links(self, again: tuple[str, int]) -> list[str]:
        return movement_in(self.launcher.run_json(NETWORK_NODES, "hipress-profile", "--quick", *again, "--base", self.base,
                                                  "--output", self.profile))

    def make_plan(self) -> Plan:
        return self.job.make_plan(self.profile)

    def run_case(self, plan: str, planned: Plan, again: tuple[str, int]) -> Case:
        report = self.launcher.run_json(NETWORK_NODES, "hipress-exec",
                                        *self.job.exec_arguments(plan, planned, self.profile, again))
        return Case.from_report(NETWORK_NAME, planned.topology if plan == PLANNED else "allreduce", plan, report)


def movement_in(report: dict) -> list[str]:
    """Notes about a speed that varied, from a report of hipress-profile."""
    return [note for note in report["notes"] if note.startswith(MOVED)]


def model_text(model: str) -> str:
    try:
        return pathlib.Path(model).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ""


def model_bytes(text: str) -> int:
    """Size of a model's gradients in bytes; 0 for a text that does not have the form of the files in models/."""
    return 4 * sum(int(match["elements"]) for match in GRADIENT.finditer(text))


def warm_memory(most_gib: float) -> None:
    """Touches every page of `most_gib`, or of half of the available memory if that is less, for at most WARM_S. A child process does
    so, since the kernel kills it if memory runs out."""
    size = min(int(most_gib * (1 << 30)), memory_kb("MemAvailable") * 1024 // 2) // mmap.PAGESIZE * mmap.PAGESIZE
    if size == 0:
        return
    child = os.fork()
    if child == 0:
        try:
            memory = mmap.mmap(-1, size)
            end_s = time.monotonic() + WARM_S
            for begin in range(0, size, WARM_BYTES):
                pages = range(begin, min(begin + WARM_BYTES, size), mmap.PAGESIZE)
                memory[pages.start:pages.stop:mmap.PAGESIZE] = bytes(len(pages))
                if time.monotonic() > end_s:
                    break
        finally:
            os._exit(0)
    os.waitpid(child, 0)


def median_error(cases: list[Case]) -> float:
    return statistics.median(abs(case.error) for case in cases)


def median_exposed_error(cases: list[Case]) -> float | None:
    errors = [abs(case.exposed_error) for case in cases if case.exposed_error is not None]
    return statistics.median(errors) if errors else None


HEADER = (f"{'network':9} {'plan':18} {'predicted':>9} {'10–90 %':>17} {'measured':>9} {'inside':>13} {'error':>8} "
          f"{'of exposed':>10}")


def format_error(error: float | None) -> str:
    return "–" if error is None else f"{error * 100:+.1f} %"


def format_inside(case: Case) -> str:
    if case.within_interval is None:
        return "too uncertain"
    return "yes" if case.within_interval else "no"


def format_row(case: Case) -> str:
    interval = f"{case.predicted_s_p10:.3f} … {case.predicted_s_p90:.3f} s"
    return (f"{case.network:9} {TITLES[case.plan]:18} {case.predicted_s:7.3f} s {interval:>17} {case.measured_s:7.3f} s "
            f"{format_inside(case):>13} {format_error(case.error):>8} {format_error(case.exposed_error):>10}   "
            f"verified: {'yes' if case.verified else 'NO'}")


def format_verdict(plan: Plan) -> str:
    return f"hipress-plan: {plan.verdict}".replace("; ", "\n  ")


def format_summary(cases: list[Case]) -> str:
    """Formats the summary, one line for each network."""
    lines = []
    for network in dict.fromkeys(case.network for case in cases):
        of_network = [case for case in cases if case.network == network]
        told = [case for case in of_network if not case.too_uncertain]
        exposed = median_exposed_error(of_network)
        lines.append(f"{network}: median error {median_error(of_network) * 100:.1f} %, "
                     + ("no communication exposed" if exposed is None else f"of exposed communication {exposed * 100:.1f} %")
                     + (f"; {sum(case.within_interval for case in told)} of {len(told)} measurements inside their 10–90 % interval"
                        if told else "")
                     + (f"; {len(of_network) - len(told)} too uncertain to tell" if len(told) < len(of_network) else ""))
    return "\n".join(lines)


def format_disturbance(notes: list[str], cases: list[Case]) -> str:
    """Formats a sentence about a machine whose speed varied; empty if it did not."""
    said = notes[:1]
    drifted = sum(case.drifted for case in cases)
    if drifted:
        said.append(f"{drifted} of {len(cases)} rows ran at another speed than was profiled, so errors say little")
    text = ", and ".join(said)
    return f"{text[0].upper()}{text[1:]}." if text else ""


def write_results(path: pathlib.Path, job: Job, notes: list[str], cases: list[Case]) -> None:
    write_json(path, {
        "model": job.model,
        "nnodes": job.nnodes,
        "algorithms": ALGORITHMS,
        "median_abs_error": median_error(cases),
        "median_abs_exposed_communication_error": median_exposed_error(cases),
        "within_interval": sum(case.within_interval is True for case in cases),
        "too_uncertain": sum(case.too_uncertain for case in cases),
        "drifted": sum(case.drifted for case in cases),
        "notes": notes,
        "cases": [dataclasses.asdict(case) for case in cases],
    })


def draw(trace: pathlib.Path, picture: pathlib.Path) -> None:
    """Draws the timeline, or prints the reason if it cannot: the picture is optional, and matplotlib may be missing."""
    try:
        into_files()
        save(timeline(json.loads(trace.read_text(encoding="utf-8"))).figure, picture)
    except (ImportError, ValueError, OSError) as reason:
        print(f"{picture} not drawn: {reason}")
        return
    print(f"timelines: {picture}; the same for https://ui.perfetto.dev: {trace}")


class Run:
    """Run of the whole demo, with its results so far."""

    def __init__(self, job: Job):
        self.job = job
        self.cases: list[Case] = []
        self.notes: list[str] = []
        self.left_out: list[str] = []
        self.progress = Progress([])

    def add_notes(self, notes: list[str]) -> None:
        """Adds new notes: a profile repeats those of the profile that it builds on."""
        self.notes += [note for note in notes if note not in self.notes]

    def run(self) -> int:
        """Runs all steps, and returns the exit status."""
        job = self.job
        make_folder(job.output)
        job.require_model()
        with contextlib.ExitStack() as stack:
            network = self.make_network(stack) if job.shaped else None
            self.progress = Progress(self.steps(network is not None))
            self.profile_machine()
            if network is not None:
                self.run_on_network(NetworkJob(job, network))
        self.run_on_loopback()
        self.finish()
        return 0 if all(case.verified for case in self.cases) else 1

    @staticmethod
    def steps(shaped: bool) -> list[float]:
        of_network = [Progress.LINKS_S, Progress.PLAN_S, *[Progress.NETWORK_ROW_S] * len(NETWORK_PLANS)]
        return [Progress.WARMING_S, Progress.PROFILE_S, *(of_network if shaped else ()), Progress.PLAN_S,
                *[Progress.ROW_S] * len(LOOPBACK_PLANS)]

    def make_network(self, stack: contextlib.ExitStack) -> Network | None:
        """Makes the network of known speed; if it cannot, prints the reason and returns None."""
        try:
            if model_bytes(model_text(self.job.model)) == 0:
                raise Unavailable(f"{self.job.model} is not written as the files in models/ are, so it cannot be scaled")
            remove_leftovers()
            network = stack.enter_context(Network(NETWORK_NODES))
            network.shape(NETWORK_MBITS)
            return network
        except Unavailable as reason:
            print(f"no network of {NETWORK_NAME}, only loopback: {reason}", flush=True)
        except CommandError as error:
            raise DemoError(str(error), 1) from None
        return None

    def profile_machine(self) -> None:
        self.progress.begin("touching memory")
        warm_memory(self.job.warm_gib)
        self.progress.begin("profiling this machine")
        self.add_notes(self.job.measure_machine(self.progress.again(Progress.PROFILE_S)))

    def run_on_network(self, job: NetworkJob) -> None:
        try:
            self.progress.begin(f"profiling the links of a network of {NETWORK_NAME}")
            self.add_notes(job.measure_links(self.progress.again(Progress.LINKS_S)))
            self.progress.begin(f"planning for {NETWORK_NAME}")
            planned = job.make_plan()
            print(f"{self.job.model}, scaled to {NETWORK_BYTES / 1e6:.0f} MB, {NETWORK_NODES} hosts at {NETWORK_NAME}; median of "
                  f"{self.job.iterations} iterations\n{format_verdict(planned)}\n\n{HEADER}", flush=True)
            for plan in NETWORK_PLANS:
                self.run_row(NETWORK_NAME, plan, lambda again, plan=plan: job.run_case(plan, planned, again))
        except (ToolError, CommandError) as error:
            raise DemoError(str(error), 1) from None

    def run_on_loopback(self) -> None:
        """Runs the plans over loopback, the hardest network to predict: only the processor limits it."""
        if self.cases and not self.progress.has_time(Progress.PLAN_S + Progress.ROW_S):
            self.left_out.append(LOOPBACK)
            return
        self.progress.begin(f"planning for {LOOPBACK}")
        planned = self.job.make_plan(self.job.profile)
        print(f"\n{self.job.model}, {self.job.nnodes} ranks over {LOOPBACK}, which nothing but the processor limits\n"
              f"{'' if self.cases else HEADER}", flush=True)
        for plan in LOOPBACK_PLANS:
            self.run_row(LOOPBACK, plan, lambda again, plan=plan: self.job.run_case(plan, planned, again))

    def run_row(self, network: str, plan: str, measure: Callable[[tuple[str, int]], Case]) -> None:
        """Runs a row if there is time. The first row always runs."""
        what = f"{network}, {TITLES[plan]}"
        if self.cases and not self.progress.has_time(Progress.NETWORK_ROW_S if network == NETWORK_NAME else Progress.ROW_S):
            self.left_out.append(what)
            return
        self.progress.begin(what)
        self.cases.append(measure(self.progress.again(Progress.ROW_S)))
        print(format_row(self.cases[-1]), flush=True)

    def finish(self) -> None:
        print(f"\n{format_summary(self.cases)}")
        if self.left_out:
            print(f"Left out, to end within {Progress.BUDGET_S} s: {'; '.join(self.left_out)}.")
        disturbance = format_disturbance(self.notes, self.cases)
        if disturbance:
            print(disturbance)
        write_results(self.job.output / "results.json", self.job, self.notes, self.cases)
        if any((case.network, case.plan) == (LOOPBACK, PLANNED) for case in self.cases):
            draw(self.job.trace, self.job.output / "timeline.png")


def run(job: Job) -> int:
    return Run(job).run()


def of_project(path: str) -> str:
    """Path of a file of the project, relative to the current folder."""
    return os.path.relpath(ROOT / path)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tools", type=pathlib.Path, default=ROOT / "build/release/bin", help="folder of the tools")
    parser.add_argument("--output", type=pathlib.Path, default=of_project("build/demo"), help="folder of the results")
    parser.add_argument("--model", default=of_project("models/vgg19.yaml"), help="what is trained")
    parser.add_argument("--nnodes", type=at_least(2), default=4, help="ranks")
    parser.add_argument("--iterations", type=at_least(1), default=3, help="measured iterations of each case")
    parser.add_argument("--warm", type=at_least(0, float), default=WARM_GIB, metavar="GIB",
                        help="memory that is touched before anything is timed")
    parser.add_argument("--loopback", action="store_true", help="over loopback alone, on no other network")
    options = parser.parse_args()
    start_where_matplotlib_is()
    stop_as_exceptions()
    try:
        return run(Job(Tools(options.tools.resolve()), options.output, options.model, options.nnodes,
                       options.iterations, options.warm, shaped=not options.loopback))
    except DemoError as error:
        print(f"demo: {error}", file=sys.stderr)
        return error.status
    except Unwritable as error:
        print(f"demo: --output: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"demo: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
