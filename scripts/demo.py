#!/usr/bin/env python3
"""Profiles this machine, then predicts and really runs the synchronisation of one model under several plans: over
loopback, and where that is allowed (as root, as a rule) also over a network of 1 Gbit/s made of network namespaces.

Prints a table of predictions beside measurements, with whether each lies in the prediction's 10–90 % interval and
whether the machine was as fast as when it was profiled. Writes into the output folder: profile.yaml, network.yaml, the
secopa plans, results.json, timeline.json (open it at https://ui.perfetto.dev) and timeline.png. Exit status 1 if a
tool fails or any synchronised gradient does not verify, 2 if the request is wrong.
"""

import argparse
import dataclasses
import json
import mmap
import os
import pathlib
import statistics
import subprocess
import sys
import time

from options import at_least
from picture import Refused, start_where_matplotlib_is
from plot_timeline import plot, read
from validation.cases import GRADIENT, Scale, scaled_model
from validation.command import stop_as_exceptions
from validation.network import CommandError, Network, Unavailable, remove_leftovers
from validation.ranks import Launcher, ToolError, memory_kb
from whole_file import Unwritable, make_folder, write_json

ROOT = pathlib.Path(__file__).resolve().parent.parent
TOPOLOGIES = ("ps", "ring")
PLANS = ("none", "fp16", "all", "secopa")
ALGORITHM = "onebit"
#: The case whose timeline is kept.
TRACED = ("ring", "secopa")

LOOPBACK = "loopback"
#: The network of known speed: Mbit/s each way of every host. Two hosts, whose links are measured in half a minute, and for
#: which ps and ring send alike.
NETWORK_MBITS, NETWORK_NODES, NETWORK_TOPOLOGY = 1000, 2, "ring"
NETWORK_NAME = "1 Gbit/s"
#: Bytes of gradients that the model is scaled to there, its times with it: a second without compression.
NETWORK_BYTES = 100e6
#: GiB of memory that are touched first, at most, so that what a host lends to this machine it has lent before anything is
#: timed.
WARM_GIB = 6
#: Where the machine's speed changes meanwhile, tools measure so often again.
AGAIN = ("--again", 1)
#: How hipress-profile's note begins of a machine that changed all the time.
MOVED = "the machine's speed changed"


class DemoError(Exception):
    """A tool failed; the message says which and what it said. `status` is the demo's exit status for that: 2 where the
    tool says that the request is wrong, or there is no such tool."""

    def __init__(self, message: str, status: int):
        super().__init__(message)
        self.status = status


@dataclasses.dataclass(frozen=True)
class Case:
    """One plan on one topology and network, predicted and measured, as hipress-exec reports it. Times are in seconds;
    errors are (predicted - measured) / measured, None where nothing was measured to be wrong about."""

    network: str
    topology: str
    plan: str
    predicted_s: float
    predicted_s_p10: float
    predicted_s_p90: float
    measured_s: float
    error: float
    within_interval: bool
    drifted: bool
    notes: tuple[str, ...]
    predicted_exposed_s: float
    measured_exposed_s: float
    exposed_error: float | None
    verified: bool

    @property
    def name(self) -> str:
        return f"{self.network}, {self.topology}, {self.plan}"

    @staticmethod
    def from_report(network: str, topology: str, plan: str, report: dict) -> "Case":
        return Case(network, topology, plan, report["predicted_iteration_s"], report["predicted_iteration_s_p10"],
                    report["predicted_iteration_s_p90"], report["measured_iteration_s"]["median"],
                    report["relative_error"], report["within_interval"], bool(report["drifted"]),
                    tuple(report["notes"]), report["predicted_exposed_communication_s"],
                    report["measured_exposed_communication_s"], report["exposed_communication_relative_error"],
                    report["verified"])


class Tools:
    """Runs the command-line tools of one build."""

    def __init__(self, folder: pathlib.Path):
        self.folder = folder

    def run(self, tool: str, *arguments: object) -> str:
        """Returns the tool's standard output; what it says on standard error is shown only if it fails."""
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
        """Gradients of GiBs in huge pages: otherwise the first iteration goes into page faults. Measuring the
        profile and replaying must agree in this, since it changes what codecs cost."""
        return {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1", **os.environ}

    def run_json(self, tool: str, *arguments: object) -> dict:
        return json.loads(self.run(tool, *arguments, "--json"))


class Progress:
    """Says on standard error what is being done, and how long the rest will take. Steps have the seconds that they take
    on a machine of two cores; how much longer this one takes is told by those that it has done."""

    #: So many seconds of steps tell it.
    ENOUGH_S = 20
    WARMING_S, PROFILE_S, ROW_S, LINKS_S, NETWORK_ROW_S = 4, 25, 8, 35, 5

    def __init__(self, steps: list[float]):
        self.steps = steps
        self.done = 0
        self.started = time.monotonic()

    @property
    def remaining_s(self) -> float:
        done_s, left_s = sum(self.steps[: self.done]), sum(self.steps[self.done:])
        return left_s * ((time.monotonic() - self.started) / done_s if done_s >= self.ENOUGH_S else 1)

    def begin(self, what: str) -> None:
        print(f"demo: step {self.done + 1} of {len(self.steps)}, {what}; about {self.remaining_s:.0f} s remain",
              file=sys.stderr, flush=True)
        self.done += 1

    def leave_out(self, steps: int) -> None:
        """The last ones will not be done."""
        del self.steps[len(self.steps) - steps:]


@dataclasses.dataclass(frozen=True)
class Job:
    """What the demo runs, and where its files go."""

    tools: Tools
    output: pathlib.Path
    model: str
    nnodes: int
    iterations: int
    warm_gib: float = WARM_GIB
    shaped: bool = False  #: also on a network of known speed, where that is allowed

    @property
    def profile(self) -> pathlib.Path:
        return self.output / "profile.yaml"

    @property
    def trace(self) -> pathlib.Path:
        return self.output / "timeline.json"

    def require_model(self) -> None:
        """DemoError for a model that the tools do not take, before the machine is profiled for it."""
        self.tools.run("hipress-sim", "--input", self.model, "--plan", "none", "--nnodes", self.nnodes)

    def measure_machine(self) -> list[str]:
        """What the profile says of a machine that changed meanwhile."""
        return movement_in(self.tools.run_json("hipress-profile", "--quick", "--nnodes", self.nnodes, *AGAIN,
                                               "--algorithm", f"{ALGORITHM},fp16", "--output", self.profile))

    def plan_argument(self, topology: str, plan: str) -> str:
        """What --plan takes: the plan's name, or the file of the plan that is searched for here."""
        if plan != "secopa":
            return plan
        path = self.output / f"secopa_{topology}.txt"
        self.tools.run("hipress-plan", "--input", self.model, "--topology", topology, "--nnodes", self.nnodes,
                       "--algorithm", ALGORITHM, "--output", path)  # by the costs published with SeCoPa
        return str(path)

    def exec_arguments(self, topology: str, plan: str, profile: pathlib.Path) -> list[object]:
        return ["--input", self.model, "--plan", self.plan_argument(topology, plan), "--topology", topology,
                "--algorithm", ALGORITHM, "--profile", profile, "--iterations", self.iterations, *AGAIN]

    def run_case(self, topology: str, plan: str) -> Case:
        trace = ["--trace", self.trace] if (topology, plan) == TRACED else []
        report = self.tools.run_json("hipress-exec", *self.exec_arguments(topology, plan, self.profile),
                                     "--nnodes", self.nnodes, *trace)
        return Case.from_report(LOOPBACK, topology, plan, report)


class NetworkJob:
    """The same on hosts of a network of known speed, with the model scaled so that a case takes seconds."""

    def __init__(self, job: Job, network: Network):
        self.launcher = Launcher(job.tools.folder, network)
        self.base = job.profile
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

    def measure_links(self) -> list[str]:
        return movement_in(self.launcher.run_json(NETWORK_NODES, "hipress-profile", "--quick", *AGAIN, "--base",
                                                  self.base, "--output", self.profile))

    def run_case(self, plan: str) -> Case:
        report = self.launcher.run_json(NETWORK_NODES, "hipress-exec",
                                        *self.job.exec_arguments(NETWORK_TOPOLOGY, plan, self.profile))
        return Case.from_report(NETWORK_NAME, NETWORK_TOPOLOGY, plan, report)


def movement_in(report: dict) -> list[str]:
    """Of a report of hipress-profile."""
    return [f"while profiling, {note}" for note in report["notes"] if note.startswith(MOVED)]


def model_text(model: str) -> str:
    try:
        return pathlib.Path(model).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ""


def model_bytes(text: str) -> int:
    """Of a model's gradients; 0 for what is not written as the models in models/ are."""
    return 4 * sum(int(match["elements"]) for match in GRADIENT.finditer(text))


def warm_memory(most_gib: float) -> None:
    """Touches every page of so much memory, half of what is there at most, in a process of its own: where there is less, the
    kernel ends that one."""
    size = min(int(most_gib * (1 << 30)), memory_kb("MemAvailable") * 1024 // 2) // mmap.PAGESIZE * mmap.PAGESIZE
    if size == 0:
        return
    child = os.fork()
    if child == 0:
        try:
            memory = mmap.mmap(-1, size)
            memory[::mmap.PAGESIZE] = bytes(size // mmap.PAGESIZE)
        finally:
            os._exit(0)
    os.waitpid(child, 0)


def median_error(cases: list[Case]) -> float:
    return statistics.median(abs(case.error) for case in cases)


def median_exposed_error(cases: list[Case]) -> float | None:
    errors = [abs(case.exposed_error) for case in cases if case.exposed_error is not None]
    return statistics.median(errors) if errors else None


HEADER = (f"{'network':9} {'topology':8} {'plan':7} {'predicted':>9} {'10–90 %':>17} {'measured':>9} {'error':>8} "
          f"{'inside':>6}   {'exposed predicted':>17} {'measured':>9} {'error':>8}")


def format_error(error: float | None) -> str:
    return "–" if error is None else f"{error * 100:+.1f} %"


def yes_or_no(value: bool) -> str:
    return "yes" if value else "no"


def format_row(case: Case) -> str:
    interval = f"{case.predicted_s_p10:.3f} … {case.predicted_s_p90:.3f} s"
    return (f"{case.network:9} {case.topology:8} {case.plan:7} {case.predicted_s:7.3f} s {interval:>17} "
            f"{case.measured_s:7.3f} s {format_error(case.error):>8} {yes_or_no(case.within_interval):>6}   "
            f"{case.predicted_exposed_s:15.3f} s {case.measured_exposed_s:7.3f} s {format_error(case.exposed_error):>8}   "
            f"verified: {'yes' if case.verified else 'NO'}{', drifted' if case.drifted else ''}")


def format_summary(cases: list[Case]) -> str:
    exposed = median_exposed_error(cases)
    within = sum(case.within_interval for case in cases)
    return (f"median relative error: {median_error(cases) * 100:.1f} % of the iteration time, "
            + ("no communication exposed" if exposed is None
               else f"{exposed * 100:.1f} % of the exposed communication")
            + f"\n{within} of {len(cases)} measurements lie inside the 10–90 % interval of their prediction")


def format_drift(notes: list[str], cases: list[Case]) -> str:
    """What is known of a machine that was not always as fast; empty if it was."""
    lines = [*notes, *(f"{case.name}: {note}" for case in cases for note in case.notes)]
    if not lines:
        return ""
    drifted = sum(case.drifted for case in cases)
    head = (f"the machine drifted: {drifted} of {len(cases)} rows were measured at another speed than was profiled, and "
            "tell little of how good predictions are" if drifted else "the machine was not always as fast:")
    return "\n".join(["", head, *(f"  {line}" for line in lines)])


def write_results(path: pathlib.Path, job: Job, notes: list[str], cases: list[Case]) -> None:
    write_json(path, {
        "model": job.model,
        "nnodes": job.nnodes,
        "algorithm": ALGORITHM,
        "median_abs_error": median_error(cases),
        "median_abs_exposed_communication_error": median_exposed_error(cases),
        "within_interval": sum(case.within_interval for case in cases),
        "drifted": sum(case.drifted for case in cases),
        "notes": notes,
        "cases": [dataclasses.asdict(case) for case in cases],
    })


def draw(trace: pathlib.Path, picture: pathlib.Path) -> None:
    """Draws the timeline, or says why not: the picture is an extra, and matplotlib may be missing."""
    try:
        plot(*read(trace), picture)
    except ImportError as reason:
        print(f"{picture} not drawn: {reason} (Debian package python3-matplotlib)")
        return
    except (Refused, OSError) as reason:
        print(f"{picture} not drawn: {reason}")
        return
    print(f"timelines: {picture}; the same for https://ui.perfetto.dev: {trace}")


class Run:
    """The whole job, and what came of it so far."""

    def __init__(self, job: Job):
        self.job = job
        self.cases: list[Case] = []
        self.notes: list[str] = []
        steps = [Progress.WARMING_S, Progress.PROFILE_S, *[Progress.ROW_S] * len(TOPOLOGIES) * len(PLANS)]
        self.network_steps = [Progress.LINKS_S, *[Progress.NETWORK_ROW_S] * len(PLANS)] if job.shaped else []
        self.progress = Progress(steps + self.network_steps)

    def add(self, case: Case) -> None:
        self.cases.append(case)
        print(format_row(case), flush=True)

    def add_notes(self, notes: list[str]) -> None:
        """A profile also says what that which it builds on says."""
        self.notes += [note for note in notes if note not in self.notes]

    def run(self) -> int:
        """The exit status."""
        job = self.job
        make_folder(job.output)
        job.require_model()
        self.progress.begin("touching memory")
        warm_memory(job.warm_gib)
        self.progress.begin("profiling this machine")
        print(f"profiling this machine -> {job.profile}", flush=True)
        self.add_notes(job.measure_machine())
        print(f"{job.model}, {job.nnodes} ranks on this machine, compressed with {ALGORITHM}; "
              f"median of {job.iterations} iterations\n\n{HEADER}", flush=True)
        for topology in TOPOLOGIES:
            for plan in PLANS:
                self.progress.begin(f"{topology}, {plan}")
                self.add(job.run_case(topology, plan))
        if job.shaped:
            self.run_on_network()
        self.finish()
        return 0 if all(case.verified for case in self.cases) else 1

    def run_on_network(self) -> None:
        """Where that is not possible, says why."""
        try:
            if model_bytes(model_text(self.job.model)) == 0:
                raise Unavailable(f"{self.job.model} is not written as the files in models/ are, so it cannot be scaled")
            remove_leftovers()
            with Network(NETWORK_NODES) as network:
                network.shape(NETWORK_MBITS)
                self.run_network_cases(NetworkJob(self.job, network))
        except Unavailable as reason:
            self.progress.leave_out(len(self.network_steps))
            print(f"no network of {NETWORK_NAME}: {reason}")
        except (ToolError, CommandError) as error:
            raise DemoError(str(error), 1) from None

    def run_network_cases(self, job: NetworkJob) -> None:
        self.progress.begin(f"profiling the links of a network of {NETWORK_NAME}")
        self.add_notes(job.measure_links())
        for plan in PLANS:
            self.progress.begin(f"{NETWORK_NAME}, {plan}")
            self.add(job.run_case(plan))

    def finish(self) -> None:
        print(f"\n{format_summary(self.cases)}")
        drift = format_drift(self.notes, self.cases)
        if drift:
            print(drift)
        write_results(self.job.output / "results.json", self.job, self.notes, self.cases)
        draw(self.job.trace, self.job.output / "timeline.png")


def run(job: Job) -> int:
    return Run(job).run()


def of_project(path: str) -> str:
    """A path of the project, as seen from the current folder."""
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
